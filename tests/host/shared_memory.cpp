#include "shared_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gdr::host {
namespace {

constexpr int kLanes = 32;
constexpr std::byte kPoison{0xff};  // NaN in every element type

}  // namespace

SharedMemory::SharedMemory(int bytes, const Clocks& clocks)
    : clocks_(clocks),
      bytes_(static_cast<std::size_t>(bytes), kPoison),
      cells_(static_cast<std::size_t>((bytes + kCellBytes - 1) / kCellBytes)) {}

Clash SharedMemory::wrong_writer(const Cell& cell, int byte) const {
  const ClashKind kind = cell.component == kNobody           ? ClashKind::unwritten
                         : cell.component == kBarrier        ? ClashKind::barrier
                         : clocks_.is_copies(cell.component) ? ClashKind::with_copy
                                                             : ClashKind::with_write;
  return {kind, byte, cell.component, cell.place};
}

void SharedMemory::note_read(Cell& cell, int thread, Place place) {
  const auto warp = static_cast<std::int16_t>(thread / kLanes);
  const Epoch now = clocks_.now(thread);
  const std::uint32_t lane = 1u << thread % kLanes;
  for (Read& read : cell.reads)
    if (read.warp == warp && read.epoch == now) {
      read.lanes |= lane;
      read.place = place;
      return;
    }
  // A read that comes before this one needs no note of its own: what comes after this one comes after it.
  std::erase_if(cell.reads, [&](const Read& read) {
    for (std::uint32_t lanes = read.lanes; lanes != 0; lanes &= lanes - 1)
      if (!clocks_.is_before(read.warp * kLanes + std::countr_zero(lanes), read.epoch, thread)) return false;
    return true;
  });
  cell.reads.push_back({now, lane, warp, place});
}

Clash SharedMemory::read(int thread, int byte, int bytes, Place place) {
  for (int at = byte; at < byte + bytes; at += kCellBytes) {
    Cell& c = cell(at);
    if (c.component < 0 || !clocks_.is_before(c.component, c.epoch, thread)) return wrong_writer(c, at);
    note_read(c, thread, place);
  }
  return {};
}

Clash SharedMemory::read_together(int lane_thread, int byte, int bytes, Place place, bool all_know_the_same) {
  const int first = lane_thread / kLanes * kLanes;
  for (int at = byte; at < byte + bytes; at += kCellBytes) {
    Cell& c = cell(at);
    if (c.component < 0) return wrong_writer(c, at);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!clocks_.is_before(c.component, c.epoch, first + lane)) return wrong_writer(c, at);
      // Only what one of the lanes wrote may be known to one and not to the next.
      if (all_know_the_same && c.component / kLanes != first / kLanes) break;
    }
    note_read(c, lane_thread, place);
  }
  return {};
}

Clash SharedMemory::may_write(const Cell& cell, int thread, int byte) const {
  if (cell.component == kBarrier) return wrong_writer(cell, byte);
  if (cell.component >= 0 && !clocks_.is_before(cell.component, cell.epoch, thread)) return wrong_writer(cell, byte);
  for (const Read& read : cell.reads)
    for (std::uint32_t lanes = read.lanes; lanes != 0; lanes &= lanes - 1) {
      const int reader = read.warp * kLanes + std::countr_zero(lanes);
      if (!clocks_.is_before(reader, read.epoch, thread)) return {ClashKind::with_read, byte, reader, read.place};
    }
  return {};
}

Clash SharedMemory::overwrite(int thread, int byte, int bytes, Place place, std::int16_t component, Epoch epoch) {
  for (int at = byte; at < byte + bytes; at += kCellBytes) {
    Cell& c = cell(at);
    if (const Clash clash = may_write(c, thread, at)) return clash;
    c.epoch = epoch;
    c.component = component;
    c.place = place;
    c.reads.clear();
  }
  return {};
}

Clash SharedMemory::write(int thread, int byte, int bytes, Place place) {
  return overwrite(thread, byte, bytes, place, static_cast<std::int16_t>(thread), clocks_.now(thread));
}

Clash SharedMemory::issue_copy(int thread, int byte, int bytes, Place place) {
  const auto component = static_cast<std::int16_t>(clocks_.copies_of(thread));
  const Clash clash = overwrite(thread, byte, bytes, place, component, clocks_.copies_now(thread));
  std::fill_n(at(byte), bytes, kPoison);
  return clash;
}

void SharedMemory::land_copy(int byte, std::span<const std::byte> data) {
  std::memcpy(at(byte), data.data(), data.size());
}

Clash SharedMemory::make_barrier(int thread, int byte, int bytes, Place place) {
  return overwrite(thread, byte, bytes, place, kBarrier, 0);
}

}  // namespace gdr::host
