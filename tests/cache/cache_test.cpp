// What a cache gives back and from where, on a disk that works.
#include "cache/cache.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "../cpu/build_kind.hpp"
#include "cache/entry_file.hpp"
#include "cache/maintain.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"
#include "support.hpp"

namespace fs = std::filesystem;

namespace {

using namespace gdr;
using namespace gdr::test;

struct ::stat status_of_path(const fs::path& path) {
  struct ::stat status = {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

std::string origin_of(const Found& found) { return to_string(found.origin); }

double microseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("what was put is found in memory, by another cache on disk, and nowhere else") {
  const TempFolder folder;
  Notices notices;
  const fs::path directory = folder.path() / "not" / "there" / "yet";
  Cache cache({.directory = directory, .bundles = {}, .notice = notices.callback(), .fault = {}});
  CHECK_FALSE(cache.get("cubin", key_of(1)));
  CHECK_FALSE(fs::exists(directory));  // looking makes no folder

  const auto put = cache.put("cubin", key_of(1), payload_of(key_of(1)), {{"registers", "168"}});
  CHECK(put->payload() == payload_of(key_of(1)));
  CHECK(origin_of(cache.get("cubin", key_of(1))) == "memory");
  CHECK(cache.get("cubin", key_of(1)).entry == put);
  CHECK(read_file(file_of(directory, "cubin", key_of(1))) == put->image());
  CHECK(other_files(directory).empty());

  Cache other({.directory = directory, .bundles = {}, .notice = notices.callback(), .fault = {}});
  const Found found = other.get("cubin", key_of(1));
  CHECK(origin_of(found) == "directory");
  CHECK(found.entry->payload() == payload_of(key_of(1)));
  CHECK(found.entry->facts() == Facts{{"registers", "168"}});
  CHECK(origin_of(other.get("cubin", key_of(1))) == "memory");

  CHECK_FALSE(other.get("plan", key_of(1)));
  CHECK_FALSE(other.get("cubin", key_of(2)));
  CHECK(origin_of(other.get("plan", key_of(1))) == "none");
  CHECK(notices.texts().empty());
}

TEST_CASE("what is put again replaces what was there") {
  const TempFolder folder;
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
  cache.put("cubin", key_of(1), "by NVRTC 12.8");
  const Found old = cache.get("cubin", key_of(1));
  cache.put("cubin", key_of(1), "by NVRTC 12.9");
  CHECK(old.entry->payload() == "by NVRTC 12.8");  // whoever holds it keeps it
  CHECK(cache.get("cubin", key_of(1)).entry->payload() == "by NVRTC 12.9");
  Cache other({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
  CHECK(other.get("cubin", key_of(1)).entry->payload() == "by NVRTC 12.9");
}

TEST_CASE("get_or_make makes what nobody has, once") {
  const TempFolder folder;
  Notices notices;
  int made = 0;
  const Maker make = [&] {
    ++made;
    return Content{payload_of(key_of(1)), {{"compiler", "x"}}};
  };
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = {}});
  CHECK(origin_of(cache.get_or_make("cubin", key_of(1), make)) == "made");
  CHECK(origin_of(cache.get_or_make("cubin", key_of(1), make)) == "memory");
  Cache other({.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = {}});
  const Found found = other.get_or_make("cubin", key_of(1), make);
  CHECK(origin_of(found) == "directory");
  CHECK(found.entry->payload() == payload_of(key_of(1)));
  CHECK(found.entry->facts() == Facts{{"compiler", "x"}});
  CHECK(made == 1);
  CHECK(other_files(folder.path()).empty());  // no lock file stays
  CHECK(notices.texts().empty());
}

TEST_CASE("a maker that throws leaves nothing, and may be asked again") {
  const TempFolder folder;
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
  const Maker fails = []() -> Content { throw Error(ErrorKind::compilation, "GDR-T01", "no such instruction"); };
  CHECK_THROWS_WITH_AS(cache.get_or_make("cubin", key_of(1), fails), "GDR-T01 no such instruction", Error);
  CHECK_FALSE(cache.get("cubin", key_of(1)));
  CHECK(origin_of(cache.get_or_make("cubin", key_of(1), [] { return Content{"right", {}}; })) == "made");
}

TEST_CASE("a maker may make other entries, but asking for its own is an internal error") {
  const TempFolder folder;
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
  const Found found = cache.get_or_make("plan", key_of(1), [&] {
    const Found kernel = cache.get_or_make("cubin", key_of(1), [] { return Content{"cubin", {}}; });
    return Content{"plan with " + std::string(kernel.entry->payload()), {}};
  });
  CHECK(found.entry->payload() == "plan with cubin");
  const Maker selfish = [&] {
    return Content{std::string(cache.get_or_make("plan", key_of(2), {}).entry->payload()), {}};
  };
  CHECK_THROWS_WITH_AS(cache.get_or_make("plan", key_of(2), selfish), doctest::Contains("asks for that entry"), Error);
}

TEST_CASE("wrong kinds and keys are internal errors") {
  Cache cache({});
  CHECK_THROWS_WITH_AS(cache.get("no/kind", key_of(1)), doctest::Contains("GDR-X01"), Error);
  CHECK_THROWS_WITH_AS(cache.put("plan", "../../../etc/passwd", ""), doctest::Contains("GDR-X01"), Error);
  CHECK_THROWS_WITH_AS(cache.get_or_make("plan", "", {}), doctest::Contains("GDR-X01"), Error);
}

TEST_CASE("bundles are looked up after the directory, in order, and never written") {
  const TempFolder folder;
  const fs::path first = folder.path() / "first.bundle";
  const fs::path second = folder.path() / "second";
  const fs::path mine = folder.path() / "mine";
  {
    Cache image({.directory = folder.path() / "image", .bundles = {}, .notice = {}, .fault = {}});
    image.put("cubin", key_of(1), "1 of the first");
    image.put("cubin", key_of(2), "2 of the first");
    CHECK(export_bundle(folder.path() / "image", first) == 2);
    Cache other({.directory = second, .bundles = {}, .notice = {}, .fault = {}});
    for (int n : {1, 2, 3}) other.put("cubin", key_of(n), std::to_string(n) + " of the second");
    Cache own({.directory = mine, .bundles = {}, .notice = {}, .fault = {}});
    own.put("cubin", key_of(1), "1 of mine");
  }
  Notices notices;
  Cache cache({.directory = mine, .bundles = {first, second}, .notice = notices.callback(), .fault = {}});
  struct Row {
    int key;
    std::string payload;
    std::string origin;
  };
  const Row rows[] = {{1, "1 of mine", "directory"}, {2, "2 of the first", "bundle"}, {3, "3 of the second", "bundle"}};
  for (const Row& row : rows) {
    CAPTURE(row.key);
    const Found found = cache.get_or_make("cubin", key_of(row.key), [] { return Content{"made", {}}; });
    CHECK(found.entry->payload() == row.payload);
    CHECK(origin_of(found) == row.origin);
    CHECK(origin_of(cache.get("cubin", key_of(row.key))) == "memory");
  }
  CHECK(origin_of(cache.get_or_make("cubin", key_of(4), [] { return Content{"made", {}}; })) == "made");
  CHECK(list_cache(mine).entries.size() == 2);
  CHECK(list_cache(second).entries.size() == 3);
  CHECK(notices.texts().empty());
}

TEST_CASE("a bundle alone serves where there is no folder at all") {
  const TempFolder folder;
  const fs::path bundle = folder.path() / "b";
  Cache({.directory = folder.path() / "image", .bundles = {}, .notice = {}, .fault = {}})
      .put("cubin", key_of(1), payload_of(key_of(1)));
  export_bundle(folder.path() / "image", bundle);
  Notices notices;
  Cache cache({.directory = {}, .bundles = {bundle}, .notice = notices.callback(), .fault = {}});
  CHECK(cache.get("cubin", key_of(1)).entry->payload() == payload_of(key_of(1)));
  CHECK(notices.texts().empty());
}

TEST_CASE("without any folder memory serves, and that is told once") {
  const Settings settings = parse_settings([](const char*) { return std::nullopt; });
  REQUIRE(settings.cache_dir.empty());
  Notices notices;
  Cache cache(
      {.directory = settings.cache_dir, .bundles = settings.bundle_paths, .notice = notices.callback(), .fault = {}});
  CHECK_FALSE(cache.get("cubin", key_of(1)));
  CHECK(notices.texts().empty());
  for (int n : {1, 2, 1}) cache.get_or_make("cubin", key_of(n), [&] { return Content{payload_of(key_of(n)), {}}; });
  cache.put("cubin", key_of(3), payload_of(key_of(3)));
  for (int n : {1, 2, 3}) CHECK(cache.get("cubin", key_of(n)).entry->payload() == payload_of(key_of(n)));
  REQUIRE(notices.texts().size() == 1);
  CHECK(notices.texts()[0] ==
        "GDR-K02 cache: there is no folder for it: none of GDRJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set. What is "
        "made is kept in memory, for this process only. Set GDRJIT_CACHE_DIR.");
}

TEST_CASE("files may be read by all and written by their owner, whatever the umask") {
  const TempFolder folder;
  const mode_t before = ::umask(0);
  Cache cache({.directory = folder.path() / "a" / "b", .bundles = {}, .notice = {}, .fault = {}});
  cache.put("cubin", key_of(1), "x");
  ::umask(before);
  const fs::path file = file_of(folder.path() / "a" / "b", "cubin", key_of(1));
  CHECK((status_of_path(file).st_mode & 07777) == 0644);
  for (fs::path path = file.parent_path(); path != folder.path(); path = path.parent_path()) {
    CAPTURE(path);
    CHECK((status_of_path(path).st_mode & 07777) == 0755);
  }
}

TEST_CASE("a hit notes its time, unless one was noted within the last minute") {
  const TempFolder folder;
  const fs::path file = file_of(folder.path(), "cubin", key_of(1));
  Cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}}).put("cubin", key_of(1), "x");
  const auto hit = [&] {
    Cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}}).get("cubin", key_of(1));
  };
  const auto now = fs::file_time_type::clock::now();
  const auto just_now = now - std::chrono::seconds(kTouchAfterSeconds / 2);
  fs::last_write_time(file, just_now);
  hit();
  CHECK(fs::last_write_time(file) == just_now);
  fs::last_write_time(file, now - std::chrono::hours(48));
  hit();
  CHECK(fs::last_write_time(file) > now - std::chrono::minutes(1));
}

TEST_CASE("time of a hit for 100 KB") {
  constexpr std::size_t kBytes = 100'000;
  constexpr int kKeys = 200;
  const TempFolder folder;
  const CacheOptions options{.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}};
  std::vector<double> put_us, disk_us, memory_us;
  {
    Cache cache(options);
    for (int n = 0; n < kKeys; ++n) {
      const std::string payload = payload_of(key_of(n), kBytes);
      put_us.push_back(microseconds([&] { cache.put("cubin", key_of(n), payload); }));
    }
  }
  Cache cache(options);
  const Maker never = []() -> Content { throw Error(ErrorKind::internal, "GDR-T01", "made again"); };
  for (int n = 0; n < kKeys; ++n) {
    const std::string key = key_of(n);
    Found found;
    disk_us.push_back(microseconds([&] { found = cache.get_or_make("cubin", key, never); }));
    REQUIRE(found.origin == Origin::directory);
    constexpr int kRepetitions = 1000;
    memory_us.push_back(microseconds([&] {
                          for (int i = 0; i < kRepetitions; ++i) found = cache.get_or_make("cubin", key, never);
                        }) /
                        kRepetitions);
    REQUIRE(found.origin == Origin::memory);
  }
  const auto median = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const std::string figures =
      fmt::format("100 KB: put {:.0f} us, hit on disk {:.1f} us, hit in memory {:.3f} us (medians)", median(put_us),
                  median(disk_us), median(memory_us));
  MESSAGE(figures);
  if (cpu::test::test_is_slow()) return;  // says nothing about speed, see there
  CHECK(*std::min_element(disk_us.begin(), disk_us.end()) < 1000);
  CHECK(*std::min_element(memory_us.begin(), memory_us.end()) < 1);
}
