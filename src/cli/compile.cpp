#include "cli/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/plan_arguments.hpp"
#include "cli/progress.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"
#include "gpu/kernel_library.hpp"
#include "present/text.hpp"

namespace gdr {
namespace {

struct CompileArguments : PlanArguments {
  std::vector<std::string> archs;
  int jobs = 0;
  OutputArguments output;
};

// One kernel of the result.
struct Row {
  std::string name, arch, target, key, compiler;
  KernelFigures figures;
  int smem_bytes = 0;  // of a launch: what the plan asks for and what the code has besides
  double seconds = 0;
  bool is_cached = false;  // came from the cache
  bool is_stored = false;  // is in it now, on disk
};

std::vector<Row> rows_of(const std::vector<ReadyPlan>& plans, const CacheOptions& cache) {
  std::vector<Row> rows;
  for (const ReadyPlan& ready : plans) {
    const std::vector<bool> stored = are_stored(cache, ready.kernels);
    for (std::size_t i = 0; i < ready.kernels.size(); ++i) {
      const Kernel& kernel = ready.plan->kernels[i];
      const ReadyKernel& made = ready.kernels[i];
      rows.push_back({kernel.name, ready.plan->arch, ready.target, made.key, made.figures.compiler, made.figures,
                      kernel.smem_bytes + made.figures.smem_bytes, made.seconds, made.origin != Origin::made,
                      stored[i]});
    }
  }
  return rows;
}

std::string json_of(const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  json["cache_dir"] = settings().cache_dir.string();
  json["kernels"] = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    json["kernels"].push_back({{"name", row.name},
                               {"arch", row.arch},
                               {"target", row.target},
                               {"kernel_key", row.key},
                               {"nvrtc", row.compiler},
                               {"registers", row.figures.registers},
                               {"spill_bytes", row.figures.spill_bytes},
                               {"local_bytes", row.figures.local_bytes},
                               {"smem_bytes", row.smem_bytes},
                               {"seconds", row.seconds},
                               {"cached", row.is_cached},
                               {"stored", row.is_stored}});
  return json_output(json);
}

std::string table_of(const std::vector<Row>& rows) {
  std::size_t width = 6;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string text = fmt::format("{:<{}}  {:<8} {:>9} {:>7} {:>7} {:>13} {:>8}\n", "kernel", width, "target",
                                 "registers", "spilled", "local", "shared bytes", "seconds");
  int num_cached = 0;
  for (const Row& row : rows) {
    text +=
        fmt::format("{:<{}}  {:<8} {:>9} {:>7} {:>7} {:>13} {:>8}\n", row.name, width, row.target,
                    row.figures.registers, with_commas(row.figures.spill_bytes), with_commas(row.figures.local_bytes),
                    with_commas(row.smem_bytes), row.is_cached ? "cached" : fmt::format("{:.2f}", row.seconds));
    num_cached += row.is_cached;
  }
  text +=
      fmt::format("\n{}, {} of them from the cache; {}\n", plural(static_cast<std::int64_t>(rows.size()), "kernel"),
                  num_cached, settings().cache_dir.empty() ? "nothing is kept on disk" : settings().cache_dir.string());
  return text;
}

void run_compile(const CompileArguments& arguments, std::ostream& out) {
  std::vector<KernelRequest> requests;
  for (const std::string& arch : arguments.archs) requests.push_back({plan_request(arguments, arch), {}});
  // The library never prints: what its cache has to tell is told here.
  LibraryOptions options =
      library_options([](const Notice& notice) { std::cerr << "gdrjit: " << notice.text << '\n'; });
  const CacheOptions cache = options.cache;
  if (arguments.jobs > 0) options.threads = arguments.jobs;
  KernelLibrary library(std::move(options));
  std::vector<ReadyPlan> plans;
  {
    ProgressBar bar("compile");
    plans = library.get_all(requests,
                            [&](int done, int total, const std::string& kernel) { bar.update(done, total, kernel); });
  }
  const std::vector<Row> rows = rows_of(plans, cache);
  deliver(arguments.output, arguments.output.format == "json" ? json_of(rows) : table_of(rows), out);
  // Whoever fills a cache must hear that it was not filled.
  const auto num_lost = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.is_stored; });
  if (num_lost > 0)
    fail(ErrorKind::device, "GDR-L08", "compile: {} of {} kernels could not be stored in the cache; see above",
         num_lost, rows.size());
}

}  // namespace

void add_compile_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command = app.add_subcommand("compile", "Compile a plan's kernels into the cache; needs no GPU");
  auto arguments = std::make_shared<CompileArguments>();
  command
      ->add_option("--arch", arguments->archs, "Architectures, separated by commas: names of shipped configs, or files")
      ->delimiter(',')
      ->required();
  add_plan_arguments(*command, *arguments);
  command
      ->add_option("--jobs", arguments->jobs,
                   "Kernels compiled at once; 0: GDRJIT_NUM_THREADS, else what the machine has")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  add_output_arguments(*command, arguments->output, {"table", "json"});
  command->callback([=, &out] { run_compile(*arguments, out); });
}

}  // namespace gdr
