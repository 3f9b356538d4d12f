// Folders that belong to others, may not be written or are full. Who this process is decides, so most of it happens in
// forked processes that take another identity; what needs root says so and is left out without it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "cache/cache.hpp"
#include "cache/folder.hpp"
#include "cache/maintain.hpp"
#include "core/error.hpp"
#include "support.hpp"

namespace fs = std::filesystem;

namespace {

using namespace gdr;
using namespace gdr::test;

constexpr unsigned kSomebody = 12345;

void set_owner(const fs::path& path, unsigned user) {
  if (::chown(path.c_str(), user, user) != 0) throw std::runtime_error("cannot change the owner");
}

void set_mode(const fs::path& path, unsigned mode) {
  if (::chmod(path.c_str(), mode) != 0) throw std::runtime_error("cannot change the mode");
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Asks for entries 1 and 2, three times each. Returns where the first answers came from and all notices, a line each.
std::string use(const fs::path& directory, const std::vector<fs::path>& bundles = {}) {
  Notices notices;
  Cache cache({.directory = directory, .bundles = bundles, .notice = notices.callback(), .fault = {}});
  std::string text;
  for (int round = 0; round < 3; ++round)
    for (int n : {1, 2}) {
      const Found found = cache.get_or_make("cubin", key_of(n), [&] { return Content{payload_of(key_of(n)), {}}; });
      if (found.entry->payload() != payload_of(key_of(n))) text += "wrong bytes\n";
      if (round == 0) text += fmt::format("{}\n", to_string(found.origin));
    }
  return text + join(notices.texts());
}

// A cache folder with entry 1, made by this process.
void make_cache(const fs::path& directory) {
  Cache({.directory = directory, .bundles = {}, .notice = {}, .fault = {}})
      .put("cubin", key_of(1), payload_of(key_of(1)));
}

}  // namespace

TEST_CASE("who may be trusted") {
  struct Row {
    unsigned owner;
    unsigned mode;
    unsigned user;
    std::string reason;
  };
  const Row rows[] = {
      {1000, 0755, 1000, ""},
      {1000, 0777, 1000, ""},  // the user's own: the owner of each entry is checked as well
      {0, 0755, 0, ""},
      {0, 01777, 0, ""},
      {0, 0755, 1000, ""},  // an image's folder
      {0, 0775, 1000, "belongs to root, is writable by others and this process runs as user 1000"},
      {0, 01777, 1000, "belongs to root, is writable by others and this process runs as user 1000"},
      {1001, 0755, 1000, "belongs to user 1001 and this process runs as user 1000"},
      {1001, 0700, 1000, "belongs to user 1001 and this process runs as user 1000"},
      {1000, 0755, 0, "belongs to user 1000 and this process runs as user 0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.owner);
    CAPTURE(row.mode);
    CAPTURE(row.user);
    struct ::stat status = {};
    status.st_uid = row.owner;
    status.st_mode = S_IFDIR | row.mode;
    CHECK(why_distrusted(status, row.user) == row.reason);
  }
}

TEST_CASE("a folder of another user is not used, by root neither") {
  if (!is_root()) {
    MESSAGE("skipped: only root can give a folder to another user");
    return;
  }
  const TempFolder folder;
  const fs::path directory = folder.path() / "cache";
  make_cache(directory);
  set_owner(directory, kSomebody);
  const auto expected = [&](unsigned user) {
    return fmt::format(
        "made\nmade\nGDR-K01 cache: {} belongs to user {} and this process runs as user {}: what is in it is not "
        "trusted, and nothing is written to it. Set GDRJIT_CACHE_DIR to a folder of this user.\n",
        directory.string(), kSomebody, user);
  };
  CHECK(use(directory) == expected(0));
  CHECK(in_child([&] {
          become(kNobody);
          return use(directory);
        }) == expected(kNobody));
  CHECK_THROWS_WITH_AS(list_cache(directory), doctest::Contains("GDR-K01 cache: "), Error);
  CHECK_THROWS_WITH_AS(clear_cache(directory), doctest::Contains("Run as its owner"), Error);
  CHECK(read_file(file_of(directory, "cubin", key_of(1))).size() > 3000);
}

TEST_CASE("a folder of root that everybody may write is not used by others") {
  if (!is_root()) {
    MESSAGE("skipped: only root can act as another user");
    return;
  }
  const TempFolder folder;
  const fs::path directory = folder.path() / "cache";
  make_cache(directory);
  for (const unsigned mode : {0777U, 01777U, 0775U}) {
    set_mode(directory, mode);
    CHECK(in_child([&] {
            become(kNobody);
            return use(directory);
          }) ==
          fmt::format("made\nmade\nGDR-K01 cache: {} belongs to root, is writable by others and this process runs as "
                      "user {}: what is in it is not trusted, and nothing is written to it. Set GDRJIT_CACHE_DIR "
                      "to a folder of this user.\n",
                      directory.string(), kNobody));
    // A folder of one's own in it will do.
    if (mode != 0775)
      CHECK(in_child([&] {
              become(kNobody);
              return use(directory / fmt::format("own{:o}", mode));
            }) == "made\nmade\n");
  }
  // One level below is as bad.
  set_mode(directory, 0755);
  set_mode(directory / "v1" / "cubin", 0777);
  CHECK(in_child([&] {
          become(kNobody);
          return use(directory);
        }).starts_with("made\nmade\nGDR-K01 cache: " + (directory / "v1" / "cubin").string()));
}

TEST_CASE("one's own folder is used though everybody may write it, but not what others put into it") {
  if (!is_root()) {
    MESSAGE("skipped: only root can give a file to another user");
    return;
  }
  const TempFolder folder;
  const fs::path directory = folder.path() / "cache";
  make_cache(directory);
  set_mode(directory, 0777);
  CHECK(use(directory) == "directory\nmade\n");
  const fs::path file = file_of(directory, "cubin", key_of(1));
  set_owner(file, kSomebody);
  CHECK(
      use(directory) ==
      fmt::format("made\ndirectory\nGDR-K05 cache: {0} is a bad entry: it belongs to user {1} and this process runs as "
                  "user 0. It was set aside as {0}.bad, and is made again.\n",
                  file.string(), kSomebody));
  CHECK(use(directory) == "directory\ndirectory\n");
}

TEST_CASE("a folder made by root serves all users for reading, what is missing is kept in memory") {
  if (!is_root()) {
    MESSAGE("skipped: only root can act as another user");
    return;
  }
  const TempFolder folder;
  const fs::path directory = folder.path() / "cache";
  make_cache(directory);
  const std::string text = in_child([&] {
    become(kNobody);
    return use(directory);
  });
  CHECK(text.starts_with("directory\nmade\nGDR-K03 cache: cannot create folder "));
  CHECK(
      text.ends_with(": Permission denied. What is made is kept in memory, for this process only. Set GDRJIT_CACHE_DIR "
                     "to a folder that this user may write, or put what is needed into a bundle.\n"));
  CHECK(list_cache(directory).entries.size() == 1);
  CHECK(other_files(directory).empty());
}

TEST_CASE("bundles: those of others are not used, those of root are") {
  if (!is_root()) {
    MESSAGE("skipped: only root can act as another user");
    return;
  }
  const TempFolder folder;
  make_cache(folder.path() / "cache");
  const fs::path bundle = folder.path() / "bundle";
  export_bundle(folder.path() / "cache", bundle);
  const auto use_as_nobody = [&](const fs::path& path) {
    return in_child([&] {
      become(kNobody);
      return use({}, {path});
    });
  };
  CHECK(use_as_nobody(bundle).starts_with("bundle\nmade\nGDR-K02"));
  CHECK(use_as_nobody(folder.path() / "cache").starts_with("bundle\nmade\nGDR-K02"));
  set_owner(bundle, kSomebody);
  set_owner(folder.path() / "cache", kSomebody);
  for (const fs::path& path : {bundle, folder.path() / "cache"}) {
    const std::string text = use_as_nobody(path);
    CHECK(text.starts_with("made\nmade\nGDR-K01 cache: " + path.string()));
    CHECK(text.find("Change its owner or its mode.") != std::string::npos);
  }
}

TEST_CASE("a folder that may be read but not written") {
  const TempFolder folder;
  const fs::path directory = folder.path() / "cache";
  make_cache(directory);
  // Permission bits do not bind root, so root takes another identity, to which the folder is given.
  if (is_root())
    for (const auto& item : fs::recursive_directory_iterator(directory)) set_owner(item.path(), kNobody);
  if (is_root()) set_owner(directory, kNobody);
  std::vector<fs::path> folders = {directory};
  for (const auto& item : fs::recursive_directory_iterator(directory))
    if (item.is_directory()) folders.push_back(item.path());
  for (const fs::path& path : folders) set_mode(path, 0555);
  const std::string text = in_child([&] {
    if (is_root()) become(kNobody);
    return use(directory);
  });
  for (const fs::path& path : folders) set_mode(path, 0755);
  CHECK(text.starts_with("directory\nmade\nGDR-K03 cache: cannot create folder "));
  CHECK(text.find("Permission denied") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("a read-only file system") {
  const TempFolder folder;
  const std::string text = in_child([&] {
    if (const std::string why = mount_small_disk(folder.path(), 1 << 20); !why.empty()) return "skipped: " + why;
    make_cache(folder.path() / "cache");
    if (const std::string why = make_read_only(folder.path()); !why.empty()) return "skipped: " + why;
    return use(folder.path() / "cache");
  });
  if (text.starts_with("skipped: ")) {
    MESSAGE(text);
    return;
  }
  CHECK(text.starts_with("directory\nmade\nGDR-K03 cache: cannot create folder "));
  CHECK(text.find(": Read-only file system. What is made is kept in memory, for this process only. ") !=
        std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("a full disk: told once, nothing half stays, and it works again when there is space") {
  const TempFolder folder;
  const std::string text = in_child([&] {
    if (const std::string why = mount_small_disk(folder.path(), 128 << 10); !why.empty()) return "skipped: " + why;
    const fs::path directory = folder.path() / "cache";
    Notices notices;
    Cache cache({.directory = directory, .bundles = {}, .notice = notices.callback(), .fault = {}});
    std::string result;
    for (int n = 0; n < 20; ++n) {
      const Maker make = [&] { return Content{payload_of(key_of(n), 20'000), {}}; };
      if (cache.get_or_make("cubin", key_of(n), make).entry->payload() != payload_of(key_of(n), 20'000))
        result += "wrong\n";
    }
    const CacheListing full = verify_cache(directory);
    const bool some = !full.entries.empty() && full.entries.size() < 7;
    result += fmt::format("{} {} bad\n", some ? "some" : "no sense", full.bad.size());
    for (const std::string& name : other_files(directory))
      if (!name.ends_with(".lock")) result += "left " + name + "\n";
    clear_cache(directory);
    cache.put("cubin", key_of(19), payload_of(key_of(19), 20'000));
    result += fmt::format("{} after clearing\n", verify_cache(directory).entries.size());
    return result + join(notices.texts());
  });
  if (text.starts_with("skipped: ")) {
    MESSAGE(text);
    return;
  }
  CAPTURE(text);
  CHECK(text.starts_with("some 0 bad\n1 after clearing\nGDR-K03 cache: cannot "));
  CHECK(text.ends_with(
      ": No space left on device. What is made is kept in memory, for this process only. Free some space "
      "there, or set GDRJIT_CACHE_DIR to a folder on another disk.\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
