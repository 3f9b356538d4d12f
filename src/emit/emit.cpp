#include "emit/emit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "emit/ops.hpp"
#include "emit/template.hpp"
#include "emit/texts.hpp"
#include "gdr/version.hpp"
#include "schedule/layout.hpp"
#include "schedule/plan_json.hpp"

namespace gdr {
namespace {

const char* type_name(DType dtype) { return dtype == DType::fp32 ? "float" : dtype == DType::bf16 ? "bf16" : "fp16"; }

class KernelWriter {
 public:
  KernelWriter(const Plan& plan, const Kernel& kernel) : plan_(plan), kernel_(kernel) {}

  // `library`: what stands between provenance and plan.
  std::string text(const std::string& library) const {
    TemplateValues values;
    values.set("version", GDRJIT_VERSION).set("kernel", kernel_.name).set("arch", plan_.arch);
    values.set("plan_hash", plan_hash(plan_)).set("decisions", decisions()).set("function", kernel_.function);
    values.set("library", library).set("chunk", std::to_string(plan_.chunk));
    values.set("threads", std::to_string(kernel_.threads())).set("smem_bytes", std::to_string(kernel_.smem_bytes));
    values.set("smem_limit", std::to_string(plan_.smem_limit_bytes)).set("group", std::to_string(plan_.problem.group));
    values.set("tiles", tiles()).set("barriers", barriers()).set("arguments", arguments());
    values.set("find_block", find_block()).set("roles", roles()).set("init", init()).set("dispatch", dispatch());
    values.set("blocks_per_sm", std::to_string(kernel_.blocks_per_sm));
    return render("kernel.cu", template_text("kernel.cu"), values);
  }

 private:
  std::string decisions() const {
    return fmt::format("Strategy {}, chunk {}, state in {} part{}.", plan_.strategy, plan_.chunk, plan_.state_split,
                       plan_.state_split == 1 ? "" : "s");
  }

  std::string tiles() const {
    std::string text;
    for (const Tile& tile : kernel_.tiles) text += tile.space == Space::smem ? shared_tile(tile) : register_tile(tile);
    return text;
  }

  static std::string shared_tile(const Tile& t) {
    const std::string type = shared_type(t.name);
    return fmt::format(
        "using {0} = SharedTile<{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}>;  // bytes {2} to {12}\n"
        "static_assert({0}::kBytes == {13}, \"{14}: the plan's bytes\");\n",
        type, type_name(t.dtype), t.offset_bytes, t.rows, t.cols, t.smem.panel_cols, t.smem.xor_mask, t.smem.xor_shift,
        t.smem.lower16, t.parts, t.resident, t.stages, t.offset_bytes + tile_bytes(t), tile_bytes(t), t.name);
  }

  static std::string register_tile(const Tile& t) {
    const std::string shape =
        fmt::format("{}, {}, {}, {}, {}", t.rows, t.cols, t.reg.grid_rows, t.reg.grid_cols, t.reg.deal_cols);
    return t.reg.kind == RegKind::acc
               ? fmt::format("using {} = Accumulator<{}>;\n", register_type(t.name), shape)
               : fmt::format("using {} = Fragment<{}, {}>;\n", register_type(t.name), type_name(t.dtype), shape);
  }

  // mbarriers lie one after another; copies of one barrier beside each other.
  std::string barriers() const {
    std::string text;
    int byte = kernel_.barrier_offset_bytes;
    for (const Barrier& barrier : kernel_.barriers) {
      if (barrier.kind != BarrierKind::mbarrier) continue;
      text += fmt::format("constexpr int {} = {};  // {}\n", barrier_name(barrier.name), byte, barrier.why);
      byte += barrier.stages * 8;
    }
    return text + fmt::format("static_assert({} <= kSmemBytes, \"tiles and barriers\");\n", byte);
  }

  std::string arguments() const {
    std::string text;
    for (const TensorSpec* tensor : plan_.tensors_of(kernel_)) text += fmt::format("  TensorArg t_{};\n", tensor->name);
    return text;
  }

  std::string find_block() const {
    std::string text;
    for (std::size_t i = kernel_.grid.size(); i-- > 0;) {
      const bool is_outermost = i == 0;
      const auto take = [&](const std::string& target, const std::string& count) {
        text += is_outermost ? fmt::format("  {} = index;\n", target)
                             : fmt::format("  {} = index % {};\n  index /= {};\n", target, count, count);
      };
      switch (kernel_.grid[i]) {
        case GridAxis::sequence:
          take("block.sequence", "args.num_sequences");
          break;
        case GridAxis::v_head:
          take("block.head", "args.v_heads");
          break;
        case GridAxis::k_head:
          take("block.head", "args.k_heads");
          break;
        case GridAxis::v_slice:
          take("block.v_slice", std::to_string(plan_.problem.head_dim_v / kernel_.v_slice_cols));
          break;
        case GridAxis::chunk:
          take("const int of_all", "args.num_sequences * block.num_chunks");
          text += "  block.sequence = of_all / block.num_chunks;\n  block.chunk = of_all % block.num_chunks;\n";
          break;
      }
    }
    return text;
  }

  std::string steps(const Role& role, const std::vector<Step>& list, bool in_loop) const {
    std::string text;
    for (const Step& step : list) text += step_text(plan_, kernel_, role, step, in_loop);
    return text;
  }

  std::string names_in(const Role& role, OpKind kind) const {
    std::set<std::string> seen;
    std::string text;
    for (const Step& step : role.body) {
      const Op& op = kernel_.ops[static_cast<std::size_t>(step.op)];
      if (op.kind == kind && seen.insert(op.barrier).second) text += (text.empty() ? "" : ", ") + op.barrier;
    }
    return text.empty() ? "nothing" : text;
  }

  std::string role_text(const Role& role, int first_warp) const {
    TemplateValues values;
    values.set("role", role.name).set("first_warp", std::to_string(first_warp));
    values.set("last_warp", std::to_string(first_warp + role.warps - 1))
        .set("registers", std::to_string(role.registers));
    values.set("waits_for", names_in(role, OpKind::wait)).set("signals", names_in(role, OpKind::arrive));
    values.set("registers_taken", registers_taken(role));
    std::string register_tiles;
    for (const Tile& tile : kernel_.tiles)
      if (tile.space == Space::reg && tile.role == role.name)
        register_tiles += fmt::format("  {} {};\n", register_type(tile.name), register_name(tile.name));
    values.set("register_tiles", register_tiles);
    values.set("iterations", kernel_.loop == LoopKind::once ? "1" : "block.num_chunks");
    values.set("chunk", kernel_.loop == LoopKind::once               ? "block.chunk"
                        : kernel_.loop == LoopKind::chunks_ascending ? "it"
                                                                     : "block.num_chunks - 1 - it");
    values.set("prologue", steps(role, role.prologue, false)).set("body", steps(role, role.body, true));
    values.set("epilogue", steps(role, role.epilogue, false));
    return render("role.cu", template_text("role.cu"), values);
  }

  // Roles give back registers or take more.
  std::string registers_taken(const Role& role) const {
    if (!kernel_.setmaxnreg || role.registers == kernel_.launch_registers) return "";
    return fmt::format("  set_registers<{}, {}>();\n", role.registers, role.registers > kernel_.launch_registers);
  }

  std::string roles() const {
    std::string text;
    int first_warp = 0;
    for (const Role& role : kernel_.roles) {
      text += role_text(role, first_warp);
      first_warp += role.warps;
    }
    return text;
  }

  int arrivals(const Barrier& barrier) const {
    int count = 0;
    for (const Role& role : kernel_.roles)
      for (const Step& step : role.body) {
        const Op& op = kernel_.ops[static_cast<std::size_t>(step.op)];
        if (op.kind == OpKind::arrive && op.barrier == barrier.name)
          count += role.warps * arrivals_of_warp(kernel_, role, op);
      }
    return count;
  }

  std::string init() const {
    std::string text;
    for (const Barrier& barrier : kernel_.barriers)
      if (barrier.kind == BarrierKind::mbarrier)
        for (int stage = 0; stage < barrier.stages; ++stage)
          text +=
              fmt::format("    barrier_init({} + {}, {});\n", barrier_name(barrier.name), stage * 8, arrivals(barrier));
    if (text.empty()) return "";
    return "  if (thread_index() == 0) {\n" + text + "  }\n  block_sync();";
  }

  std::string dispatch() const {
    std::string text = "  ";
    int first_warp = 0;
    for (const Role& role : kernel_.roles) {
      first_warp += role.warps;
      const std::string call =
          fmt::format("role_{}(args, block, {{warp - {}, lane}});", role.name, first_warp - role.warps);
      text += &role == &kernel_.roles.back() ? fmt::format("{{\n    {}\n  }}", call)
                                             : fmt::format("if (warp < {}) {{\n    {}\n  }} else ", first_warp, call);
    }
    return text;
  }

  const Plan& plan_;
  const Kernel& kernel_;
};

}  // namespace

std::string emit_kernel(const Plan& plan, const Kernel& kernel, Primitives primitives) {
  std::string library = "\n";
  for (const char* file : {primitives == Primitives::device ? "device/gpu.cuh" : "device/host.hpp", "device/tiles.cuh",
                           "device/ops.cuh"}) {
    library += template_text(file);
    library += '\n';
  }
  return KernelWriter(plan, kernel).text(library);
}

std::string emit_plan_text(const Plan& plan, const Kernel& kernel) { return KernelWriter(plan, kernel).text(""); }

}  // namespace gdr
