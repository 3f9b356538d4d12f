// The memory of a block: a value and a stamp for each cell. The stamp says which op wrote the cell and when, so that a
// read can be held against the writers it may see.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace gdr::interp {

// Time in a block: 0 in the prologue, iteration + 1 in the body, count + 1 in the epilogue.
using Stamp = std::uint32_t;
constexpr int kTimeBits = 20;
constexpr int kMaxOps = (1 << (32 - kTimeBits)) - 2;
constexpr std::int64_t kMaxTime = (1 << kTimeBits) - 1;
constexpr Stamp kNeverWritten = 0;
constexpr Stamp kInFlight = 0xffffffffu;  // a copy into the cell has been issued and has not landed
constexpr Stamp kNobody = 0xfffffffeu;    // no cell ever has it

inline Stamp stamp_of(int op, std::int64_t time) {
  return (static_cast<Stamp>(op + 1) << kTimeBits) | static_cast<Stamp>(time);
}
inline int op_of(Stamp stamp) { return static_cast<int>(stamp >> kTimeBits) - 1; }
inline std::int64_t time_of(Stamp stamp) { return static_cast<std::int64_t>(stamp & ((1u << kTimeBits) - 1)); }

template <typename Real>
struct Memory {
  std::vector<Real> values;
  std::vector<Stamp> stamps;

  explicit Memory(int num_cells)
      : values(static_cast<std::size_t>(num_cells), std::numeric_limits<Real>::quiet_NaN()),
        stamps(static_cast<std::size_t>(num_cells), kNeverWritten) {}
};

}  // namespace gdr::interp
