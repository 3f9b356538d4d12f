#include "present/text.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace gdr;

TEST_CASE("numbers have thousands apart and units that fit") {
  struct Row {
    std::string text;
    const char* expected;
  };
  const Row kRows[] = {
      {with_commas(0), "0"},
      {with_commas(999), "999"},
      {with_commas(1000), "1,000"},
      {with_commas(101376), "101,376"},
      {with_commas(-1234567), "-1,234,567"},
      {with_commas(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808"},
      {bytes_text(139264), "139,264 B"},
      {bytes_text(1e6), "1.00 MB"},
      {bytes_text(12.34e6), "12.3 MB"},
      {bytes_text(987'654'321), "988 MB"},
      {bytes_text(999.9e6), "1.00 GB"},
      {bytes_text(3.29e9), "3.29 GB"},
      {flops_text(0), "no FLOP"},
      {flops_text(12'345'678'901.0), "12.3 GFLOP"},
      {flops_text(500), "0.50 kFLOP"},
      {microseconds_text(0.04), "0.04 us"},
      {microseconds_text(99.96), "100 us"},
      {microseconds_text(551.2), "551 us"},
      {microseconds_text(1234.5678), "1.23 ms"},
      {microseconds_text(2.5e6), "2.50 s"},
      {plural(1, "warp"), "1 warp"},
      {plural(1200, "warp"), "1,200 warps"},
  };
  for (const Row& row : kRows) CHECK(row.text == row.expected);
}

TEST_CASE("words are wrapped at spaces, and a word too long has a line of its own") {
  CHECK(wrapped("", 10) == std::vector<std::string>{""});
  CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped("a extraordinarily b", 6) == std::vector<std::string>{"a", "extraordinarily", "b"});
}

TEST_CASE("columns are as wide as they must be, and the last one is wrapped at 120 columns") {
  TextTable table({{"name"}, {"bytes", Align::right}, {"note"}}, 2);
  table.add({"k", "8,192", "short"});
  table.add({"gamma", "1", std::string(60, 'x') + " " + std::string(60, 'y')});
  CHECK(table.text(Style(false)) ==
        "  name   bytes  note\n"
        "  k      8,192  short\n"
        "  gamma      1  " +
            std::string(60, 'x') +
            "\n"
            "                " +
            std::string(60, 'y') + "\n");
}

TEST_CASE("a column with a limit is wrapped too") {
  TextTable table({{"a", Align::left, 7}, {"b"}}, 0);
  table.add({"one two three", "x"});
  CHECK(table.text(Style(false)) == "a        b\none two  x\nthree\n");
}

TEST_CASE("colour is escapes around the text, or nothing") {
  CHECK(Style(false).bad("x") == "x");
  CHECK(Style(true).bad("x") == "\x1b[31mx\x1b[0m");
}
