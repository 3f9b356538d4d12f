#include "draft.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "schedule/expr.hpp"
#include "schedule/layout.hpp"

namespace gdr::testing {
namespace {

template <typename T>
T& named(std::vector<T>& things, std::string T::*field, const std::string& name) {
  const auto found = std::find_if(things.begin(), things.end(), [&](const T& thing) { return thing.*field == name; });
  internal_check(found != things.end(), "test: there is no " + name);
  return *found;
}

std::vector<std::vector<Step>*> lists_of(Kernel& kernel) {
  std::vector<std::vector<Step>*> lists;
  for (Role& role : kernel.roles) lists.insert(lists.end(), {&role.prologue, &role.body, &role.epilogue});
  return lists;
}

int index_of(const Kernel& kernel, const std::string& id) {
  for (std::size_t i = 0; i < kernel.ops.size(); ++i)
    if (kernel.ops[i].id == id) return static_cast<int>(i);
  internal_check(false, "test: there is no op " + id);
  return -1;
}

void move(Plan& plan, const std::string& id, const std::string& other, int shift) {
  Kernel& kernel = kernel_of(plan);
  const int moved = index_of(kernel, id), target = index_of(kernel, other);
  for (std::vector<Step>* list : lists_of(kernel)) {
    const auto is = [](int op) { return [op](const Step& step) { return step.op == op; }; };
    const auto from = std::find_if(list->begin(), list->end(), is(moved));
    if (from == list->end()) continue;
    const Step step = *from;
    list->erase(from);
    const auto to = std::find_if(list->begin(), list->end(), is(target));
    internal_check(to != list->end(), "test: " + other + " is not in the list of " + id);
    list->insert(to + shift, step);
    return;
  }
}

}  // namespace

Arg Arg::t() const {
  Arg arg = *this;
  arg.operand_.transposed = true;
  return arg;
}

Arg Arg::part(int p) const {
  Arg arg = *this;
  arg.operand_.part = p;
  arg.by_part_ = true;
  return arg;
}

Arg Arg::rows(int begin, int end) const {
  Arg arg = *this;
  arg.operand_.rows = {begin, end};
  return arg;
}

Arg Arg::cols(int begin, int end) const {
  Arg arg = *this;
  arg.operand_.cols = {begin, end};
  return arg;
}

Arg Arg::async() const {
  Arg arg = *this;
  arg.operand_.proxy = Proxy::async;
  return arg;
}

Draft::Draft(LoopKind loop) {
  plan_.arch = "test";
  plan_.chunk = 32;
  kernel_.name = kernel_.function = "kernel";
  kernel_.grid = {GridAxis::sequence, GridAxis::v_head};
  if (loop == LoopKind::once) kernel_.grid.push_back(GridAxis::chunk);
  kernel_.loop = loop;
  kernel_.launch_registers = 64;
}

void Draft::tensor(const std::string& name, TensorKind kind, TensorIndex index, int rows, int cols, DType dtype) {
  TensorSpec tensor;
  tensor.name = name;
  tensor.kind = kind;
  tensor.index = index;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.dtype = dtype;
  plan_.tensors.push_back(tensor);
}

void Draft::role(const std::string& name, int warps) {
  Role role;
  role.name = name;
  role.warps = warps;
  role.registers = kernel_.launch_registers;
  kernel_.roles.push_back(role);
}

void Draft::smem(const std::string& name, int rows, int cols, SmemOptions options, DType dtype) {
  Tile tile;
  tile.name = name;
  tile.rows = rows;
  tile.cols = cols;
  tile.dtype = dtype;
  tile.parts = options.parts;
  tile.resident = options.resident;
  tile.stages = options.stages;
  tile.smem = options.lower16 ? lower16_layout(dtype) : swizzled_layout(cols, dtype);
  tile.offset_bytes = options.offset >= 0 ? options.offset : (end_ + 127) / 128 * 128;
  end_ = std::max(end_, tile.offset_bytes + tile_bytes(tile));
  kernel_.tiles.push_back(tile);
}

void Draft::vec(const std::string& name, int length, int partial_rows) {
  smem(name, partial_rows, length, {}, DType::fp32);
  Tile& tile = kernel_.tiles.back();
  tile.smem = vector_layout(length);
  end_ = tile.offset_bytes + tile_bytes(tile);
}

void Draft::acc(const std::string& role, const std::string& name, int rows, int cols, int grid_rows, int grid_cols) {
  Tile tile;
  tile.name = name;
  tile.space = Space::reg;
  tile.rows = rows;
  tile.cols = cols;
  tile.dtype = DType::fp32;
  tile.role = role;
  tile.reg = {RegKind::acc, grid_rows, grid_cols, cols / grid_cols};
  kernel_.tiles.push_back(tile);
}

void Draft::frag(const std::string& role, const std::string& name, int rows, int cols, int grid_rows) {
  acc(role, name, rows, cols, grid_rows, 1);
  kernel_.tiles.back().dtype = DType::bf16;
  kernel_.tiles.back().reg.kind = RegKind::a;
}

void Draft::mbarrier(const std::string& name, int arrivals, int stages) {
  kernel_.barriers.push_back({name, BarrierKind::mbarrier, stages, arrivals, -1, "by hand"});
}

void Draft::meeting(const std::string& name, int id, int threads) {
  kernel_.barriers.push_back({name, BarrierKind::named, 1, threads, id, "by hand"});
}

Operand Draft::resolve(const Arg& arg, Access access, OpKind kind, bool is_first) const {
  Operand operand = arg.operand_;
  operand.access = access;
  const Tile* tile = kernel_.find_tile(operand.name);
  operand.is_tensor =
      (kind == OpKind::copy_in && !is_first) || (kind == OpKind::copy_out && is_first) || tile == nullptr;
  int rows = 0, cols = 0;
  if (operand.is_tensor) {
    rows = plan_.tensor(operand.name).rows, cols = plan_.tensor(operand.name).cols;
  } else {
    rows = tile->rows, cols = tile->cols;
  }
  if (arg.by_part_) {
    const int share = rows / 2;  // all split tiles of the tests have two parts
    operand.rows = {operand.part * share, (operand.part + 1) * share};
    if (operand.is_tensor) operand.part = 0;
  } else if (operand.rows == Range{}) {
    operand.rows = {0, rows};
  }
  if (operand.cols == Range{}) operand.cols = {0, cols};
  return operand;
}

void Draft::add(const std::string& role, Op op) {
  kernel_.ops.push_back(std::move(op));
  Role& r = named(kernel_.roles, &Role::name, role);
  auto& list = section_ == Section::prologue ? r.prologue : section_ == Section::body ? r.body : r.epilogue;
  list.push_back({static_cast<int>(kernel_.ops.size()) - 1, 0, 1});
}

Op& Draft::op(const std::string& role, OpKind kind, const std::string& id, const std::vector<Arg>& args) {
  Op op;
  op.id = id;
  op.kind = kind;
  for (const Arg& arg : args) {
    op.operands.push_back(resolve(arg, op.operands.empty() ? Access::write : Access::read, kind, op.operands.empty()));
    const Operand& operand = op.operands.back();
    if (operand.is_tensor && plan_.tensor(operand.name).index == TensorIndex::token) op.where = Where::row_valid;
  }
  add(role, std::move(op));
  return kernel_.ops.back();
}

Op& Draft::copy_in(const std::string& role, const std::string& id, const Arg& dst, const Arg& src) {
  Op& op = this->op(role, OpKind::copy_in, id, {dst, src});
  op.mechanism = Mechanism::cp_async;
  return op;
}

Op& Draft::copy_out(const std::string& role, const std::string& id, const Arg& dst, const Arg& src) {
  Op& op = this->op(role, OpKind::copy_out, id, {dst, src});
  op.mechanism = Mechanism::plain;
  return op;
}

Op& Draft::mma(const std::string& role, const std::string& id, const Arg& d, const Arg& a, const Arg& b, bool adds) {
  Op& op = this->op(role, OpKind::mma, id, {d, a, b});
  if (adds) op.operands.front().access = Access::accumulate;
  return op;
}

Op& Draft::map(const std::string& role, const std::string& id, const std::string& expr, const std::vector<Arg>& args,
               bool reads_target) {
  Op& op = this->op(role, OpKind::map, id, args);
  op.expr = expr;
  if (reads_target) op.operands.front().access = Access::accumulate;
  return op;
}

Op& Draft::reduce(const std::string& role, const std::string& id, ReduceAxis axis, const std::string& expr,
                  const std::vector<Arg>& args) {
  Op& op = this->op(role, OpKind::reduce, id, args);
  op.axis = axis;
  op.expr = expr;
  return op;
}

void Draft::arrive(const std::string& role, const std::string& barrier, bool after_copies) {
  Op op;
  op.id = barrier + ".arrive." + role;
  op.kind = OpKind::arrive;
  op.barrier = barrier;
  op.after_copies = after_copies;
  add(role, op);
}

void Draft::wait(const std::string& role, const std::string& barrier, int distance) {
  Op op;
  op.id = barrier + ".wait." + role;
  op.kind = OpKind::wait;
  op.barrier = barrier;
  op.distance = distance;
  add(role, op);
}

void Draft::sync(const std::string& role, const std::string& barrier) {
  const auto before =
      std::count_if(kernel_.ops.begin(), kernel_.ops.end(), [&](const Op& op) { return op.barrier == barrier; });
  Op op;
  op.id = barrier + std::to_string(before + 1);
  op.kind = OpKind::sync;
  op.barrier = barrier;
  add(role, op);
}

void Draft::fence(const std::string& role) {
  Op op;
  op.id = "fence." + role;
  op.kind = OpKind::fence;
  add(role, op);
}

Plan Draft::finish() {
  kernel_.barrier_offset_bytes = (end_ + 7) / 8 * 8;
  kernel_.smem_bytes = kernel_.barrier_offset_bytes;
  for (const Barrier& barrier : kernel_.barriers)
    if (barrier.kind == BarrierKind::mbarrier) kernel_.smem_bytes += 8 * barrier.stages;
  plan_.smem_limit_bytes = kernel_.smem_bytes;
  plan_.kernels = {kernel_};
  return plan_;
}

Kernel& kernel_of(Plan& plan) { return plan.kernels.front(); }
Op& op_of(Plan& plan, const std::string& id) { return named(kernel_of(plan).ops, &Op::id, id); }
Tile& tile_of(Plan& plan, const std::string& name) { return named(kernel_of(plan).tiles, &Tile::name, name); }
Barrier& barrier_of(Plan& plan, const std::string& name) {
  return named(kernel_of(plan).barriers, &Barrier::name, name);
}
Role& role_of(Plan& plan, const std::string& name) { return named(kernel_of(plan).roles, &Role::name, name); }

void drop(Plan& plan, const std::string& id) {
  Kernel& kernel = kernel_of(plan);
  const int gone = index_of(kernel, id);
  kernel.ops.erase(kernel.ops.begin() + gone);
  for (std::vector<Step>* list : lists_of(kernel)) {
    std::erase_if(*list, [&](const Step& step) { return step.op == gone; });
    for (Step& step : *list) step.op -= step.op > gone;
  }
}

void move_before(Plan& plan, const std::string& id, const std::string& other) { move(plan, id, other, 0); }
void move_after(Plan& plan, const std::string& id, const std::string& other) { move(plan, id, other, 1); }

void mean_before(Plan& plan, const std::string& id, const std::string& other) {
  Kernel& kernel = kernel_of(plan);
  std::vector<std::string> ids;
  for (const Op& op : kernel.ops) ids.push_back(op.id);
  const Op moved = op_of(plan, id);
  kernel.ops.erase(kernel.ops.begin() + index_of(kernel, id));
  kernel.ops.insert(kernel.ops.begin() + index_of(kernel, other), moved);
  for (std::vector<Step>* list : lists_of(kernel))
    for (Step& step : *list) step.op = index_of(kernel, ids[static_cast<std::size_t>(step.op)]);
}

}  // namespace gdr::testing
