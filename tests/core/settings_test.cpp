#include "core/settings.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "core/error.hpp"

namespace {

using Environment = std::map<std::string, std::string>;

gdr::Settings parse(const Environment& environment) {
  return gdr::parse_settings([&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

}  // namespace

TEST_CASE("the cache folder: own variable, then XDG, then home") {
  struct Row {
    std::string name;
    Environment environment;
    std::string cache_dir;
  };
  const Row rows[] = {
      {"nothing set", {}, ""},
      {"home", {{"HOME", "/home/u"}}, "/home/u/.cache/gdrjit"},
      {"xdg", {{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/x"}}, "/x/gdrjit"},
      {"relative xdg is ignored", {{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "x"}}, "/home/u/.cache/gdrjit"},
      {"own", {{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/x"}, {"GDRJIT_CACHE_DIR", "/own"}}, "/own"},
      {"empty counts as unset", {{"HOME", "/home/u"}, {"GDRJIT_CACHE_DIR", ""}}, "/home/u/.cache/gdrjit"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(parse(row.environment).cache_dir == row.cache_dir);
  }
}

TEST_CASE("bundles: a list of absolute paths") {
  using Paths = std::vector<std::filesystem::path>;
  CHECK(parse({}).bundle_paths == Paths{});
  CHECK(parse({{"GDRJIT_BUNDLE_PATH", "/a/b.bundle"}}).bundle_paths == Paths{"/a/b.bundle"});
  CHECK(parse({{"GDRJIT_BUNDLE_PATH", ":/a::/b/c:"}}).bundle_paths == Paths{"/a", "/b/c"});
}

TEST_CASE("prefixes of Python environments: absolute ones, in order") {
  using Paths = std::vector<std::filesystem::path>;
  CHECK(parse({}).python_prefixes == Paths{});
  CHECK(parse({{"HOME", "/home/u"}, {"VIRTUAL_ENV", "/venv"}, {"CONDA_PREFIX", "/conda"}}).python_prefixes ==
        Paths{"/venv/", "/conda/", "/home/u/.local"});
  CHECK(parse({{"VIRTUAL_ENV", "venv"}}).python_prefixes == Paths{});
}

TEST_CASE("threads and colour") {
  CHECK(parse({{"GDRJIT_NUM_THREADS", "3"}}).num_threads == 3);
  CHECK(parse({{"GDRJIT_NUM_THREADS", "4096"}}).num_threads == 4096);
  CHECK(parse({}).num_threads >= 1);
  CHECK(parse({{"NO_COLOR", "1"}}).no_color);
  CHECK_FALSE(parse({{"NO_COLOR", ""}}).no_color);
}

TEST_CASE("a value that is not allowed is an error with variable and value") {
  struct Row {
    Environment environment;
    std::string text;
  };
  const Row rows[] = {
      {{{"GDRJIT_NUM_THREADS", "many"}},
       "GDR-C21 GDRJIT_NUM_THREADS: 'many' is not a whole number from 1 to 4096. Set it to one, or unset it."},
      {{{"GDRJIT_NUM_THREADS", "0"}},
       "GDR-C21 GDRJIT_NUM_THREADS: '0' is not a whole number from 1 to 4096. Set it to one, or unset it."},
      {{{"GDRJIT_NUM_THREADS", "4097"}},
       "GDR-C21 GDRJIT_NUM_THREADS: '4097' is not a whole number from 1 to 4096. Set it to one, or unset it."},
      {{{"GDRJIT_NUM_THREADS", "2 "}},
       "GDR-C21 GDRJIT_NUM_THREADS: '2 ' is not a whole number from 1 to 4096. Set it to one, or unset it."},
      {{{"GDRJIT_NUM_THREADS", "99999999999999999999"}},
       "GDR-C21 GDRJIT_NUM_THREADS: '99999999999999999999' is not a whole number from 1 to 4096. Set it to one, or "
       "unset it."},
      {{{"GDRJIT_BUNDLE_PATH", "/a:b"}},
       "GDR-C21 GDRJIT_BUNDLE_PATH: 'b' is not an absolute path. Set it to one, or unset it."},
      {{{"GDRJIT_CACHE_DIR", "cache"}},
       "GDR-C21 GDRJIT_CACHE_DIR: 'cache' is not an absolute path. Set it to one, or unset it."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    try {
      parse(row.environment);
      FAIL("accepted");
    } catch (const gdr::Error& error) {
      CHECK(error.kind() == gdr::ErrorKind::config);
      CHECK(std::string(error.what()) == row.text);
    }
  }
}
