#include "cache/entry_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>

namespace gdr {
namespace {

constexpr mode_t kFileMode = 0644;  // see kFolderMode

// Removes a file when it goes out of scope, unless kept.
class Temporary {
 public:
  Temporary(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlinkat(folder_, name_.c_str(), 0);
  }
  const char* name() const { return name_.c_str(); }
  void rename_to(const char* name, const std::filesystem::path& path) {
    if (::renameat(folder_, name_.c_str(), folder_, name) != 0) throw IoError("rename a new file to", path, errno);
    renamed_ = true;
  }

 private:
  int folder_;
  std::string name_;
  bool renamed_ = false;
};

// What stands under the name of an entry, without following a link. 0: nothing, or it cannot be told.
std::uint64_t inode_of(const Shard& shard, const std::string& name) {
  struct ::stat status = {};
  return ::fstatat(shard.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

LoadedEntry read_checked(const Fd& fd, const std::filesystem::path& path, std::string_view kind, std::string_view key) {
  LoadedEntry result;
  const struct ::stat status = status_of(fd, path);
  result.inode = status.st_ino;
  if (!S_ISREG(status.st_mode)) {
    result.bad = "it is not a regular file";
    return result;
  }
  if (const std::string reason = why_distrusted(status, ::geteuid()); !reason.empty()) {
    result.bad = "it " + reason;
    return result;
  }
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  // The header first, so that no length is believed before it is confirmed. A small entry is read whole at once.
  std::string image = read_at(fd, 0, std::min<std::uint64_t>(file_bytes, kMaxHeaderBytes), path);
  if (!parse_header(image, file_bytes, result.bad)) return result;
  if (image.size() < file_bytes) image += read_at(fd, image.size(), file_bytes - image.size(), path);
  std::optional<Entry> entry = Entry::parse(std::move(image), kind, key, result.bad);
  if (entry) result.entry = std::make_shared<const Entry>(std::move(*entry));
  return result;
}

void note_use(const Fd& fd) {
  struct ::stat status = {};
  if (::fstat(fd.get(), &status) != 0) return;
  if (::time(nullptr) - status.st_mtime < kTouchAfterSeconds) return;
  ::futimens(fd.get(), nullptr);
}

}  // namespace

LoadedEntry load_entry(const Shard& shard, std::string_view kind, std::string_view key, bool touch,
                       const CacheFault& fault) {
  const std::string name(key);
  const std::filesystem::path path = shard.path / name;
  at_step(fault, CacheStep::open_entry, "open", path);
  // Not blocking: a pipe in place of the file must not make anybody wait.
  const Fd fd = open_at(shard.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  LoadedEntry result;
  if (!fd && errno == ENOENT) return result;
  if (!fd && errno == ELOOP) {
    result.bad = "it is a symbolic link";
    result.inode = inode_of(shard, name);
    return result;
  }
  if (!fd) throw IoError("open", path, errno);
  result = read_checked(fd, path, kind, key);
  if (result.entry && touch) note_use(fd);
  return result;
}

void save_entry(const Shard& shard, const Entry& entry, const CacheFault& fault) {
  const std::filesystem::path path = shard.path / entry.key();
  const std::string_view image = entry.image();
  at_step(fault, CacheStep::create, "create", path);
  const std::string name = temporary_name();
  const Fd fd = open_at(shard.fd.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kFileMode);
  if (!fd) throw IoError("create a file beside", path, errno);
  Temporary temporary(shard.fd.get(), name);
  at_step(fault, CacheStep::write_first_half, "write", path);
  write_all(fd, image.substr(0, image.size() / 2), path);
  at_step(fault, CacheStep::write_second_half, "write", path);
  write_all(fd, image.substr(image.size() / 2), path);
  at_step(fault, CacheStep::sync, "write", path);
  sync_file(fd, path);
  at_step(fault, CacheStep::rename, "rename a new file to", path);
  temporary.rename_to(entry.key().c_str(), path);
  at_step(fault, CacheStep::renamed, "write", path);
}

std::string set_aside(const Shard& shard, std::string_view key, std::uint64_t inode, const CacheFault& fault) {
  const std::string name(key);
  const std::string bad_name = name + kBadSuffix;
  if (inode_of(shard, name) != inode) return "has been replaced meanwhile";
  try {
    at_step(fault, CacheStep::set_aside, "rename", shard.path / name);
    if (::renameat(shard.fd.get(), name.c_str(), shard.fd.get(), bad_name.c_str()) == 0)
      return fmt::format("was set aside as {}", (shard.path / bad_name).string());
    if (::unlinkat(shard.fd.get(), name.c_str(), 0) == 0) return "was deleted";
    throw IoError("rename or delete", shard.path / name, errno);
  } catch (const IoError& failure) {
    return "stays there: " + describe(failure);
  }
}

void replace_file(const std::filesystem::path& path, const std::function<void(const Fd&)>& write) {
  const std::filesystem::path folder_path = path.has_parent_path() ? path.parent_path() : ".";
  const Fd folder = open_at(AT_FDCWD, folder_path.c_str(), O_PATH | O_DIRECTORY);
  if (!folder) throw IoError("open folder", folder_path, errno);
  const std::string name = temporary_name();
  const Fd fd = open_at(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, kFileMode);
  if (!fd) throw IoError("create a file beside", path, errno);
  Temporary temporary(folder.get(), name);
  write(fd);
  sync_file(fd, path);
  temporary.rename_to(path.filename().c_str(), path);
}

}  // namespace gdr
