// What people do with a cache folder: list, check, shrink, empty it; take entries out and carry them elsewhere. Safe
// beside running processes: they may lose an entry and make it again, nothing else.
// Functions throw Error: config (GDR-K01 whose folder it is, GDR-K08 no bundle, GDR-K05 a bad entry), device (GDR-K03
// writing, GDR-K04 reading failed). A folder that does not exist is an empty cache.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.hpp"

namespace gdr {

struct EntryInfo {
  std::string kind;
  std::string key;
  std::filesystem::path path;
  Facts facts;
  std::uint64_t payload_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::chrono::system_clock::time_point last_used;  // to about a minute
};

struct BadEntryInfo {
  std::filesystem::path path;
  std::string reason;  // "it has 3 bytes, the header alone takes 120"
};

struct CacheListing {
  std::vector<EntryInfo> entries;  // by kind, then key
  std::vector<BadEntryInfo> bad;   // by path; also what was set aside before
};

// The entries, by their headers alone.
CacheListing list_cache(const std::filesystem::path& directory);

// The entries after checking every byte of each. Changes nothing.
CacheListing verify_cache(const std::filesystem::path& directory);

struct PruneLimits {
  std::optional<std::uint64_t> max_bytes;        // of all entry files together
  std::optional<std::chrono::seconds> max_idle;  // since an entry's last use
};

struct PruneReport {
  std::uint64_t removed_entries = 0;
  std::uint64_t removed_bytes = 0;
  std::uint64_t kept_entries = 0;
  std::uint64_t kept_bytes = 0;
};

// Removes entries that were not used for max_idle, then the least recently used until the rest fits max_bytes; also
// what was set aside, and what killed processes left behind more than an hour ago. Entries that are removed by another
// process meanwhile, or that cannot be removed, count as neither removed nor kept.
PruneReport prune_cache(const std::filesystem::path& directory, const PruneLimits& limits);

// Removes all entries, and what prune_cache removes besides.
PruneReport clear_cache(const std::filesystem::path& directory);

// Writes the payload of an entry file, after checking it, to `output` (for cuobjdump and other tools).
void extract_payload(const std::filesystem::path& entry_file, const std::filesystem::path& output);

// Writes the good entries that `wanted` accepts (all, if it is empty) into one file. Returns their number.
std::uint64_t export_bundle(const std::filesystem::path& directory, const std::filesystem::path& bundle,
                            const std::function<bool(const EntryInfo&)>& wanted = {});

struct ImportReport {
  std::uint64_t added = 0;
  std::uint64_t present = 0;      // good already
  std::vector<BadEntryInfo> bad;  // entries of the bundle that were left out; `path` is the bundle's
};

// Copies the entries of a bundle into the folder.
ImportReport import_bundle(const std::filesystem::path& bundle, const std::filesystem::path& directory);

}  // namespace gdr
