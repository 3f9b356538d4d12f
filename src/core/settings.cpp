#include "core/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "core/error.hpp"

namespace gdr {
namespace {

constexpr int kMaxThreads = 4096;

// A path that moves with the working directory helps nobody.
std::filesystem::path absolute_path(const char* name, const std::string& value) {
  std::filesystem::path path = value;
  if (!path.is_absolute())
    fail(ErrorKind::config, "GDR-C21", "{}: '{}' is not an absolute path. Set it to one, or unset it.", name, value);
  return path;
}

std::vector<std::filesystem::path> parse_path_list(const char* name, const std::string& value) {
  std::vector<std::filesystem::path> paths;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(':', begin), value.size());
    if (end > begin) paths.push_back(absolute_path(name, value.substr(begin, end - begin)));
    begin = end + 1;
  }
  return paths;
}

int parse_threads(const char* name, const std::string& value) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < 1 || number > kMaxThreads)
    fail(ErrorKind::config, "GDR-C21", "{}: '{}' is not a whole number from 1 to {}. Set it to one, or unset it.", name,
         value, kMaxThreads);
  return number;
}

}  // namespace

Settings parse_settings(const ReadVariable& read_variable) {
  const auto read = [&](const char* name) {
    std::optional<std::string> value = read_variable(name);
    if (value && value->empty()) value.reset();
    return value;
  };
  Settings result;
  if (const auto own = read("GDRJIT_CACHE_DIR")) {
    result.cache_dir = absolute_path("GDRJIT_CACHE_DIR", *own);
    // The XDG base directory specification: a relative path is invalid and must be ignored.
  } else if (const auto xdg = read("XDG_CACHE_HOME"); xdg && std::filesystem::path(*xdg).is_absolute()) {
    result.cache_dir = std::filesystem::path(*xdg) / "gdrjit";
  } else if (const auto home = read("HOME")) {
    result.cache_dir = std::filesystem::path(*home) / ".cache" / "gdrjit";
  }
  if (const auto bundles = read("GDRJIT_BUNDLE_PATH"))
    result.bundle_paths = parse_path_list("GDRJIT_BUNDLE_PATH", *bundles);
  result.libcuda = read("GDRJIT_LIBCUDA").value_or("");
  result.libnvrtc = read("GDRJIT_LIBNVRTC").value_or("");
  result.cuda_home = read("CUDA_HOME").value_or("");
  const auto add_prefix = [&](const std::optional<std::string>& value, const char* below) {
    if (value && std::filesystem::path(*value).is_absolute())
      result.python_prefixes.push_back(std::filesystem::path(*value) / below);
  };
  add_prefix(read("VIRTUAL_ENV"), "");
  add_prefix(read("CONDA_PREFIX"), "");
  add_prefix(read("HOME"), ".local");
  if (const auto threads = read("GDRJIT_NUM_THREADS")) {
    result.num_threads = parse_threads("GDRJIT_NUM_THREADS", *threads);
  } else {
    result.num_threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  }
  result.no_color = read("NO_COLOR").has_value();
  return result;
}

const Settings& settings() {
  static const Settings instance = parse_settings([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  return instance;
}

}  // namespace gdr
