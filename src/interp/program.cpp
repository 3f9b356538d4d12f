#include "interp/program.hpp"

#include "core/error.hpp"
#include "interp/memory.hpp"

namespace gdr::interp {
namespace {

void check_smem(const Kernel& kernel) {
  constexpr int kMbarrierBytes = 8;
  int num = 0;
  for (const Barrier& barrier : kernel.barriers) {
    const bool named = barrier.kind == BarrierKind::named;
    if (barrier.stages <= 0 || barrier.arrivals <= 0 || (named && barrier.arrivals % 32 != 0))
      fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}, barrier {}: {} stages and {} arrivals.", kernel.name,
           barrier.name, barrier.stages, barrier.arrivals);
    num += named ? 0 : barrier.stages;
  }
  const int begin = kernel.barrier_offset_bytes, end = begin + num * kMbarrierBytes;
  if (num > 0 && (begin < 0 || begin % kMbarrierBytes != 0))
    fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}: its mbarriers have no place (offset {}).", kernel.name,
         begin);
  if (num > 0 && end > kernel.smem_bytes)
    fail(ErrorKind::check_failed, "GDR-I12",
         "interp: kernel {}: its mbarriers end at byte {}; the block has {} bytes of shared memory.", kernel.name, end,
         kernel.smem_bytes);
}

void check_list(const Kernel& kernel, const std::vector<Step>& list, Program& program, int role, Section section) {
  std::vector<int> next(kernel.ops.size(), 0);
  for (const Step& step : list) {
    if (step.op < 0 || step.op >= static_cast<int>(kernel.ops.size()))
      fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}, role {}: there is no op number {}.", kernel.name,
           kernel.roles[static_cast<std::size_t>(role)].name, step.op);
    const auto index = static_cast<std::size_t>(step.op);
    const Op& op = kernel.ops[index];
    CompiledOp& compiled = program.ops[index];
    if (compiled.role >= 0 && (compiled.role != role || compiled.section != section))
      malformed(kernel, op, "it stands in more than one list");
    compiled.role = role;
    compiled.section = section;
    if (step.slice_begin != next[index] || step.slice_end <= step.slice_begin || step.slice_end > op.slices)
      malformed(kernel, op,
                fmt::format("slices [{}, {}) do not follow [0, {}) of {}", step.slice_begin, step.slice_end,
                            next[index], op.slices));
    next[index] = step.slice_end;
  }
  for (const Step& step : list)
    if (const auto index = static_cast<std::size_t>(step.op); next[index] != kernel.ops[index].slices)
      malformed(kernel, kernel.ops[index],
                fmt::format("only {} of its {} slices run", next[index], kernel.ops[index].slices));
}

void check_lists(const Kernel& kernel, Program& program) {
  for (std::size_t index = 0; index < kernel.roles.size(); ++index) {
    const Role& role = kernel.roles[index];
    const int at = static_cast<int>(index);
    if (role.warps <= 0)
      fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}, role {}: it has {} warps.", kernel.name, role.name,
           role.warps);
    check_list(kernel, role.prologue, program, at, Section::prologue);
    check_list(kernel, role.body, program, at, Section::body);
    check_list(kernel, role.epilogue, program, at, Section::epilogue);
  }
  for (const CompiledOp& op : program.ops)
    if (op.role < 0) malformed(kernel, *op.op, "it is in no role");
}

void compile_barrier_op(const Kernel& kernel, CompiledOp& op) {
  if (op.section != Section::body) malformed(kernel, *op.op, "prologue and epilogue have no barriers");
  const BarrierKind wanted = op.op->kind == OpKind::sync ? BarrierKind::named : BarrierKind::mbarrier;
  for (std::size_t index = 0; index < kernel.barriers.size(); ++index)
    if (kernel.barriers[index].name == op.op->barrier && kernel.barriers[index].kind == wanted)
      op.barrier = static_cast<int>(index);
  if (op.barrier < 0) malformed(kernel, *op.op, fmt::format("there is no barrier {} of its kind", op.op->barrier));
  if (op.op->distance < 0) malformed(kernel, *op.op, fmt::format("it waits at distance {}", op.op->distance));
}

void compile_op(const Program& program, CompiledOp& op) {
  const Kernel& kernel = *program.kernel;
  switch (op.op->kind) {
    case OpKind::arrive:
    case OpKind::wait:
    case OpKind::sync:
      compile_barrier_op(kernel, op);
      return;
    case OpKind::fence:
      return;
    default:
      break;
  }
  resolve_views(program, op);
  switch (op.op->kind) {
    case OpKind::mma:
      share_out_mma(kernel, op);
      compile_expression(kernel, op);
      return;
    case OpKind::map:
    case OpKind::reduce:
    case OpKind::scan:
      compile_expression(kernel, op);
      break;
    default:
      break;
  }
  share_out(kernel, op);
}

}  // namespace

Program compile(const Plan& plan, const Kernel& kernel, const Launch& launch) {
  Program program;
  program.plan = &plan;
  program.kernel = &kernel;
  program.launch = &launch;
  program.smem_cells = kernel.smem_bytes / kCellBytes;
  program.num_cells = program.smem_cells;
  if (kernel.ops.size() > kMaxOps)
    fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}: {} ops; at most {} are allowed.", kernel.name,
         kernel.ops.size(), kMaxOps);
  check_smem(kernel);
  for (const Tile& tile : kernel.tiles) {
    if (!program.tiles.emplace(tile.name, place_tile(kernel, tile, program.num_cells)).second)
      fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}: two tiles have the name {}.", kernel.name,
           tile.name);
    if (tile.space == Space::reg) program.num_cells += tile.rows * tile.cols;
  }
  program.ops.resize(kernel.ops.size());
  for (std::size_t index = 0; index < kernel.ops.size(); ++index) program.ops[index].op = &kernel.ops[index];
  check_lists(kernel, program);
  for (CompiledOp& op : program.ops) compile_op(program, op);
  find_writers(program);
  return program;
}

}  // namespace gdr::interp
