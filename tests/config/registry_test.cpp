#include "config/registry.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/file.hpp"
#include "expect_error.hpp"

using gdr::ConfigKind;
using gdr::ErrorKind;
using gdr::test::error_text;

namespace {

// A folder of this process that is gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / ("gdrjit_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = path_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("unknown names get near ones, or all") {
  struct Row {
    ConfigKind kind;
    std::string name, error;
  };
  const Row rows[] = {
      {ConfigKind::arch, "sm_12",
       "GDR-C11 arch: there is no 'sm_12'; near are sm_120, sm_121. A file is named by a path with '/' or "
       "'.json'."},
      {ConfigKind::arch, "hopper",
       "GDR-C11 arch: there is no 'hopper'; known are sm_80, sm_86, sm_89, sm_90, sm_100, sm_120, sm_121. A file is "
       "named by a path with '/' or '.json'."},
      {ConfigKind::shape, "qwen3_nxt",
       "GDR-C11 shape: there is no 'qwen3_nxt'; near are qwen3_next. A file is named by a path with '/' or '.json'."},
      {ConfigKind::budget, "",
       "GDR-C11 budget: there is no ''; known are default, sm_120, two_blocks. A file is named by a path with '/' or "
       "'.json'."},
      {ConfigKind::budget, std::string(1000, 'x'),
       "GDR-C11 budget: there is no '" + std::string(60, 'x') +
           "...'; known are default, sm_120, two_blocks. A file is named by a path with '/' or '.json'."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(error_text(ErrorKind::config, [&] { gdr::config_text(row.kind, row.name); }) == row.error);
  }
}

TEST_CASE("files: by path, with every fault named") {
  const TemporaryFolder folder;
  const std::string good = folder.write("mine.json", gdr::config_text(ConfigKind::shape, "qwen3_next"));
  CHECK(gdr::load_shape(good) == gdr::load_shape("qwen3_next"));

  const std::string absent = folder.path() + "/absent.json";
  CHECK(error_text(ErrorKind::config, [&] { gdr::load_arch(absent); }) ==
        "GDR-C10 " + absent + ": cannot be read: No such file or directory.");
  CHECK(error_text(ErrorKind::config, [&] { gdr::load_arch(folder.path()); }) ==
        "GDR-C10 " + folder.path() + ": cannot be read: Is a directory.");
  CHECK(error_text(ErrorKind::config, [&] { gdr::load_budget("absent.json"); }) ==
        "GDR-C10 absent.json: cannot be read: No such file or directory.");

  const std::string huge = folder.write("huge.json", std::string(10'000'000, ' '));
  CHECK(error_text(ErrorKind::config, [&] { gdr::load_arch(huge); }) ==
        "GDR-C01 " + huge + ": more than the limit of 1048576 bytes.");
  CHECK(error_text(ErrorKind::config, [] { gdr::load_arch("/dev/zero"); }) ==
        "GDR-C01 /dev/zero: more than the limit of 1048576 bytes.");
  const std::string deep = folder.write("deep.json", std::string(200'000, '['));
  CHECK(error_text(ErrorKind::config, [&] { gdr::load_shape(deep); }) ==
        "GDR-C03 " + deep + ": arrays and objects are nested deeper than 64 levels.");
  const std::string cut = folder.write("cut.json", gdr::config_text(ConfigKind::arch, "sm_90").substr(0, 900));
  CHECK(error_text(ErrorKind::config, [&] { gdr::load_arch(cut); }).starts_with("GDR-C02 " + cut + ": line "));
}

TEST_CASE("budgets by name, file and bytes") {
  const TemporaryFolder folder;
  CHECK(gdr::load_budget("default").name == "default");
  CHECK(gdr::load_budget("98304").smem_bytes_per_block == 98304);
  const std::string file = folder.write("9.json", gdr::config_text(ConfigKind::budget, "two_blocks"));
  CHECK(gdr::load_budget(file) == gdr::load_budget("two_blocks"));
  CHECK(error_text(ErrorKind::config, [] { gdr::load_budget("96K"); }) ==
        "GDR-C08 budget: '96K' is no number of bytes; allowed are whole numbers from 1 to 16777216.");
}

TEST_CASE("read_file gives all bytes, and one more than the limit of a file that is larger") {
  const TemporaryFolder folder;
  const std::string text = std::string(70'000, 'a') + std::string("\0\r\n", 3);
  const std::string path = folder.write("bytes", text);
  CHECK(gdr::read_file(path, 1 << 20) == text);
  CHECK(gdr::read_file(path, 10) == text.substr(0, 11));
  CHECK(gdr::read_file(folder.write("empty", ""), 10).empty());
}
