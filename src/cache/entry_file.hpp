// Entry files: written beside and renamed, so that an entry is there whole or not at all; checked whole when loaded.
// Functions throw IoError (disk) unless they say otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cache/entry.hpp"
#include "cache/folder.hpp"
#include "cache/posix.hpp"

namespace gdr {

// A last use is noted on disk only if the one noted is older than this: a hit is mostly reading.
inline constexpr std::int64_t kTouchAfterSeconds = 60;

struct LoadedEntry {
  std::shared_ptr<const Entry> entry;  // null: not there, or bad
  std::string bad;                     // why what is there is no good entry; empty if nothing is there
  std::uint64_t inode = 0;             // of the bad file
};

// Loads and checks the entry <shard>/<key>. Never follows a link. With `touch`, a hit is noted as the file's time of
// modification, as far as that is possible.
LoadedEntry load_entry(const Shard& shard, std::string_view kind, std::string_view key, bool touch,
                       const CacheFault& fault);

// Writes <shard>/<key>, replacing what is there: new file beside, sync, rename. Leaves no file behind if it throws.
void save_entry(const Shard& shard, const Entry& entry, const CacheFault& fault);

// Moves a bad file to <key>.bad, or deletes it if that fails, unless another process has replaced it since. Says in
// words what became of it ("was set aside as /x/y.bad"). Throws nothing.
std::string set_aside(const Shard& shard, std::string_view key, std::uint64_t inode, const CacheFault& fault);

// Writes a new file whole or not at all: `write` fills a file beside, which then replaces `path`.
void replace_file(const std::filesystem::path& path, const std::function<void(const Fd&)>& write);

}  // namespace gdr
