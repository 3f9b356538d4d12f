// What the lanes of a warp do together. The lane that comes last does it for all; none of it orders memory but
// warp_sync and the meetings.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/dtype.hpp"
#include "machine.hpp"

namespace gdr::host {
namespace {

constexpr std::uint32_t kAll = 0xffffffffu;

}  // namespace

const char* to_string(Together kind) {
  switch (kind) {
    case Together::shuffle_xor:
      return "shuffle_xor";
    case Together::shuffle_up:
      return "shuffle_up";
    case Together::shuffle_down:
      return "shuffle_down";
    case Together::shuffle_from:
      return "shuffle_from";
    case Together::warp_sync:
      return "warp_sync";
    case Together::load_matrices:
      return "load_matrices";
    case Together::load_matrices_transposed:
      return "load_matrices_transposed";
    case Together::transpose_matrix:
      return "transpose_matrix";
    case Together::product_bf16:
      return "matrix_product (bf16)";
    case Together::product_fp16:
      return "matrix_product (fp16)";
    case Together::block_sync:
      return "block_sync";
    case Together::role_sync:
      return "role_sync";
    case Together::set_registers:
      return "set_registers";
  }
  return "?";
}

Machine::LaneRequest& Machine::together(Together kind, int number, const LaneRequest& request) {
  Warp& warp = warp_at(thread_ / kLanes);
  if (warp.arrived != 0 && (warp.together != kind || warp.number != number)) {
    fail(FaultKind::divergence, thread_, me().place,
         fmt::format("comes to {} {} while lanes {:#x} of its warp are at {} {}", to_string(kind), number, warp.arrived,
                     to_string(warp.together), warp.number));
    stop_if_faulty();
  }
  me().request = request;
  warp.together = kind;
  warp.number = number;
  warp.arrived |= 1u << thread_ % kLanes;
  if (warp.arrived == kAll)
    do_together(thread_ / kLanes);
  else
    suspend(Waits::for_lanes, 0);
  stop_if_faulty();
  return me().request;
}

// The running thread goes on at once where its warp does; the others are woken.
void Machine::do_together(int w) {
  Warp& warp = warp_at(w);
  warp.arrived = 0;
  switch (warp.together) {
    case Together::shuffle_xor:
    case Together::shuffle_up:
    case Together::shuffle_down:
    case Together::shuffle_from:
      shuffle_lanes(w);
      break;
    case Together::warp_sync:
      sync_warp(w);
      break;
    case Together::load_matrices:
    case Together::load_matrices_transposed:
      load_lanes_matrices(w);
      break;
    case Together::transpose_matrix:
      transpose_lanes(w);
      break;
    case Together::product_bf16:
    case Together::product_fp16:
      multiply_lanes(w);
      break;
    case Together::block_sync:
    case Together::role_sync:
      meet(w);
      return;
    case Together::set_registers:
      take_registers(w);
      return;
  }
  warp.ready = kAll & ~(1u << thread_ % kLanes);
}

// ---------------------------------------------------------------------------------------------------- shuffles

float Machine::shuffle(Together kind, float value, int by) {
  LaneRequest request;
  request.value = value;
  request.number = by;
  return together(kind, 0, request).value;
}

void Machine::shuffle_lanes(int w) {
  std::array<float, kLanes> values;
  for (int lane = 0; lane < kLanes; ++lane)
    values[static_cast<std::size_t>(lane)] = thread_at(w * kLanes + lane).request.value;
  for (int lane = 0; lane < kLanes; ++lane) {
    LaneRequest& request = thread_at(w * kLanes + lane).request;
    int from = lane;
    switch (warp_at(w).together) {
      case Together::shuffle_xor:
        from = lane ^ request.number;
        break;
      case Together::shuffle_up:
        from = lane - request.number;
        break;
      case Together::shuffle_down:
        from = lane + request.number;
        break;
      default:
        from = request.number;
    }
    // A lane that would read beyond the warp keeps its own.
    if (from >= 0 && from < kLanes) request.value = values[static_cast<std::size_t>(from)];
  }
}

void Machine::warp_sync() {
  const int op = me().place.op;
  if (op >= 0 && (run_.options.skipped_ops.contains(op) || run_.options.unsynced_ops.contains(op))) return;
  together(Together::warp_sync, 0, {});
}

void Machine::sync_warp(int w) {
  std::array<int, kLanes> threads;
  for (int lane = 0; lane < kLanes; ++lane) threads[static_cast<std::size_t>(lane)] = w * kLanes + lane;
  clocks_.meet(threads);
}

bool Machine::lanes_know_the_same(int w) const {
  for (int lane = 1; lane < kLanes; ++lane)
    if (clocks_.knowledge(w * kLanes + lane) != clocks_.knowledge(w * kLanes)) return false;
  return true;
}

// ---------------------------------------------------------------------------------------------------- matrices

void Machine::load_matrices(std::uint32_t* r, int byte, bool transposed) {
  constexpr int kRowBytes = 16;
  if (!check_access(byte, kRowBytes, false)) return stop_if_faulty();
  LaneRequest request;
  request.matrices = r;
  request.number = byte;
  together(transposed ? Together::load_matrices_transposed : Together::load_matrices, 0, request);
}

void Machine::load_lanes_matrices(int w) {
  constexpr int kRowBytes = 16, kRows = 8;
  const bool same = lanes_know_the_same(w);
  std::vector<BankCounter::Lane> rows;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int thread = w * kLanes + lane, byte = thread_at(thread).request.number;
    if (const Clash found = memory_.read_together(thread, byte, kRowBytes, thread_at(thread).place, same)) {
      clash(thread, found, "reads");
      return;
    }
    rows.push_back({lane, byte});
  }
  if (run_.banks != nullptr && run_.options.counts_banks) run_.banks->add(me().place.op, rows, kRowBytes);
  const bool transposed = warp_at(w).together == Together::load_matrices_transposed;
  const auto element = [&](int matrix, int row, int col) {
    std::uint16_t bits;
    std::memcpy(&bits, memory_.at(thread_at(w * kLanes + matrix * kRows + row).request.number + col * 2), sizeof bits);
    return static_cast<std::uint32_t>(bits);
  };
  for (int lane = 0; lane < kLanes; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int at = lane / 4, pair = lane % 4 * 2;
      thread_at(w * kLanes + lane).request.matrices[matrix] =
          transposed ? element(matrix, pair, at) | element(matrix, pair + 1, at) << 16
                     : element(matrix, at, pair) | element(matrix, at, pair + 1) << 16;
    }
}

std::uint32_t Machine::transpose_matrix(std::uint32_t pair) {
  LaneRequest request;
  request.b[0] = pair;
  return together(Together::transpose_matrix, 0, request).b[0];
}

// Lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, before and after.
void Machine::transpose_lanes(int w) {
  std::uint32_t element[8][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t pair = thread_at(w * kLanes + lane).request.b[0];
    element[lane / 4][lane % 4 * 2] = pair & 0xffff;
    element[lane / 4][lane % 4 * 2 + 1] = pair >> 16;
  }
  for (int lane = 0; lane < kLanes; ++lane)
    thread_at(w * kLanes + lane).request.b[0] = element[lane % 4 * 2][lane / 4] | element[lane % 4 * 2 + 1][lane / 4]
                                                                                      << 16;
}

void Machine::matrix_product(Together type, float* d, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1) {
  LaneRequest request;
  request.d = d;
  request.a = a;
  request.b[0] = b0;
  request.b[1] = b1;
  together(type, 0, request);
}

// Sums in fp32, in the order of the contraction; the hardware's order is not documented.
void Machine::multiply_lanes(int w) {
  constexpr int kM = 16, kN = 8, kK = 16;
  const bool is_bf16 = warp_at(w).together == Together::product_bf16;
  const auto half = [&](std::uint32_t pair, int which) {
    const auto bits = static_cast<std::uint16_t>(which != 0 ? pair >> 16 : pair);
    return is_bf16 ? float_from_bf16(bits) : float_from_fp16(bits);
  };
  float a[kM][kK], b[kK][kN];
  for (int lane = 0; lane < kLanes; ++lane) {
    const LaneRequest& request = thread_at(w * kLanes + lane).request;
    const int at = lane / 4, pair = lane % 4 * 2;
    for (int which = 0; which < 2; ++which) {
      for (int r = 0; r < 4; ++r) a[at + r % 2 * 8][pair + r / 2 * 8 + which] = half(request.a[r], which);
      for (int r = 0; r < 2; ++r) b[pair + r * 8 + which][at] = half(request.b[r], which);
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    float* const d = thread_at(w * kLanes + lane).request.d;
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
      float sum = d[e];
      for (int l = 0; l < kK; ++l) sum += a[row][l] * b[l][col];
      d[e] = sum;
    }
  }
}

// ---------------------------------------------------------------------------------------------------- meetings

void Machine::block_sync() { together(Together::block_sync, run_.threads, {}); }

void Machine::role_sync(int id, int threads) {
  if (is_skipped()) return;
  if (run_.facts != nullptr && me().place.op >= 0) {
    const Barrier* const barrier = run_.facts->barrier_of(me().place.op);
    const auto added = run_.options.added_arrivals.find(barrier != nullptr ? barrier->name : "");
    if (added != run_.options.added_arrivals.end()) threads += added->second;
  }
  if (id < 1 || id > 15 || threads <= 0 || threads % kLanes != 0)
    fail(FaultKind::barrier, thread_, me().place, fmt::format("meets under id {} with {} threads", id, threads));
  stop_if_faulty();
  constexpr int kIds = 16;
  together(Together::role_sync, threads * kIds + id, {});
}

// The warp has come; all who are there go on if it was the last.
void Machine::meet(int w) {
  constexpr int kIds = 16;
  const bool is_block = warp_at(w).together == Together::block_sync;
  const int id = is_block ? 0 : warp_at(w).number % kIds, threads = is_block ? run_.threads : warp_at(w).number / kIds;
  Meeting& meeting = meetings_[static_cast<std::size_t>(id)];
  if (meeting.present.empty()) meeting.threads = threads;
  for (int lane = 0; lane < kLanes; ++lane) meeting.present.push_back(w * kLanes + lane);
  const auto count = static_cast<int>(meeting.present.size());
  if (meeting.threads != threads || count > threads) {
    fail(FaultKind::barrier, thread_, me().place,
         fmt::format("meets {} threads under id {} where others meet {}; {} have come", threads, id, meeting.threads,
                     count));
    return;
  }
  if (count < threads) {
    for (int lane = 0; lane < kLanes; ++lane) {
      thread_at(w * kLanes + lane).waits = Waits::for_meeting;
      thread_at(w * kLanes + lane).waits_at = id;
    }
    me().fiber->suspend();
    return;
  }
  clocks_.meet(meeting.present);
  for (const int thread : meeting.present)
    if (thread != thread_) wake(thread);
  meeting.present.clear();
}

// --------------------------------------------------------------------------------------------------- registers

void Machine::set_registers(int registers, bool more) {
  if (run_.facts == nullptr) return;
  const int now = warp_at(thread_ / kLanes).registers;
  constexpr int kLeast = 24, kMost = 256, kUnit = 8;
  if (registers < kLeast || registers > kMost || registers % kUnit != 0 || (more ? registers < now : registers > now))
    fail(FaultKind::registers, thread_, me().place,
         fmt::format("sets {} registers, {} than its {}", registers, more ? "more" : "fewer", now));
  stop_if_faulty();
  together(Together::set_registers, registers, {});
}

void Machine::take_registers(int w) {
  register_requests_.push_back({w, warp_at(w).number});
  for (int lane = 0; lane < kLanes; ++lane) thread_at(w * kLanes + lane).waits = Waits::for_registers;
  grant_registers();
  const bool is_granted = std::none_of(register_requests_.begin(), register_requests_.end(),
                                       [&](const RegisterRequest& request) { return request.warp == w; });
  if (is_granted)
    warp_at(w).ready &= ~(1u << thread_ % kLanes);  // that lane runs
  else
    me().fiber->suspend();
}

// Gives what there is to whoever can have it; what is given back may serve others.
void Machine::grant_registers() {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < register_requests_.size(); ++i) {
      const RegisterRequest request = register_requests_[i];
      const int needed = (request.registers - warp_at(request.warp).registers) * kLanes;
      if (needed > free_registers_) continue;
      free_registers_ -= needed;
      warp_at(request.warp).registers = request.registers;
      warp_at(request.warp).ready = kAll;
      register_requests_.erase(register_requests_.begin() + static_cast<std::ptrdiff_t>(i));
      again = true;
      break;
    }
  }
}

// setmaxnreg is for whole warpgroups: in the end all warps of one have the same.
void Machine::check_warpgroups() {
  constexpr int kWarps = 4;
  for (int w = 0; w < static_cast<int>(warps_.size()); ++w)
    if (warp_at(w).registers != warp_at(w / kWarps * kWarps).registers)
      fail(FaultKind::registers, w * kLanes, thread_at(w * kLanes).place,
           fmt::format("has {} registers where the first warp of its warpgroup has {}", warp_at(w).registers,
                       warp_at(w / kWarps * kWarps).registers));
}

}  // namespace gdr::host
