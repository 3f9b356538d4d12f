// run and doctor where there is a GPU: that of tests/fakes, whose kernels write nothing, so that only what is launched
// and said can be checked.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "../cache/support.hpp"
#include "cli/npy.hpp"
#include "process.hpp"

namespace gdr::test {
namespace {

// A folder with a case of zeros, as oracle.py lays it out: bf16, two sequences of 40 tokens, side by side in a batch.
void write_case(const std::filesystem::path& folder, bool is_packed) {
  constexpr std::int64_t T = 40, Hk = 1, Hv = 2, D = 32;
  const std::int64_t B = is_packed ? 1 : 2, tokens = is_packed ? 2 * T : T;
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, DType dtype, const Dims& shape) {
    OwnedTensor tensor(dtype, shape);
    std::memset(tensor.data(), 0, static_cast<std::size_t>(tensor.num_elems()) * 4);
    write_npy(folder / (name + ".npy"), tensor);
  };
  for (const char* name : {"q", "k"}) write(name, DType::fp32, {B, tokens, Hk, D});
  for (const char* name : {"v", "do"}) write(name, DType::fp32, {B, tokens, Hv, D});
  for (const char* name : {"g", "beta"}) write(name, DType::fp32, {B, tokens, Hv});
  nlohmann::json json = {{"B", B},         {"T", tokens},     {"N", 2},           {"Hk", Hk},
                         {"Hv", Hv},       {"K", D},          {"V", D},           {"scale", 1},
                         {"layout", "kv"}, {"has_h0", false}, {"has_dht", false}, {"cu_seqlens", nullptr}};
  if (is_packed) {
    OwnedTensor cu(DType::i32, {3});
    const std::int32_t values[] = {0, T, 2 * T};
    std::memcpy(cu.data(), values, sizeof values);
    write_npy(folder / "cu_seqlens.npy", cu);
    json["cu_seqlens"] = {0, T, 2 * T};
  }
  std::ofstream(folder / "case.json") << json.dump();
}

ProcessOutcome gdrjit(const std::vector<std::string>& arguments, const TempFolder& folder,
                      const std::string& devices = "12.0") {
  return gdrjit_process(arguments, {{"GDRJIT_CACHE_DIR", (folder.path() / "cache").string()},
                                    {"GDRJIT_LIBNVRTC", GDR_FAKE_NVRTC},
                                    {"GDRJIT_LIBCUDA", GDR_FAKE_CUDA},
                                    {"FAKE_CUDA_DEVICES", devices}});
}

}  // namespace

TEST_CASE("run: auto is the GPU where there is one, and says why if it is not") {
  const TempFolder folder;
  const std::string batch = (folder.path() / "batch").string(), packed = (folder.path() / "packed").string();
  write_case(batch, false);
  write_case(packed, true);
  struct Row {
    std::string name;
    std::vector<std::string> arguments;
    std::string backend, device, kernel, told;  // beginnings; ends of kernel
  };
  const Row rows[] = {
      {"auto", {"run", "bwd", "--input", batch}, "cuda", "Fake GPU 0", "__sm_120", ""},
      {"cuda", {"run", "bwd", "--input", batch, "--backend", "cuda"}, "cuda", "Fake GPU 0", "__sm_120", ""},
      {"strategy",
       {"run", "bwd", "--input", batch, "--strategy", "chunk_parallel"},
       "cuda",
       "Fake GPU 0",
       "__sm_120",
       ""},
      {"cpu", {"run", "bwd", "--input", batch, "--backend", "cpu"}, "cpu", "host processor", "", ""},
      {"packed",
       {"run", "bwd", "--input", packed},
       "cpu",
       "host processor",
       "",
       "gdrjit: not on Fake GPU 0: GDR-G03 cuda backend: cu_seqlens is given"},
      {"forward",
       {"run", "fwd", "--input", batch},
       "cpu",
       "host processor",
       "",
       "gdrjit: not on Fake GPU 0: GDR-G03 cuda backend: there are no forward kernels yet"},
      {"fp32",
       {"run", "bwd", "--input", batch, "--dtype", "fp32"},
       "cpu",
       "host processor",
       "",
       "gdrjit: not on Fake GPU 0: GDR-G03 cuda backend: q is fp32"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<std::string> arguments = row.arguments;
    arguments.insert(arguments.end(), {"--format", "json"});
    const ProcessOutcome outcome = gdrjit(arguments, folder);
    CHECK(outcome.error == "");
    REQUIRE(outcome.exit_code == 0);
    const nlohmann::json report = nlohmann::json::parse(outcome.out);
    CHECK(report.at("backend") == row.backend);
    CHECK(report.at("device").get<std::string>().starts_with(row.device));
    CHECK(report.at("kernels").front().get<std::string>().ends_with(row.kernel));
    CHECK_MESSAGE(outcome.told.starts_with(row.told), outcome.told);
    CHECK(outcome.told.empty() == row.told.empty());
  }
  const ProcessOutcome refused = gdrjit({"run", "bwd", "--input", packed, "--backend", "cuda"}, folder);
  CHECK(refused.exit_code == 3);
  CHECK(refused.error.starts_with("GDR-G03 cuda backend: cu_seqlens is given"));
  // The rules of another architecture, on the GPU that is there.
  const ProcessOutcome stand_in = gdrjit(
      {"run", "bwd", "--input", batch, "--backend", "cuda", "--arch", "sm_120", "--format", "json"}, folder, "9.0");
  REQUIRE(stand_in.exit_code == 0);
  CHECK(nlohmann::json::parse(stand_in.out).at("kernels").front().get<std::string>().ends_with("__sm_120"));
  // The fake kernels compute nothing: a check finds that out.
  CHECK(gdrjit({"run", "bwd", "--input", batch, "--check"}, folder).exit_code == 6);
}

TEST_CASE("doctor: NVRTC and every device") {
  const TempFolder folder;
  const ProcessOutcome outcome = gdrjit({"doctor", "--format", "json"}, folder, "9.0,7.5");
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("nvrtc").at("version") == "13.0");
  CHECK(json.at("nvrtc").at("path") == GDR_FAKE_NVRTC);
  CHECK(json.at("backends").at(0).at("available") == true);
  REQUIRE(json.at("devices").size() == 2);
  CHECK(json.at("devices").at(0).at("arch") == "sm_90");
  CHECK(json.at("devices").at(0).at("driver") == "13.0");
  CHECK(json.at("devices").at(1).at("reason").get<std::string>().starts_with("GDR-G01 Fake GPU 1: "));
  const std::string table = gdrjit({"doctor"}, folder).out;
  CHECK(table.find("\nnvrtc      13.0, ") != std::string::npos);
  CHECK(table.find("\ndevice     Fake GPU 0: compute capability 12.0, 132 SMs, 101376 bytes of shared memory a block, "
                   "driver for CUDA 13.0; sm_120\n") != std::string::npos);
}

}  // namespace gdr::test
