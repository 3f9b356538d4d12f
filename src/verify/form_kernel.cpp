#include <algorithm>
#include <set>

#include "core/dtype.hpp"
#include "schedule/names.hpp"
#include "verify/form.hpp"

namespace gdr::verifying {
namespace {

constexpr int kMaxTiles = 256;               // of a kernel: together with the next two, bounds what a proof costs
constexpr int kMaxExtent = 4096;             // rows or columns of a tile: keeps every byte count far from overflow
constexpr int kMaxElements = 1 << 18;        // of a tile
constexpr int kMaxStages = 8;                // copies of a tile or barrier; bounds how long the runs must be
constexpr int kMaxDistance = 64;             // of a wait
constexpr int kMaxThreads = 1024;            // of a block, every compute capability
constexpr int kRegistersPerSm = 65536;       // of 32 bits, every compute capability from 8.0 on
constexpr int kMaxRegisters = 256;           // a thread has at most 255; registers are granted in eights
constexpr int kMinRegisters = 24;            // the least that setmaxnreg takes (PTX ISA, setmaxnreg)
constexpr int kWarpgroup = 4;                // warps
constexpr int kBlock = 16;                   // of triangular tiles
constexpr int kMaxArrivals = (1 << 20) - 1;  // PTX ISA, mbarrier: range of the pending count

class KernelForm {
 public:
  KernelForm(const KernelIndex& index, Findings& findings) : index_(index), kernel_(*index.kernel), out_(findings) {}

  void check() {
    if (count_of(kernel_.tiles) > kMaxTiles)
      out_.add("GDR-V03", "the kernel has {} tiles; at most {} are allowed", kernel_.tiles.size(), kMaxTiles);
    for (const Tile& tile : kernel_.tiles) check_tile(tile);
    check_roles();
    check_steps();
    check_barriers();
  }

 private:
  void check_tile(const Tile& tile) {
    const auto bad = [&](const char* code, const std::string& what) {
      out_.add(code, "tile {} {}", tile.name, what).tile = tile.name;
    };
    if (tile.rows < 1 || tile.cols < 1 || tile.rows > kMaxExtent || tile.cols > kMaxExtent ||
        tile.rows * tile.cols > kMaxElements)
      return bad("GDR-V03", fmt::format("is {} x {}; rows and columns must be 1 to {}, elements at most {}", tile.rows,
                                        tile.cols, kMaxExtent, kMaxElements));
    if (tile.dtype != DType::bf16 && tile.dtype != DType::fp16 && tile.dtype != DType::fp32)
      return bad("GDR-V03", fmt::format("has elements of {}; bf16, fp16 and fp32 are allowed", to_string(tile.dtype)));
    if (tile.space == Space::smem) return check_smem_tile(tile);
    if (tile.parts != 1 || tile.resident != 1 || tile.stages != 1)
      return bad("GDR-V04", "is in registers and has parts or stages");
    const auto role =
        std::find_if(kernel_.roles.begin(), kernel_.roles.end(), [&](const Role& r) { return r.name == tile.role; });
    const RegLayout& reg = tile.reg;
    if (reg.grid_rows < 1 || reg.grid_cols < 1 || reg.grid_rows > kMaxExtent || reg.grid_cols > kMaxExtent ||
        reg.grid_rows * reg.grid_cols != role->warps)
      return bad("GDR-V04", fmt::format("has warp grid {} x {}; role {} has {} warps", reg.grid_rows, reg.grid_cols,
                                        role->name, role->warps));
    if (tile.rows % reg.grid_rows != 0 || reg.deal_cols < 1 || reg.deal_cols > tile.cols ||
        tile.cols % (reg.grid_cols * reg.deal_cols) != 0)
      return bad("GDR-V04",
                 fmt::format("of {} x {} cannot be dealt evenly: {} grid rows, {} grid columns in runs of {}",
                             tile.rows, tile.cols, reg.grid_rows, reg.grid_cols, reg.deal_cols));
    if ((reg.kind == RegKind::acc) != (tile.dtype == DType::fp32))
      bad("GDR-V04",
          fmt::format("has elements of {}; accumulators are fp32, A fragments bf16 or fp16", to_string(tile.dtype)));
  }

  void check_smem_tile(const Tile& tile) {
    const auto bad = [&](const std::string& what) {
      out_.add("GDR-V03", "tile {} {}", tile.name, what).tile = tile.name;
    };
    if (tile.parts < 1 || tile.parts > tile.rows || tile.rows % tile.parts != 0)
      return bad(fmt::format("of {} rows has {} parts; they must be equal", tile.rows, tile.parts));
    if (tile.resident < 1 || tile.resident > tile.parts)
      return bad(fmt::format("keeps {} of {} parts resident", tile.resident, tile.parts));
    if (tile.stages < 1 || tile.stages > kMaxStages)
      return bad(fmt::format("has {} stages; 1 to {} are allowed", tile.stages, kMaxStages));
    if (tile.smem.panel_cols < 1 || tile.smem.panel_cols > kMaxExtent || tile.smem.xor_mask < 0 ||
        tile.smem.xor_mask > kMaxExtent || tile.smem.xor_shift < 0 || tile.smem.xor_shift > 30)
      return bad(fmt::format("has layout panel {}, xor mask {}, xor shift {}", tile.smem.panel_cols, tile.smem.xor_mask,
                             tile.smem.xor_shift));
    if (tile.smem.lower16 &&
        (tile.rows != tile.cols || tile.rows % kBlock != 0 || tile.parts != 1 || tile.smem.panel_cols != kBlock))
      return bad(fmt::format("of {} x {} in {} parts cannot be kept as its lower 16 x 16 blocks", tile.rows, tile.cols,
                             tile.parts));
  }

  void check_roles() {
    if (kernel_.blocks_per_sm < 1 || kernel_.blocks_per_sm > 32) {
      out_.add("GDR-V09", "{} blocks on an SM; 1 to 32 are allowed", kernel_.blocks_per_sm);
      return;
    }
    std::int64_t warps = 0, sum = 0;
    int in_warpgroup = 0;
    for (const Role& role : kernel_.roles) {
      if (role.warps < 1 || role.warps > kMaxThreads / 32) {
        out_.add("GDR-V09", "role {} has {} warps; 1 to {} are allowed", role.name, role.warps, kMaxThreads / 32);
        return;
      }
      if (role.registers < kMinRegisters || role.registers > kMaxRegisters || role.registers % 8 != 0) {
        out_.add("GDR-V09", "role {} has {} registers a thread; {} to {} in eights are allowed", role.name,
                 role.registers, kMinRegisters, kMaxRegisters);
        return;
      }
      // setmaxnreg is one instruction of a whole warpgroup.
      if (kernel_.setmaxnreg && warps % kWarpgroup != 0 && role.registers != in_warpgroup)
        out_.add("GDR-V09", "role {} has {} registers a thread and shares a warpgroup with a role that has {}",
                 role.name, role.registers, in_warpgroup);
      in_warpgroup = role.registers;
      warps += role.warps;
      if (!kernel_.setmaxnreg && role.registers != kernel_.launch_registers)
        out_.add("GDR-V09", "role {} has {} registers a thread, but without setmaxnreg it keeps the {} it starts with",
                 role.name, role.registers, kernel_.launch_registers);
      sum += role.warps * 32 * role.registers;
    }
    if (warps < 1 || warps * 32 > kMaxThreads)
      out_.add("GDR-V09", "the block has {} threads; 32 to {} are allowed", warps * 32, kMaxThreads);
    if (kernel_.launch_registers < kMinRegisters || kernel_.launch_registers > kMaxRegisters ||
        kernel_.launch_registers % 8 != 0)
      out_.add("GDR-V09", "a thread starts with {} registers; {} to {} in eights are allowed", kernel_.launch_registers,
               kMinRegisters, kMaxRegisters);
    // What one role takes, another must have given back: else it waits for ever.
    if (kernel_.setmaxnreg && sum > warps * 32 * kernel_.launch_registers)
      out_.add("GDR-V09", "the roles want {} registers, the block starts with {}", sum,
               warps * 32 * kernel_.launch_registers);
    if (kernel_.setmaxnreg && warps % kWarpgroup != 0)
      out_.add("GDR-V09", "the block has {} warps; setmaxnreg works on whole warpgroups of {}", warps, kWarpgroup);
    sum = std::max(sum, warps * 32 * kernel_.launch_registers);
    if (sum * kernel_.blocks_per_sm > kRegistersPerSm)
      out_.add("GDR-V09", "{} block(s) of {} registers need {} of the {} registers of an SM: {} too many",
               kernel_.blocks_per_sm, sum, sum * kernel_.blocks_per_sm, kRegistersPerSm,
               sum * kernel_.blocks_per_sm - kRegistersPerSm);
  }

  // Each list goes through the slices of each of its ops once and in order.
  void check_steps() {
    for (const Op& op : kernel_.ops)
      if (op.slices < 1 || (op.slices != 1 && op.kind != OpKind::mma))
        out_.add("GDR-V05", "op `{}` ({}) has {} slices; only mma can have more than one", op.id, to_string(op.kind),
                 op.slices);
    std::vector<int> next_slice(kernel_.ops.size(), 0);
    for (const Role& role : kernel_.roles)
      for (const Section section : {Section::prologue, Section::body, Section::epilogue})
        for (const Step& step : steps_of(role, section)) {
          const Op& op = at(kernel_.ops, step.op);
          int& next = at(next_slice, step.op);
          if (step.slice_begin != next || step.slice_end <= step.slice_begin || step.slice_end > op.slices)
            out_.add("GDR-V05", "role {} runs slices {} to {} of op `{}`, where {} of its {} slices are done",
                     role.name, step.slice_begin, step.slice_end, op.id, next, op.slices);
          next = std::max(next, std::min(step.slice_end, op.slices));
          if (section != Section::body) check_outside_loop(role, step.op);
        }
    for (int i = 0; i < count_of(kernel_.ops); ++i)
      if (at(next_slice, i) < at(kernel_.ops, i).slices)
        out_.add("GDR-V05", "op `{}` stops after {} of {} slices", at(kernel_.ops, i).id, at(next_slice, i),
                 at(kernel_.ops, i).slices);
  }

  // Shared memory belongs to iterations; what stands outside the loop has none.
  void check_outside_loop(const Role& role, int i) {
    const Op& op = index_.op(i);
    bool touches_smem = false;
    for (int k = 0; k < count_of(op.operands); ++k) touches_smem |= index_.is_smem(i, k);
    const bool is_sync =
        op.kind == OpKind::arrive || op.kind == OpKind::wait || op.kind == OpKind::sync || op.kind == OpKind::fence;
    if (touches_smem || is_sync)
      out_.add("GDR-V05",
               "op `{}` ({}) stands in the prologue or epilogue of role {}; only registers and tensors may "
               "be used there",
               op.id, to_string(op.kind), role.name);
  }

  void check_barriers() {
    std::set<int> ids;
    for (int b = 0; b < count_of(kernel_.barriers); ++b) {
      const Barrier& barrier = at(kernel_.barriers, b);
      const auto bad = [&](const std::string& what) {
        out_.add("GDR-V08", "barrier {} {}", barrier.name, what).remedy = "";
      };
      if (barrier.stages < 1 || barrier.stages > kMaxStages)
        bad(fmt::format("has {} stages; 1 to {} are allowed", barrier.stages, kMaxStages));
      if (barrier.kind == BarrierKind::named) {
        if (barrier.id < 1 || barrier.id > 15) bad(fmt::format("has hardware id {}; 1 to 15 are allowed", barrier.id));
        if (!ids.insert(barrier.id).second) bad(fmt::format("has hardware id {}, which another one has", barrier.id));
        if (barrier.stages != 1) bad("is a named barrier and has stages");
        check_named(b, barrier);
      } else {
        check_mbarrier(b, barrier);
      }
    }
    for (int i = 0; i < count_of(kernel_.ops); ++i) check_barrier_op(i);
  }

  void check_barrier_op(int i) {
    const Op& op = index_.op(i);
    const int b = at(index_.ops, i).barrier;
    const bool is_sync = op.kind == OpKind::sync;
    if (b >= 0 && (at(kernel_.barriers, b).kind == BarrierKind::named) != is_sync)
      out_.add("GDR-V08", "op `{}` ({}) works on {} barrier {}; sync takes named barriers, arrive and wait mbarriers",
               op.id, to_string(op.kind), to_string(at(kernel_.barriers, b).kind), op.barrier);
    if (op.distance < 0 || op.distance > kMaxDistance || (op.distance != 0 && op.kind != OpKind::wait))
      out_.add("GDR-V08", "op `{}` ({}) has distance {}; only wait has one, 0 to {}", op.id, to_string(op.kind),
               op.distance, kMaxDistance);
    if (op.after_copies && op.kind != OpKind::arrive)
      out_.add("GDR-V08", "op `{}` ({}) has after_copies, which only arrive can have", op.id, to_string(op.kind));
    if (b < 0 && !op.barrier.empty())
      out_.add("GDR-V08", "op `{}` ({}) names barrier {} and does nothing with it", op.id, to_string(op.kind),
               op.barrier);
  }

  // A named barrier joins the warps of one role; its hardware count is their threads.
  void check_named(int b, const Barrier& barrier) {
    int role = -1;
    for (const OpIndex& op : index_.ops) {
      if (op.barrier != b) continue;
      if (role >= 0 && op.role != role) {
        out_.add("GDR-V08", "barrier {} is used by roles {} and {}; a named barrier joins the warps of one role",
                 barrier.name, index_.role(role).name, index_.role(op.role).name);
        return;
      }
      role = op.role;
    }
    if (role >= 0 && barrier.arrivals != 32 * index_.role(role).warps)
      out_.add("GDR-V08", "barrier {} counts {} threads; role {} has {} warps, {} threads", barrier.name,
               barrier.arrivals, index_.role(role).name, index_.role(role).warps, 32 * index_.role(role).warps);
  }

  void check_mbarrier(int b, const Barrier& barrier) {
    int arriving = 0;
    std::string who;
    for (int i = 0; i < count_of(kernel_.ops); ++i) {
      if (at(index_.ops, i).barrier != b || index_.op(i).kind != OpKind::arrive) continue;
      const Role& role = index_.role_of(i);
      arriving += role.warps;
      who += fmt::format("{}{} warp(s) of role {} at `{}`", who.empty() ? "" : ", ", role.warps, role.name,
                         index_.op(i).id);
    }
    if (barrier.arrivals == arriving && arriving >= 1 && arriving <= kMaxArrivals) return;
    const char* effect = barrier.arrivals > arriving ? "the phase never completes, its waiters never go on"
                                                     : "the phase completes before all have arrived";
    out_.add("GDR-V08", "barrier {} expects {} arrivals a phase, {} warps arrive ({}): {}", barrier.name,
             barrier.arrivals, arriving, who.empty() ? "no op arrives on it" : who, effect);
  }

  const KernelIndex& index_;
  const Kernel& kernel_;
  Findings& out_;
};

}  // namespace

void check_kernel_form(const KernelIndex& index, Findings& findings) { KernelForm(index, findings).check(); }

}  // namespace gdr::verifying
