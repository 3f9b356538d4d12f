// A bundle: many entry files in one file, with an index. Made by export, read by import, or looked up in place as a
// read-only layer under the cache folder. docs/cache-format.md shows the layout; a test holds the two together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/entry_file.hpp"
#include "cache/posix.hpp"

namespace gdr {

inline constexpr EntryField kBundleFields[] = {
    {"magic", 0, 8, "0x89, `GDRbnd`, newline"},
    {"version", 8, 8, "version of this layout: 1"},
    {"checksum", 16, 32, "XXH3-128 of bytes 48 to 63 followed by the index, as hexadecimal digits"},
    {"index_offset", 48, 8, "where the index begins; the file ends with it"},
    {"entry_count", 56, 8, "records of the index"},
};
inline constexpr std::size_t kBundleHeaderBytes = 64;
inline constexpr EntryField kBundleRecordFields[] = {
    {"key", 0, 32, "key of the entry"},
    {"kind", 32, 16, "its kind, filled up with zeros"},
    {"offset", 48, 8, "where its bytes begin: a multiple of 64"},
    {"bytes", 56, 8, "how many they are: the bytes of the entry's file, unchanged"},
};
inline constexpr std::size_t kBundleRecordBytes = 64;
inline constexpr std::uint64_t kBundleVersion = 1;

// A file is not a bundle, or its index is damaged. Stays inside the room.
struct BadBundle : std::exception {
  explicit BadBundle(std::string sentence) : reason(std::move(sentence)) {}
  std::string reason;  // "/x/y: it ..."
};

struct BundleRecord {
  std::string kind;
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A bundle that is open: its index in memory, its entries read and checked one by one when asked for. Thread-safe.
class Bundle {
 public:
  // Throws IoError, BadBundle, Distrusted.
  explicit Bundle(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // By kind, then key.
  const std::vector<BundleRecord>& records() const { return records_; }

  // The entry, checked whole; null with `bad` set if it is damaged, null without if it is not there. Throws IoError.
  LoadedEntry find(std::string_view kind, std::string_view key) const;
  LoadedEntry load(const BundleRecord& record) const;

 private:
  std::filesystem::path path_;
  Fd fd_;
  std::vector<BundleRecord> records_;
};

// Writes a bundle of the entries that `next` returns until it returns null; none may come twice. The file is there
// whole or not at all. Returns how many entries there were. Throws IoError.
std::uint64_t write_bundle(const std::filesystem::path& path,
                           const std::function<std::shared_ptr<const Entry>()>& next);

}  // namespace gdr
