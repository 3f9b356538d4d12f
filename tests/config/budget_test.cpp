#include "config/budget.hpp"

#include <doctest/doctest.h>

#include "config/registry.hpp"
#include "edit.hpp"
#include "expect_error.hpp"

using gdr::Budget;
using gdr::ErrorKind;
using gdr::test::error_text;

namespace {

Budget read(const std::string& text) { return gdr::read_budget(gdr::JsonDocument::parse(text, "b.json")); }

}  // namespace

TEST_CASE("a budget config is read as written") {
  const std::string head = R"({"schema_version": 1, "about": "A test.", "name": "b", )";
  const Budget bytes = read(head + R"("smem_bytes_per_block": 65536, "max_workspace_bytes": 0})");
  CHECK(bytes.smem_bytes_per_block == 65536);
  CHECK(bytes.blocks_per_sm == 1);
  CHECK(bytes.max_workspace_bytes == 0);
  const Budget optin = read(head + R"("smem_bytes_per_block": "optin", "blocks_per_sm": 3})");
  CHECK_FALSE(optin.smem_bytes_per_block.has_value());
  CHECK(optin.blocks_per_sm == 3);
  CHECK_FALSE(optin.max_workspace_bytes.has_value());
}

TEST_CASE("faulty budget configs") {
  const std::string good(gdr::config_text(gdr::ConfigKind::budget, "sm_120"));
  const gdr::test::EditRow rows[] = {
      {"/smem_bytes_per_block", "\"all\"",
       "GDR-C08 b.json: /smem_bytes_per_block: \"all\" is not known; allowed are \"optin\" and a number of bytes."},
      {"/smem_bytes_per_block", "0",
       "GDR-C08 b.json: /smem_bytes_per_block: 0 is out of range; allowed are whole numbers from 1 to "
       "16777216."},
      {"/smem_bytes_per_block", "", "GDR-C05 b.json: top level: key 'smem_bytes_per_block' is missing."},
      {"/blocks_per_sm", "0",
       "GDR-C08 b.json: /blocks_per_sm: 0 is out of range; allowed are whole numbers from 1 to 32."},
      {"/max_workspace_bytes", "-1",
       "GDR-C08 b.json: /max_workspace_bytes: -1 is out of range; allowed are whole numbers from 0 to "
       "1125899906842624."},
      {"/smem", "1",
       "GDR-C06 b.json: top level: key \"smem\" is unknown; allowed are about, blocks_per_sm, max_workspace_bytes, "
       "name, schema_version, smem_bytes_per_block."},
  };
  for (const gdr::test::EditRow& row : rows) {
    CAPTURE(row.path);
    CAPTURE(row.value);
    const std::string text = gdr::test::edited(good, row.path, row.value);
    CHECK(error_text(ErrorKind::config, [&] { read(text); }) == row.error);
  }
}

TEST_CASE("a budget as a number of bytes") {
  const Budget budget = gdr::parse_budget("98304");
  CHECK(budget.smem_bytes_per_block == 98304);
  CHECK(budget.name == "98304_bytes");
  for (const std::string text : {"", "96K", "-1", "98304.0", " 98304", "0x18000", "0", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(error_text(ErrorKind::config, [&] { gdr::parse_budget(text); }) ==
          "GDR-C08 budget: '" + text + "' is no number of bytes; allowed are whole numbers from 1 to 16777216.");
  }
}

TEST_CASE("a long text is not repeated in full") {
  CHECK(error_text(ErrorKind::config, [] { gdr::parse_budget(std::string(5000, '9')); }) ==
        "GDR-C08 budget: '" + std::string(60, '9') +
            "...' is no number of bytes; allowed are whole numbers from 1 to 16777216.");
}

TEST_CASE("what an architecture grants") {
  const gdr::Arch sm_120 = gdr::load_arch("sm_120");
  CHECK(gdr::smem_limit_bytes(gdr::parse_budget("101376"), sm_120) == 101'376);
  CHECK(gdr::smem_limit_bytes(gdr::parse_budget("60000"), sm_120) == 60'000);
  CHECK(error_text(ErrorKind::unsupported, [&] { gdr::smem_limit_bytes(gdr::parse_budget("102400"), sm_120); }) ==
        "GDR-C12 budget 102400_bytes: 102400 bytes of shared memory per block; sm_120 grants 101376 bytes: 1024 bytes "
        "too many. Ask for at most 101376.");
  Budget shared = gdr::parse_budget("60000");
  shared.blocks_per_sm = 2;
  CHECK(error_text(ErrorKind::unsupported, [&] { gdr::smem_limit_bytes(shared, sm_120); }) ==
        "GDR-C12 budget 60000_bytes: 60000 bytes of shared memory per block; sm_120 grants 50176 bytes if 2 blocks "
        "share an SM: 9824 bytes too many. Ask for at most 50176.");
}
