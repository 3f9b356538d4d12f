// Plans and cubins from the cache or made: what is compiled when, and what is said where something is missing.
#include "gpu/kernel_library.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "../cpu/build_kind.hpp"
#include "cache/maintain.hpp"
#include "core/error.hpp"
#include "emit/emit.hpp"
#include "gpu/keys.hpp"
#include "support.hpp"

namespace fs = std::filesystem;

namespace gdr::test {
namespace {

// What a call throws, as "<exit code> <text>"; "none" if it does not.
template <class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(error.exit_code()) + " " + error.what();
  }
  return "none";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_complete(const ReadyPlan& ready) {
  REQUIRE(ready.kernels.size() == ready.plan->kernels.size());
  for (std::size_t i = 0; i < ready.kernels.size(); ++i) {
    const Kernel& kernel = ready.plan->kernels[i];
    CHECK(ready.kernels[i].key == kernel_key(emit_kernel(*ready.plan, kernel), ready.target));
    CHECK(ready.kernels[i].cubin->payload().starts_with("fake cubin "));
    CHECK(ready.kernels[i].cubin->facts().at("kernel") == kernel.name);
  }
}

}  // namespace

TEST_CASE("the first call compiles, every later one finds: in memory, on disk, without NVRTC") {
  const Place place;
  Notices notices;
  const KernelRequest request = request_for_arch("sm_120");
  KernelLibrary library(place.options(notices));
  CHECK(!library.find(request));
  const ReadyPlan made = library.get(request);
  check_complete(made);
  CHECK(made.origin == Origin::made);
  CHECK(made.target == "sm_120f");
  const int num_kernels = static_cast<int>(made.kernels.size());
  CHECK(place.num_compiled() == num_kernels);
  for (const ReadyKernel& kernel : made.kernels) {
    CHECK(kernel.origin == Origin::made);
    CHECK(kernel.figures.registers == 96);
    CHECK(kernel.figures.spill_bytes == 20);
    CHECK(kernel.figures.local_bytes == 24);
    CHECK(kernel.figures.smem_bytes == 512);
    CHECK(kernel.figures.compiler == "13.0");
  }
  CHECK(library.get(request).kernels.front().origin == Origin::memory);

  LibraryOptions without = place.options(notices);
  without.nvrtc.override_path = kNoNvrtc;
  KernelLibrary warm(without);
  const ReadyPlan found = warm.get(request);
  check_complete(found);
  CHECK(*found.plan == *made.plan);
  CHECK(found.origin == Origin::directory);
  CHECK(found.kernels.front().origin == Origin::directory);
  CHECK(found.kernels.front().figures.registers == 96);
  CHECK(place.num_compiled() == num_kernels);
  CHECK(notices.texts().empty());

  // A cubin that is gone is compiled again, the others are not.
  fs::remove(file_of(place.cache(), "cubin", made.kernels[1].key));
  KernelLibrary partly(place.options(notices));
  CHECK(!partly.find(request));
  const ReadyPlan again = partly.get(request);
  CHECK(place.num_compiled() == num_kernels + 1);
  CHECK(again.kernels[0].origin == Origin::memory);  // find had looked
  CHECK(again.kernels[1].origin == Origin::made);

  // The keys that `gdrjit plan` shows.
  const PlanResult shown = keyed_plan(request.plan, request.plan.arch.targets.front());
  CHECK(shown.facts.request_key == made.request_key);
  for (std::size_t i = 0; i < made.kernels.size(); ++i) CHECK(shown.facts.kernels[i].kernel_key == made.kernels[i].key);
}

TEST_CASE("eight head counts, one compilation") {
  const Place place;
  Notices notices;
  KernelLibrary library(place.options(notices));
  const int num_kernels = static_cast<int>(library.get(request_for_arch("sm_120", 16, 32)).kernels.size());
  for (const int heads : {1, 2, 3, 4, 8, 24, 48, 64})
    CHECK(library.get(request_for_arch("sm_120", heads, 2 * heads)).kernels.size() ==
          static_cast<std::size_t>(num_kernels));
  CHECK(place.num_compiled() == num_kernels);
  // Another group is another class.
  library.get(request_for_arch("sm_120", 16, 16));
  CHECK(place.num_compiled() > num_kernels);
}

TEST_CASE("neither NVRTC nor a warm cache: the message says what is missing and what was tried") {
  const Place place;
  Notices notices;
  LibraryOptions options = place.options(notices);
  options.nvrtc.override_path = kNoNvrtc;
  KernelLibrary library(options);
  const std::string text = thrown([&] { library.get(request_for_arch("sm_90")); });
  CHECK(text.starts_with(
      "4 GDR-N01 sm_90: its kernels are not in the cache and have to be compiled. libnvrtc: not found"));
  CHECK(contains(text, kNoNvrtc));
  // The plan needs no compiler.
  const KeyedPlan plan = library.plan(request_for_arch("sm_90"));
  CHECK(plan.target == "sm_90a");
  CHECK(plan.origin == Origin::made);
  CHECK(library.plan(request_for_arch("sm_90")).origin == Origin::memory);
}

TEST_CASE("a read-only bundle under an empty cache serves without NVRTC") {
  const Place place;
  Notices notices;
  const KernelRequest request = request_for_arch("sm_89");
  KernelLibrary(place.options(notices)).get(request);
  const fs::path bundle = place.path() / "kernels.bundle";
  CHECK(export_bundle(place.cache(), bundle) == 5);
  LibraryOptions options = place.options(notices);
  options.cache.directory = place.path() / "another";
  options.cache.bundles = {bundle};
  options.nvrtc.override_path = kNoNvrtc;
  KernelLibrary library(options);
  const ReadyPlan ready = library.get(request);
  check_complete(ready);
  CHECK(ready.origin == Origin::bundle);
  for (const ReadyKernel& kernel : ready.kernels) CHECK(kernel.origin == Origin::bundle);
  CHECK(notices.texts().empty());
}

TEST_CASE("a folder that cannot be written to is told once, and everything works in memory") {
  const Place place;
  write_file(place.path() / "file", "");
  Notices notices;
  LibraryOptions options = place.options(notices);
  options.cache.directory = place.path() / "file" / "cache";
  KernelLibrary library(options);
  check_complete(library.get(request_for_arch("sm_120")));
  const int num_compiled = place.num_compiled();
  check_complete(library.get(request_for_arch("sm_120")));
  CHECK(place.num_compiled() == num_compiled);
  CHECK(notices.texts().size() == 1);
}

TEST_CASE("a kernel that does not compile: log, options and source are in the message, and nothing is kept of it") {
  const Place place;
  Notices notices;
  const KernelRequest request = request_for_arch("sm_120");
  KernelLibrary library(place.options(notices));
  std::string text;
  {
    const Environment fails("FAKE_NVRTC_FAIL", "role_solver");  // a role of prepare alone
    text = thrown([&] { library.get(request); });
  }
  CHECK(text.starts_with("4 GDR-N02 gdr_prepare_bf16_k16v16_"));
  for (const char* part : {" for sm_120f: NVRTC_ERROR_COMPILATION (NVRTC 13.0, ", "--gpu-architecture=sm_120f",
                           "error: identifier \"role_solver\" is undefined"})
    CHECK_MESSAGE(contains(text, part), text);
  const std::size_t at = text.find("The source is ") + std::string("The source is ").size();
  const fs::path saved = text.substr(at, text.find(". The compiler's log") - at);
  CHECK(saved.parent_path() == place.path() / "failed");
  const KeyedPlan plan = library.plan(request);
  CHECK(read_file(saved) == emit_kernel(*plan.plan, plan.plan->kernels.front()));
  CHECK(saved.filename().string() == plan.plan->kernels.front().name + "-" + plan.kernel_keys.front() + ".cu");
  {
    const Environment fails("FAKE_NVRTC_FAIL", "role_solver");
    LibraryOptions options = place.options(notices);
    options.failed_sources = {place.path() / "compiled" / "folder"};  // below a file
    KernelLibrary nowhere(options);
    CHECK(contains(thrown([&] { nowhere.get(request); }), "The source could not be saved. The compiler's log:"));
  }
  // The next call compiles it.
  check_complete(library.get(request));
}

TEST_CASE("an older compiler gets the targets it knows, and a plan without what they lack") {
  struct Row {
    std::string version, arch, target;
  };
  for (const Row& row : {Row{"12.9", "sm_120", "sm_120f"}, Row{"12.8", "sm_120", "sm_120a"}}) {
    CAPTURE(row.version);
    const Environment old("FAKE_NVRTC_VERSION", row.version);
    const Place place;
    Notices notices;
    KernelLibrary library(place.options(notices));
    const ReadyPlan ready = library.get(request_for_arch(row.arch));
    CHECK(ready.target == row.target);
    CHECK(ready.kernels.front().figures.compiler == row.version);
    CHECK(library.find(request_for_arch(row.arch))->target == row.target);
  }
  const Environment old("FAKE_NVRTC_VERSION", "12.4");
  const Place place;
  Notices notices;
  KernelLibrary library(place.options(notices));
  const std::string text = thrown([&] { library.get(request_for_arch("sm_120")); });
  CHECK(text.starts_with("3 GDR-G01 sm_120: NVRTC 12.4 ("));
  CHECK(contains(text, "knows none of its targets sm_120f, sm_120a, sm_120; a newer CUDA is needed"));
}

TEST_CASE("a stand-in: the rules of one architecture, in machine code for another") {
  const Place place;
  Notices notices;
  KernelLibrary library(place.options(notices));
  KernelRequest request = request_for_arch("sm_120", 16, 32, "sm_90", 128);
  const ReadyPlan ready = library.get(request);
  check_complete(ready);
  CHECK(ready.target == "sm_90a");
  CHECK(ready.plan->arch == "sm_120");
  const auto some_move_registers = [](const Plan& plan) {
    return std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const Kernel& k) { return k.setmaxnreg; });
  };
  CHECK(some_move_registers(*ready.plan));
  // sm_90 without the a has no setmaxnreg.
  std::erase_if(request.targets, [](const CompileTarget& target) { return target.name != "sm_90"; });
  REQUIRE(request.targets.size() == 1);
  const ReadyPlan plain = library.get(request);
  CHECK(plain.target == "sm_90");
  CHECK(!some_move_registers(*plain.plan));
  CHECK(plain.request_key != ready.request_key);
}

TEST_CASE("an entry that is whole and yet no plan is replaced") {
  const Place place;
  Notices notices;
  const KernelRequest request = request_for_arch("sm_120");
  const ReadyPlan made = KernelLibrary(place.options(notices)).get(request);
  struct Row {
    std::string name;
    const char *payload, *keys;
  };
  const std::string short_list = made.kernels.front().key;
  for (const Row& row : {Row{"no JSON", "{", ""}, Row{"a key too few", nullptr, short_list.c_str()}}) {
    CAPTURE(row.name);
    const std::string payload =
        row.payload ? row.payload
                    : std::string(Cache(place.options(notices).cache).get("plan", made.request_key).entry->payload());
    Cache(place.options(notices).cache).put("plan", made.request_key, payload, {{"kernel_keys", row.keys}});
    KernelLibrary library(place.options(notices));
    CHECK(!library.find(request));
    const ReadyPlan again = library.get(request);  // plans anew
    CHECK(*again.plan == *made.plan);
    CHECK(again.kernels.front().origin == Origin::directory);
    CHECK(KernelLibrary(place.options(notices)).find(request).has_value());
  }
}

TEST_CASE("several requests at once, with progress") {
  const Place place;
  Notices notices;
  KernelLibrary library(place.options(notices));
  const std::vector<KernelRequest> requests = {request_for_arch("sm_120"), request_for_arch("sm_120", 16, 32, "sm_90"),
                                               request_for_arch("sm_120")};
  std::vector<int> done;
  int total = 0;
  const std::vector<ReadyPlan> ready = library.get_all(requests, [&](int now, int all, const std::string& kernel) {
    done.push_back(now);
    total = all;
    CHECK(kernel.starts_with("gdr_"));
  });
  REQUIRE(ready.size() == 3);
  for (const ReadyPlan& plan : ready) check_complete(plan);
  CHECK(ready[1].target == "sm_90a");
  CHECK(std::is_sorted(done.begin(), done.end()));
  REQUIRE(!done.empty());
  CHECK(done.back() == total);
  CHECK(place.num_compiled() == static_cast<int>(ready[0].kernels.size() + ready[1].kernels.size()));
}

// What stands between a process's first call and its first launch, apart from the driver.
TEST_CASE("a warm cache yields plan and cubins in under 20 ms") {
  const Place place;
  Notices notices;
  const KernelRequest request = request_for_arch("sm_120", 16, 32, "", 128);
  KernelLibrary(place.options(notices)).get(request);
  double best_ms = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    KernelLibrary library(place.options(notices));
    const std::optional<ReadyPlan> ready = library.find(request_for_arch("sm_120", 16, 32, "", 128));
    REQUIRE(ready);
    best_ms =
        std::min(best_ms, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  MESSAGE("first look-up of a process: ", best_ms, " ms");
  if (cpu::test::is_optimised() && cpu::test::kSanitizer == nullptr) CHECK(best_ms < 20);
}

}  // namespace gdr::test
