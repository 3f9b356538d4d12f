// Runs a Plan on a host, block by block and warp by warp: the meaning of a Schedule. Warps advance in any order that
// the plan's barriers allow, copies land as late as they may, memory holds poison until it is written. Every value
// carries the operation and iteration that wrote it, so that a read which sees anything but what running
// Kernel::ops one by one would have left there is a fault, named with kernel, block, role, warp, op, iteration, tile
// and bytes. Same plan, tensors and options: same bytes out, on any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// Contiguous, last dimension fastest. Shapes by TensorIndex, with N sequences and all their chunks in order:
//   token     [tokens, heads, cols]          (batch and time flattened)
//   chunk     [chunks, heads, rows, cols]    (lower16: [chunks, heads, 16 blocks, 16], the stored blocks one by one)
//   sequence  [N, heads, rows, cols]         (lower16 likewise)
struct HostTensor {
  DType dtype = DType::fp32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct LaunchShape {
  int k_heads = 1;
  int v_heads = 1;                                               // a multiple of k_heads
  std::vector<std::pair<std::int64_t, std::int64_t>> sequences;  // tokens [begin, end) of each; may be empty
  std::int64_t tokens = 0;                                       // of the token tensors
  double scale = 1;
};

// The next warp to run, among those that can: any; in turn; of one role (chosen by the seed) whenever possible, or
// only when nothing else can run; by random priorities that change now and then.
enum class Order { random, round_robin, role_ahead, role_behind, priorities };
// When asynchronous copies land: when nothing else can run; at random; at once.
enum class Landing { late, random, early };

// What an observer sees: one warp has just executed one step (a copy_in: it has just landed).
class StepView {
 public:
  int kernel = 0;                   // index in Plan::kernels
  std::vector<std::int64_t> block;  // position on each axis of Kernel::grid
  std::int64_t iteration = 0;       // -1 in the prologue, the iteration count in the epilogue
  int op = 0;                       // index in Kernel::ops
  int warp = 0;                     // of its role
  int slice_begin = 0, slice_end = 1;

  // Element (row, col) of a tile of the kernel, in this iteration's stage. NaN if nothing wrote it yet.
  double value(const std::string& tile, int row, int col) const { return value_(tile, row, col); }

  using Read = std::function<double(const std::string&, int, int)>;
  explicit StepView(Read read) : value_(std::move(read)) {}

 private:
  Read value_;
};

struct InterpOptions {
  std::uint64_t seed = 1;
  Order order = Order::random;
  Landing landing = Landing::late;
  // Look for faults. Off: only deadlocks are reported, and poison is NaN that spreads.
  bool check = true;
  // Everything in float64 and nothing rounded: shows the mathematics of a plan without its rounding. Inputs may then
  // be fp64 whatever the plan says; outputs and workspace come back as fp64.
  bool exact = false;
  int threads = 1;  // blocks run on so many host threads; an observer needs 1
  std::function<void(const StepView&)> observer;
};

struct Traffic {
  std::int64_t read_bytes = 0;  // by copy_in and load; rows filled with zeros do not count
  std::int64_t written_bytes = 0;
  bool operator==(const Traffic&) const = default;
};

struct KernelStatistics {
  std::string name;
  std::int64_t blocks = 0;
  std::int64_t iterations = 0;             // of all blocks
  std::int64_t steps = 0;                  // executed by all warps
  std::map<std::string, Traffic> traffic;  // by tensor; tensors that the kernel does not touch are absent
};

struct InterpResult {
  std::vector<KernelStatistics> kernels;  // in launch order
};

// Runs all kernels of the plan in order.
//   tensors   in: every input that is not optional, and the optional tensors (inputs and outputs) that the launch has;
//             what an optional output holds is ignored. out: all present tensors; output rows that belong to no
//             sequence are zero.
// Throws Error:
//   config GDR-I01   a tensor or the launch shape does not fit the plan
//   check_failed     GDR-I02 the plan cannot be run (unplaced tile, operands that do not fit their op ...)
//                    GDR-I03 deadlock: who waits for what
//                    GDR-I04 read of shared memory that was never written   GDR-I05 read of bytes in flight
//                    GDR-I06 read of what another op, part or iteration wrote   GDR-I07 write to bytes in flight
//                    GDR-I08 read of a register that was never written
//                    GDR-I09 read of tensor elements not written yet, or written by the same kernel
//                    GDR-I10 tensor element written twice   GDR-I11 output element never written
//                    GDR-I12 access outside a tile, the block's shared memory, a tensor or the valid rows
//                    GDR-I13 a barrier's arrival or wait falls into another phase than its own
InterpResult interpret(const Plan& plan, const LaunchShape& shape, std::map<std::string, HostTensor>& tensors,
                       const InterpOptions& options);

}  // namespace gdr
