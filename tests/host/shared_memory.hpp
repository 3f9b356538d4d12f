// The shared memory of a block: its bytes, and for every two of them who wrote them last and who has read them since.
// An access is compared with those by the clocks: one that nothing orders is a clash, whatever order the threads
// happened to run in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clocks.hpp"

namespace gdr::host {

struct Place {  // in a kernel's text
  std::int32_t op = -1;
  std::int32_t iteration = -1;
};

enum class ClashKind { none, unwritten, barrier, with_write, with_read, with_copy };
struct Clash {
  ClashKind kind = ClashKind::none;
  int byte = 0;
  int component = -1;  // of the other party
  Place place;         // where the other party was
  explicit operator bool() const { return kind != ClashKind::none; }
};

class SharedMemory {
 public:
  SharedMemory(int bytes, const Clocks& clocks);

  int size() const { return static_cast<int>(bytes_.size()); }
  std::byte* at(int byte) { return bytes_.data() + byte; }

  // An access of a thread to [byte, byte + bytes), which lie in the memory. The first clash; the access is noted.
  Clash read(int thread, int byte, int bytes, Place place);
  Clash write(int thread, int byte, int bytes, Place place);
  // A warp reads together what the lane addresses: for each of its lanes the bytes must have been written before.
  Clash read_together(int lane_thread, int byte, int bytes, Place place, bool all_know_the_same);
  // The thread issues a copy: until it lands the bytes are poison, and they belong to its copies from now on.
  Clash issue_copy(int thread, int byte, int bytes, Place place);
  void land_copy(int byte, std::span<const std::byte> data);
  // The bytes hold a barrier from now on.
  Clash make_barrier(int thread, int byte, int bytes, Place place);

 private:
  struct Read {
    Epoch epoch = 0;
    std::uint32_t lanes = 0;
    std::int16_t warp = 0;
    Place place;
  };
  struct Cell {
    Epoch epoch = 0;
    std::int16_t component = kNobody;
    Place place;
    std::vector<Read> reads;  // since the last write, less those that later reads come after
  };
  static constexpr std::int16_t kNobody = -1, kBarrier = -2;
  static constexpr int kCellBytes = 2;

  Cell& cell(int byte) { return cells_[static_cast<std::size_t>(byte / kCellBytes)]; }
  void note_read(Cell& cell, int thread, Place place);
  Clash may_write(const Cell& cell, int thread, int byte) const;
  Clash wrong_writer(const Cell& cell, int byte) const;
  Clash overwrite(int thread, int byte, int bytes, Place place, std::int16_t component, Epoch epoch);

  const Clocks& clocks_;
  std::vector<std::byte> bytes_;
  std::vector<Cell> cells_;
};

}  // namespace gdr::host
