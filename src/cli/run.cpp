#include "cli/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <system_error>

#include "cli/case.hpp"
#include "cli/job.hpp"
#include "cli/npy.hpp"
#include "cli/output.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"

namespace gdr {
namespace {

const std::map<std::string, Direction> kDirections = {{"fwd", Direction::fwd}, {"bwd", Direction::bwd}};
const std::map<std::string, Backend> kBackends = {
    {"auto", Backend::automatic}, {"cuda", Backend::cuda}, {"cpu", Backend::cpu}};
const std::map<std::string, DType> kDTypes = {
    {"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}, {"fp64", DType::fp64}};

// What the user asked for.
struct RunRequest {
  Direction direction = Direction::bwd;
  std::string input, output;
  Options options;
  std::optional<DType> dtype;
  bool check = false;
  bool is_json = false;
};

// What --check found out about one output.
struct Comparison {
  double error = 0;                  // against the token recurrence on the same inputs
  std::optional<double> file_error;  // against out_NAME.npy, if the folder has it
};

struct RunReport {
  Result result;
  double milliseconds = 0;
  DType dtype = DType::fp32;
  Outputs outputs;
  std::map<std::string, Comparison> comparisons;  // empty without --check
  double limit = 0;
};

std::string_view name_of(Backend backend) { return backend == Backend::cuda ? "cuda" : "cpu"; }

std::string text(const Dims& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

void compare(Job& job, RunReport& report) {
  const Outputs truth = job.recurrence(settings().num_threads);
  report.limit = error_limit(job.dtype());
  for (const auto& [name, tensor] : report.outputs) {
    const double least = least_rms(tensor.dtype());
    Comparison& comparison = report.comparisons[name];
    comparison.error = relative_l2(tensor, truth.at(name), least);
    const auto expected = job.test_case().expected.find(name);
    if (expected != job.test_case().expected.end())
      comparison.file_error = relative_l2(tensor, expected->second, least);
  }
}

void write_outputs(const std::string& folder, const Outputs& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorKind::config, "GDR-R03", "{}: cannot be made a folder ({}).", folder, error.message());
  for (const auto& [name, tensor] : outputs) write_npy(std::filesystem::path(folder) / (name + ".npy"), tensor);
}

nlohmann::json json_number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json to_json(const RunRequest& request, const RunReport& report) {
  nlohmann::json json;
  json["backend"] = name_of(report.result.backend);
  json["device"] = report.result.device;
  json["kernels"] = report.result.kernels;
  json["milliseconds"] = report.milliseconds;
  json["direction"] = request.direction == Direction::fwd ? "fwd" : "bwd";
  json["dtype"] = to_string(report.dtype);
  json["errors"] = nlohmann::json::object();
  for (const auto& [name, tensor] : report.outputs) {
    nlohmann::json& entry = json["tensors"][name];
    entry["dtype"] = to_string(tensor.dtype());
    entry["shape"] = std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end());
    entry["norm"] = json_number(norm(tensor));
  }
  for (const auto& [name, comparison] : report.comparisons) {
    json["errors"][name] = json_number(comparison.error);  // null: not finite
    if (comparison.file_error) json["file_errors"][name] = json_number(*comparison.file_error);
  }
  if (!report.comparisons.empty()) json["limit"] = report.limit;
  return json;
}

void print_table(std::ostream& out, const RunRequest& request, const Case& from, const RunReport& report) {
  out << fmt::format("case     {}: B {}, T {}, N {}, Hk {}, Hv {}, K {}, V {}, states {}, scale {:.4g}\n",
                     request.input, from.batch, from.tokens, from.sequences, from.k_heads, from.v_heads, from.dim_k,
                     from.dim_v, from.layout == StateLayout::kv ? "kv" : "vk", from.scale);
  out << fmt::format("backend  {}: {}\n", name_of(report.result.backend), report.result.device);
  out << fmt::format("kernels  {}\n", fmt::join(report.result.kernels, ", "));
  out << fmt::format("time     {:.3f} ms, {} in {}\n\n", report.milliseconds,
                     request.direction == Direction::fwd ? "forward" : "backward", to_string(report.dtype));
  const bool is_checked = !report.comparisons.empty();
  out << fmt::format("{:<12} {:<6} {:<24} {:>10}{}\n", "tensor", "dtype", "shape", "norm",
                     is_checked ? fmt::format(" {:>10} {:>10} {:>10}", "error", "to file", "limit") : "");
  for (const std::string& name : output_names(request.direction)) {
    const OwnedTensor& tensor = report.outputs.at(name);
    std::string columns;
    if (is_checked) {
      const Comparison& comparison = report.comparisons.at(name);
      const std::string file = comparison.file_error ? fmt::format("{:.2e}", *comparison.file_error) : "-";
      columns = fmt::format(" {:>10.2e} {:>10} {:>10.0e}", comparison.error, file, report.limit);
    }
    out << fmt::format("{:<12} {:<6} {:<24} {:>10.3e}{}\n", name, to_string(tensor.dtype()), text(tensor.shape()),
                       norm(tensor), columns);
  }
  if (is_checked)
    out << "\nerror: relative L2 distance to the token recurrence in float64 on the same inputs; to file: to "
           "out_NAME.npy\n";
}

// Throws if a check failed: the first output above its limit, by which comparison, and how many there are.
void judge(const RunReport& report) {
  std::string first;
  int num_failed = 0;
  for (const auto& [name, comparison] : report.comparisons) {
    const bool fails_file = comparison.file_error && !(*comparison.file_error <= report.limit);
    if (comparison.error <= report.limit && !fails_file) continue;
    if (num_failed++ == 0)
      first = fails_file ? fmt::format("{} differs from out_{}.npy by {:.2e}", name, name, *comparison.file_error)
                         : fmt::format("{} differs from the recurrence by {:.2e}", name, comparison.error);
  }
  if (num_failed > 0)
    fail(ErrorKind::check_failed, "GDR-R10",
         "run: {} (relative L2); the limit for {} is {:.0e}. {} of {} outputs are above it.", first,
         to_string(report.dtype), report.limit, num_failed, report.comparisons.size());
}

// `auto` is the GPU where there is one that can do it, else the processor; why not the GPU that is there is told.
Options resolve(const RunRequest& request, const Case& from, DType dtype) {
  Options options = request.options;
  if (options.backend != Backend::automatic || !backends().front().unavailable.empty()) return options;
  options.backend = Backend::cuda;
  ProblemClass problem{from.k_heads, from.v_heads, from.dim_k, from.dim_v, dtype};
  problem.forward = request.direction == Direction::fwd;
  problem.backward = request.direction == Direction::bwd;
  problem.is_packed = from.inputs.contains("cu_seqlens");
  if (const std::optional<std::string> reason = why_not(problem, options)) {
    tell(fmt::format("not on {}: {}", backends().front().device, *reason));
    options.backend = Backend::cpu;
  }
  return options;
}

void run(const RunRequest& request, std::ostream& out) {
  set_notice_handler(tell);
  Case from = read_case(request.input, request.direction);
  const DType dtype = request.dtype.value_or(default_dtype(from));
  const Options options = resolve(request, from, dtype);
  Job job(std::move(from), request.direction, dtype);
  RunReport report;
  report.dtype = dtype;
  report.result = job.run(options, report.outputs, report.milliseconds);
  if (!request.output.empty()) write_outputs(request.output, report.outputs);
  if (request.check) compare(job, report);
  if (request.is_json) {
    out << json_output(to_json(request, report));
  } else {
    print_table(out, request, job.test_case(), report);
  }
  judge(report);
}

}  // namespace

void add_run_command(CLI::App& app, std::ostream& out) {
  auto request = std::make_shared<RunRequest>();
  auto direction = std::make_shared<std::string>(), backend = std::make_shared<std::string>("auto"),
       dtype = std::make_shared<std::string>(), format = std::make_shared<std::string>("table");
  CLI::App* const command = app.add_subcommand("run", "Run the forward or backward pass on a folder of .npy files");
  command->add_option("direction", *direction, "fwd or bwd")->required()->check(CLI::IsMember({"fwd", "bwd"}));
  command
      ->add_option(
          "--input", request->input,
          "Folder with case.json, q.npy, k.npy, v.npy, g.npy, beta.npy and, as the case has them, do.npy, h0.npy, "
          "dht.npy, cu_seqlens.npy (tools/oracle.py case writes such folders)")
      ->required();
  command->add_option("--output", request->output,
                      "Folder for the results, NAME.npy each (o, final_state; dq, dk, dv, dg, dbeta, dh0)");
  command
      ->add_option("--backend", *backend,
                   "auto (the GPU where there is one that can do it, else the processor), cuda or cpu")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command->add_option("--arch", request->options.arch, "Architecture whose rules the cuda backend follows");
  command->add_option("--strategy", request->options.strategy, "Strategy of the cuda backend");
  command
      ->add_option("--threads", request->options.num_threads,
                   "Host threads of the cpu backend; 0: GDRJIT_NUM_THREADS, else what the machine has")
      ->capture_default_str();
  command
      ->add_option(
          "--dtype", *dtype,
          "bf16, fp16, fp32 or fp64: element type that q, k, v, do are cast to and o, dq, dk, dv have; the other "
          "tensors are fp32, with fp64 all are fp64. Default: that of q.npy, or bf16 if q, k, v, do hold only "
          "numbers that bf16 has")
      ->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp64"}));
  command->add_flag(
      "--check", request->check,
      "Compare with the token recurrence in float64, and with out_NAME.npy where the folder has them; exit "
      "code 6 if a relative L2 error is above 0.005 (bf16), 0.001 (fp16), 1e-5 (fp32), 1e-10 (fp64)");
  command->add_option("--format", *format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([=, &out] {
    request->direction = kDirections.at(*direction);
    request->options.backend = kBackends.at(*backend);
    if (!dtype->empty()) request->dtype = kDTypes.at(*dtype);
    request->is_json = *format == "json";
    run(*request, out);
  });
}

}  // namespace gdr
