// Visits the files of a cache folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cache/folder.hpp"
#include "cache/posix.hpp"

struct stat;

namespace gdr {

enum class FileRole { entry, bad, temporary, lock };

struct VisitedFile {
  const Shard& shard;
  std::string kind;
  std::string name;
  FileRole role;
  const struct ::stat& status;
};

// Calls `visit` for every file that the cache has made below `root`, by kind, then by name. Other files are passed
// over, as is what disappears meanwhile. Throws Distrusted, IoError, and what `visit` throws.
void walk_folder(const std::filesystem::path& root, const std::function<void(const VisitedFile&)>& visit);

}  // namespace gdr
