#include "cache/cache.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "cache/entry_file.hpp"
#include "cache/key_lock.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

std::string name_of(std::string_view kind, std::string_view key) {
  internal_check(is_kind(kind), "cache: a kind is 1 to 15 of a-z, 0-9 and _");
  internal_check(is_key(key), "cache: a key is 32 hexadecimal digits");
  std::string name;
  name.reserve(kind.size() + 1 + key.size());
  name.append(kind).append(1, '/').append(key);
  return name;
}

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "Free some space there, or set GDRJIT_CACHE_DIR to a folder on another disk.";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Set GDRJIT_CACHE_DIR to a folder that this user may write, or put what is needed into a bundle.";
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return "Move away what stands there, or set GDRJIT_CACHE_DIR to another folder.";
    default:
      return "If that stays so, set GDRJIT_CACHE_DIR to another folder.";
  }
}

}  // namespace

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::none:
      return "none";
    case Origin::memory:
      return "memory";
    case Origin::directory:
      return "directory";
    case Origin::bundle:
      return "bundle";
    case Origin::made:
      return "made";
  }
  return "?";
}

// An entry that one thread is making while others may wait for it.
struct Cache::Flight {
  std::thread::id owner = std::this_thread::get_id();
  std::promise<Bytes> promise;
  std::shared_future<Bytes> result = promise.get_future().share();
};

Cache::Cache(CacheOptions options) : options_(std::move(options)), notices_(options_.notice) {
  for (const std::filesystem::path& path : options_.bundles) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      bundles_.emplace_back(path);
      continue;
    }
    try {
      bundles_.emplace_back(Bundle(path));
    } catch (const BadBundle& bad) {
      notices_.tell("GDR-K08", path.string(),
                    bad.reason + ". It is not used. Make it again with `gdrjit cache export`.");
    } catch (const Distrusted& distrusted) {
      tell_distrusted(path, distrusted);
    } catch (const IoError& failure) {
      notices_.tell("GDR-K04", path.string(), describe(failure) + ". It is not used. Check GDRJIT_BUNDLE_PATH.");
    }
  }
}

Cache::~Cache() = default;

Cache::Bytes Cache::from_memory(const std::string& name) const {
  const std::shared_lock lock(memory_mutex_);
  const auto found = memory_.find(name);
  return found == memory_.end() ? nullptr : found->second;
}

void Cache::remember(const std::string& name, const Bytes& entry) {
  const std::unique_lock lock(memory_mutex_);
  memory_.insert_or_assign(name, entry);
}

void Cache::tell_failure(const char* code, const std::filesystem::path& root, const IoError& failure) {
  const bool writing = std::string_view(code) == "GDR-K03";
  // A folder that cannot even be opened fails for reading and for writing alike: one cause.
  notices_.tell(code, fmt::format("{} {} {}", root.string(), failure.action, failure.error),
                fmt::format("{}. {} {}", describe(failure),
                            writing ? "What is made is kept in memory, for this process only."
                                    : "What cannot be read is made again.",
                            advice(failure.error)));
}

void Cache::tell_distrusted(const std::filesystem::path& root, const Distrusted& distrusted) {
  notices_.tell("GDR-K01", root.string(),
                fmt::format("{}: what is in it is not trusted, and nothing is written to it. {}", distrusted.reason,
                            root == options_.directory ? "Set GDRJIT_CACHE_DIR to a folder of this user."
                                                       : "Change its owner or its mode."));
}

bool Cache::has_directory() {
  if (!options_.directory.empty()) return true;
  notices_.tell("GDR-K02", "no folder",
                "there is no folder for it: none of GDRJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set. What is made is "
                "kept in memory, for this process only. Set GDRJIT_CACHE_DIR.");
  return false;
}

LoadedEntry Cache::from_directory(std::string_view kind, std::string_view key, OnBad on_bad) {
  if (options_.directory.empty()) return {};
  try {
    const std::optional<Shard> shard = open_shard(options_.directory, kind, key, Missing::leave, options_.fault);
    if (!shard) return {};
    LoadedEntry loaded = load_entry(*shard, kind, key, true, options_.fault);
    if (!loaded.bad.empty() && on_bad == OnBad::set_aside) {
      const std::string path = (shard->path / key).string();
      notices_.tell("GDR-K05", path,
                    fmt::format("{} is a bad entry: {}. It {}, and is made again.", path, loaded.bad,
                                set_aside(*shard, key, loaded.inode, options_.fault)));
    }
    return loaded;
  } catch (const Distrusted& distrusted) {
    tell_distrusted(options_.directory, distrusted);
  } catch (const IoError& failure) {
    tell_failure("GDR-K04", options_.directory, failure);
  }
  return {};
}

Cache::Bytes Cache::from_bundles(std::string_view kind, std::string_view key) {
  for (const auto& source : bundles_) {
    const bool is_file = std::holds_alternative<Bundle>(source);
    const std::filesystem::path& path = is_file ? std::get<Bundle>(source).path() : std::get<1>(source);
    try {
      LoadedEntry loaded;
      if (is_file) {
        loaded = std::get<Bundle>(source).find(kind, key);
      } else if (const auto shard = open_shard(path, kind, key, Missing::leave, options_.fault)) {
        loaded = load_entry(*shard, kind, key, false, options_.fault);
      }
      if (loaded.entry) return loaded.entry;
      if (!loaded.bad.empty())
        notices_.tell("GDR-K05", fmt::format("{} {} {}", path.string(), kind, key),
                      fmt::format("{} {} in bundle {} is a bad entry: {}. It is made again; replace the bundle.", kind,
                                  key, path.string(), loaded.bad));
    } catch (const Distrusted& distrusted) {
      tell_distrusted(path, distrusted);
    } catch (const IoError& failure) {
      tell_failure("GDR-K04", path, failure);
    }
  }
  return nullptr;
}

Found Cache::from_disk(std::string_view kind, std::string_view key) {
  if (LoadedEntry loaded = from_directory(kind, key, OnBad::set_aside); loaded.entry)
    return {std::move(loaded.entry), Origin::directory};
  if (Bytes entry = from_bundles(kind, key)) return {std::move(entry), Origin::bundle};
  return {};
}

bool Cache::publish(const Entry& entry) {
  if (!has_directory()) return false;
  for (bool again = true;; again = false) {
    try {
      const auto shard = open_shard(options_.directory, entry.kind(), entry.key(), Missing::create, options_.fault);
      save_entry(*shard, entry, options_.fault);
      return true;
    } catch (const Distrusted& distrusted) {
      tell_distrusted(options_.directory, distrusted);
      return false;
    } catch (const IoError& failure) {
      // Somebody may have removed the whole folder just now, under our hands: once more.
      if (failure.error == ENOENT && again) continue;
      tell_failure("GDR-K03", options_.directory, failure);
      return false;
    }
  }
}

Found Cache::get(std::string_view kind, std::string_view key) {
  const std::string name = name_of(kind, key);
  if (Bytes entry = from_memory(name)) return {std::move(entry), Origin::memory};
  Found found = from_disk(kind, key);
  if (found) remember(name, found.entry);
  return found;
}

std::shared_ptr<const Entry> Cache::put(std::string_view kind, std::string_view key, std::string_view payload,
                                        const Facts& facts) {
  const auto entry = std::make_shared<const Entry>(Entry::make(kind, key, payload, facts));
  remember(name_of(kind, key), entry);
  publish(*entry);
  return entry;
}

Found Cache::find_or_make(std::string_view kind, std::string_view key, const Maker& make) {
  // A bad entry is left where it is until we have the lock: else a slow process could set aside what a faster one has
  // put there meanwhile.
  LoadedEntry loaded = from_directory(kind, key, OnBad::leave);
  if (loaded.entry) return {std::move(loaded.entry), Origin::directory};
  if (loaded.bad.empty())
    if (Bytes entry = from_bundles(kind, key)) return {std::move(entry), Origin::bundle};

  // The shard stays open as long as the lock, which lives in it.
  std::optional<Shard> shard;
  std::optional<KeyLock> lock;
  if (has_directory()) {
    try {
      shard = open_shard(options_.directory, kind, key, Missing::create, options_.fault);
      lock.emplace(*shard, key, options_.lock_timeout, options_.fault);
    } catch (const Distrusted&) {  // both are told when the entry is published in vain
    } catch (const IoError&) {
    }
    // Another process may have made it since we looked.
    if (Found found = from_disk(kind, key)) {
      if (lock) lock->entry_is_published();
      return found;
    }
    if (lock && lock->state() == KeyLock::State::timed_out)
      notices_.tell("GDR-K06", lock->failure().path.string(),
                    fmt::format("waited {} ms for another process that holds {}. The entry is made here too. If no "
                                "other process is at work, delete that file.",
                                options_.lock_timeout.count(), lock->failure().path.string()));
  }

  Content content = make();
  auto entry = std::make_shared<const Entry>(Entry::make(kind, key, content.payload, content.facts));
  if (publish(*entry) && lock) {
    lock->entry_is_published();
    // Only where writing is possible: else that has been told, and is reason enough.
    if (lock->state() == KeyLock::State::impossible)
      notices_.tell("GDR-K07", "no locks",
                    describe(lock->failure()) + ". Processes that start together may each make the same entries.");
  }
  return {std::move(entry), Origin::made};
}

Found Cache::get_or_make(std::string_view kind, std::string_view key, const Maker& make) {
  const std::string name = name_of(kind, key);
  if (Bytes entry = from_memory(name)) return {std::move(entry), Origin::memory};

  std::shared_ptr<Flight> flight;
  bool is_ours = false;
  {
    const std::lock_guard lock(flights_mutex_);
    if (Bytes entry = from_memory(name)) return {std::move(entry), Origin::memory};
    std::shared_ptr<Flight>& slot = flights_[name];
    is_ours = slot == nullptr;
    if (is_ours) slot = std::make_shared<Flight>();
    flight = slot;
  }
  if (!is_ours) {
    internal_check(flight->owner != std::this_thread::get_id(), "cache: the maker of an entry asks for that entry");
    return {flight->result.get(), Origin::memory};
  }

  const auto land = [&](const Bytes& entry) {  // whoever comes from now on finds the entry in memory, or tries anew
    const std::lock_guard lock(flights_mutex_);
    if (entry) remember(name, entry);
    flights_.erase(name);
  };
  try {
    Found found = find_or_make(kind, key, make);
    land(found.entry);
    flight->promise.set_value(found.entry);
    return found;
  } catch (...) {
    land(nullptr);
    flight->promise.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace gdr
