#include "verify/verify.hpp"

#include <iterator>
#include <utility>

#include "verify/form.hpp"
#include "verify/memory.hpp"
#include "verify/placement.hpp"
#include "verify/registers.hpp"
#include "verify/tensors.hpp"
#include "verify/timeline.hpp"

namespace gdr {
namespace {

using namespace verifying;

void append(VerifyReport& report, Findings&& findings) {
  report.findings_left_out += findings.left_out();
  std::vector<Finding> taken = std::move(findings).take();
  report.findings.insert(report.findings.end(), std::make_move_iterator(taken.begin()),
                         std::make_move_iterator(taken.end()));
}

// All warps over the addresses of the plan.
void run_kernel(const KernelIndex& index, Findings& findings, VerifyReport& report) {
  MemoryCheck memory(index);
  const int iterations = iterations_to_run(index);
  Timeline timeline(index, iterations);
  timeline.run([&](const StepRun& step) { memory.on_step(step); }, findings);
  timeline.check_phases(findings);
  memory.report(findings);
  report.iterations += iterations;
  report.steps_run += timeline.steps_run();
  report.phases_checked += timeline.phases_checked();
  report.accesses_checked += memory.accesses_checked();
}

// Each group of checks relies on the ones before it.
void check_kernel(const Plan& plan, const Kernel& kernel, Findings& findings, VerifyReport& report) {
  const KernelIndex index = index_kernel(plan, kernel, findings);
  if (findings.count() == 0) check_kernel_form(index, findings);
  if (findings.count() == 0) check_op_forms(index, findings);
  if (findings.count() > 0) return;
  check_kernel_tensors(index, findings);
  check_registers(index, findings);
  if (check_placement(index, findings)) run_kernel(index, findings, report);
}

}  // namespace

VerifyReport verify(const Plan& plan, const Kernel& kernel, const VerifyOptions& options) {
  VerifyReport report;
  report.kernels = 1;
  Findings findings(kernel.name, options.max_findings);
  check_kernel(plan, kernel, findings, report);
  append(report, std::move(findings));
  return report;
}

VerifyReport verify(const Plan& plan, const VerifyOptions& options) {
  VerifyReport report;
  Findings between("", options.max_findings);
  check_plan_tensors(plan, between);
  append(report, std::move(between));
  for (const Kernel& kernel : plan.kernels) {
    VerifyReport one = verify(plan, kernel, options);
    report.kernels += one.kernels;
    report.iterations += one.iterations;
    report.steps_run += one.steps_run;
    report.accesses_checked += one.accesses_checked;
    report.phases_checked += one.phases_checked;
    report.findings_left_out += one.findings_left_out;
    report.findings.insert(report.findings.end(), std::make_move_iterator(one.findings.begin()),
                           std::make_move_iterator(one.findings.end()));
  }
  return report;
}

}  // namespace gdr
