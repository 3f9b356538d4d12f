// Bytes by key, in memory and on disk: what makes a second process start at once. The disk is best effort: whatever
// fails there is told once through a callback and never thrown, and the bytes stay in memory. Entries are checked whole
// when loaded; a bad one is a miss. Right with any number of threads and processes on one folder, with locks or
// without.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cache/bundle.hpp"
#include "cache/entry.hpp"
#include "cache/entry_file.hpp"
#include "cache/folder.hpp"
#include "cache/notice.hpp"
#include "cache/posix.hpp"

namespace gdr {

struct CacheOptions {
  // Absolute; made when first needed. Empty: nothing is kept on disk. See Settings::cache_dir.
  std::filesystem::path directory;
  // Looked up after the directory, in this order, and never written: bundle files, or other cache folders.
  std::vector<std::filesystem::path> bundles;
  // How long get_or_make waits for another process that makes the same entry, before it makes the entry itself.
  std::chrono::milliseconds lock_timeout{60'000};
  NoticeCallback notice;
  CacheFault fault;  // for tests
};

enum class Origin { none, memory, directory, bundle, made };
const char* to_string(Origin origin);

struct Found {
  std::shared_ptr<const Entry> entry;  // null: not found
  Origin origin = Origin::none;
  explicit operator bool() const { return entry != nullptr; }
};

// What a maker returns.
struct Content {
  std::string payload;
  Facts facts;
};
using Maker = std::function<Content()>;

// All functions are thread-safe. `kind` ("plan", "cubin") and `key` (32 lower-case hexadecimal digits, such as
// hash_hex makes; it must name everything that shapes the payload, and no path, time or device number) are the
// caller's: wrong ones are an internal Error (GDR-X01), as are facts of more than 64 KiB. Nothing else is thrown but
// std::bad_alloc.
class Cache {
 public:
  // Opens the bundles; touches nothing else.
  explicit Cache(CacheOptions options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Looks in memory, the directory, the bundles. What is found stays in memory.
  Found get(std::string_view kind, std::string_view key);

  // Keeps an entry in memory and writes it to the directory, replacing what is there.
  std::shared_ptr<const Entry> put(std::string_view kind, std::string_view key, std::string_view payload,
                                   const Facts& facts = {});

  // get, or else `make` and put. Threads of this process that want the same entry wait for the one that makes it;
  // other processes on the same directory do so for at most lock_timeout. What `make` throws reaches the caller and
  // every thread that waits; the next call tries again. `make` may use the cache, but not for the same entry.
  Found get_or_make(std::string_view kind, std::string_view key, const Maker& make);

 private:
  struct Flight;
  using Bytes = std::shared_ptr<const Entry>;

  Bytes from_memory(const std::string& name) const;
  void remember(const std::string& name, const Bytes& entry);
  enum class OnBad { leave, set_aside };
  LoadedEntry from_directory(std::string_view kind, std::string_view key, OnBad on_bad);
  Bytes from_bundles(std::string_view kind, std::string_view key);
  Found from_disk(std::string_view kind, std::string_view key);
  bool publish(const Entry& entry);
  Found find_or_make(std::string_view kind, std::string_view key, const Maker& make);
  bool has_directory();
  void tell_failure(const char* code, const std::filesystem::path& root, const IoError& failure);
  void tell_distrusted(const std::filesystem::path& root, const Distrusted& distrusted);

  const CacheOptions options_;
  NoticeBoard notices_;
  std::vector<std::variant<Bundle, std::filesystem::path>> bundles_;
  mutable std::shared_mutex memory_mutex_;
  std::unordered_map<std::string, Bytes> memory_;
  std::mutex flights_mutex_;  // taken before memory_mutex_
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace gdr
