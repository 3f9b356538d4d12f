// list, verify, prune, clear, extract, export, import.
#include "cache/maintain.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "core/error.hpp"
#include "support.hpp"

namespace fs = std::filesystem;

namespace {

using namespace gdr;
using namespace gdr::test;
using namespace std::chrono_literals;

// A file of 192 + 808 = 1000 bytes.
constexpr std::size_t kPayload = 808;
constexpr std::size_t kFile = 1000;

CacheOptions options_for(const fs::path& directory) {
  return {.directory = directory, .bundles = {}, .notice = {}, .fault = {}};
}

// Entries 0 to `count` - 1; entry n was used n hours before entry 0.
void fill(const fs::path& directory, int count) {
  Cache cache(options_for(directory));
  const auto now = fs::file_time_type::clock::now();
  for (int n = 0; n < count; ++n) {
    cache.put("cubin", key_of(n), payload_of(key_of(n), kPayload),
              {{"compiler", "12.9"}, {"n", fmt::format("{:04}", n)}});
    fs::last_write_time(file_of(directory, "cubin", key_of(n)), now - n * 1h);
  }
}

bool has(const fs::path& directory, int n) { return fs::exists(file_of(directory, "cubin", key_of(n))); }

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{} {}", error.exit_code(), error.what());
  }
  return "no error";
}

}  // namespace

TEST_CASE("list: what is there, by kind and key") {
  const TempFolder folder;
  CHECK(list_cache(folder.path() / "none").entries.empty());
  fill(folder.path(), 5);
  Cache(options_for(folder.path())).put("plan", key_of(0), "{}");
  write_file(folder.path() / "v1" / "README", "not ours");
  write_file(file_of(folder.path(), "cubin", key_of(0)).parent_path() / "notes", "not ours");
  const CacheListing listing = list_cache(folder.path());
  CHECK(listing.bad.empty());
  REQUIRE(listing.entries.size() == 6);
  for (std::size_t i = 1; i < 5; ++i) CHECK(listing.entries[i - 1].key < listing.entries[i].key);
  for (const EntryInfo& info : listing.entries) {
    CHECK(info.path == file_of(folder.path(), info.kind, info.key));
    CHECK(info.file_bytes == fs::file_size(info.path));
    if (info.kind == "plan") {
      CHECK(info.payload_bytes == 2);
      continue;
    }
    CHECK(info.kind == "cubin");
    CHECK(info.payload_bytes == kPayload);
    CHECK(info.file_bytes == kFile);
    const int n = std::stoi(info.facts.at("n"));
    CHECK(info.key == key_of(n));
    const auto idle = std::chrono::system_clock::now() - info.last_used;
    CHECK(idle >= n * 1h - 2s);
    CHECK(idle < n * 1h + 5min);
  }
  CHECK(listing.entries[5].kind == "plan");
}

TEST_CASE("verify reads every byte, list the headers, neither changes anything") {
  const TempFolder folder;
  fill(folder.path(), 5);
  const fs::path body = file_of(folder.path(), "cubin", key_of(1));
  const fs::path header = file_of(folder.path(), "cubin", key_of(2));
  const fs::path link = file_of(folder.path(), "cubin", key_of(3));
  std::string bytes = read_file(body);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(body, bytes);
  write_file(header, "short");
  fs::remove(link);
  fs::create_symlink(body, link);
  for (int round = 0; round < 2; ++round) {
    CHECK(list_cache(folder.path()).bad.size() == 2);
    CHECK(list_cache(folder.path()).entries.size() == 3);
    const CacheListing listing = verify_cache(folder.path());
    CHECK(listing.entries.size() == 2);
    REQUIRE(listing.bad.size() == 3);
    for (const BadEntryInfo& bad : listing.bad) {
      if (bad.path == body) CHECK(bad.reason == "its bytes do not have the checksum that its header states");
      if (bad.path == header) CHECK(bad.reason == "it has 5 bytes, the header alone takes 120");
      if (bad.path == link) CHECK(bad.reason == "it is a symbolic link");
    }
  }
  CHECK_FALSE(Cache(options_for(folder.path())).get("cubin", key_of(1)));
  CHECK(verify_cache(folder.path()).bad.size() == 3);
  CHECK(fs::exists(body.string() + ".bad"));
}

TEST_CASE("prune: by age and by size, least recently used first") {
  struct Row {
    std::string name;
    PruneLimits limits;
    int kept;  // the `kept` used last
  };
  const Row rows[] = {
      {"no limit", {}, 10},
      {"larger than all", {.max_bytes = 10 * kFile, .max_idle = {}}, 10},
      {"one byte too many", {.max_bytes = 10 * kFile - 1, .max_idle = {}}, 9},
      {"half", {.max_bytes = 5 * kFile, .max_idle = {}}, 5},
      {"nothing", {.max_bytes = 0, .max_idle = {}}, 0},
      {"older than 3.5 hours", {.max_bytes = {}, .max_idle = 210min}, 4},
      {"age decides", {.max_bytes = 8 * kFile, .max_idle = 210min}, 4},
      {"size decides", {.max_bytes = 2 * kFile, .max_idle = 210min}, 2},
      {"all are too old", {.max_bytes = {}, .max_idle = -1s}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const TempFolder folder;
    fill(folder.path(), 10);
    const PruneReport report = prune_cache(folder.path(), row.limits);
    for (int n = 0; n < 10; ++n) CHECK(has(folder.path(), n) == (n < row.kept));
    const auto kept = static_cast<std::uint64_t>(row.kept);
    CHECK(report.kept_entries == kept);
    CHECK(report.kept_bytes == kept * kFile);
    CHECK(report.removed_entries == 10 - kept);
    CHECK(report.removed_bytes == (10 - kept) * kFile);
  }
  CHECK(prune_cache("/nowhere/at/all", {.max_bytes = 0, .max_idle = {}}).removed_entries == 0);
}

TEST_CASE("a hit saves an entry from being pruned") {
  const TempFolder folder;
  fill(folder.path(), 10);
  CHECK(Cache(options_for(folder.path())).get("cubin", key_of(9)));
  prune_cache(folder.path(), {.max_bytes = 2 * kFile, .max_idle = {}});
  for (int n = 0; n < 10; ++n) CHECK(has(folder.path(), n) == (n == 0 || n == 9));
}

TEST_CASE("prune removes what was set aside at once, and what killed processes left after an hour") {
  const TempFolder folder;
  fill(folder.path(), 1);
  const fs::path shard = file_of(folder.path(), "cubin", key_of(0)).parent_path();
  const std::string own = key_of(0);
  const auto add = [&](const std::string& name, std::chrono::minutes age) {
    write_file(shard / name, "x");
    fs::last_write_time(shard / name, fs::file_time_type::clock::now() - age);
  };
  add(own + ".bad", 0min);
  add(own + ".lock", 59min);
  add(own.substr(0, 31) + (own[31] == '0' ? "1" : "0") + ".lock", 61min);
  add(".tmp-1-0", 59min);
  add(".tmp-1-1", 61min);
  add("notes", 1000min);
  prune_cache(folder.path(), {});
  std::vector<std::string> left = other_files(folder.path());
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{".tmp-1-0", own + ".lock", "notes"});
  CHECK(has(folder.path(), 0));
}

TEST_CASE("clear removes all entries, and nothing that is not the cache's") {
  const TempFolder folder;
  fill(folder.path(), 5);
  Cache(options_for(folder.path())).put("empty", key_of(0), "");
  const fs::path shard = file_of(folder.path(), "cubin", key_of(0)).parent_path();
  write_file(shard / (key_of(0) + ".bad"), "x");
  write_file(shard / "notes", "");
  write_file(folder.path() / "notes", "");
  write_file(file_of(folder.path(), "cubin", key_of(1)), "");
  fs::last_write_time(file_of(folder.path(), "cubin", key_of(2)), fs::file_time_type::clock::now() + 24h);
  const PruneReport report = clear_cache(folder.path());
  CHECK(report.removed_entries == 6);
  CHECK(report.removed_bytes == 4 * kFile + 128);
  CHECK(report.kept_entries == 0);
  CHECK(list_cache(folder.path()).entries.empty());
  CHECK(other_files(folder.path()) == std::vector<std::string>{"notes", "notes"});
  CHECK(clear_cache(folder.path()).removed_entries == 0);
}

TEST_CASE("extract writes the payload alone, of a good entry only") {
  const TempFolder folder;
  fill(folder.path() / "cache", 1);
  const fs::path entry = file_of(folder.path() / "cache", "cubin", key_of(0));
  const fs::path output = folder.path() / "kernel.cubin";
  extract_payload(entry, output);
  CHECK(read_file(output) == payload_of(key_of(0), kPayload));
  // Anybody's tools can do the same: the payload is the end of the file, from where the header says.
  CHECK(read_file(entry).substr(192) == read_file(output));

  write_file(output, "before");
  write_file(entry, read_file(entry).substr(0, 500));
  CHECK(error_of([&] { extract_payload(entry, output); }) ==
        fmt::format("2 GDR-K05 cache: {} is a bad entry: it has 500 bytes, its header says 192 and 808 of payload.",
                    entry.string()));
  CHECK(read_file(output) == "before");
  const fs::path none = folder.path() / "none";
  CHECK(error_of([&] { extract_payload(none, output); }) ==
        fmt::format("5 GDR-K04 cache: cannot open {}: No such file or directory.", none.string()));
}

TEST_CASE("export and import carry entries to another folder, unchanged") {
  const TempFolder folder;
  const fs::path here = folder.path() / "here";
  const fs::path there = folder.path() / "there";
  const fs::path bundle = folder.path() / "all.bundle";
  fill(here, 20);
  Cache(options_for(here)).put("plan", key_of(3), "{}", {});
  CHECK(export_bundle(here, bundle) == 21);
  ImportReport report = import_bundle(bundle, there);
  CHECK(report.added == 21);
  CHECK(report.present == 0);
  CHECK(report.bad.empty());
  CHECK(verify_cache(there).bad.empty());
  REQUIRE(list_cache(there).entries.size() == 21);
  for (const EntryInfo& info : list_cache(here).entries)
    CHECK(read_file(info.path) == read_file(file_of(there, info.kind, info.key)));
  // The same entries give the same bytes, wherever they are packed.
  const fs::path again = folder.path() / "again.bundle";
  export_bundle(there, again);
  CHECK(read_file(again) == read_file(bundle));

  fs::remove(file_of(there, "cubin", key_of(5)));
  write_file(file_of(there, "cubin", key_of(6)), "damaged");
  report = import_bundle(bundle, there);
  CHECK(report.added == 2);
  CHECK(report.present == 19);
  CHECK(verify_cache(there).bad.empty());
}

TEST_CASE("export takes what is wanted, and leaves out what is bad") {
  const TempFolder folder;
  const fs::path here = folder.path() / "here";
  const fs::path bundle = folder.path() / "some.bundle";
  fill(here, 10);
  std::string bytes = read_file(file_of(here, "cubin", key_of(1)));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(file_of(here, "cubin", key_of(1)), bytes);
  CHECK(export_bundle(here, bundle, [](const EntryInfo& info) { return info.facts.at("n") < "0003"; }) == 2);
  import_bundle(bundle, folder.path() / "there");
  for (int n = 0; n < 10; ++n) CHECK(has(folder.path() / "there", n) == (n == 0 || n == 2));
  CHECK(export_bundle(folder.path() / "none", bundle) == 0);
  CHECK(import_bundle(bundle, folder.path() / "there").present == 0);
}

TEST_CASE("import leaves out what is bad, and says so") {
  const TempFolder folder;
  const fs::path bundle = folder.path() / "b";
  fill(folder.path() / "here", 3);
  export_bundle(folder.path() / "here", bundle);
  std::string bytes = read_file(bundle);
  bytes[64 + 1024 + 500] = static_cast<char>(bytes[64 + 1024 + 500] ^ 1);  // in the second entry
  write_file(bundle, bytes);
  const ImportReport report = import_bundle(bundle, folder.path() / "there");
  CHECK(report.added == 2);
  REQUIRE(report.bad.size() == 1);
  const std::string second = list_cache(folder.path() / "here").entries[1].key;
  CHECK(report.bad[0].path == bundle);
  CHECK(report.bad[0].reason ==
        fmt::format("cubin {}: its bytes do not have the checksum that its header states", second));
  CHECK(verify_cache(folder.path() / "there").bad.empty());

  write_file(bundle, "x");
  CHECK(error_of([&] { import_bundle(bundle, folder.path() / "there"); }) ==
        fmt::format("2 GDR-K08 cache: {}: it does not begin like a bundle. Make it again with `gdrjit cache export`.",
                    bundle.string()));
  const fs::path nowhere = folder.path() / "no" / "folder" / "b";
  CHECK(error_of([&] { export_bundle(folder.path() / "here", nowhere); }) ==
        fmt::format("5 GDR-K03 cache: cannot open folder {}: No such file or directory.",
                    nowhere.parent_path().string()));
}
