#include "core/dtype.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "core/error.hpp"

using gdr::DType;

namespace {

// Rounds by search among all finite values of a 16-bit type: slow, and shares nothing with the code under test.
// `decode` gives the value of a pattern; patterns of one sign are ordered by magnitude.
template <typename Decode>
std::uint16_t nearest_by_search(float value, std::uint16_t infinity, Decode decode) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint32_t low = 0, high = infinity;  // decode(low) <= magnitude, where infinity stands for the next power of two
  const auto at = [&](std::uint32_t bits) {
    if (bits < infinity) return static_cast<double>(decode(static_cast<std::uint16_t>(bits)));
    const double last = decode(static_cast<std::uint16_t>(infinity - 1));
    return last + (last - static_cast<double>(decode(static_cast<std::uint16_t>(infinity - 2))));
  };
  if (magnitude >= at(high)) return sign | infinity;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (at(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - at(low), above = at(high) - magnitude;
  const std::uint32_t chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(sign | chosen);
}

}  // namespace

TEST_CASE("names and sizes of element types") {
  struct Row {
    DType dtype;
    std::string name;
    std::size_t size_bytes;
  };
  const Row rows[] = {{DType::bf16, "bf16", 2}, {DType::fp16, "fp16", 2}, {DType::fp32, "fp32", 4},
                      {DType::fp64, "fp64", 8}, {DType::i32, "i32", 4},   {DType::i64, "i64", 8}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(gdr::to_string(row.dtype) == row.name);
    CHECK(gdr::size_bytes(row.dtype) == row.size_bytes);
    CHECK(gdr::parse_dtype(row.name, "dtype") == row.dtype);
  }
  try {
    gdr::parse_dtype("float16", "q.dtype");
    FAIL("accepted");
  } catch (const gdr::Error& error) {
    CHECK(std::string(error.what()) ==
          "GDR-C20 q.dtype: 'float16' is no element type; allowed are bf16, fp16, fp32, fp64, i32, i64.");
  }
}

TEST_CASE("every 16-bit pattern comes back from float") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    CAPTURE(bits);
    const float as_bf16 = gdr::float_from_bf16(pattern);
    if (std::isnan(as_bf16)) {
      REQUIRE(gdr::bf16_from_float(as_bf16) == (pattern | 0x0040));
    } else {
      REQUIRE(gdr::bf16_from_float(as_bf16) == pattern);
    }
    const float as_fp16 = gdr::float_from_fp16(pattern);
    if (std::isnan(as_fp16)) {
      REQUIRE(gdr::fp16_from_float(as_fp16) == (pattern | 0x0200));
    } else {
      REQUIRE(gdr::fp16_from_float(as_fp16) == pattern);
    }
  }
}

TEST_CASE("values of fp16 and bf16 patterns") {
  CHECK(gdr::float_from_fp16(0x3c00) == 1.0f);
  CHECK(gdr::float_from_fp16(0x7bff) == 65504.0f);
  CHECK(gdr::float_from_fp16(0x0001) == 0x1p-24f);
  CHECK(gdr::float_from_fp16(0x8400) == -0x1p-14f);
  CHECK(gdr::float_from_bf16(0x3f80) == 1.0f);
  CHECK(gdr::float_from_bf16(0x0001) == 0x1p-133f);
}

TEST_CASE("rounding at the edges") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Row {
    float value;
    std::uint16_t bf16, fp16;
  };
  const Row rows[] = {
      {0.0f, 0x0000, 0x0000},
      {-0.0f, 0x8000, 0x8000},
      {kInfinity, 0x7f80, 0x7c00},
      {-kInfinity, 0xff80, 0xfc00},
      {std::numeric_limits<float>::max(), 0x7f80, 0x7c00},
      {65519.0f, 0x4780, 0x7bff},                    // below the midpoint to 65,536
      {65520.0f, 0x4780, 0x7c00},                    // the midpoint: to even, infinity
      {1.0f + 0x1p-8f, 0x3f80, 0x3c04},              // a tie in bf16, down to even
      {1.0f + 0x1p-7f + 0x1p-8f, 0x3f82, 0x3c0c},    // a tie in bf16, up to even
      {1.0f + 0x1p-11f, 0x3f80, 0x3c00},             // a tie in fp16, down to even
      {1.0f + 0x1p-11f + 0x1p-23f, 0x3f80, 0x3c01},  // just above the tie
      {0x1p-25f, 0x3300, 0x0000},                    // half the least fp16 denormal: to even, zero
      {0x1p-25f + 0x1p-48f, 0x3300, 0x0001},         // just above it
      {0x1.ffep-15f, 0x3880, 0x0400},                // the tie between the largest denormal and 2^-14
      {std::numeric_limits<float>::denorm_min(), 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK(gdr::bf16_from_float(row.value) == row.bf16);
    CHECK(gdr::fp16_from_float(row.value) == row.fp16);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(gdr::round_to_bf16(nan)));
  CHECK(std::isnan(gdr::round_to_fp16(-nan)));
  CHECK(std::signbit(gdr::round_to_fp16(-nan)) == std::signbit(-nan));
  // A NaN whose payload lies only in the bits that are dropped must not become infinity.
  const float low_payload = std::bit_cast<float>(0x7f800001u);
  CHECK(gdr::bf16_from_float(low_payload) == 0x7fc0);
  CHECK(gdr::fp16_from_float(low_payload) == 0x7e00);
}

TEST_CASE("random floats round to the nearest value, ties to even") {
  std::mt19937 random(20240607);
  int num_compared = 0;
  for (int i = 0; i < 100000; ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x80ffffffu) | 0x38000000u;  // half of them within fp16's narrow range
    if (i % 4 == 0) bits &= 0xffff8000u;                        // many ties of bf16
    if (i % 8 == 2) bits &= 0xfffff000u;                        // many ties of fp16
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    CAPTURE(bits);
    REQUIRE(gdr::bf16_from_float(value) == nearest_by_search(value, 0x7f80, gdr::float_from_bf16));
    REQUIRE(gdr::fp16_from_float(value) == nearest_by_search(value, 0x7c00, gdr::float_from_fp16));
    ++num_compared;
  }
  CHECK(num_compared > 90000);
}
