#include "cache/folder_walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "cache/entry.hpp"

namespace gdr {
namespace {

std::vector<std::string> sorted_names(const Fd& folder, const std::filesystem::path& path) {
  // A second descriptor with a position of its own: fdopendir takes over what it is given.
  const int copy = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
  if (!list) throw IoError("list folder", path, errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(list.get());
    if (item == nullptr && errno != 0) throw IoError("list folder", path, errno);
    if (item == nullptr) break;
    names.emplace_back(item->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_shard_name(const std::string& name) {
  return name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<FileRole> role_of(const std::string& name, const std::string& shard_name) {
  if (name.starts_with(kTemporaryPrefix)) return FileRole::temporary;
  const std::string key = name.substr(0, 32);
  if (!is_key(key) || !key.starts_with(shard_name)) return std::nullopt;
  const std::string suffix = name.substr(32);
  if (suffix.empty()) return FileRole::entry;
  if (suffix == kBadSuffix) return FileRole::bad;
  if (suffix == kLockSuffix) return FileRole::lock;
  return std::nullopt;
}

}  // namespace

void walk_folder(const std::filesystem::path& root, const std::function<void(const VisitedFile&)>& visit) {
  const auto root_fd = open_trusted_folder(AT_FDCWD, root.c_str(), root, true, O_RDONLY);
  if (!root_fd) return;
  const std::filesystem::path version_path = root / kVersionFolder;
  const auto version_fd = open_trusted_folder(root_fd->get(), kVersionFolder, version_path, false, O_RDONLY);
  if (!version_fd) return;
  for (const std::string& kind : sorted_names(*version_fd, version_path)) {
    if (!is_kind(kind)) continue;
    const std::filesystem::path kind_path = version_path / kind;
    const auto kind_fd = open_trusted_folder(version_fd->get(), kind.c_str(), kind_path, false, O_RDONLY);
    if (!kind_fd) continue;
    for (const std::string& shard_name : sorted_names(*kind_fd, kind_path)) {
      if (!is_shard_name(shard_name)) continue;
      const std::filesystem::path path = kind_path / shard_name;
      auto shard_fd = open_trusted_folder(kind_fd->get(), shard_name.c_str(), path, false, O_RDONLY);
      if (!shard_fd) continue;
      const Shard shard{std::move(*shard_fd), path};
      for (const std::string& name : sorted_names(shard.fd, path)) {
        const std::optional<FileRole> role = role_of(name, shard_name);
        struct ::stat status = {};
        if (role && ::fstatat(shard.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
          visit({shard, kind, name, *role, status});
      }
    }
  }
}

}  // namespace gdr
