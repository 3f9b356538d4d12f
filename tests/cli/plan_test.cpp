// The commands plan and verify: forms of the result, exit codes, and what a user is told.
#include "cli/plan.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "core/error.hpp"
#include "schedule/plan_json.hpp"

namespace gdr::test {
namespace {

struct Outcome {
  int exit_code = 0;
  std::string out;
  std::string error;  // without the name of the program
};

// As main.cpp runs it.
Outcome gdrjit(std::vector<std::string> arguments) {
  CLI::App app("test", "gdrjit");
  app.require_subcommand(1);
  std::ostringstream out;
  add_plan_command(app, out);
  add_verify_command(app, out);
  Outcome outcome;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    outcome.exit_code = 2;
    outcome.error = error.what();
  } catch (const Error& error) {
    outcome.exit_code = error.exit_code();
    outcome.error = error.what();
  }
  outcome.out = out.str();
  return outcome;
}

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("gdrjit_plan_test_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::filesystem::path path;
};

std::string read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

nlohmann::ordered_json& kernel_of(nlohmann::ordered_json& plan, const char* function) {
  for (nlohmann::ordered_json& kernel : plan["kernels"])
    if (kernel["function"] == function) return kernel;
  throw std::runtime_error(function);
}

nlohmann::ordered_json& ops_of(nlohmann::ordered_json& kernel, const char* role_name) {
  for (nlohmann::ordered_json& role : kernel["roles"])
    if (role["name"] == role_name) return role["ops"];
  throw std::runtime_error(role_name);
}

}  // namespace

TEST_CASE("plan shows a table, a report or a picture, on stdout or in a file") {
  const Folder folder;
  const Outcome table = gdrjit({"plan", "--arch", "sm_120"});
  CHECK(table.exit_code == 0);
  CHECK(table.out.starts_with("sm_120, shape qwen3_next (16 k-heads, 32 v-heads, K 128, V 128, bf16"));
  CHECK(table.out.find("139,264 bytes: 37,888 too many") != std::string::npos);
  CHECK(table.out.find("Proved: no deadlock, no race") != std::string::npos);
  CHECK(table.out.find("What was tried") == std::string::npos);
  CHECK(gdrjit({"plan", "--arch", "sm_120", "--explain"}).out.find("What was tried") != std::string::npos);

  const Outcome report = gdrjit({"plan", "--arch", "sm_120", "--format", "json"});
  CHECK(nlohmann::json::parse(report.out)["arch"] == "sm_120");
  CHECK(report.out == gdrjit({"plan", "--arch", "sm_120", "--format", "json"}).out);
  CHECK(gdrjit({"plan", "--arch", "sm_120", "--format", "svg"}).out.starts_with("<svg "));

  const Outcome to_file = gdrjit({"plan", "--arch", "sm_120", "--format", "json", "-o", folder.file("plan.json")});
  CHECK(to_file.exit_code == 0);
  CHECK(to_file.out.empty());
  CHECK(read(folder.file("plan.json")) == report.out);
  CHECK(folder.num_files() == 1);
}

TEST_CASE("verify proves a plan file from that file alone, and a plan that it makes itself") {
  const Folder folder;
  const std::string file = folder.file("plan.json");
  write(file, gdrjit({"plan", "--arch", "sm_120", "--format", "json"}).out);
  const Outcome from_file = gdrjit({"verify", file});
  CHECK(from_file.exit_code == 0);
  CHECK(from_file.out.find("Proved: no deadlock, no race") != std::string::npos);
  CHECK(from_file.out == gdrjit({"verify", "--arch", "sm_120"}).out);

  const nlohmann::json proof = nlohmann::json::parse(gdrjit({"verify", file, "--format", "json"}).out);
  CHECK(proof["ok"] == true);
  CHECK(proof["findings"].empty());
  CHECK(proof["plan_hash"] == plan_hash(plan_from_json(read(file), file)));
}

TEST_CASE("two independent ops may change places in a plan file, and it still verifies") {
  const Folder folder;
  const std::string file = folder.file("plan.json");
  nlohmann::ordered_json plan =
      nlohmann::ordered_json::parse(gdrjit({"plan", "--arch", "sm_120", "--format", "json"}).out);
  nlohmann::ordered_json& ops = ops_of(kernel_of(plan, "bwd_fused"), "pairs");
  for (std::size_t i = 0; i + 1 < ops.size(); ++i)
    if (ops[i]["id"] == "xrow.sum" && ops[i + 1]["id"] == "xcol.sum") {
      std::swap(ops[i], ops[i + 1]);
      write(file, plan.dump());
      CHECK(gdrjit({"verify", file}).exit_code == 0);
      return;
    }
  FAIL("the two sums are not neighbours any more: choose another pair");
}

TEST_CASE("verify finds what is wrong in a plan file and exits with 6") {
  const Folder folder;
  const std::string file = folder.file("plan.json");
  const nlohmann::ordered_json good =
      nlohmann::ordered_json::parse(gdrjit({"plan", "--arch", "sm_120", "--format", "json"}).out);

  // A wait that is left out: a race.
  nlohmann::ordered_json plan = good;
  nlohmann::ordered_json& ops = ops_of(kernel_of(plan, "bwd_fused"), "keys");
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i]["kind"] == "wait") {
      for (nlohmann::ordered_json& role : kernel_of(plan, "bwd_fused")["roles"])
        for (nlohmann::ordered_json& op : role["ops"])
          if (op.contains("order") && op["order"] > ops[i]["order"]) op["order"] = op["order"].get<int>() - 1;
      ops.erase(i);
      break;
    }
  write(file, plan.dump());
  Outcome outcome = gdrjit({"verify", file});
  CHECK(outcome.exit_code == 6);
  CHECK(outcome.out.find("GDR-V10 race in gdr_bwd_fused") != std::string::npos);
  CHECK(outcome.error.starts_with("GDR-L04 " + file + ": "));
  CHECK(outcome.error.find("found.") != std::string::npos);
  outcome = gdrjit({"verify", file, "--format", "json"});
  CHECK(outcome.exit_code == 6);
  CHECK(nlohmann::json::parse(outcome.out)["findings"][0]["code"] == "GDR-V10");

  // More memory than the architecture grants.
  plan = good;
  plan["smem_limit_bytes"] = 200000;
  for (nlohmann::ordered_json& kernel : plan["kernels"])
    for (const char* key : {"limit_bytes", "headroom_bytes"}) kernel["smem"].erase(key);
  write(file, plan.dump());
  outcome = gdrjit({"verify", file});
  CHECK(outcome.exit_code == 6);
  CHECK(outcome.out.find("the plan's limit of 200000 bytes of shared memory is above the 101376 that sm_120 grants") !=
        std::string::npos);
}

TEST_CASE("what is wrong in the arguments is said, with the exit code of its kind") {
  const Folder folder;
  write(folder.file("broken.json"), "{");
  struct Row {
    std::string name;
    std::vector<std::string> arguments;
    int exit_code;
    std::string error;  // its beginning
  };
  const std::vector<Row> kRows = {
      {"no arch", {"plan"}, 2, "--arch is required"},
      {"unknown arch", {"plan", "--arch", "sm_999"}, 2, "GDR-C11 "},
      {"unknown shape", {"plan", "--arch", "sm_120", "--shape", "gpt"}, 2, "GDR-C11 "},
      {"unknown budget", {"plan", "--arch", "sm_120", "--budget", "lots"}, 2, "GDR-C11 "},
      {"unknown strategy", {"plan", "--arch", "sm_120", "--strategy", "magic"}, 2, "GDR-P01 "},
      {"unknown format", {"plan", "--arch", "sm_120", "--format", "xml"}, 2, "--format: "},
      {"unknown kernel", {"plan", "--arch", "sm_120", "--kernel", "attention"}, 2, "GDR-T01 kernel attention: "},
      {"unknown direction",
       {"plan", "--arch", "sm_120", "--ops", "bwd,up"},
       2,
       "GDR-L03 --ops: 'up' is not known; allowed are fwd, bwd."},
      {"forward", {"plan", "--arch", "sm_120", "--ops", "fwd"}, 3, "GDR-L02 --ops fwd: "},
      {"too little memory", {"plan", "--arch", "sm_120", "--budget", "20000"}, 3, "GDR-P03 "},
      {"more than there is", {"plan", "--arch", "sm_120", "--budget", "200000"}, 3, "GDR-"},
      {"no such folder",
       {"plan", "--arch", "sm_120", "-o", folder.file("none/plan.txt")},
       2,
       "GDR-L01 " + folder.file("none/plan.txt") + ": cannot be written: No such file or directory."},
      {"nothing to verify", {"verify"}, 2, "GDR-L05 verify: neither a plan file nor --arch is given"},
      {"two things to verify", {"verify", "plan.json", "--arch", "sm_120"}, 2, "plan excludes --arch"},
      {"no such file", {"verify", folder.file("none.json")}, 2, "GDR-C10 "},
      {"not JSON", {"verify", folder.file("broken.json")}, 2, "GDR-C02 " + folder.file("broken.json") + ": line 1"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    const Outcome outcome = gdrjit(row.arguments);
    CHECK(outcome.exit_code == row.exit_code);
    CHECK(outcome.error.substr(0, row.error.size()) == row.error);
    CHECK(outcome.out.empty());
  }
  CHECK(folder.num_files() == 1);
}

TEST_CASE("a file that is replaced keeps its mode, a link is followed, a device or pipe is written to") {
  const Folder folder;
  namespace fs = std::filesystem;
  std::ofstream(folder.file("plan.json")) << "old";
  fs::permissions(folder.file("plan.json"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("plan.json", folder.file("link"));
  write_file(folder.file("link"), "new");
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK((fs::status(folder.file("plan.json")).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  std::string text;
  CHECK(std::getline(std::ifstream(folder.file("plan.json")), text));
  CHECK(text == "new");
  fs::create_symlink("/dev/null", folder.file("null"));
  write_file(folder.file("null"), "lost");
  CHECK(fs::is_character_file(folder.file("null")));
  CHECK_THROWS_AS(write_file("/dev/full", "lost"), Error);
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(folder.num_files() == 3);
}

TEST_CASE("a file that cannot be replaced stays as it was, and nothing is left beside it") {
  const Folder folder;
  std::filesystem::create_directory(folder.file("taken"));
  write(folder.file("taken/inside"), "x");
  CHECK_THROWS_AS(write_file(folder.file("taken"), "new"), Error);
  CHECK(read(folder.file("taken/inside")) == "x");
  CHECK(folder.num_files() == 1);
  write_file(folder.file("plain"), "one");
  write_file(folder.file("plain"), "two");
  CHECK(read(folder.file("plain")) == "two");
  CHECK(folder.num_files() == 2);
}

}  // namespace gdr::test
