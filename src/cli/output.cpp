#include "cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
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
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status before = fs::status(path, ignored);  // of what a link leads to
  // A device or a pipe is written to, not replaced.
  const bool is_replaced = !fs::exists(before) || fs::is_regular_file(before);
  const std::string target = fs::exists(before) ? fs::canonical(path, ignored).string() : path;
  const std::string place = is_replaced ? fmt::format("{}.{}.part", target, getpid()) : path;
  std::unique_ptr<std::FILE, Close> file(std::fopen(place.c_str(), "wb"));
  if (!file) cannot_write(path, errno);
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  const bool is_closed = std::fclose(file.release()) == 0;  // the last bytes may fail to be written only now
  if (is_written && is_closed) {
    if (!is_replaced) return;
    if (fs::exists(before)) fs::permissions(place, before.permissions(), ignored);
    if (std::rename(place.c_str(), target.c_str()) == 0) return;
  }
  const int error = errno;
  if (is_replaced) std::remove(place.c_str());
  cannot_write(path, error);
}

std::string json_output(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void tell(const std::string& text) { std::fputs(fmt::format("gdrjit: {}\n", text).c_str(), stderr); }

bool color_on_stdout() { return isatty(STDOUT_FILENO) == 1 && !settings().no_color; }

}  // namespace gdr
