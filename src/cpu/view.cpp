#include "cpu/view.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.hpp"

namespace gdr::cpu {
namespace {

// double -> float rounded to odd: a second rounding to 16 bits then gives what one rounding would have given
// (Boldo and Melquiond, "When double rounding is odd", 2005; float keeps more than two extra bits).
float to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const bool too_far = (nearest > value) == (value > 0);  // away from zero
  if (too_far) --bits;
  return std::bit_cast<float>(bits | 1u);
}

// One trait a stored type: its size in memory and the two conversions.
struct Bf16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Stored store(float value) { return bf16_from_float(value); }
  static Stored store(double value) { return bf16_from_float(to_float_odd(value)); }
};
struct Fp16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return float_from_fp16(bits); }
  static Stored store(float value) { return fp16_from_float(value); }
  static Stored store(double value) { return fp16_from_float(to_float_odd(value)); }
};
template <class F>
struct Plain {
  using Stored = F;
  static F load(Stored value) { return value; }
  template <class T>
  static Stored store(T value) {
    return static_cast<F>(value);
  }
};

template <class Body>
void for_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::bf16:
      return body(Bf16{});
    case DType::fp16:
      return body(Fp16{});
    case DType::fp32:
      return body(Plain<float>{});
    case DType::fp64:
      return body(Plain<double>{});
    default:
      break;
  }
  internal_check(false, "a view of the CPU backend is not of a floating type");
}

// Calls body(address of the row's first element, index of the row's first element in the dense block) for every row.
template <class Stored, class Body>
void for_rows(const View& view, const Block& block, Body&& body) {
  std::int64_t offset = 0;
  for (std::size_t dim = 0; dim < 4; ++dim) offset += block.origin[dim] * view.strides[dim];
  const std::int64_t row_stride = view.strides[static_cast<std::size_t>(block.row_dim)];
  for (std::int64_t row = 0; row < block.rows; ++row) {
    body(static_cast<char*>(view.data) + (offset + row * row_stride) * static_cast<std::int64_t>(sizeof(Stored)),
         row * block.cols);
  }
}

// Runs of elements. Addresses are bytes: a tensor may lie where its element type would not, and memcpy reads it right.
// That nothing overlaps, and a step known to the compiler, make these loops vector code.
template <class Format, class T>
void read_run(const char* __restrict from, std::int64_t step, std::int64_t count, T* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) {
    typename Format::Stored stored;
    std::memcpy(&stored, from + i * step, sizeof(stored));
    to[i] = static_cast<T>(Format::load(stored));
  }
}

template <class Format, class T>
void write_run(char* __restrict to, std::int64_t step, std::int64_t count, const T* __restrict from) {
  for (std::int64_t i = 0; i < count; ++i) {
    const typename Format::Stored stored = Format::store(from[i]);
    std::memcpy(to + i * step, &stored, sizeof(stored));
  }
}

}  // namespace

template <class T>
void read_block(const View& view, const Block& block, T* out) {
  for_dtype(view.dtype, [&](auto format) {
    using Format = decltype(format);
    constexpr std::int64_t kBytes = sizeof(typename Format::Stored);
    const std::int64_t step = view.strides[3] * kBytes;
    for_rows<typename Format::Stored>(view, block, [&](const char* row, std::int64_t first) {
      if (step == kBytes) {
        read_run<Format>(row, kBytes, block.cols, out + first);
      } else {
        read_run<Format>(row, step, block.cols, out + first);
      }
    });
  });
}

template <class T>
void write_block(const View& view, const Block& block, const T* in) {
  for_dtype(view.dtype, [&](auto format) {
    using Format = decltype(format);
    constexpr std::int64_t kBytes = sizeof(typename Format::Stored);
    const std::int64_t step = view.strides[3] * kBytes;
    for_rows<typename Format::Stored>(view, block, [&](char* row, std::int64_t first) {
      if (step == kBytes) {
        write_run<Format>(row, kBytes, block.cols, in + first);
      } else {
        write_run<Format>(row, step, block.cols, in + first);
      }
    });
  });
}

void zero_block(const View& view, const Block& block) {
  for_dtype(view.dtype, [&](auto format) {
    using Stored = typename decltype(format)::Stored;
    for_rows<Stored>(view, block, [&](char* row, std::int64_t) {
      for (std::int64_t i = 0; i < block.cols; ++i)
        std::memset(row + i * view.strides[3] * static_cast<std::int64_t>(sizeof(Stored)), 0, sizeof(Stored));
    });
  });
}

template void read_block<float>(const View&, const Block&, float*);
template void read_block<double>(const View&, const Block&, double*);
template void write_block<float>(const View&, const Block&, const float*);
template void write_block<double>(const View&, const Block&, const double*);

}  // namespace gdr::cpu
