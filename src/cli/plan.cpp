#include "cli/plan.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/plan_arguments.hpp"
#include "config/file.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "emit/emit.hpp"
#include "gpu/kernel_library.hpp"
#include "plan/planner.hpp"
#include "present/report.hpp"
#include "present/svg.hpp"
#include "present/table.hpp"
#include "present/text.hpp"
#include "schedule/json_text.hpp"
#include "schedule/plan_json.hpp"

namespace gdr {
namespace {

// The arguments of `plan`: what is planned, and for which one architecture.
struct OnePlan : PlanArguments {
  std::string arch;
};

CLI::Option* add_one_plan(CLI::App& command, OnePlan& arguments) {
  CLI::Option* const arch =
      command.add_option("--arch", arguments.arch, "Architecture: the name of a shipped config, or a file");
  add_plan_arguments(command, arguments);
  return arch;
}

PlanResult plan_for(const OnePlan& arguments) {
  const PlanRequest request = plan_request(arguments, arguments.arch);
  return keyed_plan(request, request.arch.targets.front());
}

std::string proof_sentence(const VerifyReport& proof) {
  return fmt::format(
      "Proved: no deadlock, no race, no read of bytes that nobody wrote ({}; {} barrier phases and {} accesses to "
      "shared "
      "memory followed)",
      plural(proof.kernels, "kernel"), with_commas(proof.phases_checked), with_commas(proof.accesses_checked));
}

void run_plan(const OnePlan& arguments, const OutputArguments& output, const std::string& kernel, bool explain,
              std::ostream& out) {
  const PlanResult result = plan_for(arguments);
  if (output.format == "json") {
    deliver(output, report_json(result.plan, result.facts, {.explain = explain}), out);
  } else if (output.format == "svg") {
    deliver(output, plan_svg(result.plan, result.facts, {.kernel = kernel}), out);
  } else {
    TableOptions options;
    options.color = output.file.empty() && color_on_stdout();
    options.explain = explain;
    options.kernel = kernel;
    options.proof = proof_sentence(result.proof);
    deliver(output, plan_table(result.plan, result.facts, options), out);
  }
}

// ------------------------------------------------------------------------------------------------------- verify

Plan read_plan(const std::string& file) {
  constexpr std::size_t kMaxPlanBytes = std::size_t{4} << 20;
  return plan_from_json(read_file(file, kMaxPlanBytes), file);
}

// A plan file says itself how much memory a block may have. Where its architecture is a shipped one, that is checked.
void check_against_arch(const Plan& plan, VerifyReport& report) {
  bool is_shipped = false;
  for (const std::string_view name : config_names(ConfigKind::arch)) is_shipped |= name == plan.arch;
  if (!is_shipped) return;
  const Arch arch = load_arch(plan.arch);
  const auto add = [&](const char* code, const std::string& kernel, std::string what) {
    Finding finding;
    finding.code = code;
    finding.kernel = kernel;
    finding.what = std::move(what);
    report.findings.push_back(std::move(finding));
  };
  if (plan.smem_limit_bytes > arch.smem_per_block_optin_bytes)
    add("GDR-V17", "",
        fmt::format("the plan's limit of {} bytes of shared memory is above the {} that {} grants a block",
                    plan.smem_limit_bytes, arch.smem_per_block_optin_bytes, arch.name));
  for (const Kernel& kernel : plan.kernels)
    if (kernel.threads() > arch.max_threads_per_block)
      add("GDR-V09", kernel.name,
          fmt::format("{} threads a block are more than the {} of {}", kernel.threads(), arch.max_threads_per_block,
                      arch.name));
}

nlohmann::ordered_json place_tree(const OpPlace& place) {
  return {{"op", place.op}, {"role", place.role}, {"warp", place.warp}, {"iteration", place.iteration}};
}

nlohmann::ordered_json proof_tree(const Plan& plan, const VerifyReport& report) {
  nlohmann::ordered_json tree = {{"ok", report.ok()},
                                 {"plan_hash", plan_hash(plan)},
                                 {"kernels", report.kernels},
                                 {"iterations", report.iterations},
                                 {"steps_run", report.steps_run},
                                 {"accesses_checked", report.accesses_checked},
                                 {"phases_checked", report.phases_checked},
                                 {"findings", nlohmann::ordered_json::array()},
                                 {"findings_left_out", report.findings_left_out}};
  for (const Finding& finding : report.findings) {
    nlohmann::ordered_json item = {{"code", finding.code}, {"kernel", finding.kernel}, {"text", finding.text()}};
    if (!finding.a.op.empty()) item["a"] = place_tree(finding.a);
    if (!finding.b.op.empty()) item["b"] = place_tree(finding.b);
    if (!finding.tile.empty()) item["tile"] = finding.tile;
    if (finding.byte_begin >= 0) item["bytes"] = {finding.byte_begin, finding.byte_end};
    tree["findings"].push_back(std::move(item));
  }
  return tree;
}

void run_verify(const std::string& file, const OnePlan& arguments, const OutputArguments& output, std::ostream& out) {
  const Plan plan = file.empty() ? plan_for(arguments).plan : read_plan(file);
  VerifyReport report = verify(plan);
  check_against_arch(plan, report);
  if (output.format == "json") {
    deliver(output, json_text(proof_tree(plan, report)), out);
  } else if (report.ok()) {
    deliver(output, fmt::format("{}: {}\n{}\n", plan.arch, plan_sentence(plan), proof_sentence(report)), out);
  } else {
    deliver(output, report.text(), out);
  }
  if (!report.ok()) {
    const auto num_faults = static_cast<std::int64_t>(report.findings.size()) + report.findings_left_out;
    fail(ErrorKind::check_failed, "GDR-L04", "{}: {} found.", file.empty() ? "plan for " + plan.arch : file,
         plural(num_faults, "fault"));
  }
}

// ---------------------------------------------------------------------------------------------------------- emit

void run_emit(const Plan& plan, const std::string& name, const OutputArguments& output, std::ostream& out) {
  std::string text, known;
  for (const Kernel& kernel : plan.kernels) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", kernel.function);
    if (name.empty() || name == kernel.function || name == kernel.name) text += emit_kernel(plan, kernel);
  }
  if (text.empty())
    fail(ErrorKind::config, "GDR-L06", "--kernel: '{}' is not in the plan; its kernels are {}.", name, known);
  deliver(output, text, out);
}

}  // namespace

void add_plan_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command =
      app.add_subcommand("plan", "Decide tiling, aliasing and roles, and show where everything lies");
  auto arguments = std::make_shared<OnePlan>();
  auto output = std::make_shared<OutputArguments>();
  auto kernel = std::make_shared<std::string>();
  auto explain = std::make_shared<bool>(false);
  add_one_plan(*command, *arguments)->required();
  command->add_flag("--explain", *explain, "Show what else was tried and why it lost, and the log of the passes");
  command->add_option("--kernel", *kernel, "Show only this kernel (table and svg): its name, or what it computes");
  add_output_arguments(*command, *output, {"table", "json", "svg"});
  command->callback([=, &out] { run_plan(*arguments, *output, *kernel, *explain, out); });
}

namespace {

// A plan file, or the arguments of `plan`.
void add_file_or_arguments(CLI::App& command, std::string& file, OnePlan& arguments) {
  CLI::Option* const plan_file = command.add_option("plan", file, "A plan file, as plan --format json writes it");
  plan_file->excludes(add_one_plan(command, arguments));
}

void check_file_or_arguments(const char* command, const std::string& file, const OnePlan& arguments) {
  if (file.empty() && arguments.arch.empty())
    fail(ErrorKind::config, "GDR-L05", "{}: neither a plan file nor --arch is given; one of them is needed.", command);
}

}  // namespace

void add_verify_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command = app.add_subcommand("verify", "Prove that a plan has no deadlock, race or misplaced byte");
  auto file = std::make_shared<std::string>();
  auto arguments = std::make_shared<OnePlan>();
  auto output = std::make_shared<OutputArguments>();
  add_file_or_arguments(*command, *file, *arguments);
  add_output_arguments(*command, *output, {"table", "json"});
  command->callback([=, &out] {
    check_file_or_arguments("verify", *file, *arguments);
    run_verify(*file, *arguments, *output, out);
  });
}

void add_emit_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command = app.add_subcommand("emit", "Write a plan's kernels as CUDA source");
  auto file = std::make_shared<std::string>();
  auto kernel = std::make_shared<std::string>();
  auto arguments = std::make_shared<OnePlan>();
  auto output = std::make_shared<OutputArguments>();
  add_file_or_arguments(*command, *file, *arguments);
  command->add_option("--kernel", *kernel, "Write only this kernel: its name, or what it computes");
  command->add_option("-o,--output", output->file, "Write the result to this file");
  command->callback([=, &out] {
    check_file_or_arguments("emit", *file, *arguments);
    run_emit(file->empty() ? plan_for(*arguments).plan : read_plan(*file), *kernel, *output, out);
  });
}

}  // namespace gdr
