#include "cli/bench.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "cli/output.hpp"
#include "cli/plan_arguments.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"
#include "gpu/bench.hpp"
#include "present/text.hpp"

namespace gdr {
namespace {

struct BenchArguments {
  std::string direction;
  BenchRequest request;
  int group = 2;
  OutputArguments output;
};

nlohmann::ordered_json json_of(const BenchRequest& request, const BenchResult& result) {
  nlohmann::ordered_json json;
  json["device"] = result.device.name;
  json["driver_cuda"] = result.device.driver_version;
  json["arch"] = result.arch;
  json["strategy"] = result.strategy;
  json["target"] = result.target;
  json["chunk"] = result.chunk;
  json["workload"] = {{"sequences", request.sequences},      {"tokens", request.tokens},
                      {"k_heads", request.k_heads},          {"v_heads", request.k_heads * request.problem.group},
                      {"head_dim_k", request.problem.dim_k}, {"head_dim_v", request.problem.dim_v}};
  json["repeats"] = request.repeats;
  json["kernels"] = nlohmann::ordered_json::array();
  for (const BenchKernel& kernel : result.kernels)
    json["kernels"].push_back({{"name", kernel.name},
                               {"function", kernel.function},
                               {"blocks", kernel.blocks},
                               {"threads", kernel.threads},
                               {"median_ms", kernel.median_ms},
                               {"least_ms", kernel.least_ms},
                               {"plan",
                                {{"registers", kernel.plan_registers},
                                 {"smem_bytes", kernel.plan_smem_bytes},
                                 {"blocks_per_sm", kernel.plan_blocks_per_sm},
                                 {"hbm_bytes", kernel.plan_hbm_bytes},
                                 {"flops", kernel.plan_flops}}},
                               {"driver",
                                {{"registers", kernel.registers},
                                 {"local_bytes", kernel.local_bytes},
                                 {"static_smem_bytes", kernel.static_smem_bytes},
                                 {"launch_smem_bytes", kernel.launch_smem_bytes},
                                 {"blocks_per_sm", kernel.blocks_per_sm}}}});
  json["median_ms"] = result.median_ms;
  json["least_ms"] = result.least_ms;
  if (request.check_bits) {
    json["runs_that_differ"] = result.different;
    json["elements_not_written"] = result.unwritten;
  }
  return json;
}

std::string table_of(const BenchRequest& request, const BenchResult& result) {
  std::string text =
      fmt::format("{} {} on {} ({}): {} x {} tokens, {} k-heads, {} v-heads; medians of {}\n\n", result.arch,
                  result.strategy, result.device.name, result.target, request.sequences, with_commas(request.tokens),
                  request.k_heads, request.k_heads * request.problem.group, plural(request.repeats, "run"));
  text += fmt::format("{:<10} {:>9} {:>8} {:>10} {:>10} {:>9} {:>7} {:>13} {:>10}\n", "kernel", "ms", "blocks", "GB/s",
                      "TFLOP/s", "registers", "local", "shared bytes", "blocks/SM");
  for (const BenchKernel& kernel : result.kernels)
    text += fmt::format("{:<10} {:>9.3f} {:>8} {:>10.0f} {:>10.1f} {:>9} {:>7} {:>13} {:>10}\n", kernel.function,
                        kernel.median_ms, with_commas(kernel.blocks),
                        static_cast<double>(kernel.plan_hbm_bytes) / kernel.median_ms * 1e-6,
                        static_cast<double>(kernel.plan_flops) / kernel.median_ms * 1e-9, kernel.registers,
                        with_commas(kernel.local_bytes), with_commas(kernel.launch_smem_bytes), kernel.blocks_per_sm);
  return text + fmt::format("{:<10} {:>9.3f}\n", "all", result.median_ms);
}

void run_bench(const BenchArguments& arguments, std::ostream& out) {
  BenchRequest request = arguments.request;
  request.problem.group = arguments.group;
  // The library never prints: what its cache has to tell is told here.
  GpuSession session(settings().libcuda,
                     library_options([](const Notice& notice) { std::cerr << "gdrjit: " << notice.text << '\n'; }));
  const BenchResult result = gpu_bench(session, request);
  deliver(arguments.output,
          arguments.output.format == "json" ? json_output(json_of(request, result)) : table_of(request, result), out);
  if (result.different > 0 || result.unwritten > 0)
    fail(ErrorKind::check_failed, "GDR-L07",
         "bench: {} of {} runs left other bits than the first, which did not write {} elements of the outputs",
         result.different, request.repeats, result.unwritten);
}

}  // namespace

void add_bench_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command = app.add_subcommand("bench", "Time the kernels of a plan on this machine's GPU");
  auto arguments = std::make_shared<BenchArguments>();
  BenchRequest& request = arguments->request;
  request.tokens = 32'768;
  request.k_heads = 16;
  request.problem = {128, 128, 1};
  command->add_option("direction", arguments->direction, "bwd")->required()->check(CLI::IsMember({"bwd"}));
  command->add_option("--arch", request.rules.arch, "Architecture whose rules the plan follows; default: the device's");
  command->add_option("--strategy", request.rules.strategy, "Name of a strategy; default: fused");
  const auto add_count = [&](const char* name, auto& value, const char* text) {
    command->add_option(name, value, text)->check(CLI::Range(1, 1 << 30))->capture_default_str();
  };
  command->add_option("--device", request.device, "Ordinal of the device")->check(CLI::Range(0, 1 << 10));
  add_count("--sequences", request.sequences, "Sequences of the call");
  add_count("--tokens", request.tokens, "Tokens of each sequence");
  add_count("--k-heads", request.k_heads, "Heads of q and k");
  add_count("--group", arguments->group, "Heads of v for each of k");
  add_count("--dim-k", request.problem.dim_k, "Head dim of q and k");
  add_count("--dim-v", request.problem.dim_v, "Head dim of v");
  add_count("--repeats", request.repeats, "Timed runs");
  command->add_flag("!--no-padding", request.like_planned_arch,
                    "Let more blocks share an SM than would on the plan's architecture");
  command->add_flag("--check-bits", request.check_bits, "Fail unless all runs leave the same bits (not for timing)");
  add_output_arguments(*command, arguments->output, {"table", "json"});
  command->callback([=, &out] { run_bench(*arguments, out); });
}

}  // namespace gdr
