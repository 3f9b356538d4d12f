#include "cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "core/error.hpp"
#include "core/settings.hpp"

namespace gdr {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void cannot_write(const std::string& path, int error) {
  fail(ErrorKind::config, "GDR-L01", "{}: cannot be written: {}.", path, std::generic_category().message(error));
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  const std::string beside = fmt::format("{}.{}.part", path, getpid());
  std::unique_ptr<std::FILE, Close> file(std::fopen(beside.c_str(), "wb"));
  if (!file) cannot_write(path, errno);
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  const bool is_closed = std::fclose(file.release()) == 0;  // the last bytes may fail to be written only now
  if (is_written && is_closed && std::rename(beside.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(beside.c_str());
  cannot_write(path, error);
}

void tell(const std::string& text) { std::fputs(fmt::format("gdrjit: {}\n", text).c_str(), stderr); }

bool color_on_stdout() { return isatty(STDOUT_FILENO) == 1 && !settings().no_color; }

}  // namespace gdr
