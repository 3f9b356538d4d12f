// Several processes on one cache: each kernel is compiled once in all, and a process that is killed blocks nobody.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cache/maintain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace gdr::test {
namespace {

// What a process does: gets one request. Returns what its library has to tell.
std::string get_here(const Place& place, const std::string& arch) {
  Notices notices;
  const ReadyPlan ready = KernelLibrary(place.options(notices)).get(request_for_arch(arch));
  for (const ReadyKernel& kernel : ready.kernels)
    if (!kernel.cubin->payload().starts_with("fake cubin ")) return "wrong bytes";
  return notices.codes();
}

}  // namespace

TEST_CASE("processes at once compile each kernel once in all") {
  const Place place;
  std::vector<Child> children;
  for (int i = 0; i < 4; ++i)
    children.emplace_back([&] {
      while (!fs::exists(place.path() / "go")) std::this_thread::sleep_for(1ms);
      return get_here(place, "sm_120");
    });
  write_file(place.path() / "go", "");
  for (Child& child : children) CHECK(child.result() == "");
  CHECK(place.num_compiled() == 4);
  const CacheListing listing = verify_cache(place.cache());
  CHECK(listing.bad.empty());
  CHECK(listing.entries.size() == 5);
}

TEST_CASE("a process killed while it compiles leaves nothing bad, and the next one compiles") {
  const Place place;
  const Environment hang("FAKE_NVRTC_HANG", (place.path() / "compiling").string());
  Child owner([&] { return get_here(place, "sm_120"); });
  while (!fs::exists(place.path() / "compiling")) std::this_thread::sleep_for(1ms);
  // Comes while the other compiles, and waits for it.
  Child waiter([&] {
    const Environment runs("FAKE_NVRTC_HANG", "");
    write_file(place.path() / "waiting", "");
    return get_here(place, "sm_120");
  });
  while (!fs::exists(place.path() / "waiting")) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  owner.kill();
  CHECK(owner.result() == "killed by signal 9");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(waiter.result() == "");
  CHECK(std::chrono::steady_clock::now() - begin < 30s);  // and not the minute of the time-out
  const CacheListing listing = verify_cache(place.cache());
  CHECK(listing.bad.empty());
  CHECK(listing.entries.size() == 5);
}

}  // namespace gdr::test
