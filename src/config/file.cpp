#include "config/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/error.hpp"

namespace gdr {

std::string read_file(const std::string& path, std::size_t max_bytes) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  std::string bytes;
  bool has_failed = file == nullptr;
  while (!has_failed && bytes.size() <= max_bytes) {
    char buffer[65536];
    const std::size_t count = std::fread(buffer, 1, std::min(sizeof buffer, max_bytes + 1 - bytes.size()), file.get());
    bytes.append(buffer, count);
    if (count == 0) {
      has_failed = std::ferror(file.get()) != 0;  // a folder opens, and fails here
      break;
    }
  }
  if (has_failed) fail(ErrorKind::config, "GDR-C10", "{}: cannot be read: {}.", path, std::strerror(errno));
  return bytes;
}

}  // namespace gdr
