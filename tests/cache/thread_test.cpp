// Threads of one process: each entry is made by one of them, and the others wait for it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cache/cache.hpp"
#include "cache/maintain.hpp"
#include "support.hpp"

namespace {

using namespace gdr;
using namespace gdr::test;

constexpr int kThreads = 16;

// Runs work(0) to work(kThreads - 1) on a thread each, starting together.
void on_threads(const std::function<void(int)>& work) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads that want one entry make it once and share it") {
  const TempFolder folder;
  for (const std::filesystem::path& directory : {folder.path(), std::filesystem::path()}) {
    CAPTURE(directory);
    for (int round = 0; round < 30; ++round) {
      Cache cache({.directory = directory, .bundles = {}, .notice = {}, .fault = {}});
      std::atomic<int> made = 0;
      std::vector<Found> found(kThreads);
      on_threads([&](int i) {
        found[static_cast<std::size_t>(i)] = cache.get_or_make("cubin", key_of(round), [&] {
          ++made;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return Content{payload_of(key_of(round)), {}};
        });
      });
      REQUIRE(made == 1);
      int makers = 0;
      for (const Found& one : found) {
        REQUIRE(one.entry == found[0].entry);
        REQUIRE((one.origin == Origin::made || one.origin == Origin::memory));
        makers += one.origin == Origin::made;
      }
      REQUIRE(found[0].entry->payload() == payload_of(key_of(round)));
      REQUIRE(makers == 1);
    }
  }
  CHECK(list_cache(folder.path()).entries.size() == 30);
}

TEST_CASE("what the maker throws reaches every thread that waits, and the next call makes the entry") {
  const TempFolder folder;
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
  std::atomic<int> entered = 0;
  std::atomic<int> attempts = 0;
  std::vector<std::string> caught(kThreads);
  // Kept until all threads have ended: the thread sanitizer cannot see how the runtime library counts who still has the
  // one exception that all of them catch.
  std::vector<std::exception_ptr> kept(kThreads);
  on_threads([&](int i) {
    try {
      ++entered;
      cache.get_or_make("cubin", key_of(0), [&]() -> Content {
        const int attempt = ++attempts;
        // The others have begun, and are given time to come where they wait.
        while (entered < kThreads) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        throw std::runtime_error(fmt::format("attempt {} failed", attempt));
      });
    } catch (const std::runtime_error& error) {
      caught[static_cast<std::size_t>(i)] = error.what();
      kept[static_cast<std::size_t>(i)] = std::current_exception();
    }
  });
  // A thread that was late found no attempt to wait for, and made one of its own.
  for (const std::string& text : caught) CHECK_MESSAGE(text.ends_with(" failed"), text);
  CHECK(attempts < kThreads);
  CHECK(cache.get_or_make("cubin", key_of(0), [] { return Content{"right", {}}; }).origin == Origin::made);
}

TEST_CASE("different entries are made at the same time") {
  const TempFolder folder;
  Cache cache({.directory = folder.path(), .bundles = {}, .notice = {}, .fault = {}});
  std::barrier all_are_making(kThreads);  // passed only if no maker waits for another
  on_threads([&](int i) {
    cache.get_or_make("cubin", key_of(i), [&] {
      all_are_making.arrive_and_wait();
      return Content{payload_of(key_of(i)), {}};
    });
  });
  CHECK(verify_cache(folder.path()).entries.size() == kThreads);
}

TEST_CASE("threads, two caches, getting, putting, making, pruning: right bytes always") {
  constexpr int kKeys = 6;
  const TempFolder folder;
  Notices notices;
  for (int round = 0; round < 10; ++round) {
    const CacheOptions options{.directory = folder.path(), .bundles = {}, .notice = notices.callback(), .fault = {}};
    Cache one(options);
    Cache two(options);
    std::atomic<int> wrong = 0;
    on_threads([&](int i) {
      Cache& cache = i % 2 == 0 ? one : two;
      for (int step = 0; step < 30; ++step) {
        const int n = (i * 7 + step * 5) % kKeys;
        const std::string payload = payload_of(key_of(n), 200);
        Found found;
        switch ((i + step) % 4) {
          case 0:
            found = cache.get("cubin", key_of(n));
            break;
          case 1:
            found = {cache.put("cubin", key_of(n), payload), Origin::memory};
            break;
          case 2:
            found = cache.get_or_make("cubin", key_of(n), [&] { return Content{payload, {}}; });
            break;
          case 3:
            prune_cache(folder.path(), {.max_bytes = 1000, .max_idle = {}});
            break;
        }
        if (found && found.entry->payload() != payload) ++wrong;
      }
    });
    REQUIRE(wrong == 0);
  }
  CHECK(notices.codes() == "");
}

TEST_CASE("a cause that many threads meet at once is told once") {
  Notices notices;
  Cache cache({.directory = {}, .bundles = {}, .notice = notices.callback(), .fault = {}});
  on_threads([&](int i) { cache.put("cubin", key_of(i), "x"); });
  CHECK(notices.codes() == "GDR-K02");
}
