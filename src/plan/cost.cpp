#include "plan/cost.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "plan/footprint.hpp"
#include "schedule/expr.hpp"
#include "schedule/layout.hpp"

namespace gdr {
namespace {

// In cycles of the SM clock, read off time stamps around every operation of the fused kernels on an H200; code that
// runs once an iteration comes from the instruction caches' second level, which is most of what an operation costs
// beyond its elements. They only weigh one plan against another.
constexpr double kMemoryLatency = 700;
constexpr double kBarrierLatency = 40;
constexpr double kMmaStep = 80;          // a 16-deep step of a warp's products: operands, then
constexpr double kMmaStepProduct = 18;   // each 16 x 8 block of d;
constexpr double kRegisterMmaStep = 15;  // the same where one operand is in registers
constexpr double kRegisterMmaProduct = 8;
constexpr double kOpOverhead = 100;      // addresses, code, first latency
constexpr double kReduceOverhead = 400;  // the same with the shuffles of its sums
constexpr double kElementFactor = 2;     // to what the lanes alone would take
constexpr double kIssueLanes = 128;      // fp32 lanes of an SM
constexpr double kExpCost = 4;           // special-function units are a quarter as wide
constexpr int kBlock = 16;

double expr_cost(const Expr& expr) {
  double cost = expr.kind == ExprKind::call && expr.name == "exp" ? kExpCost : expr.arguments.empty() ? 0.5 : 1;
  for (const Expr& argument : expr.arguments) cost += expr_cost(argument);
  return cost;
}

// Is block (row, col) of the matrix that the operation sees above the diagonal of the masked tile?
bool is_above_diagonal(const Operand& operand, Mask mask, int row, int col) {
  if (mask == Mask::none) return false;
  if (operand.transposed) std::swap(row, col);
  return operand.cols.begin / kBlock + col > operand.rows.begin / kBlock + row;
}

// Of the products of 16 x 16 blocks those that a mask leaves out are not done.
std::int64_t mma_flops(const Op& op) {
  const Operand &d = op.operands[0], &a = op.operands[1], &b = op.operands[2];
  const int depth = a.transposed ? a.rows.size() : a.cols.size();
  if (op.mask_d == Mask::none && op.mask_a == Mask::none && op.mask_b == Mask::none)
    return std::int64_t{2} * d.rows.size() * d.cols.size() * depth;
  std::int64_t products = 0;
  for (int i = 0; i < d.rows.size() / kBlock; ++i)
    for (int j = 0; j < d.cols.size() / kBlock; ++j) {
      if (is_above_diagonal(d, op.mask_d, i, j)) continue;
      for (int l = 0; l < depth / kBlock; ++l)
        products += !is_above_diagonal(a, op.mask_a, i, l) && !is_above_diagonal(b, op.mask_b, l, j);
    }
  return products * 2 * kBlock * kBlock * kBlock;
}

// Bytes of one operand in global memory: a whole rectangle, or its lower blocks.
std::int64_t tensor_bytes(const TensorSpec& tensor, const Operand& operand) {
  const std::int64_t n = operand.rows.size() / kBlock;
  const std::int64_t elements = tensor.order == GlobalOrder::lower16
                                    ? n * (n + 1) / 2 * kBlock * kBlock
                                    : std::int64_t{operand.rows.size()} * operand.cols.size();
  return elements * static_cast<std::int64_t>(size_bytes(tensor.dtype));
}

class Walk {
 public:
  Walk(const Plan& plan, const Kernel& kernel, const Arch& arch, double busy_sms)
      : plan_(plan), kernel_(kernel), arch_(arch), clocks_(kernel.roles.size()) {
    const double clock = arch.rates.sm_clock_mhz * 1e6;
    memory_bytes_per_cycle_ = static_cast<double>(arch.rates.hbm_bytes_per_second) / clock / busy_sms;
    events_.resize(kernel.barriers.size());
    const std::vector<Footprint> touched = footprints(kernel);
    for (std::size_t i = 0; i < kernel.ops.size(); ++i) timed_.push_back(timed(kernel.ops[i], touched[i]));
  }

  // Cycles of one iteration once the pipeline is full.
  double cycles_per_iteration() {
    constexpr int kWarmUp = 4, kMeasured = 4;
    double begin = 0;
    for (int i = 0; i < kWarmUp + kMeasured; ++i) {
      if (i == kWarmUp) begin = latest();
      iterate(i);
    }
    return (latest() - begin) / kMeasured;
  }

  // Cycles of a kernel whose body runs once.
  double cycles_once() {
    iterate(0);
    return latest();
  }

 private:
  struct Clock {
    double issue = 0;   // when the role's next operation may start
    double landed = 0;  // when its copies so far have landed
  };

  // What an operation takes, the same in every iteration.
  struct Timed {
    int role = -1;                                            // -1: not in the loop body
    int barrier = -1;                                         // of arrive and wait, index in Kernel::barriers
    double smem_cycles = 0, mma_cycles = 0, copy_cycles = 0;  // on the shared-memory port, matrix units, memory bus
    double cycles = 0;                                        // of its role
  };

  double latest() const {
    double time = 0;
    for (const Clock& clock : clocks_) time = std::max({time, clock.issue, clock.landed});
    return time;
  }

  // Canonical order is a legal order, so each wait looks at an event that has been timed already.
  void iterate(int iteration) {
    for (auto& event : events_) event.push_back(0);
    for (std::size_t i = 0; i < kernel_.ops.size(); ++i)
      if (timed_[i].role >= 0) run(kernel_.ops[i], timed_[i], iteration);
  }

  void run(const Op& op, const Timed& timed, int iteration) {
    Clock& clock = clocks_[static_cast<std::size_t>(timed.role)];
    const auto event = [&](int of) -> double& {
      return events_[static_cast<std::size_t>(timed.barrier)][static_cast<std::size_t>(of)];
    };
    switch (op.kind) {
      case OpKind::wait:
        if (op.distance <= iteration)
          clock.issue = std::max(clock.issue, event(iteration - op.distance) + kBarrierLatency);
        return;
      case OpKind::arrive:
        event(iteration) =
            std::max(event(iteration), op.after_copies ? std::max(clock.issue, clock.landed) : clock.issue);
        return;
      case OpKind::copy_in:
        memory_free_ = std::max(clock.issue, memory_free_) + timed.copy_cycles;
        clock.landed = std::max(clock.landed, memory_free_ + kMemoryLatency);
        clock.issue += timed.cycles;
        return;
      default:
        break;
    }
    double start = clock.issue;
    const auto occupy = [&](double& free, double cycles) {
      if (cycles <= 0) return;
      start = std::max(start, free);
      free = start + cycles;
    };
    occupy(smem_free_, timed.smem_cycles);
    occupy(mma_free_, timed.mma_cycles);
    clock.issue = start + timed.cycles;
  }

  Timed timed(const Op& op, const Footprint& footprint) const {
    Timed timed;
    timed.role = footprint.role;
    if (timed.role < 0) return timed;
    const Role& role = kernel_.roles[static_cast<std::size_t>(timed.role)];
    switch (op.kind) {
      case OpKind::wait:
      case OpKind::arrive:
        for (std::size_t b = 0; b < kernel_.barriers.size(); ++b)
          if (kernel_.barriers[b].name == op.barrier) timed.barrier = static_cast<int>(b);
        return timed;
      case OpKind::sync:
        timed.cycles = kBarrierLatency;
        return timed;
      case OpKind::copy_in:
        timed.copy_cycles = global_bytes(op) / memory_bytes_per_cycle_;
        timed.cycles = global_bytes(op) / 16 / (role.warps * 32) * 4;
        return timed;
      default:
        break;
    }
    timed.smem_cycles = smem_bytes(op, footprint) / arch_.rates.smem_bytes_per_clock_per_sm;
    if (op.kind == OpKind::mma) {
      timed.mma_cycles = static_cast<double>(mma_flops(op)) / arch_.rates.bf16_mma_flops_per_clock_per_sm;
      timed.cycles = std::max({timed.smem_cycles, timed.mma_cycles, mma_step_cycles(op, role)});
    } else {
      timed.cycles = std::max(timed.smem_cycles, kElementFactor * element_cycles(op, role)) +
                     (op.kind == OpKind::reduce || op.kind == OpKind::scan ? kReduceOverhead : kOpOverhead);
      if (op.kind == OpKind::load && touches_tensor(op)) timed.cycles += kMemoryLatency;
    }
    return timed;
  }

  // A warp's own time: it waits for the operands of each step.
  double mma_step_cycles(const Op& op, const Role& role) const {
    const Operand& a = op.operands[1];
    const double depth = a.transposed ? a.rows.size() : a.cols.size();
    const double products = std::ceil(static_cast<double>(mma_flops(op)) / (2.0 * 16 * 8 * depth * role.warps));
    const bool in_registers = kernel_.tile(a.name).space == Space::reg;
    return depth / kBlock *
           (in_registers ? kRegisterMmaStep + kRegisterMmaProduct * products : kMmaStep + kMmaStepProduct * products);
  }

  double element_cycles(const Op& op, const Role& role) const {
    const Operand& shape = op.kind == OpKind::reduce ? op.operands[1] : op.operands[0];
    const double elements = static_cast<double>(shape.rows.size()) * shape.cols.size();
    const double each = op.expr.empty() ? 1 : expr_cost(parse_assignment(op.expr).value);
    return elements * each / std::min(kIssueLanes, role.warps * 32.0);
  }

  static bool touches_tensor(const Op& op) {
    return std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& o) { return o.is_tensor; });
  }

  double global_bytes(const Op& op) const {
    double bytes = 0;
    for (const Operand& operand : op.operands)
      if (operand.is_tensor) bytes += static_cast<double>(tensor_bytes(plan_.tensor(operand.name), operand));
    return bytes;
  }

  // Matrix operands pass the port once for each warp that reads them.
  double smem_bytes(const Op& op, const Footprint& footprint) const {
    double cells = 0;
    for (const CellUse& use : footprint.uses)
      cells += op.kind == OpKind::mma ? __builtin_popcount(use.readers) : (use.readers ? 1 : 0) + (use.writers ? 1 : 0);
    return cells * kCellBytes;
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const Arch& arch_;
  double memory_bytes_per_cycle_ = 1;
  std::vector<Timed> timed_;                 // by operation
  std::vector<Clock> clocks_;                // by role
  std::vector<std::vector<double>> events_;  // [barrier][iteration]
  double memory_free_ = 0, smem_free_ = 0, mma_free_ = 0;
};

struct Work {
  std::int64_t blocks = 1;
  std::int64_t iterations = 1;  // of each block
};

Work work_of(const Plan& plan, const Kernel& kernel, const Shape& shape) {
  Work work;
  const std::int64_t per_sequence = (shape.tokens / shape.sequences + plan.chunk - 1) / plan.chunk;
  work.blocks =
      plan.num_blocks(kernel, {shape.sequences, shape.sequences * per_sequence, shape.k_heads, shape.v_heads});
  if (kernel.loop != LoopKind::once) work.iterations = per_sequence;
  return work;
}

bool runs_over(const Kernel& kernel, GridAxis axis) {
  return std::find(kernel.grid.begin(), kernel.grid.end(), axis) != kernel.grid.end();
}

}  // namespace

KernelCost kernel_cost(const Plan& plan, const Kernel& kernel, const Arch& arch, const Shape& shape) {
  KernelCost cost;
  const Work work = work_of(plan, kernel, shape);
  cost.blocks = work.blocks;
  const std::int64_t bodies = work.blocks * work.iterations;
  const auto count = [&](const std::vector<Step>& list, std::int64_t times) {
    for (const Step& step : list) {
      const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
      if (op.kind == OpKind::mma) cost.flops += mma_flops(op) * times;
      for (const Operand& operand : op.operands) {
        if (!operand.is_tensor) continue;
        const TensorSpec& tensor = plan.tensor(operand.name);
        const std::int64_t bytes = tensor_bytes(tensor, operand) * times;
        cost.global_bytes += bytes;
        // v-heads of a group read the same q and k at about the same time; slices of V the same k, q and a.
        std::int64_t sharers = 1;
        if (operand.access == Access::read) {
          if (tensor.heads == HeadAxis::k_head && runs_over(kernel, GridAxis::v_head)) sharers *= shape.group();
          if (!operand.v_sliced && kernel.v_slice_cols > 0 && runs_over(kernel, GridAxis::v_slice))
            sharers *= shape.head_dim_v / kernel.v_slice_cols;
        }
        cost.hbm_bytes += bytes / sharers;
        if (tensor.kind == TensorKind::workspace) cost.workspace_bytes += bytes / sharers;
      }
    }
  };
  for (const Role& role : kernel.roles) {
    count(role.prologue, work.blocks);
    count(role.body, bodies);
    count(role.epilogue, work.blocks);
  }

  const double slots = static_cast<double>(arch.rates.num_sms) * kernel.blocks_per_sm;
  const double busy = std::min(slots, static_cast<double>(work.blocks));
  const double busy_sms = std::min(static_cast<double>(arch.rates.num_sms), static_cast<double>(work.blocks));
  const double clock = arch.rates.sm_clock_mhz * 1e6;
  const double compute_us =
      static_cast<double>(cost.flops) / (busy_sms * arch.rates.bf16_mma_flops_per_clock_per_sm * clock) * 1e6;
  const double memory_us =
      static_cast<double>(cost.hbm_bytes) / static_cast<double>(arch.rates.hbm_bytes_per_second) * 1e6;
  cost.floor_us = std::max(compute_us, memory_us);
  Walk walk(plan, kernel, arch, busy_sms);
  cost.cycles_per_iteration = kernel.loop == LoopKind::once ? walk.cycles_once() : walk.cycles_per_iteration();
  const double waves = std::ceil(static_cast<double>(work.blocks) / busy);
  // Blocks that share an SM overlap their latencies but not the units that bound the floor.
  cost.predicted_us =
      std::max(cost.floor_us, waves * static_cast<double>(work.iterations) * cost.cycles_per_iteration / clock * 1e6);
  return cost;
}

}  // namespace gdr
