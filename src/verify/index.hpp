// A kernel with its names resolved: for every op its role and section, for every operand its tile or tensor, and the
// parsed expressions. All later checks read the kernel through this.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "schedule/expr.hpp"
#include "schedule/model.hpp"
#include "verify/findings.hpp"

namespace gdr::verifying {

// Indices of the model are int; containers want size_t.
template <typename Container>
decltype(auto) at(Container& container, int index) {
  return container[static_cast<std::size_t>(index)];
}
template <typename Container>
int count_of(const Container& container) {
  return static_cast<int>(container.size());
}

enum class Section { prologue, body, epilogue };

struct OperandIndex {
  int tile = -1;    // in Kernel::tiles
  int tensor = -1;  // in Plan::tensors
};

struct OpIndex {
  int role = -1;
  Section section = Section::body;
  std::vector<OperandIndex> operands;
  int barrier = -1;
  std::string target;  // map, reduce, scan: the assigned tile and how it is indexed
  IndexKind target_index = IndexKind::ij;
  std::optional<Expr> expr;  // the assigned value, or mma's scale factor
  std::vector<ElementUse> uses;
};

struct KernelIndex {
  const Plan* plan = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<OpIndex> ops;
  std::vector<int> first_warp;  // of each role, counting through the block
  int num_warps = 0;

  const Op& op(int i) const { return at(kernel->ops, i); }
  const Role& role(int i) const { return at(kernel->roles, i); }
  const Role& role_of(int op) const { return role(at(ops, op).role); }
  // The tile of an operand, or nullptr if it is a tensor; and the reverse.
  const Tile* tile(int op, int operand) const;
  const TensorSpec* tensor(int op, int operand) const;
  bool is_smem(int op, int operand) const;
  bool is_reg(int op, int operand) const;
};

// Reports names that do not resolve or occur twice (V01), ops that stand in no or two lists (V05) and expressions that
// do not parse (V06). The index is complete only if none was reported.
KernelIndex index_kernel(const Plan& plan, const Kernel& kernel, Findings& findings);

// The list of a section.
const std::vector<Step>& steps_of(const Role& role, Section section);

}  // namespace gdr::verifying
