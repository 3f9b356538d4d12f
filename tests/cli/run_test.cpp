// The command run: exit codes, tables, JSON and files, on a case written here.
#include "cli/run.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>

#include "cli/doctor.hpp"
#include "cli/npy.hpp"
#include "core/settings.hpp"
#include "gdr/version.hpp"

namespace gdr::test {
namespace {

// A folder with a small packed case, as oracle.py lays it out, removed at the end.
struct CaseFolder {
  static constexpr std::int64_t T = 40, Hk = 1, Hv = 2, K = 8, V = 6, N = 2;

  CaseFolder() : path(std::filesystem::temp_directory_path() / ("gdrjit_run_test_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    std::mt19937 generator(3);
    std::normal_distribution<float> normal;
    const auto write = [&](const std::string& name, const Dims& shape, auto&& draw) {
      OwnedTensor tensor(DType::fp32, shape);
      for (std::int64_t i = 0; i < tensor.num_elems(); ++i) {
        const float value = draw(normal(generator));
        std::memcpy(tensor.data() + i * 4, &value, 4);
      }
      write_npy(path / (name + ".npy"), tensor);
    };
    const auto plain = [](float x) { return 0.3f * x; };
    for (const char* name : {"q", "k"}) write(name, {1, T, Hk, K}, plain);
    for (const char* name : {"v", "do"}) write(name, {1, T, Hv, V}, plain);
    for (const char* name : {"h0", "dht"}) write(name, {N, Hv, K, V}, plain);
    write("g", {1, T, Hv}, [](float x) { return -0.02f * std::abs(x); });
    write("beta", {1, T, Hv}, [](float x) { return 1 / (1 + std::exp(x)); });
    OwnedTensor cu(DType::i32, {N + 1});
    const std::int32_t values[] = {0, 33, T};
    std::memcpy(cu.data(), values, sizeof(values));
    write_npy(path / "cu_seqlens.npy", cu);
    json = {{"B", 1}, {"T", T},     {"N", N},         {"Hk", Hk},       {"Hv", Hv},        {"K", K},
            {"V", V}, {"scale", 1}, {"layout", "kv"}, {"has_h0", true}, {"has_dht", true}, {"cu_seqlens", {0, 33, T}}};
    save();
  }
  ~CaseFolder() { std::filesystem::remove_all(path); }
  void save() const { std::ofstream(path / "case.json") << json.dump(); }

  std::filesystem::path path;
  nlohmann::json json;
};

struct Outcome {
  int exit_code = 0;
  std::string out, error;
};

// Runs the program's command line in this process.
Outcome gdrjit(std::vector<std::string> arguments) {
  CLI::App app("test", "gdrjit");
  app.require_subcommand(1);
  std::ostringstream out;
  add_run_command(app, out);
  add_doctor_command(app, out);
  Outcome outcome;
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    outcome.exit_code = static_cast<int>(ErrorKind::config);
    outcome.error = error.what();
  } catch (const Error& error) {
    outcome.exit_code = error.exit_code();
    outcome.error = error.what();
  }
  outcome.out = out.str();
  return outcome;
}

}  // namespace

TEST_CASE("run: every dtype and direction passes its check, and the files hold what was computed") {
  const CaseFolder folder;
  for (const std::string direction : {"fwd", "bwd"})
    for (const std::string dtype : {"", "bf16", "fp16", "fp32", "fp64"}) {
      CAPTURE(direction);
      CAPTURE(dtype);
      std::vector<std::string> arguments = {"run",
                                            direction,
                                            "--input",
                                            folder.path.string(),
                                            "--check",
                                            "--format",
                                            "json",
                                            "--output",
                                            (folder.path / "made" / "here").string()};
      if (!dtype.empty()) arguments.insert(arguments.end(), {"--dtype", dtype});
      const Outcome outcome = gdrjit(arguments);
      CHECK(outcome.error == "");
      REQUIRE(outcome.exit_code == 0);
      const nlohmann::json report = nlohmann::json::parse(outcome.out);
      // Without --dtype: the values are not bf16 numbers, so the type of q.npy.
      const std::string type = dtype.empty() ? "fp32" : dtype;
      CHECK(report.at("dtype") == type);
      CHECK(report.at("backend") == "cpu");
      CHECK(report.at("kernels").size() == 1);
      CHECK(report.at("milliseconds").get<double>() > 0);
      const double limit = report.at("limit").get<double>();
      CHECK(limit == (type == "bf16" ? 0.005 : type == "fp16" ? 0.001 : type == "fp32" ? 1e-5 : 1e-10));
      CHECK(report.at("errors").size() == (direction == "fwd" ? 2 : 6));
      for (const auto& entry : report.at("errors").items()) {
        const auto& name = entry.key();
        const auto& error = entry.value();
        CAPTURE(name);
        CHECK(error.get<double>() <= limit);
        const OwnedTensor tensor = read_npy(folder.path / "made" / "here" / (name + ".npy"));
        CHECK(norm(tensor) == doctest::Approx(report.at("tensors").at(name).at("norm").get<double>()));
        const bool is_narrow = name == "o" || name == "dq" || name == "dk" || name == "dv";
        const DType stored = type == "fp64" ? DType::fp64 : type == "fp16" && is_narrow ? DType::fp16 : DType::fp32;
        CHECK(tensor.dtype() == stored);
      }
    }
}

TEST_CASE("run: the table") {
  const CaseFolder folder;
  const Outcome outcome = gdrjit({"run", "bwd", "--input", folder.path.string(), "--check", "--backend", "cpu"});
  CHECK(outcome.exit_code == 0);
  for (const char* line : {"B 1, T 40, N 2, Hk 1, Hv 2, K 8, V 6, states kv, scale 1\n", "backend  cpu: host processor",
                           "kernels  cpu_chunk_bwd_fp32_c32__", "ms, backward in fp32\n",
                           "tensor       dtype  shape                          norm      error    to file      limit\n",
                           "dh0          fp32   [2, 2, 8, 6]"})
    CHECK_MESSAGE(outcome.out.find(line) != std::string::npos, line);
  const Outcome unchecked = gdrjit({"run", "fwd", "--input", folder.path.string()});
  CHECK(unchecked.exit_code == 0);
  CHECK(unchecked.out.find("limit") == std::string::npos);
}

TEST_CASE("run: bf16 numbers are run as bf16") {
  const CaseFolder folder;
  for (const char* name : {"q", "k", "v", "do"}) {
    const auto path = folder.path / (std::string(name) + ".npy");
    write_npy(path, read_npy(path).cast(DType::bf16));
  }
  const Outcome outcome = gdrjit({"run", "bwd", "--input", folder.path.string(), "--check", "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  CHECK(nlohmann::json::parse(outcome.out).at("dtype") == "bf16");
}

TEST_CASE("run: an expected file that differs fails the check with exit code 6") {
  const CaseFolder folder;
  const std::string input = folder.path.string();
  REQUIRE(gdrjit({"run", "bwd", "--input", input, "--output", input, "--dtype", "fp64"}).exit_code == 0);
  OwnedTensor dg = read_npy(folder.path / "dg.npy");
  write_npy(folder.path / "out_dg.npy", dg);
  const Outcome good = gdrjit({"run", "bwd", "--input", input, "--check", "--format", "json"});
  CHECK(good.exit_code == 0);
  CHECK(nlohmann::json::parse(good.out).at("file_errors").size() == 1);
  double value = 0;
  std::memcpy(&value, dg.data(), sizeof(value));
  value += 1e-4 * norm(dg);
  std::memcpy(dg.data(), &value, sizeof(value));
  write_npy(folder.path / "out_dg.npy", dg);
  const Outcome bad = gdrjit({"run", "bwd", "--input", input, "--check", "--format", "json"});
  CHECK(bad.exit_code == 6);
  CHECK(bad.error ==
        "GDR-R10 run: dg differs from out_dg.npy by 1.00e-04 (relative L2); the limit for fp32 is 1e-05. 1 of 6 "
        "outputs are "
        "above it.");
  CHECK(nlohmann::json::parse(bad.out).at("errors").at("dg").get<double>() <
        1e-5);  // the result is printed all the same
  CHECK(gdrjit({"run", "bwd", "--input", input, "--check", "--dtype", "bf16"}).exit_code == 0);
}

TEST_CASE("run: wrong usage and wrong folders") {
  struct Row {
    std::string name;
    std::function<void(CaseFolder&)> change;
    std::vector<std::string> more;
    int exit_code;
    std::string text;  // of the error, with DIR for the folder; its beginning if it ends in "..."
  };
  const auto keep = [](CaseFolder&) {};
  const auto set = [](const std::string& key, const nlohmann::json& value) {
    return [key, value](CaseFolder& folder) {
      folder.json[key] = value;
      folder.save();
    };
  };
  const Row rows[] = {
      {"backend cuda", keep, {"--backend", "cuda"}, 3, "GDR-A10 run_bwd: GDR-D01 libcuda: not found..."},
      {"arch", keep, {"--arch", "sm_120"}, 3, "GDR-A10 run_bwd: arch is \"sm_120\"..."},
      {"dtype", keep, {"--dtype", "fp8"}, 2, "--dtype: fp8 not in {bf16,fp16,fp32,fp64}"},
      {"threads", keep, {"--threads", "-1"}, 2, "GDR-A11 run_bwd: num_threads is -1..."},
      {"no case.json",
       [](CaseFolder& f) { std::filesystem::remove(f.path / "case.json"); },
       {},
       2,
       "GDR-C10 DIR/case.json..."},
      {"no q.npy",
       [](CaseFolder& f) { std::filesystem::remove(f.path / "q.npy"); },
       {},
       2,
       "GDR-R01 DIR/q.npy: cannot be read (No such file or directory)."},
      {"unknown key", set("colour", "red"), {}, 2, "GDR-C06 DIR/case.json..."},
      {"missing key",
       [](CaseFolder& f) {
         f.json.erase("Hv");
         f.save();
       },
       {},
       2,
       "GDR-C05 DIR/case.json..."},
      {"layout", set("layout", "kk"), {}, 2, "GDR-C08 DIR/case.json..."},
      {"scale", set("scale", "large"), {}, 2, "GDR-C07 DIR/case.json..."},
      {"shape",
       set("T", 41),
       {},
       2,
       "GDR-R02 DIR/q.npy: shape [1, 40, 1, 8]; the sizes in case.json make it [1, 41, 1, 8]."},
      {"layout and states",
       set("layout", "vk"),
       {},
       2,
       "GDR-R02 DIR/h0.npy: shape [2, 2, 8, 6]; the sizes in case.json make it [2, 2, 6, 8]."},
      {"cu_seqlens",
       set("cu_seqlens", {0, 34, 40}),
       {},
       2,
       "GDR-R02 DIR/cu_seqlens.npy: element 1 is 33; case.json says 34 at /cu_seqlens/1."},
      {"N without cu_seqlens",
       set("cu_seqlens", nullptr),
       {},
       2,
       "GDR-R02 DIR/case.json: N is 2; without cu_seqlens every one of the B = 1 batch entries is a sequence."},
      {"integers",
       [](CaseFolder& f) {
         write_npy(f.path / "g.npy", OwnedTensor(DType::i32, {1, 40, 2}));
       },
       {},
       2,
       "GDR-R02 DIR/g.npy: dtype i32; expected a floating type."},
      {"heads",
       [](CaseFolder& f) {
         f.json["Hk"] = 3;
         f.save();
         for (const char* name : {"q", "k"})
           write_npy(f.path / (std::string(name) + ".npy"), OwnedTensor(DType::fp32, {1, 40, 3, 8}));
       },
       {},
       2,
       "GDR-A08 run_bwd: v has 2 heads and q has 3; Hv must be a multiple of Hk."},
      {"output is a file", keep, {"--output", "DIR/case.json"}, 2, "GDR-R03 DIR/case.json: cannot be made a folder..."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CaseFolder folder;
    row.change(folder);
    const auto in_folder = [&](std::string text) {
      const std::size_t at = text.find("DIR");
      return at == std::string::npos ? text : text.replace(at, 3, folder.path.string());
    };
    std::vector<std::string> arguments = {"run", "bwd", "--input", folder.path.string()};
    for (const std::string& argument : row.more) arguments.push_back(in_folder(argument));
    const Outcome outcome = gdrjit(arguments);
    CHECK(outcome.exit_code == row.exit_code);
    CHECK(outcome.out == "");
    const std::string text = in_folder(row.text);
    if (text.ends_with("...")) {
      CHECK_MESSAGE(outcome.error.starts_with(text.substr(0, text.size() - 3)), outcome.error);
    } else {
      CHECK(outcome.error == text);
    }
  }
  CHECK(gdrjit({"run", "sideways", "--input", "x"}).exit_code == 2);
  CHECK(gdrjit({"run", "bwd"}).exit_code == 2);
}

TEST_CASE("doctor: facts as table and JSON") {
  const Outcome table = gdrjit({"doctor"});
  CHECK(table.exit_code == 0);
  CHECK(table.out.starts_with("gdrjit     " GDRJIT_VERSION));
  CHECK(table.out.find("backend    cuda: not available: GDR-D01 libcuda: not found") != std::string::npos);
  CHECK(table.out.find("backend    cpu: available, host processor") != std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(gdrjit({"doctor", "--format", "json"}).out);
  CHECK(json.at("version") == GDRJIT_VERSION);
  CHECK(json.at("cpu").at("threads") == settings().num_threads);
  CHECK(json.at("backends").at(0).at("available") == false);
  CHECK(json.at("backends").at(1).at("available") == true);
  CHECK(!json.at("build").at("type").get<std::string>().empty());
  const auto archs = json.at("configs").at("arch").get<std::vector<std::string>>();
  CHECK(std::find(archs.begin(), archs.end(), "sm_120") != archs.end());
}

}  // namespace gdr::test
