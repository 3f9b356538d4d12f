#include "core/dtype.hpp"

#include <array>
#include <bit>

#include "core/error.hpp"

namespace gdr {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size_bytes;
};
constexpr std::array<Row, 6> kRows = {{{DType::bf16, "bf16", 2},
                                       {DType::fp16, "fp16", 2},
                                       {DType::fp32, "fp32", 4},
                                       {DType::fp64, "fp64", 8},
                                       {DType::i32, "i32", 4},
                                       {DType::i64, "i64", 8}}};

const Row& row_of(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row;
  fail(ErrorKind::internal, "GDR-X01", "internal: dtype {} has no row. This is a fault of gdrjit; please report it.",
       static_cast<int>(dtype));
}

// The upper bits of `value` after dropping `dropped` low bits, rounded to nearest, ties to even.
std::uint32_t round_shift(std::uint32_t value, int dropped) {
  const std::uint32_t kept = value >> dropped;
  const std::uint32_t rest = value & ((1u << dropped) - 1u);
  const std::uint32_t half = 1u << (dropped - 1);
  return kept + ((rest > half || (rest == half && (kept & 1u) != 0u)) ? 1u : 0u);
}

}  // namespace

std::size_t size_bytes(DType dtype) { return row_of(dtype).size_bytes; }
std::string_view to_string(DType dtype) { return row_of(dtype).name; }

DType parse_dtype(std::string_view text, std::string_view subject) {
  for (const Row& row : kRows)
    if (row.name == text) return row.dtype;
  fail(ErrorKind::config, "GDR-C20", "{}: '{}' is no element type; allowed are bf16, fp16, fp32, fp64, i32, i64.",
       subject, text);
}

std::uint16_t bf16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);  // quiet NaN
  return static_cast<std::uint16_t>(round_shift(bits, 16));  // a carry out of the mantissa ends in infinity at most
}

float float_from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t fp16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x01ffu);  // quiet NaN, upper payload kept
  } else if (magnitude >= 0x47800000u) {             // 2^16 and more, infinity included
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14 and more: normal; exponent bias 127 becomes 15
    half = round_shift(magnitude - (112u << 23), 13);
  } else if (magnitude >= 0x33000000u) {  // 2^-25 and more: a denormal, counted in units of 2^-24
    const int exponent = static_cast<int>(magnitude >> 23);
    half = round_shift((magnitude & 0x007fffffu) | 0x00800000u, 126 - exponent);
  }
  return static_cast<std::uint16_t>(sign | half);
}

float float_from_fp16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) * 0x10000u;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x03ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact: ten bits
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

}  // namespace gdr
