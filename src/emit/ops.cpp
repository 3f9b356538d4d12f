#include "emit/ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "emit/expression.hpp"
#include "emit/template.hpp"
#include "emit/texts.hpp"
#include "schedule/expr.hpp"
#include "schedule/layout.hpp"

namespace gdr {
namespace {

const char* yes(bool value) { return value ? "true" : "false"; }

std::string rect(const Operand& operand) {
  return fmt::format("Rect<{}, {}, {}, {}>", operand.rows.begin, operand.rows.end, operand.cols.begin,
                     operand.cols.end);
}

// Of a copy_in that is not of packed blocks: what cp.async cannot do.
bool is_copied_by_stores(const Op& op) { return op.mechanism != Mechanism::cp_async || op.operands[1].transposed; }

class StepWriter {
 public:
  StepWriter(const Plan& plan, const Kernel& kernel, const Role& role, const Step& step, bool in_loop)
      : plan_(plan),
        kernel_(kernel),
        role_(role),
        step_(step),
        op_(kernel.ops[static_cast<std::size_t>(step.op)]),
        in_loop_(in_loop) {}

  std::string text() const {
    TemplateValues values;
    const std::string indent(in_loop_ ? 4 : 2, ' ');
    values.set("index", std::to_string(step_.op)).set("iteration", in_loop_ ? "it" : "-1");
    values.set("indent", indent).set("id", op_.id).set("step", op_.step.empty() ? "order" : op_.step);
    values.set("text", indent + statement());
    return render_file("op", values);
  }

 private:
  static std::string render_file(const std::string& name, const TemplateValues& values) {
    const std::string file = "ops/" + name + ".cu";
    return render(file, template_text(file), values);
  }

  std::string statement() const {
    switch (op_.kind) {
      case OpKind::copy_in:
        return copy_in();
      case OpKind::copy_out:
        return copy_out();
      case OpKind::load:
        return load();
      case OpKind::store:
        return store();
      case OpKind::mma:
        return mma();
      case OpKind::map:
        return map();
      case OpKind::reduce:
        return reduce();
      case OpKind::scan:
        return scan();
      case OpKind::tri_inverse:
        return tri_inverse();
      case OpKind::relayout:
        return relayout();
      case OpKind::arrive:
        return arrive();
      case OpKind::wait:
        return wait();
      case OpKind::sync:
        return sync();
      case OpKind::fence:
        break;
    }
    fail(ErrorKind::unsupported, "GDR-E10", "emit {}: op {} of kind {} has no renderer", kernel_.name, op_.id,
         static_cast<int>(op_.kind));
  }

  const Operand& operand(std::size_t i) const { return op_.operands[i]; }
  const Tile& tile(const Operand& o) const { return kernel_.tile(o.name); }
  bool is_shared(const Operand& o) const { return !o.is_tensor && tile(o).space == Space::smem; }
  std::string warps() const { return std::to_string(role_.warps); }

  // The base of a tile's bytes in this iteration; an operand of a split tile names its part.
  static std::string base(const Operand& o) { return fmt::format("{}::base(it, {})", shared_type(o.name), o.part); }
  std::string base(const std::string& name) const {
    const auto at = std::find_if(op_.operands.begin(), op_.operands.end(),
                                 [&](const Operand& o) { return !o.is_tensor && o.name == name; });
    internal_check(at != op_.operands.end(), "emit: no operand " + name);
    return base(*at);
  }

  // ------------------------------------------------------------------------------------------------ tensors
  bool runs_over(GridAxis axis) const {
    return std::find(kernel_.grid.begin(), kernel_.grid.end(), axis) != kernel_.grid.end();
  }

  std::string global_tile(const Operand& o) const {
    const TensorSpec& tensor = plan_.tensor(o.name);
    const char* type = tensor.dtype == DType::fp32 ? "float" : tensor.dtype == DType::bf16 ? "bf16" : "fp16";
    std::string head = "block.head";
    if (runs_over(GridAxis::v_head) && tensor.heads == HeadAxis::k_head) head = "block.head / kGroup";
    if (runs_over(GridAxis::k_head) && tensor.heads == HeadAxis::v_head)
      head = fmt::format("block.head * kGroup + {}", o.head_index);
    std::string item = "block.sequence", first_row = "0", rows = std::to_string(tensor.rows);
    if (tensor.index == TensorIndex::token) first_row = "static_cast<i64>(chunk) * kChunk", rows = "rows";
    if (tensor.index == TensorIndex::chunk) item = "block.first_chunk + chunk";
    // Tiles of chunks and states are dense; only rows of tokens may lie apart.
    const int stride = tensor.index == TensorIndex::token ? 0 : tensor.cols;
    return fmt::format("tile_of<{}, {}>(args.{}, {}, {}, {}, {})", type, stride, tensor_arg(o.name), item, head,
                       first_row, rows);
  }
  static std::string tensor_arg(const std::string& name) { return "t_" + name; }

  // The first row and column of a tensor's rectangle.
  static std::string row_of(const Operand& o) { return std::to_string(o.rows.begin); }
  std::string col_of(const Operand& o) const {
    if (!o.v_sliced) return std::to_string(o.cols.begin);
    return fmt::format("block.v_slice * {} + {}", kernel_.v_slice_cols, o.cols.begin);
  }

  bool checks_rows() const { return op_.where == Where::row_valid; }

  // ------------------------------------------------------------------------------------------------- copies
  std::string copy_in() const {
    const Operand &dst = operand(0), &src = operand(1);
    TemplateValues values;
    values.set("tile", shared_type(dst.name)).set("warps", warps()).set("base", base(dst));
    values.set("source", global_tile(src));
    if (plan_.tensor(src.name).order == GlobalOrder::lower16) return render_file("copy_in_lower", values);
    values.set("rect", rect(dst)).set("check_rows", yes(checks_rows()));
    values.set("src_row", row_of(src)).set("src_col", col_of(src));
    if (!is_copied_by_stores(op_)) return render_file("copy_in", values);
    values.set("transposed", yes(src.transposed));
    return render_file("copy_in_plain", values);
  }

  std::string copy_out() const {
    const Operand &dst = operand(0), &src = operand(1);
    const TensorSpec& tensor = plan_.tensor(dst.name);
    const bool lower = tensor.order == GlobalOrder::lower16;
    TemplateValues values;
    values.set("target", global_tile(dst));
    if (is_shared(src)) {
      values.set("tile", shared_type(src.name)).set("warps", warps()).set("base", base(src));
      if (lower) return render_file("copy_out_lower", values);
      values.set("rect", rect(src));
    } else {
      values.set("tile", register_type(src.name)).set("source", register_name(src.name)).set("rect", rect(src));
      values.set("lower_blocks", yes(lower)).set("tensor", tensor_arg(dst.name)).keep("optional", tensor.optional);
    }
    values.set("check_rows", yes(checks_rows())).set("transposed", yes(dst.transposed));
    values.set("dst_row", row_of(dst)).set("dst_col", col_of(dst));
    return render_file(is_shared(src) ? "copy_out_shared" : "copy_out_registers", values);
  }

  std::string load() const {
    const Operand &dst = operand(0), &src = operand(1);
    TemplateValues values;
    values.set("tile", register_type(dst.name)).set("rect", rect(dst)).set("target", register_name(dst.name));
    values.set("transposed", yes(src.transposed)).set("src_row", row_of(src)).set("src_col", col_of(src));
    if (src.is_tensor) {
      values.set("source", global_tile(src)).set("check_rows", yes(checks_rows()));
      return render_file("load_global", values);
    }
    values.set("shared", shared_type(src.name)).set("base", base(src));
    return render_file("load_shared", values);
  }

  std::string store() const {
    const Operand &dst = operand(0), &src = operand(1);
    TemplateValues values;
    values.set("tile", register_type(src.name)).set("rect", rect(src)).set("source", register_name(src.name));
    values.set("shared", shared_type(dst.name)).set("base", base(dst));
    values.set("dst_row", row_of(dst)).set("dst_col", std::to_string(dst.cols.begin));
    return render_file("store", values);
  }

  std::string relayout() const {
    TemplateValues values;
    values.set("target", register_name(operand(0).name)).set("source", register_name(operand(1).name));
    return render_file("relayout", values);
  }

  // ------------------------------------------------------------------------------------------------ products
  std::string shared_operand(const char* kind, const Operand& o) const {
    return fmt::format("{}<{}, {}, {}>{{{}}}", kind, shared_type(o.name), rect(o), yes(o.transposed), base(o));
  }

  std::string mma() const {
    const Operand &d = operand(0), &a = operand(1), &b = operand(2);
    TemplateValues values;
    values.set("tile", register_type(d.name)).set("rect", rect(d)).set("target", register_name(d.name));
    values.set("lower", yes(op_.mask_d == Mask::lower)).set("accumulate", yes(d.access == Access::accumulate));
    values.set("b", shared_operand("SharedB", b));
    if (is_shared(a)) {
      values.set("a", shared_operand("SharedA", a));
      if (tile(a).dtype == DType::fp32) return render_file("mma_fp32", values);
    } else {
      values.set("a", fmt::format("{}, RegisterA<{}, {}>{{}}", register_name(a.name), register_type(a.name), rect(a)));
    }
    values.set("scale", op_.scale_expr.empty() ? "Unscaled{}"
                                               : fmt::format("scaled_by([&](At l) {{ return {}; }})",
                                                             expression_text(parse_expr(op_.scale_expr), element())));
    values.set("slice", std::to_string(step_.slice_begin)).set("slice_end", std::to_string(step_.slice_end));
    values.set("slices", std::to_string(op_.slices));
    return render_file("mma", values);
  }

  // --------------------------------------------------------------------------------------------- expressions
  ElementText element() const {
    return [this](const std::string& name, IndexKind index) {
      const Tile& t = kernel_.tile(name);
      if (t.space == Space::reg) return fmt::format("{}::get({}, b, n, e)", register_type(name), register_name(name));
      const std::string type = shared_type(name), at = base(name);
      switch (index) {
        case IndexKind::ij:
          return fmt::format("{}::load_of_pair({}, i, j)", type, at);
        case IndexKind::i:
          return fmt::format("{}::at({}, i)", type, at);
        case IndexKind::j:
          return fmt::format("{}::at({}, j)", type, at);
        case IndexKind::l:
          return fmt::format("{}::at({}, l)", type, at);
        case IndexKind::zero:
          return fmt::format("{}::at({}, 0)", type, at);
        case IndexKind::last:
          return fmt::format("{}::at({}, {})", type, at, t.cols - 1);
      }
      return std::string();
    };
  }

  std::string store_vector(const Assignment& assignment, const std::string& value) const {
    return fmt::format("{}::store({}, 0, i, {})", shared_type(assignment.target), base(assignment.target), value);
  }

  std::string map() const {
    const Assignment assignment = parse_assignment(op_.expr);
    const std::string value = expression_text(assignment.value, element());
    const Operand& dst = operand(0);
    TemplateValues values;
    if (is_shared(dst)) {
      values.set("begin", std::to_string(dst.cols.begin))
          .set("end", std::to_string(dst.cols.end))
          .set("warps", warps());
      values.set("assign", store_vector(assignment, value));
      return render_file("map_vector", values);
    }
    values.set("share", register_type(dst.name) + "::S").set("rect", rect(dst));
    values.set("assign",
               fmt::format("{}::set({}, b, n, e, {})", register_type(dst.name), register_name(dst.name), value));
    return render_file("map", values);
  }

  std::string reduce() const {
    const Assignment assignment = parse_assignment(op_.expr);
    const Operand &dst = operand(0), &domain = operand(1);
    TemplateValues values;
    values.set("function", op_.axis == ReduceAxis::cols   ? "sum_cols"
                           : op_.axis == ReduceAxis::rows ? "sum_rows"
                                                          : "sum_all");
    values.set("share", register_type(domain.name) + "::S")
        .set("rect", rect(domain))
        .set("vector", shared_type(dst.name));
    values.set("accumulate", yes(dst.access == Access::accumulate)).set("base", base(dst));
    values.set("value", expression_text(assignment.value, element()));
    return render_file("reduce", values);
  }

  std::string scan() const {
    const Assignment assignment = parse_assignment(op_.expr);
    const int length = operand(0).cols.size();
    std::vector<RunningSum> running;
    const std::string value = expression_text(assignment.value, element(), &running);
    std::string sums;
    for (std::size_t n = 0; n < running.size(); ++n)
      sums += fmt::format("      const Sums<{}> sum{} = {}_sums<{}>(me, [&](int i) {{ return {}; }});\n", length, n,
                          running[n].function, length, running[n].value);
    TemplateValues values;
    values.set("sums", sums).set("length", std::to_string(length)).set("assign", store_vector(assignment, value));
    return render_file("scan", values);
  }

  std::string tri_inverse() const {
    const Operand &dst = operand(0), &src = operand(1);
    TemplateValues values;
    values.set("target", shared_type(dst.name)).set("source", shared_type(src.name)).set("rect", rect(dst));
    values.set("warps", warps()).set("target_base", base(dst)).set("source_base", base(src));
    return render_file("tri_inverse", values);
  }

  // ------------------------------------------------------------------------------------------------ barriers
  const Barrier& barrier() const {
    const auto at = std::find_if(kernel_.barriers.begin(), kernel_.barriers.end(),
                                 [&](const Barrier& b) { return b.name == op_.barrier; });
    internal_check(at != kernel_.barriers.end(), "emit: no barrier " + op_.barrier);
    return *at;
  }

  std::string arrive() const {
    const Barrier& b = barrier();
    const std::string byte =
        b.stages == 1 ? barrier_name(b.name) : fmt::format("{} + it % {} * 8", barrier_name(b.name), b.stages);
    TemplateValues values;
    values.set("barrier", byte).keep("copies", op_.after_copies);
    values.keep("stores", !op_.after_copies || copies_by_stores(kernel_, role_));
    return render_file("arrive", values);
  }

  std::string wait() const {
    TemplateValues values;
    values.set("first", barrier_name(op_.barrier)).set("stages", std::to_string(barrier().stages));
    values.set("distance", std::to_string(op_.distance));
    return render_file("wait", values);
  }

  std::string sync() const {
    TemplateValues values;
    values.set("id", std::to_string(barrier().id)).set("threads", std::to_string(barrier().arrivals));
    return render_file("sync", values);
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const Role& role_;
  const Step& step_;
  const Op& op_;
  const bool in_loop_;
};

}  // namespace

std::string shared_type(const std::string& tile) { return "S_" + tile; }
std::string register_type(const std::string& tile) { return "R_" + tile; }
std::string register_name(const std::string& tile) { return "r_" + tile; }
std::string barrier_name(const std::string& barrier) { return "kBarrier_" + barrier; }

bool copies_by_stores(const Kernel& kernel, const Role& role) {
  return std::any_of(role.body.begin(), role.body.end(), [&](const Step& step) {
    const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
    return op.kind == OpKind::copy_in && is_copied_by_stores(op);
  });
}

int arrivals_of_warp(const Kernel& kernel, const Role& role, const Op& arrive) {
  constexpr int kLanes = 32;
  if (!arrive.after_copies) return 1;
  return kLanes + (copies_by_stores(kernel, role) ? 1 : 0);
}

std::string step_text(const Plan& plan, const Kernel& kernel, const Role& role, const Step& step, bool in_loop) {
  return StepWriter(plan, kernel, role, step, in_loop).text();
}

}  // namespace gdr
