// Damaged entries, and a disk that does not do what it should: never a wrong byte, never an exception, told once.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "cache/cache.hpp"
#include "cache/maintain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;

namespace {

using namespace gdr;
using namespace gdr::test;

const std::string kKey = key_of(1);

// A folder with one good entry.
struct OneEntry {
  OneEntry() : file(file_of(folder.path(), "cubin", kKey)) {
    Cache cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
    image = cache.put("cubin", kKey, payload_of(kKey, 700), {{"registers", "168"}})->image();
  }
  TempFolder folder;
  fs::path file;
  std::string image;
};

// Looks for the entry with a new cache, twice, then makes it. Nothing may be found, the cause must be told once, what
// was there must be out of the way, and the entry must be good again for the next process.
void check_bad(const OneEntry& one, const std::string& reason) {
  Notices notices;
  Cache cache({.directory = one.folder.path(), .bundles = {}, .notice = notices.callback(), .fault = {}});
  REQUIRE_FALSE(cache.get("cubin", kKey));
  REQUIRE_FALSE(cache.get("cubin", kKey));
  int made = 0;
  const Found found = cache.get_or_make("cubin", kKey, [&] {
    ++made;
    return Content{payload_of(kKey, 700), {{"registers", "168"}}};
  });
  REQUIRE(made == 1);
  REQUIRE(found.entry->image() == one.image);
  REQUIRE(notices.texts().size() == 1);
  if (!reason.empty())
    REQUIRE(notices.texts()[0] ==
            fmt::format("GDR-K05 cache: {0} is a bad entry: {1}. It was set aside as {0}.bad, and is made again.",
                        one.file.string(), reason));
  REQUIRE(notices.codes() == "GDR-K05");
  REQUIRE(fs::exists(fs::symlink_status(one.file.string() + ".bad")));
  Cache next({.directory = one.folder.path(), .bundles = {}, .notice = notices.callback(), .fault = {}});
  REQUIRE(next.get("cubin", kKey).origin == Origin::directory);
  REQUIRE(notices.texts().size() == 1);
}

}  // namespace

TEST_CASE(
    "an entry with a flipped byte is set aside, told once and made again: each byte of the header, bytes of the body") {
  const OneEntry one;
  const std::size_t header_bytes = one.image.size() - 700;
  std::mt19937 random(7);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < header_bytes; ++i) places.push_back(i);
  for (int i = 0; i < 100; ++i) places.push_back(header_bytes + random() % 700);
  for (const std::size_t place : places) {
    CAPTURE(place);
    std::string damaged = one.image;
    damaged[place] = static_cast<char>(damaged[place] ^ static_cast<char>(1 + random() % 255));
    write_file(one.file, damaged);
    check_bad(one, "");
  }
}

TEST_CASE("a truncated entry is set aside, told once and made again: each length of the header, lengths of the body") {
  const OneEntry one;
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length <= one.image.size() - 700; ++length) lengths.push_back(length);
  for (std::size_t length = one.image.size() - 699; length < one.image.size(); length += 37) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    CAPTURE(length);
    write_file(one.file, one.image.substr(0, length));
    check_bad(one, "");
  }
}

TEST_CASE("something else in place of an entry") {
  SUBCASE("an entry of another key") {
    const OneEntry one;
    write_file(one.file, Entry::make("cubin", key_of(2), "x", {}).image());
    check_bad(one, fmt::format("it holds cubin {}, not cubin {}", key_of(2), kKey));
  }
  SUBCASE("a symbolic link to a good entry") {
    const OneEntry one;
    const fs::path target = one.folder.path() / "target";
    fs::rename(one.file, target);
    fs::create_symlink(target, one.file);
    check_bad(one, "it is a symbolic link");
    CHECK(read_file(target) == one.image);  // not written through
  }
  SUBCASE("a symbolic link to nothing") {
    const OneEntry one;
    fs::remove(one.file);
    fs::create_symlink(one.folder.path() / "nothing", one.file);
    check_bad(one, "it is a symbolic link");
    CHECK_FALSE(fs::exists(one.folder.path() / "nothing"));
  }
  SUBCASE("a folder") {
    const OneEntry one;
    fs::remove(one.file);
    fs::create_directory(one.file);
    check_bad(one, "it is not a regular file");
  }
  SUBCASE("a pipe, which would make a reader wait") {
    const OneEntry one;
    fs::remove(one.file);
    REQUIRE(::mkfifo(one.file.c_str(), 0600) == 0);
    check_bad(one, "it is not a regular file");
  }
  SUBCASE("a sparse file of a terabyte, whose header says nothing of it") {
    const OneEntry one;
    fs::resize_file(one.file, std::uintmax_t{1} << 40);
    check_bad(one, "it has 1099511627776 bytes, its header says 192 and 700 of payload");
  }
}

TEST_CASE("a bad entry that cannot be moved away is still a miss") {
  SUBCASE("a folder with something in it, where one was set aside before") {
    const OneEntry one;
    fs::remove(one.file);
    fs::create_directory(one.file);
    fs::create_directories(fs::path(one.file.string() + ".bad") / "x");
    Notices notices;
    Cache cache({.directory = one.folder.path(), .bundles = {}, .notice = notices.callback(), .fault = {}});
    for (int i = 0; i < 3; ++i) {
      const Found found = cache.get_or_make("cubin", kKey, [] { return Content{"made", {}}; });
      CHECK(found.origin == (i == 0 ? Origin::made : Origin::memory));
    }
    REQUIRE(notices.codes() == "GDR-K05 GDR-K03");
    CHECK(notices.texts()[0].find("It stays there: cannot rename or delete") != std::string::npos);
    CHECK(notices.texts()[1] ==
          fmt::format("GDR-K03 cache: cannot rename a new file to {}: Is a directory. What is made is kept in memory, "
                      "for this process only. Move away what stands there, or set GDRJIT_CACHE_DIR to another folder.",
                      one.file.string()));
    CHECK(other_files(one.folder.path()) == std::vector<std::string>{kKey + ".lock"});
  }
  SUBCASE("a disk that refuses") {
    const OneEntry one;
    write_file(one.file, "bad");
    Notices notices;
    const CacheFault fault = [](CacheStep step) { return step == CacheStep::set_aside ? EIO : 0; };
    Cache cache({.directory = one.folder.path(), .bundles = {}, .notice = notices.callback(), .fault = fault});
    CHECK_FALSE(cache.get("cubin", kKey));
    CHECK_FALSE(cache.get("cubin", kKey));
    REQUIRE(notices.codes() == "GDR-K05");
    CHECK(notices.texts()[0].find("It stays there: cannot rename " + one.file.string() + ": Input/output error") !=
          std::string::npos);
  }
}

TEST_CASE("one of the folders is a file or a link") {
  const auto check_memory_only = [](const fs::path& directory, const std::string& codes) {
    Notices notices;
    Cache cache({.directory = directory, .bundles = {}, .notice = notices.callback(), .fault = {}});
    for (int n : {1, 2, 1}) {
      const Found found = cache.get_or_make("cubin", key_of(n), [&] { return Content{payload_of(key_of(n)), {}}; });
      CHECK(found.entry->payload() == payload_of(key_of(n)));
    }
    CHECK(notices.codes() == codes);
  };
  const TempFolder folder;
  SUBCASE("the folder itself is a file") {
    write_file(folder.path() / "file", "");
    check_memory_only(folder.path() / "file", "GDR-K04");
  }
  SUBCASE("a folder above it is a file") {
    write_file(folder.path() / "file", "");
    check_memory_only(folder.path() / "file" / "cache", "GDR-K04");
  }
  SUBCASE("a folder in it is a link") {
    fs::create_directory(folder.path() / "elsewhere");
    fs::create_directory(folder.path() / "cache");
    fs::create_symlink(folder.path() / "elsewhere", folder.path() / "cache" / "v1");
    check_memory_only(folder.path() / "cache", "GDR-K04");
    CHECK(fs::is_empty(folder.path() / "elsewhere"));
  }
  SUBCASE("a link as the folder itself is the user's choice") {
    fs::create_directory(folder.path() / "elsewhere");
    fs::create_symlink(folder.path() / "elsewhere", folder.path() / "cache");
    check_memory_only(folder.path() / "cache", "");
    CHECK(list_cache(folder.path() / "elsewhere").entries.size() == 2);
  }
}

TEST_CASE("a write that fails at any step: the bytes are kept in memory, nothing half stays, told once") {
  struct Row {
    CacheStep step;
    int error;
    std::string text;
  };
  const Row rows[] = {
      {CacheStep::create, EDQUOT, "cannot create {}: Disk quota exceeded"},
      {CacheStep::create, EACCES, "cannot create {}: Permission denied"},
      {CacheStep::write_first_half, EIO, "cannot write {}: Input/output error"},
      {CacheStep::write_second_half, ENOSPC, "cannot write {}: No space left on device"},
      {CacheStep::sync, EIO, "cannot write {}: Input/output error"},
      {CacheStep::rename, EROFS, "cannot rename a new file to {}: Read-only file system"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const TempFolder folder;
    Notices notices;
    const CacheFault fault = [&](CacheStep step) { return step == row.step ? row.error : 0; };
    Cache cache({.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = fault});
    for (int n = 1; n <= 3; ++n) {
      CHECK(cache.put("plan", key_of(n), payload_of(key_of(n)))->payload() == payload_of(key_of(n)));
      const Maker make = [&] { return Content{payload_of(key_of(n)), {}}; };
      CHECK(cache.get_or_make("cubin", key_of(n), make).origin == Origin::made);
      CHECK(cache.get("plan", key_of(n)).entry->payload() == payload_of(key_of(n)));
      CHECK(cache.get("cubin", key_of(n)).entry->payload() == payload_of(key_of(n)));
    }
    REQUIRE(notices.codes() == "GDR-K03");
    const std::string path = file_of(folder.path(), "plan", key_of(1)).string();
    CHECK(notices.texts()[0].starts_with("GDR-K03 cache: " + fmt::format(fmt::runtime(row.text), path) +
                                         ". What is made is kept in memory, for this process only. "));
    for (const std::string& name : other_files(folder.path())) CHECK_MESSAGE(name.ends_with(".lock"), name);
    CHECK(list_cache(folder.path()).entries.empty());
  }
}

TEST_CASE("a read that fails is a miss that is told once, and leaves the entry alone") {
  for (const CacheStep step : {CacheStep::open_folder, CacheStep::open_entry}) {
    const OneEntry one;
    Notices notices;
    const CacheFault fault = [&](CacheStep at) { return at == step ? EIO : 0; };
    Cache cache({.directory = one.folder.path(), .bundles = {}, .notice = notices.callback(), .fault = fault});
    CHECK_FALSE(cache.get("cubin", kKey));
    CHECK_FALSE(cache.get("cubin", key_of(2)));
    CHECK(notices.codes() == "GDR-K04");
    CHECK(read_file(one.file) == one.image);
  }
}

TEST_CASE("somebody removes the whole folder while an entry is written: written once more") {
  const TempFolder folder;
  Notices notices;
  bool cleared = false;
  const CacheFault fault = [&](CacheStep step) {
    if (step == CacheStep::rename && !cleared) {
      cleared = true;
      fs::remove_all(folder.path() / "v1");
    }
    return 0;
  };
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = fault});
  cache.put("cubin", kKey, payload_of(kKey));
  CHECK(cleared);
  CHECK(list_cache(folder.path()).entries.size() == 1);
  CHECK(notices.texts().empty());
}

TEST_CASE("no locks on this disk: made all the same, told once") {
  const TempFolder folder;
  Notices notices;
  const CacheFault fault = [](CacheStep step) { return step == CacheStep::lock ? ENOLCK : 0; };
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = fault});
  for (int n : {1, 2}) {
    const Maker make = [&] { return Content{payload_of(key_of(n)), {}}; };
    CHECK(cache.get_or_make("cubin", key_of(n), make).origin == Origin::made);
  }
  CHECK(list_cache(folder.path()).entries.size() == 2);
  REQUIRE(notices.texts().size() == 1);
  CHECK(notices.texts()[0] ==
        fmt::format("GDR-K07 cache: cannot lock {}: No locks available. Processes that start together may each make "
                    "the same entries.",
                    file_of(folder.path(), "cubin", kKey, ".lock").string()));
}

TEST_CASE("an interrupted wait for a lock goes on") {
  const TempFolder folder;
  Notices notices;
  int attempts = 0;
  const CacheFault fault = [&](CacheStep step) { return step == CacheStep::lock && ++attempts < 4 ? EINTR : 0; };
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = fault});
  CHECK(cache.get_or_make("cubin", kKey, [] { return Content{"made", {}}; }).origin == Origin::made);
  CHECK(attempts == 4);
  CHECK(notices.texts().empty());
}

TEST_CASE("damaged bundles: what is good in them serves, what is not is told once") {
  const TempFolder folder;
  const fs::path bundle = folder.path() / "bundle";
  {
    Cache cache({.directory = folder.path() / "cache", .bundles = {}, .notice = {}, .fault = {}});
    for (int n : {1, 2, 3}) cache.put("cubin", key_of(n), payload_of(key_of(n), 300));
    REQUIRE(export_bundle(folder.path() / "cache", bundle) == 3);
  }
  const std::string good = read_file(bundle);
  const auto try_all = [&](Notices& notices) {
    Cache cache({.directory = folder.path() / "empty", .bundles = {bundle}, .notice = notices.callback(), .fault = {}});
    int found = 0;
    for (int round = 0; round < 2; ++round)
      for (int n : {1, 2, 3})
        if (const Found hit = cache.get("cubin", key_of(n))) {
          REQUIRE(hit.entry->payload() == payload_of(key_of(n), 300));
          found += round;
        }
    return found;
  };
  {
    Notices notices;
    CHECK(try_all(notices) == 3);
    CHECK(notices.texts().empty());
  }
  // Fixed header, three entries of 128 + 300 bytes filled up to 448, index of three records.
  constexpr std::size_t kIndex = 64 + 3 * 448;
  REQUIRE(good.size() == kIndex + 3 * 64);
  for (std::size_t place = 0; place < good.size(); ++place) {
    CAPTURE(place);
    std::string damaged = good;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    write_file(bundle, damaged);
    Notices notices;
    const int found = try_all(notices);
    const bool in_entries = place >= 64 && place < kIndex;
    const bool in_padding = in_entries && (place - 64) % 448 >= 428;
    REQUIRE(found == (in_padding ? 3 : in_entries ? 2 : 0));
    REQUIRE(notices.codes() == (in_padding ? "" : in_entries ? "GDR-K05" : "GDR-K08"));
  }
  for (std::size_t length = 0; length < good.size(); length += length < 70 ? 1 : 41) {
    CAPTURE(length);
    write_file(bundle, good.substr(0, length));
    Notices notices;
    REQUIRE(try_all(notices) == 0);
    REQUIRE(notices.codes() == "GDR-K08");
  }
  {
    fs::remove(bundle);
    Notices notices;
    CHECK(try_all(notices) == 0);
    REQUIRE(notices.texts().size() == 1);
    CHECK(notices.texts()[0] ==
          fmt::format("GDR-K04 cache: cannot open bundle {}: No such file or directory. It is not used. Check "
                      "GDRJIT_BUNDLE_PATH.",
                      bundle.string()));
  }
}
