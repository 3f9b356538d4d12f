#include "config/shape.hpp"

#include <doctest/doctest.h>

#include "config/registry.hpp"
#include "edit.hpp"
#include "expect_error.hpp"

namespace {

gdr::Shape read(const std::string& text) { return gdr::read_shape(gdr::JsonDocument::parse(text, "s.json")); }

}  // namespace

TEST_CASE("a shape config is read as written, with defaults for the workload") {
  const gdr::Shape shape = read(
      R"({"schema_version": 1, "about": "A test.", "name": "small", "model": "none", "k_heads": 2, "v_heads": 6,
          "head_dim_k": 64, "head_dim_v": 256, "dtype": "fp16"})");
  CHECK(shape.name == "small");
  CHECK(shape.model == "none");
  CHECK(shape.group() == 3);
  CHECK(shape.head_dim_k == 64);
  CHECK(shape.head_dim_v == 256);
  CHECK(shape.dtype == gdr::DType::fp16);
  CHECK(shape.state_dtype == gdr::DType::fp32);
  CHECK(shape.tokens == 32768);
  CHECK(shape.sequences == 1);
}

TEST_CASE("faulty shape configs") {
  const std::string good(gdr::config_text(gdr::ConfigKind::shape, "qwen3_next"));
  const gdr::test::EditRow rows[] = {
      {"/v_heads", "33",
       "GDR-C09 s.json: /v_heads: 33 is not a multiple of k_heads 16; each k-head serves the same number of v-heads."},
      {"/v_heads", "8",
       "GDR-C09 s.json: /v_heads: 8 is not a multiple of k_heads 16; each k-head serves the same number of v-heads."},
      {"/k_heads", "0", "GDR-C08 s.json: /k_heads: 0 is out of range; allowed are whole numbers from 1 to 4096."},
      {"/v_heads", "-4", "GDR-C08 s.json: /v_heads: -4 is out of range; allowed are whole numbers from 1 to 4096."},
      {"/head_dim_k", "120", "GDR-C08 s.json: /head_dim_k: 120 is not a multiple of 16; allowed are 16, 32, ... 256."},
      {"/head_dim_v", "272",
       "GDR-C08 s.json: /head_dim_v: 272 is out of range; allowed are whole numbers from 16 to 256."},
      {"/dtype", "\"float16\"",
       "GDR-C08 s.json: /dtype: \"float16\" is not known; allowed are bf16, fp16, fp32, fp64."},
      {"/state_dtype", "\"bf16\"", "GDR-C08 s.json: /state_dtype: \"bf16\" is not known; allowed are fp32, fp64."},
      {"/tokens", "0",
       "GDR-C08 s.json: /tokens: 0 is out of range; allowed are whole numbers from 1 to 1099511627776."},
      {"/sequences", "32769",
       "GDR-C09 s.json: /sequences: 32769 sequences cannot share 32768 tokens; at least one each."},
      {"/heads", "16",
       "GDR-C06 s.json: top level: key \"heads\" is unknown; allowed are about, dtype, head_dim_k, head_dim_v, "
       "k_heads, model, name, schema_version, sequences, state_dtype, tokens, v_heads."},
      {"/model", "", "GDR-C05 s.json: top level: key 'model' is missing."},
  };
  for (const gdr::test::EditRow& row : rows) {
    CAPTURE(row.path);
    CAPTURE(row.value);
    const std::string text = gdr::test::edited(good, row.path, row.value);
    CHECK(gdr::test::error_text(gdr::ErrorKind::config, [&] { read(text); }) == row.error);
  }
}
