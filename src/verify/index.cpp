#include "verify/index.hpp"

#include <map>

#include "core/error.hpp"

namespace gdr::verifying {
namespace {

template <typename T>
std::map<std::string, int> names_of(const std::vector<T>& things, std::string T::*name, const char* kind,
                                    Findings& findings) {
  std::map<std::string, int> names;
  for (int i = 0; i < count_of(things); ++i) {
    const std::string& own = at(things, i).*name;
    if (own.empty()) findings.add("GDR-V01", "{} number {} has no name", kind, i);
    if (!names.emplace(own, i).second) findings.add("GDR-V01", "two {}s are called `{}`", kind, own);
  }
  return names;
}

int find(const std::map<std::string, int>& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? -1 : found->second;
}

void find_roles_of_ops(KernelIndex& index, Findings& findings) {
  const Kernel& kernel = *index.kernel;
  for (int r = 0; r < count_of(kernel.roles); ++r) {
    const Role& role = at(kernel.roles, r);
    for (const Section section : {Section::prologue, Section::body, Section::epilogue})
      for (const Step& step : steps_of(role, section)) {
        if (step.op < 0 || step.op >= count_of(kernel.ops)) {
          findings.add("GDR-V05", "role {} lists op number {}; the kernel has {} ops", role.name, step.op,
                       kernel.ops.size());
          continue;
        }
        OpIndex& op = at(index.ops, step.op);
        if (op.role >= 0 && (op.role != r || op.section != section))
          findings.add("GDR-V05", "op `{}` stands in two lists (roles {} and {})", at(kernel.ops, step.op).id,
                       at(kernel.roles, op.role).name, role.name);
        op.role = r;
        op.section = section;
      }
  }
  for (int i = 0; i < count_of(kernel.ops); ++i)
    if (at(index.ops, i).role < 0) findings.add("GDR-V05", "op `{}` stands in no role's list", at(kernel.ops, i).id);
}

void parse(const Op& op, OpIndex& entry, Findings& findings) {
  const bool assigns = op.kind == OpKind::map || op.kind == OpKind::reduce || op.kind == OpKind::scan;
  try {
    if (assigns) {
      const Assignment assignment = parse_assignment(op.expr);
      entry.target = assignment.target;
      entry.target_index = assignment.index;
      entry.expr = assignment.value;
    } else if (op.kind == OpKind::mma && !op.scale_expr.empty()) {
      entry.expr = parse_expr(op.scale_expr);
    }
  } catch (const Error& error) {
    findings.add("GDR-V06", "op `{}`: {}", op.id, error.what()).a = {op.id, "", -1, -1};
  }
  if (entry.expr) entry.uses = elements_of(*entry.expr);
}

}  // namespace

const Tile* KernelIndex::tile(int op, int operand) const {
  const int i = at(at(ops, op).operands, operand).tile;
  return i < 0 ? nullptr : &at(kernel->tiles, i);
}

const TensorSpec* KernelIndex::tensor(int op, int operand) const {
  const int i = at(at(ops, op).operands, operand).tensor;
  return i < 0 ? nullptr : &at(plan->tensors, i);
}

bool KernelIndex::is_smem(int op, int operand) const {
  const Tile* found = tile(op, operand);
  return found != nullptr && found->space == Space::smem;
}

bool KernelIndex::is_reg(int op, int operand) const {
  const Tile* found = tile(op, operand);
  return found != nullptr && found->space == Space::reg;
}

const std::vector<Step>& steps_of(const Role& role, Section section) {
  return section == Section::prologue ? role.prologue : section == Section::body ? role.body : role.epilogue;
}

KernelIndex index_kernel(const Plan& plan, const Kernel& kernel, Findings& findings) {
  KernelIndex index;
  index.plan = &plan;
  index.kernel = &kernel;
  const auto tiles = names_of(kernel.tiles, &Tile::name, "tile", findings);
  const auto roles = names_of(kernel.roles, &Role::name, "role", findings);
  const auto barriers = names_of(kernel.barriers, &Barrier::name, "barrier", findings);
  const auto tensors = names_of(plan.tensors, &TensorSpec::name, "tensor", findings);
  names_of(kernel.ops, &Op::id, "op", findings);

  for (const Tile& tile : kernel.tiles)
    if (tile.space == Space::reg && find(roles, tile.role) < 0)
      findings.add("GDR-V01", "register tile {} belongs to role `{}`, which the kernel does not have", tile.name,
                   tile.role);

  for (const Op& op : kernel.ops) {
    OpIndex entry;
    for (const Operand& operand : op.operands) {
      OperandIndex found;
      (operand.is_tensor ? found.tensor : found.tile) = find(operand.is_tensor ? tensors : tiles, operand.name);
      if (found.tile < 0 && found.tensor < 0)
        findings.add("GDR-V01", "op `{}` names {} `{}`, which does not exist", op.id,
                     operand.is_tensor ? "tensor" : "tile", operand.name);
      entry.operands.push_back(found);
    }
    if (op.kind == OpKind::arrive || op.kind == OpKind::wait || op.kind == OpKind::sync) {
      entry.barrier = find(barriers, op.barrier);
      if (entry.barrier < 0)
        findings.add("GDR-V01", "op `{}` names barrier `{}`, which does not exist", op.id, op.barrier);
    }
    parse(op, entry, findings);
    index.ops.push_back(std::move(entry));
  }
  find_roles_of_ops(index, findings);
  for (const Role& role : kernel.roles) {
    index.first_warp.push_back(index.num_warps);
    // Sizes are checked later; a count out of all proportion must not overflow here.
    index.num_warps += role.warps > 0 && role.warps <= 1024 ? role.warps : 0;
  }
  return index;
}

}  // namespace gdr::verifying
