// What the tests of the cache share: a folder of their own, payloads that tell when they are wrong, notices that are
// kept, and work done in another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.hpp"

namespace gdr::test {

// A new empty folder that everybody may enter, removed with all that is in it at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The key of number `n`.
std::string key_of(int n);

// Bytes that follow from the key, so that anybody can tell whether they are right.
std::string payload_of(std::string_view key, std::size_t bytes = 3000);

// <folder>/v1/<kind>/<2 digits>/<key><suffix>.
std::filesystem::path file_of(const std::filesystem::path& folder, std::string_view kind, std::string_view key,
                              std::string_view suffix = "");

std::string read_file(const std::filesystem::path& path);
// Without any of the care that the cache takes.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// Names of all files below a folder that are no entries (left-over files beside, locks, what was set aside).
std::vector<std::string> other_files(const std::filesystem::path& folder);

// Keeps notices.
class Notices {
 public:
  NoticeCallback callback();
  std::vector<std::string> texts() const;
  // "GDR-K03 GDR-K05": the codes in the order in which they came.
  std::string codes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Notice> notices_;
};

// A forked process that runs `work` and hands back the text that it returns. An exception becomes "threw: ...".
class Child {
 public:
  explicit Child(const std::function<std::string()>& work);
  ~Child();  // kills it if it still runs
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  void kill();
  // Waits for its end. What it returned, or "killed by signal 9" and the like.
  std::string result();

 private:
  pid_t process_ = -1;
  int pipe_ = -1;
};

// Child(work).result().
std::string in_child(const std::function<std::string()>& work);

// The user id that tests use for somebody who is not root; belongs to nobody.
inline constexpr unsigned kNobody = 65534;

// Turns this process (a child) into one of that user, without any group of root. Only root can.
void become(unsigned user);

bool is_root();

// Makes a file system of its own in memory of `bytes` bytes at `folder`, which only this process (a child) sees.
// Returns why that is not possible here, or an empty text.
std::string mount_small_disk(const std::filesystem::path& folder, std::uint64_t bytes);
std::string make_read_only(const std::filesystem::path& folder);

}  // namespace gdr::test
