#include "cache/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gdr {
namespace {

// Others may read, so that a cache made by root at image-build time serves every user; only the owner may write.
// A stricter umask is respected.
constexpr mode_t kFolderMode = 0755;

// mkdir -p. Throws IoError.
void create_folders(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST) return;
  if (errno != ENOENT || !path.has_parent_path() || path.parent_path() == path)
    throw IoError("create folder", path, errno);
  create_folders(path.parent_path());
  if (::mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST) throw IoError("create folder", path, errno);
}

}  // namespace

std::string why_distrusted(const struct ::stat& status, unsigned user) {
  if (status.st_uid == user) return {};
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (status.st_uid != 0)
    return fmt::format("belongs to user {} and this process runs as user {}", status.st_uid, user);
  if (others_write) return fmt::format("belongs to root, is writable by others and this process runs as user {}", user);
  return {};
}

std::filesystem::path shard_path(const std::filesystem::path& root, std::string_view kind, std::string_view key) {
  return root / kVersionFolder / kind / key.substr(0, 2);
}

std::optional<Fd> open_trusted_folder(int at, const char* name, const std::filesystem::path& path, bool follow,
                                      int flags) {
  Fd fd = open_at(at, name, flags | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) throw IoError("open folder", path, errno);
  const std::string reason = why_distrusted(status_of(fd, path), ::geteuid());
  if (!reason.empty()) throw Distrusted(fmt::format("{} {}", path.string(), reason));
  return fd;
}

std::optional<Shard> open_shard(const std::filesystem::path& root, std::string_view kind, std::string_view key,
                                Missing missing, const CacheFault& fault) {
  at_step(fault, CacheStep::open_folder, "open folder", root);
  const bool create = missing == Missing::create;
  std::optional<Fd> folder = open_trusted_folder(AT_FDCWD, root.c_str(), root, true, O_PATH);
  if (!folder && create) {
    create_folders(root);
    folder = open_trusted_folder(AT_FDCWD, root.c_str(), root, true, O_PATH);
  }
  const auto missing_folder = [&](const std::filesystem::path& path) -> std::optional<Shard> {
    if (create) throw IoError("open folder", path, ENOENT);  // another process removed it again
    return std::nullopt;
  };
  if (!folder) return missing_folder(root);

  std::filesystem::path path = root;
  for (const std::string& name : {std::string(kVersionFolder), std::string(kind), std::string(key.substr(0, 2))}) {
    path /= name;
    std::optional<Fd> below = open_trusted_folder(folder->get(), name.c_str(), path, false, O_PATH);
    if (!below && create) {
      if (::mkdirat(folder->get(), name.c_str(), kFolderMode) != 0 && errno != EEXIST)
        throw IoError("create folder", path, errno);
      below = open_trusted_folder(folder->get(), name.c_str(), path, false, O_PATH);
    }
    if (!below) return missing_folder(path);
    folder = std::move(below);
  }
  return Shard{std::move(*folder), std::move(path)};
}

}  // namespace gdr
