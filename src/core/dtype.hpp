// Element types: names, sizes, and exact conversions between float and the 16-bit types, on bit patterns.
// Conversions to 16 bits round to nearest, ties to even; overflow gives infinity, NaN stays NaN with its sign.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gdr/dtype.hpp"

namespace gdr {

std::size_t size_bytes(DType dtype);
std::string_view to_string(DType dtype);

// Accepts exactly the names that to_string gives. `subject` (an argument or key path) opens the message of the
// config Error (GDR-C20) that names the value and what is allowed.
DType parse_dtype(std::string_view text, std::string_view subject);

std::uint16_t bf16_from_float(float value);
float float_from_bf16(std::uint16_t bits);
std::uint16_t fp16_from_float(float value);
float float_from_fp16(std::uint16_t bits);

// What a float becomes when it is stored in 16 bits and read again.
inline float round_to_bf16(float value) { return float_from_bf16(bf16_from_float(value)); }
inline float round_to_fp16(float value) { return float_from_fp16(fp16_from_float(value)); }

}  // namespace gdr
