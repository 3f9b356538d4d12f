// Many real processes on one folder, killed at every step: each entry is made once where locks work, is right always,
// and never half there.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cache/cache.hpp"
#include "cache/maintain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;

namespace {

using namespace gdr;
using namespace gdr::test;
using namespace std::chrono_literals;

constexpr int kProcesses = 32;
constexpr int kKeys = 8;

CacheOptions options_for(const fs::path& directory, Notices& notices, CacheFault fault = {}) {
  return {.directory = directory, .bundles = {}, .notice = notices.callback(), .fault = std::move(fault)};
}

// One byte more in a file that all processes append to: a count that no race can spoil.
void count_one(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, "x", 1) != 1) throw std::runtime_error("cannot count");
  ::close(fd);
}

std::uintmax_t count_in(const fs::path& path) { return fs::exists(path) ? fs::file_size(path) : 0; }

// What each of the processes does: asks for all keys in an order of its own. Returns the codes of its notices.
std::string hammer(const fs::path& folder, int process, CacheFault fault) {
  Notices notices;
  Cache cache(options_for(folder / "cache", notices, std::move(fault)));
  std::vector<int> keys(kKeys);
  std::iota(keys.begin(), keys.end(), 0);
  std::shuffle(keys.begin(), keys.end(), std::mt19937(static_cast<unsigned>(process)));
  while (!fs::exists(folder / "go")) std::this_thread::sleep_for(1ms);
  for (const int n : keys) {
    const Found found = cache.get_or_make("cubin", key_of(n), [&] {
      count_one(folder / fmt::format("made{}", n));
      std::this_thread::sleep_for(5ms);  // long enough for the others to come
      return Content{payload_of(key_of(n)), {{"process", std::to_string(process)}}};
    });
    if (found.entry->payload() != payload_of(key_of(n))) return fmt::format("wrong bytes of {}", n);
  }
  return notices.codes();
}

// The codes of the notices of all processes, each once.
std::vector<std::string> hammer_together(const fs::path& folder, const CacheFault& fault) {
  std::vector<Child> children;
  for (int i = 0; i < kProcesses; ++i) children.emplace_back([&, i] { return hammer(folder, i, fault); });
  write_file(folder / "go", "");
  std::vector<std::string> results;
  for (Child& child : children) results.push_back(child.result());
  std::sort(results.begin(), results.end());
  results.erase(std::unique(results.begin(), results.end()), results.end());
  return results;
}

void check_all_good(const fs::path& directory) {
  Notices notices;
  Cache cache(options_for(directory, notices));
  for (int n = 0; n < kKeys; ++n) {
    const Found found = cache.get("cubin", key_of(n));
    REQUIRE(found.origin == Origin::directory);
    REQUIRE(found.entry->payload() == payload_of(key_of(n)));
  }
  REQUIRE(notices.texts().empty());
  REQUIRE(verify_cache(directory).bad.empty());
}

struct NamedStep {
  CacheStep step;
  const char* name;
};
constexpr NamedStep kWriteSteps[] = {
    {CacheStep::open_folder, "open_folder"},
    {CacheStep::create, "create"},
    {CacheStep::write_first_half, "write_first_half"},
    {CacheStep::write_second_half, "write_second_half"},
    {CacheStep::sync, "sync"},
    {CacheStep::rename, "rename"},
    {CacheStep::renamed, "renamed"},
};

}  // namespace

TEST_CASE("32 processes on an empty folder make each entry once in all") {
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    const TempFolder folder;
    REQUIRE(hammer_together(folder.path(), {}) == std::vector<std::string>{""});
    for (int n = 0; n < kKeys; ++n) REQUIRE(count_in(folder.path() / fmt::format("made{}", n)) == 1);
    check_all_good(folder.path() / "cache");
    REQUIRE(other_files(folder.path() / "cache").empty());
  }
}

TEST_CASE("32 processes without locks all get the right bytes") {
  const TempFolder folder;
  const CacheFault no_locks = [](CacheStep step) { return step == CacheStep::lock ? ENOLCK : 0; };
  for (const std::string& codes : hammer_together(folder.path(), no_locks)) CHECK((codes == "" || codes == "GDR-K07"));
  std::uintmax_t made = 0;
  for (int n = 0; n < kKeys; ++n) made += count_in(folder.path() / fmt::format("made{}", n));
  CHECK(made >= kKeys);
  MESSAGE("without locks ", kProcesses, " processes made ", kKeys, " entries ", made, " times");
  check_all_good(folder.path() / "cache");
}

TEST_CASE("32 processes that find only bad entries make each once again") {
  const TempFolder folder;
  {
    Notices notices;
    Cache cache(options_for(folder.path() / "cache", notices));
    for (int n = 0; n < kKeys; ++n) {
      cache.put("cubin", key_of(n), payload_of(key_of(n)));
      const fs::path file = file_of(folder.path() / "cache", "cubin", key_of(n));
      write_file(file, read_file(file).substr(0, 1000));
    }
  }
  // Each is told by the one process that came first; the others find it set aside, or good again.
  for (const std::string& codes : hammer_together(folder.path(), {}))
    CHECK_MESSAGE(codes.find_first_not_of("GDR-K05 ") == std::string::npos, codes);
  for (int n = 0; n < kKeys; ++n) CHECK(count_in(folder.path() / fmt::format("made{}", n)) == 1);
  std::vector<BadEntryInfo> bad = verify_cache(folder.path() / "cache").bad;
  CHECK(bad.size() == kKeys);
  for (const BadEntryInfo& info : bad) CHECK(info.reason == "it was set aside");
}

TEST_CASE("32 processes on a folder that is cleared again and again get the right bytes") {
  const TempFolder folder;
  Child clearer([&] {
    for (;;) {
      clear_cache(folder.path() / "cache");
      std::this_thread::sleep_for(1ms);
    }
    return std::string();
  });
  CHECK(hammer_together(folder.path(), {}) == std::vector<std::string>{""});
  clearer.kill();
}

TEST_CASE("a process killed before each step of writing leaves no bad entry, and blocks nobody") {
  for (const NamedStep& killed_at : kWriteSteps) {
    CAPTURE(killed_at.name);
    for (const bool replacing : {false, true}) {
      CAPTURE(replacing);
      const TempFolder folder;
      Notices notices;
      if (replacing) Cache(options_for(folder.path(), notices)).put("cubin", key_of(0), payload_of(key_of(0)));
      const std::string result = in_child([&] {
        const CacheFault kill_here = [&](CacheStep step) { return step == killed_at.step ? ::raise(SIGKILL) : 0; };
        Cache cache(options_for(folder.path(), notices, kill_here));
        cache.put("cubin", key_of(0), payload_of(key_of(0), 5000));
        return std::string("not killed");
      });
      REQUIRE(result == "killed by signal 9");

      Cache cache(options_for(folder.path(), notices));
      const Found found = cache.get("cubin", key_of(0));
      const bool renamed = killed_at.step == CacheStep::renamed;
      REQUIRE(static_cast<bool>(found) == (renamed || replacing));
      if (found) REQUIRE(found.entry->payload() == payload_of(key_of(0), renamed ? 5000 : 3000));
      REQUIRE(verify_cache(folder.path()).bad.empty());
      REQUIRE(notices.texts().empty());
      // What it left lies beside until it is an hour old.
      const bool left_file =
          killed_at.step != CacheStep::open_folder && killed_at.step != CacheStep::create && !renamed;
      REQUIRE((fs::exists(folder.path() / "v1") ? other_files(folder.path()).size() : 0) == (left_file ? 1 : 0));
      prune_cache(folder.path(), {});
      if (left_file) {
        REQUIRE(other_files(folder.path()).size() == 1);
        const fs::path shard = file_of(folder.path(), "cubin", key_of(0)).parent_path();
        fs::last_write_time(shard / other_files(folder.path())[0],
                            fs::file_time_type::clock::now() - std::chrono::hours(2));
        prune_cache(folder.path(), {});
        REQUIRE(other_files(folder.path()).empty());
      }
    }
  }
}

TEST_CASE("a process killed while it makes an entry blocks nobody") {
  const TempFolder folder;
  Child owner([&] {
    Notices notices;
    Cache cache(options_for(folder.path() / "cache", notices));
    cache.get_or_make("cubin", key_of(0), [&]() -> Content {
      write_file(folder.path() / "making", "");
      for (;;) ::pause();
    });
    return std::string();
  });
  while (!fs::exists(folder.path() / "making")) std::this_thread::sleep_for(1ms);
  Child waiter([&] {
    Notices notices;
    Cache cache(options_for(folder.path() / "cache", notices));
    write_file(folder.path() / "waiting", "");
    const Found found = cache.get_or_make("cubin", key_of(0), [] { return Content{payload_of(key_of(0)), {}}; });
    return fmt::format("{} {}", to_string(found.origin), notices.codes());
  });
  while (!fs::exists(folder.path() / "waiting")) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  CHECK(list_cache(folder.path() / "cache").entries.empty());
  const auto begin = std::chrono::steady_clock::now();
  owner.kill();
  CHECK(waiter.result() == "made ");
  CHECK(std::chrono::steady_clock::now() - begin < 30s);  // and not the minute of the time-out
  CHECK(other_files(folder.path() / "cache").empty());
}

TEST_CASE("waiting for a process that hangs ends at the time-out, and is told once") {
  const TempFolder folder;
  Child owner([&] {
    Notices notices;
    Cache cache(options_for(folder.path() / "cache", notices));
    cache.get_or_make("cubin", key_of(0), [&]() -> Content {
      write_file(folder.path() / "making", "");
      for (;;) ::pause();
    });
    return std::string();
  });
  while (!fs::exists(folder.path() / "making")) std::this_thread::sleep_for(1ms);
  Notices notices;
  CacheOptions options = options_for(folder.path() / "cache", notices);
  options.lock_timeout = 200ms;
  Cache cache(options);
  const auto begin = std::chrono::steady_clock::now();
  const Found found = cache.get_or_make("cubin", key_of(0), [] { return Content{payload_of(key_of(0)), {}}; });
  const auto waited = std::chrono::steady_clock::now() - begin;
  CHECK(found.origin == Origin::made);
  CHECK(waited >= 200ms);
  CHECK(waited < 20s);
  CHECK(cache.get_or_make("cubin", key_of(1), [] { return Content{"another key", {}}; }).origin == Origin::made);
  REQUIRE(notices.texts().size() == 1);
  CHECK(notices.texts()[0] ==
        fmt::format("GDR-K06 cache: waited 200 ms for another process that holds {}. The entry is made here too. If no "
                    "other process is at work, delete that file.",
                    file_of(folder.path() / "cache", "cubin", key_of(0), ".lock").string()));
  CHECK(verify_cache(folder.path() / "cache").entries.size() == 2);
}

TEST_CASE("processes killed at random moments never leave a bad entry") {
  const TempFolder folder;
  const fs::path directory = folder.path() / "cache";
  std::mt19937 random(11);
  int killed = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<Child> children;
    for (int i = 0; i < 3; ++i)
      children.emplace_back([&, i] {
        Notices notices;
        for (int n = i;; n = (n + 1) % kKeys) {
          Cache cache(options_for(directory, notices));
          if (n % 2 == 0) cache.put("cubin", key_of(n), payload_of(key_of(n)));
          const Found found = cache.get_or_make("cubin", key_of(n), [&] { return Content{payload_of(key_of(n)), {}}; });
          if (found.entry->payload() != payload_of(key_of(n)) || !notices.texts().empty())
            return "wrong: " + notices.codes();
          if (n == 5) clear_cache(directory);
        }
      });
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 12'000));
    for (Child& child : children) child.kill();
    for (Child& child : children) {
      const std::string result = child.result();
      REQUIRE(result == "killed by signal 9");
      ++killed;
    }
    const CacheListing listing = verify_cache(directory);
    REQUIRE(listing.bad.empty());
    Notices notices;
    Cache cache(options_for(directory, notices));
    for (const EntryInfo& info : listing.entries) {
      const Found found = cache.get(info.kind, info.key);
      REQUIRE(found.origin == Origin::directory);
      REQUIRE(found.entry->payload() == payload_of(info.key));
    }
    REQUIRE(notices.texts().empty());
  }
  CHECK(killed == 180);
}
