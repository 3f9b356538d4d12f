#include "verify/tensors.hpp"

#include <algorithm>
#include <cstdint>

#include "schedule/names.hpp"

namespace gdr::verifying {
namespace {

bool has_axis(const Kernel& kernel, GridAxis axis) {
  return std::find(kernel.grid.begin(), kernel.grid.end(), axis) != kernel.grid.end();
}

bool overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

struct Use {
  int op = 0;
  const Operand* operand = nullptr;
  const TensorSpec* tensor = nullptr;
};

class KernelTensors {
 public:
  KernelTensors(const KernelIndex& index, Findings& findings) : index_(index), kernel_(*index.kernel), out_(findings) {
    for (int i = 0; i < count_of(kernel_.ops); ++i)
      for (int k = 0; k < count_of(index.op(i).operands); ++k)
        if (const TensorSpec* tensor = index.tensor(i, k)) uses_.push_back({i, &at(index.op(i).operands, k), tensor});
  }

  void check() {
    check_grid();
    for (const Use& use : uses_) {
      if (!check_place(use)) continue;
      if (use.operand->access != Access::read) check_write(use);
    }
    for (std::size_t i = 0; i < uses_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) check_pair(uses_[j], uses_[i]);
  }

 private:
  void bad(const Use& use, const std::string& what) {
    Finding& finding = out_.add("GDR-V18", "op `{}` {} tensor {}: {}", index_.op(use.op).id,
                                use.operand->access == Access::read ? "reads" : "writes", use.tensor->name, what);
    finding.a = {index_.op(use.op).id, index_.role_of(use.op).name, -1, -1};
  }

  void check_grid() {
    if (has_axis(kernel_, GridAxis::chunk) && kernel_.loop != LoopKind::once)
      out_.add("GDR-V18", "the kernel loops over chunks and has a chunk as grid axis");
    if (has_axis(kernel_, GridAxis::k_head) && has_axis(kernel_, GridAxis::v_head))
      out_.add("GDR-V18", "the grid has both k_head and v_head");
  }

  // The block knows which piece is its own.
  bool check_place(const Use& use) {
    const bool has_chunk = has_axis(kernel_, GridAxis::chunk) ||
                           (kernel_.loop != LoopKind::once && at(index_.ops, use.op).section == Section::body);
    const bool by_k_head = has_axis(kernel_, GridAxis::k_head);
    const bool by_head = by_k_head || has_axis(kernel_, GridAxis::v_head);
    const int heads = by_k_head && use.tensor->heads == HeadAxis::v_head ? index_.plan->problem.group : 1;
    if (use.tensor->index != TensorIndex::sequence && !has_chunk) {
      bad(use, "it is kept by chunk, and there is no chunk here");
    } else if (!by_head) {
      bad(use, "it is kept by head, and the grid has no head axis");
    } else if (use.operand->head_index < 0 || use.operand->head_index >= heads) {
      bad(use, fmt::format("head index {}; there are {}", use.operand->head_index, heads));
    } else {
      return true;
    }
    return false;
  }

  // No other block and no other iteration writes the same bytes.
  void check_write(const Use& use) {
    if (use.tensor->kind == TensorKind::input) bad(use, "it is an input");
    if (use.tensor->index == TensorIndex::sequence) {
      if (kernel_.loop != LoopKind::once && at(index_.ops, use.op).section == Section::body)
        bad(use, "it has one tile for the sequence, which every iteration would write");
      if (has_axis(kernel_, GridAxis::chunk))
        bad(use, "it has one tile for the sequence, which every chunk would write");
    }
    if (has_axis(kernel_, GridAxis::v_slice) && !use.operand->v_sliced)
      bad(use, "every block of a v_slice would write the same columns");
    if (has_axis(kernel_, GridAxis::v_head) && use.tensor->heads == HeadAxis::k_head && index_.plan->problem.group > 1)
      bad(use,
          fmt::format("it is kept by k-head, and the blocks of {} v-heads would write it", index_.plan->problem.group));
  }

  void check_pair(const Use& first, const Use& second) {
    const bool first_writes = first.operand->access != Access::read;
    const bool second_writes = second.operand->access != Access::read;
    if (first.tensor != second.tensor || (!first_writes && !second_writes)) return;
    const Operand &a = *first.operand, &b = *second.operand;
    if (a.head_index != b.head_index || !overlap(a.rows, b.rows) || !overlap(a.cols, b.cols)) return;
    const std::string& other = index_.op(first.op).id;
    if (first_writes && second_writes) {
      bad(second, fmt::format("op `{}` writes rows and columns of the same rectangle", other));
    } else {
      bad(second, fmt::format("op `{}` of the same kernel {} it, and nothing orders global memory inside a kernel",
                              other, first_writes ? "writes" : "reads"));
    }
  }

  const KernelIndex& index_;
  const Kernel& kernel_;
  Findings& out_;
  std::vector<Use> uses_;
};

struct Written {
  const Kernel* by = nullptr;
  std::int64_t elements = 0;  // of one tile (of all heads of a group, where the kernel runs over k-heads)
  std::int64_t expected = 0;
};

}  // namespace

void check_kernel_tensors(const KernelIndex& index, Findings& findings) { KernelTensors(index, findings).check(); }

void check_plan_tensors(const Plan& plan, Findings& findings) {
  std::vector<Written> written(plan.tensors.size());
  const auto number_of = [&](const Operand& operand) {
    const auto found = std::find_if(plan.tensors.begin(), plan.tensors.end(),
                                    [&](const TensorSpec& tensor) { return tensor.name == operand.name; });
    return found == plan.tensors.end() ? -1 : static_cast<int>(found - plan.tensors.begin());
  };
  for (const Kernel& kernel : plan.kernels)
    for (const Op& op : kernel.ops)
      for (const Operand& operand : op.operands) {
        const int t = operand.is_tensor ? number_of(operand) : -1;
        if (t < 0) continue;
        const TensorSpec& tensor = at(plan.tensors, t);
        Written& so_far = at(written, t);
        if (operand.access == Access::read) {
          if (tensor.kind != TensorKind::input && so_far.by == nullptr)
            findings.add("GDR-V18", "kernel {}, op `{}` reads tensor {} ({}), which no earlier kernel writes",
                         kernel.name, op.id, tensor.name, to_string(tensor.kind));
          continue;
        }
        if (so_far.by != nullptr && so_far.by != &kernel) {
          findings.add("GDR-V18", "kernel {}, op `{}` writes tensor {}, which kernel {} has written", kernel.name,
                       op.id, tensor.name, so_far.by->name);
          continue;
        }
        const bool by_k_head = has_axis(kernel, GridAxis::k_head) && tensor.heads == HeadAxis::v_head;
        so_far.by = &kernel;
        so_far.expected = std::int64_t{tensor.rows} * tensor.cols * (by_k_head ? plan.problem.group : 1);
        so_far.elements += std::int64_t{operand.rows.size()} * (operand.v_sliced ? tensor.cols : operand.cols.size());
      }
  for (int t = 0; t < count_of(plan.tensors); ++t) {
    const TensorSpec& tensor = at(plan.tensors, t);
    const Written& found = at(written, t);
    if (tensor.kind == TensorKind::output && found.by == nullptr)
      findings.add("GDR-V18", "no kernel writes output tensor {}", tensor.name);
    if (found.by != nullptr && found.elements < found.expected)
      findings.add("GDR-V18", "kernel {} writes {} of the {} elements of a tile of tensor {}", found.by->name,
                   found.elements, found.expected, tensor.name);
  }
}

}  // namespace gdr::verifying
