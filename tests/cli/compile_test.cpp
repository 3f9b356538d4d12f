// The command compile: forms of the result, what comes from the cache, exit codes. The compiler is that of tests/fakes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../cache/support.hpp"
#include "cli/progress.hpp"
#include "process.hpp"

namespace gdr::test {
namespace {

ProcessOutcome gdrjit(const std::vector<std::string>& arguments, const std::string& cache, const std::string& nvrtc) {
  return gdrjit_process(arguments, {{"GDRJIT_CACHE_DIR", cache}, {"GDRJIT_LIBNVRTC", nvrtc}});
}

// A shape that is planned quickly.
std::string small_shape(const TempFolder& folder) {
  const std::string file = (folder.path() / "small.json").string();
  std::ofstream(file)
      << R"({"schema_version": 1, "about": "for tests", "name": "small", "model": "none", "k_heads": 2, "v_heads": 4,
    "head_dim_k": 16, "head_dim_v": 16, "dtype": "bf16"})";
  return file;
}

constexpr const char* kNowhere = "/nowhere/libnvrtc.so";

}  // namespace

TEST_CASE("compile: figures of every kernel, as JSON and as a table, the second time from the cache, without NVRTC") {
  const TempFolder folder;
  const std::string cache = (folder.path() / "cache").string(), shape = small_shape(folder);
  const std::vector<std::string> command = {"compile", "--arch", "sm_120,sm_90", "--shape", shape, "--format", "json"};
  const ProcessOutcome made = gdrjit(command, cache, GDR_FAKE_NVRTC);
  CHECK(made.error == "");
  REQUIRE(made.exit_code == 0);
  const nlohmann::json report = nlohmann::json::parse(made.out);
  CHECK(report.at("cache_dir") == cache);
  const nlohmann::json plan = nlohmann::json::parse(
      gdrjit({"plan", "--arch", "sm_120", "--shape", shape, "--format", "json"}, cache, kNowhere).out);
  const std::size_t num_kernels = plan.at("kernels").size();
  REQUIRE(report.at("kernels").size() > num_kernels);
  for (std::size_t i = 0; i < num_kernels; ++i) {
    const nlohmann::json& kernel = report.at("kernels").at(i);
    const nlohmann::json& planned = plan.at("kernels").at(i);
    CHECK(kernel.at("name") == planned.at("name"));
    CHECK(kernel.at("kernel_key") == planned.at("kernel_key"));
    CHECK(kernel.at("arch") == "sm_120");
    CHECK(kernel.at("target") == "sm_120f");
    CHECK(kernel.at("registers") == 96);
    CHECK(kernel.at("spill_bytes") == 20);
    CHECK(kernel.at("local_bytes") == 24);
    CHECK(kernel.at("smem_bytes") == planned.at("smem").at("total_bytes").get<int>() + 512);
    CHECK(kernel.at("seconds").get<double>() > 0);
    CHECK(kernel.at("cached") == false);
  }
  CHECK(report.at("kernels").back().at("target") == "sm_90a");

  const ProcessOutcome found = gdrjit(command, cache, kNowhere);
  REQUIRE(found.exit_code == 0);
  const nlohmann::json found_report = nlohmann::json::parse(found.out);
  for (const nlohmann::json& kernel : found_report.at("kernels")) {
    CHECK(kernel.at("cached") == true);
    CHECK(kernel.at("seconds") == 0.0);
    CHECK(kernel.at("registers") == 96);
  }
  const ProcessOutcome table = gdrjit({"compile", "--arch", "sm_120", "--shape", shape}, cache, kNowhere);
  CHECK(table.out.starts_with("kernel "));
  CHECK(table.out.find("gdr_prepare_bf16_k16v16_") != std::string::npos);
  CHECK(table.out.find(" cached\n") != std::string::npos);
  CHECK(table.out.ends_with(" from the cache; " + cache + "\n"));

  const std::string file = (folder.path() / "report.json").string();
  std::vector<std::string> to_file = command;
  to_file.insert(to_file.end(), {"-o", file, "--jobs", "1"});
  CHECK(gdrjit(to_file, cache, kNowhere).out == "");
  CHECK(read_file(file) == found.out);
}

TEST_CASE("compile: what is wrong is said with the exit code of its kind") {
  const TempFolder folder;
  const std::string cache = (folder.path() / "cache").string(), shape = small_shape(folder);
  struct Row {
    std::string name;
    std::vector<std::string> arguments;
    const char* nvrtc;
    int exit_code;
    std::string error;  // its beginning
  };
  const Row rows[] = {
      {"no arch", {"compile"}, GDR_FAKE_NVRTC, 2, "--arch is required"},
      {"unknown arch", {"compile", "--arch", "sm_90,sm_999"}, GDR_FAKE_NVRTC, 2, "GDR-C11 "},
      {"forward", {"compile", "--arch", "sm_90", "--ops", "fwd"}, GDR_FAKE_NVRTC, 3, "GDR-L02 "},
      {"does not fit",
       {"compile", "--arch", "sm_90", "--shape", shape, "--budget", "2000"},
       GDR_FAKE_NVRTC,
       3,
       "GDR-P03 "},
      {"jobs", {"compile", "--arch", "sm_90", "--jobs", "-1"}, GDR_FAKE_NVRTC, 2, "--jobs: "},
      {"no compiler",
       {"compile", "--arch", "sm_90", "--shape", shape},
       kNowhere,
       4,
       "GDR-N01 sm_90: its kernels are not in the cache and have to be compiled. libnvrtc: not found"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const ProcessOutcome outcome = gdrjit(row.arguments, cache, row.nvrtc);
    CHECK(outcome.exit_code == row.exit_code);
    CHECK_MESSAGE(outcome.error.starts_with(row.error), outcome.error);
    CHECK(outcome.out == "");
  }
  ::setenv("FAKE_NVRTC_FAIL", "role_", 1);
  const ProcessOutcome failed = gdrjit({"compile", "--arch", "sm_90", "--shape", shape}, cache, GDR_FAKE_NVRTC);
  ::unsetenv("FAKE_NVRTC_FAIL");
  CHECK(failed.exit_code == 4);
  CHECK(failed.error.find("The source is " + cache + "/failed/gdr_") != std::string::npos);
}

TEST_CASE(
    "compile: with a cache folder that cannot be written to the kernels are compiled, and the exit code says so") {
  const TempFolder folder;
  write_file(folder.path() / "file", "");
  const std::string cache = (folder.path() / "file" / "cache").string();
  const ProcessOutcome outcome =
      gdrjit({"compile", "--arch", "sm_120", "--shape", small_shape(folder)}, cache, GDR_FAKE_NVRTC);
  CHECK(outcome.exit_code == 5);
  CHECK(outcome.error.starts_with("GDR-L08 compile: 4 of 4 kernels could not be stored in the cache"));
  CHECK(outcome.out.find("4 kernels, 0 of them from the cache") != std::string::npos);
  CHECK(outcome.told.starts_with("gdrjit: GDR-K0"));
  CHECK(std::count(outcome.told.begin(), outcome.told.end(), '\n') == 1);
}

TEST_CASE("the progress bar's line") {
  CHECK(ProgressBar::line("compile", 0, 4, "a", 80) == "compile [....................] 0 of 4, a");
  CHECK(ProgressBar::line("compile", 1, 4, "gdr_x", 80) == "compile [#####...............] 1 of 4, gdr_x");
  CHECK(ProgressBar::line("compile", 4, 4, "b", 80) == "compile [####################] 4 of 4, b");
  CHECK(ProgressBar::line("compile", 1, 4, "gdr_x", 12) == "compile [###");
}

}  // namespace gdr::test
