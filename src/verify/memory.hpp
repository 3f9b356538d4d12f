// Shared memory along a run: races (V10), values (V13) and fences of the asynchronous proxy (V15), cell by cell.
//
// Races: each cell remembers its last write and the reads since, as epochs of the clocks. An access must come, by the
// order, after every write it finds, and a write after every read it finds. An asynchronous copy counts as a write from
// its issue (which must come after what it finds) to its landing (which must come before what finds it).
// Values: what a read must find is defined by Kernel::ops: run one by one within an iteration, each tile and part
// having memory of its own, the op that last wrote these elements. Since races are excluded, the last write found in
// the one run is the last write in every run; it must be that op's, of this iteration. This covers bytes of another
// tile, another part, another iteration, an older version of the same tile, and bytes that nothing has written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "verify/cells.hpp"
#include "verify/timeline.hpp"

namespace gdr::verifying {

class MemoryCheck {
 public:
  // Needs a well-formed kernel whose tiles are in place.
  explicit MemoryCheck(const KernelIndex& index);

  // The steps in the order of Timeline::run.
  void on_step(const StepRun& run);
  // After the run: findings in the order in which they were met, one for each pair of ops.
  void report(Findings& findings);

  std::int64_t accesses_checked() const { return accesses_checked_; }

 private:
  static constexpr int kNothing = -1;  // no op writes it before the read

  // A warp's touch of one operand, in the iterations of one copy of the tile.
  struct Copy {
    int footprint = 0;
    int expected = kNothing;         // op that wrote what is read, where it is the same for all cells
    std::vector<int> expected_each;  // else by cell of the footprint
  };
  struct SmemAccess {
    int op = 0;
    int operand = 0;
    int tile = 0;
    int part = 0;
    bool reads = false;
    bool writes = false;
    bool lands_later = false;  // an asynchronous copy
    bool async_proxy = false;
    std::vector<Copy> copies;
  };
  struct Event {
    const SmemAccess* access = nullptr;
    int role = 0;
    int warp = 0;
    int block_warp = 0;
    int iteration = 0;
    int component = 0;
    std::uint32_t epoch = 0;
    int number = 0;  // its place among the steps of its warp
  };
  struct LastWrite {
    int event = -1;
    int component = 0;
    std::uint32_t epoch = 0;
    int op = 0;
    int iteration = 0;
  };
  struct FencePoint {
    int number = 0;
    std::uint32_t epoch = 0;
    std::uint32_t landings_known = 0;  // of the warp's own copies
  };
  enum class Fault { race, value, fence };
  struct Trace {
    Fault fault = Fault::race;
    int first = -1;   // event: the earlier of a race, else the write that is found; -1: nothing has written
    int second = -1;  // event: the later of a race, else the access that finds it
    bool first_reads = false, second_reads = false;
    int expected = kNothing;
    Range bytes;
  };

  void list_accesses();
  void find_expected_writers();
  void expect(const SmemAccess& access, Copy& copy, const std::vector<int>& last_writer);
  void read(int event, const Copy& copy, const Clock& clock);
  void write(int event, const Copy& copy, const Clock& clock);
  void check_fence(int event, int cell, const LastWrite& last, const Clock& clock);
  // The events in the order that the kernel means: by iteration, then by Kernel::ops.
  bool in_order(const Event& a, const Event& b) const {
    return a.iteration != b.iteration ? a.iteration < b.iteration : a.access->op <= b.access->op;
  }
  // A read of one cell that finds something else than it means.
  struct Miss {
    int found = -1;   // event, -1: nothing has written
    int reader = -1;  // event
    int cell = 0;
    int expected = kNothing;
  };
  using ReadBesideWrite = std::array<int, 5>;  // reader's op, warp, iteration; writer's op (same iteration); cell

  void record_race(int first, bool first_reads, int second, bool second_reads, int cell);
  void add_trace(Fault fault, int first, bool first_reads, int second, bool second_reads, int cell,
                 int expected = kNothing);
  void report_race(const Trace& trace, Findings& findings) const;
  void report_value(const Trace& trace, Findings& findings) const;
  void report_fence(const Trace& trace, Findings& findings) const;
  const Event& event(int i) const { return at(events_, i); }
  OpPlace place(const Event& event) const;
  std::string describe(const Event& event) const;
  std::string tile_name(const SmemAccess& access) const;

  const KernelIndex& index_;
  CellMap cells_;
  std::vector<std::vector<std::vector<std::vector<SmemAccess>>>> accesses_;  // [role][step][warp]
  std::vector<LastWrite> last_write_;                                        // [cell]
  std::vector<std::uint32_t> readers_;  // [cell]: warps of the block that read since the last write
  std::vector<int> last_read_;          // [cell * warps + warp]: event
  std::vector<Event> events_;
  std::vector<int> steps_of_warp_;               // [warp]
  std::vector<std::vector<FencePoint>> fences_;  // [warp]
  std::vector<Miss> misses_;
  std::set<ReadBesideWrite> races_of_reads_;
  std::map<std::vector<int>, std::size_t> known_;  // which traces there are already
  std::vector<Trace> traces_;
  std::int64_t accesses_checked_ = 0;
};

}  // namespace gdr::verifying
