// A cache folder on disk: <root>/v1/<kind>/<first 2 digits of key>/<key>. Decides whom to trust: the root may be
// reached through links, what lies below it is opened without following any.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cache/entry.hpp"
#include "cache/posix.hpp"

namespace gdr {

// The root folder or one below it must not be used, for a reason of ownership. Stays inside the room.
struct Distrusted : std::exception {
  explicit Distrusted(std::string sentence) : reason(std::move(sentence)) {}
  std::string reason;  // "/x belongs to user 12 and this process runs as user 34"
};

// Why a file or folder with this status may not be trusted by `user` (an effective user id); empty if it may.
// Trusted is what belongs to the user, and what belongs to root and is not writable by its group or by all.
std::string why_distrusted(const struct ::stat& status, unsigned user);

inline constexpr const char* kVersionFolder = "v1";
inline constexpr const char* kLockSuffix = ".lock";
inline constexpr const char* kBadSuffix = ".bad";

// <root>/v1/<kind>/<first 2 digits of key>.
std::filesystem::path shard_path(const std::filesystem::path& root, std::string_view kind, std::string_view key);

// A shard folder that is open, and its path for messages.
struct Shard {
  Fd fd;
  std::filesystem::path path;
};

enum class Missing { leave, create };

// Opens the shard of a key. Nothing if one of the folders is missing and shall not be created.
// Throws Distrusted, IoError.
std::optional<Shard> open_shard(const std::filesystem::path& root, std::string_view kind, std::string_view key,
                                Missing missing, const CacheFault& fault);

// Opens a folder that exists for reading its list, with the same checks; nothing if it is not there.
// `path` is for messages; with `follow` the last part of the name may be a symbolic link.
// Throws Distrusted, IoError.
std::optional<Fd> open_trusted_folder(int at, const char* name, const std::filesystem::path& path, bool follow,
                                      int flags);

}  // namespace gdr
