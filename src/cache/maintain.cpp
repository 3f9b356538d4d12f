#include "cache/maintain.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <type_traits>

#include "cache/bundle.hpp"
#include "cache/entry_file.hpp"
#include "cache/folder_walk.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

// A file beside or a lock that is older belongs to a process that was killed: nobody writes or compiles that long.
constexpr std::time_t kLeftBehindAfterSeconds = 3600;

// Runs `work`; what the room throws inside becomes an Error with the code of the same cause.
template <typename Work>
auto with_errors(const char* io_code, const Work& work) {
  try {
    return work();
  } catch (const Distrusted& distrusted) {
    fail(ErrorKind::config, "GDR-K01",
         "cache: {}: what is in it is not trusted. Run as its owner, or name another folder.", distrusted.reason);
  } catch (const BadBundle& bad) {
    fail(ErrorKind::config, "GDR-K08", "cache: {}. Make it again with `gdrjit cache export`.", bad.reason);
  } catch (const IoError& failure) {
    fail(ErrorKind::device, io_code, "cache: {}.", describe(failure));
  }
}

enum class Depth { headers, all_bytes };

struct HeaderOrReason {
  std::optional<EntryHeader> header;
  std::string reason;
};

HeaderOrReason examine(const VisitedFile& file, Depth depth) {
  HeaderOrReason result;
  if (depth == Depth::all_bytes) {
    LoadedEntry loaded = load_entry(file.shard, file.kind, file.name, false, {});
    result.reason = loaded.bad;
    if (loaded.entry) {
      const auto file_bytes = static_cast<std::uint64_t>(loaded.entry->image().size());
      result.header = parse_header(loaded.entry->image(), file_bytes, result.reason);
    }
    return result;
  }
  if (!S_ISREG(file.status.st_mode)) {
    result.reason = "it is not a regular file";
    return result;
  }
  const std::filesystem::path path = file.shard.path / file.name;
  const Fd fd = open_at(file.shard.fd.get(), file.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && errno == ENOENT) return result;
  if (!fd) throw IoError("open", path, errno);
  const auto file_bytes = static_cast<std::uint64_t>(status_of(fd, path).st_size);
  const std::string begin = read_at(fd, 0, std::min<std::uint64_t>(file_bytes, kMaxHeaderBytes), path);
  result.header = parse_header(begin, file_bytes, result.reason);
  return result;
}

CacheListing collect(const std::filesystem::path& directory, Depth depth) {
  CacheListing listing;
  walk_folder(directory, [&](const VisitedFile& file) {
    const std::filesystem::path path = file.shard.path / file.name;
    if (file.role == FileRole::bad) listing.bad.push_back({path, "it was set aside"});
    if (file.role != FileRole::entry) return;
    HeaderOrReason found = examine(file, depth);
    if (!found.reason.empty()) {
      listing.bad.push_back({path, found.reason});
    } else if (found.header) {
      listing.entries.push_back({file.kind, file.name, path, std::move(found.header->facts),
                                 found.header->payload_bytes, static_cast<std::uint64_t>(file.status.st_size),
                                 std::chrono::system_clock::from_time_t(file.status.st_mtime)});
    }
  });
  return listing;
}

struct PruneCandidate {
  std::filesystem::path path;
  std::time_t last_used;
  std::uint64_t bytes;
};

// True for what nobody needs any more. Files beside and locks may be in use, so only old ones count.
bool is_left_behind(const VisitedFile& file, std::time_t now) {
  if (file.role == FileRole::entry) return false;
  return file.role == FileRole::bad || now - file.status.st_mtime > kLeftBehindAfterSeconds;
}

// True if it is gone by our hand.
bool remove_file(const std::filesystem::path& path) { return ::unlink(path.c_str()) == 0; }

}  // namespace

CacheListing list_cache(const std::filesystem::path& directory) {
  return with_errors("GDR-K04", [&] { return collect(directory, Depth::headers); });
}

CacheListing verify_cache(const std::filesystem::path& directory) {
  return with_errors("GDR-K04", [&] { return collect(directory, Depth::all_bytes); });
}

PruneReport prune_cache(const std::filesystem::path& directory, const PruneLimits& limits) {
  const std::time_t now = std::time(nullptr);
  std::vector<PruneCandidate> candidates;
  PruneReport report;
  with_errors("GDR-K04", [&] {
    walk_folder(directory, [&](const VisitedFile& file) {
      std::filesystem::path path = file.shard.path / file.name;
      const auto bytes = static_cast<std::uint64_t>(file.status.st_size);
      if (file.role == FileRole::entry) {
        candidates.push_back({std::move(path), file.status.st_mtime, bytes});
        report.kept_bytes += bytes;
      } else if (is_left_behind(file, now)) {
        remove_file(path);
      }
    });
  });
  report.kept_entries = candidates.size();
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const PruneCandidate& a, const PruneCandidate& b) { return a.last_used < b.last_used; });
  for (const PruneCandidate& candidate : candidates) {
    const bool too_old = limits.max_idle && now - candidate.last_used > limits.max_idle->count();
    const bool too_many = limits.max_bytes && report.kept_bytes > *limits.max_bytes;
    if (!too_old && !too_many) break;  // those that follow were used later
    --report.kept_entries;
    report.kept_bytes -= candidate.bytes;
    if (!remove_file(candidate.path)) continue;
    ++report.removed_entries;
    report.removed_bytes += candidate.bytes;
  }
  return report;
}

PruneReport clear_cache(const std::filesystem::path& directory) {
  return prune_cache(directory, {.max_bytes = {}, .max_idle = std::chrono::seconds::min()});
}

void extract_payload(const std::filesystem::path& entry_file, const std::filesystem::path& output) {
  const Entry entry = with_errors("GDR-K04", [&] {
    const Fd fd = open_at(AT_FDCWD, entry_file.c_str(), O_RDONLY | O_NONBLOCK);
    if (!fd) throw IoError("open", entry_file, errno);
    const auto file_bytes = static_cast<std::uint64_t>(status_of(fd, entry_file).st_size);
    std::string image = read_at(fd, 0, file_bytes, entry_file);
    std::string reason;
    std::optional<Entry> parsed;
    if (const auto header = parse_header(image, file_bytes, reason))
      parsed = Entry::parse(std::move(image), header->kind, header->key, reason);
    if (!parsed) fail(ErrorKind::config, "GDR-K05", "cache: {} is a bad entry: {}.", entry_file.string(), reason);
    return std::move(*parsed);
  });
  with_errors("GDR-K03",
              [&] { replace_file(output, [&](const Fd& file) { write_all(file, entry.payload(), output); }); });
}

std::uint64_t export_bundle(const std::filesystem::path& directory, const std::filesystem::path& bundle,
                            const std::function<bool(const EntryInfo&)>& wanted) {
  const CacheListing listing = list_cache(directory);
  auto next = listing.entries.begin();
  const auto next_entry = [&]() -> std::shared_ptr<const Entry> {
    while (next != listing.entries.end()) {
      const EntryInfo& info = *next++;
      if (wanted && !wanted(info)) continue;
      const auto shard = open_shard(directory, info.kind, info.key, Missing::leave, {});
      const LoadedEntry loaded = shard ? load_entry(*shard, info.kind, info.key, false, {}) : LoadedEntry{};
      if (loaded.entry) return loaded.entry;  // else it is bad, or was removed meanwhile
    }
    return nullptr;
  };
  return with_errors("GDR-K03", [&] { return write_bundle(bundle, next_entry); });
}

ImportReport import_bundle(const std::filesystem::path& bundle, const std::filesystem::path& directory) {
  const Bundle source = with_errors("GDR-K04", [&] { return Bundle(bundle); });
  ImportReport report;
  with_errors("GDR-K03", [&] {
    for (const BundleRecord& record : source.records()) {
      const LoadedEntry loaded = source.load(record);
      if (!loaded.entry) {
        report.bad.push_back({bundle, fmt::format("{} {}: {}", record.kind, record.key, loaded.bad)});
        continue;
      }
      const auto shard = open_shard(directory, record.kind, record.key, Missing::create, {});
      if (load_entry(*shard, record.kind, record.key, false, {}).entry) {
        ++report.present;
      } else {
        save_entry(*shard, *loaded.entry, {});
        ++report.added;
      }
    }
  });
  return report;
}

}  // namespace gdr
