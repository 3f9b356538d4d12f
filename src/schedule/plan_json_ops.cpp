#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "schedule/expr.hpp"
#include "schedule/plan_json_parts.hpp"

namespace gdr::plan_file {
namespace {

// One element of a role's list: an op stated in full, or a further stretch of one that is.
struct Entry {
  JsonValue value;
  std::size_t role;
  std::string id;
  std::string section;
  std::optional<JsonValue> stretch;
};

std::string read_section(ObjectReader& reader) {
  constexpr auto kSections =
      std::to_array<Choice<const char*>>({{"prologue", "prologue"}, {"body", "body"}, {"epilogue", "epilogue"}});
  const std::optional<JsonValue> section = reader.find("section");
  return section ? section->choice(kSections) : "body";
}

Operand read_operand(const Plan& plan, const Kernel& kernel, const JsonValue& value) {
  ObjectReader reader = value.object();
  Operand operand;
  operand.is_tensor = reader.find("tensor").has_value();
  const char* key = operand.is_tensor ? "tensor" : "tile";
  operand.name = name_at(reader, key);
  if (operand.is_tensor && reader.find("tile")) value.reject("has a tile and a tensor; an operand is one of them.");
  const bool is_known =
      operand.is_tensor ? plan.find_tensor(operand.name) != nullptr : kernel.find_tile(operand.name) != nullptr;
  if (!is_known) reader.at(key).reject(fmt::format("is no {} of this {}.", key, operand.is_tensor ? "plan" : "kernel"));
  operand.access = choice_or(reader, "access", Access::read);
  operand.rows = range_of(reader.at("rows"), kMaxDim);
  operand.cols = range_of(reader.at("cols"), kMaxDim);
  operand.part = reader.integer_or("part", 0, 0, kMaxDim);
  operand.transposed = reader.boolean_or("transposed", false);
  operand.proxy = choice_or(reader, "proxy", Proxy::generic);
  operand.head_index = reader.integer_or("head_index", 0, 0, kMaxDim);
  operand.v_sliced = reader.boolean_or("v_sliced", false);
  reader.finish();
  return operand;
}

// Every expression parses and speaks of the op's operands only.
void check_expressions(const Op& op, ObjectReader& reader) {
  const auto check = [&](const char* key, const auto& names_of) {
    const JsonValue value = reader.at(key);
    std::vector<std::string> names;
    try {
      names = names_of();
    } catch (const Error& error) {
      value.reject(fmt::format("is no expression: {}", error.what()));
    }
    for (const std::string& name : names) {
      const auto same = [&](const Operand& operand) { return operand.name == name; };
      if (std::none_of(op.operands.begin(), op.operands.end(), same))
        value.reject(fmt::format("speaks of {}, which is no operand of this op.", name));
    }
  };
  const auto names_in = [](const Expr& expr) {
    std::vector<std::string> names;
    for (const ElementUse& use : elements_of(expr)) names.push_back(use.name);
    return names;
  };
  if (!op.expr.empty())
    check("expr", [&] {
      const Assignment assignment = parse_assignment(op.expr);
      std::vector<std::string> names = names_in(assignment.value);
      names.push_back(assignment.target);
      return names;
    });
  if (!op.scale_expr.empty()) check("scale_expr", [&] { return names_in(parse_expr(op.scale_expr)); });
}

Op read_op(const Plan& plan, const Kernel& kernel, ObjectReader& reader) {
  Op op;
  op.id = name_at(reader, "id");
  op.kind = choice<OpKind>(reader, "kind");
  op.slices = reader.integer_or("slices", 1, 1, kMaxSlices);
  op.barrier = text_or_empty(reader, "barrier");
  const bool needs_barrier = op.kind == OpKind::arrive || op.kind == OpKind::wait || op.kind == OpKind::sync;
  if (needs_barrier || !op.barrier.empty()) {
    const auto same = [&](const Barrier& barrier) { return barrier.name == op.barrier; };
    if (std::none_of(kernel.barriers.begin(), kernel.barriers.end(), same))
      reader.at("barrier").reject("is no barrier of this kernel.");
  }
  op.distance = reader.integer_or("distance", 0, 0, kMaxStages);
  op.after_copies = reader.boolean_or("after_copies", false);
  op.mechanism = choice_or(reader, "mechanism", Mechanism::none);
  op.where = choice_or(reader, "where", Where::all);
  op.axis = choice_or(reader, "axis", ReduceAxis::none);
  op.mask_d = choice_or(reader, "mask_d", Mask::none);
  op.mask_a = choice_or(reader, "mask_a", Mask::none);
  op.mask_b = choice_or(reader, "mask_b", Mask::none);
  op.step = text_or_empty(reader, "step");
  op.expr = text_or_empty(reader, "expr");
  op.scale_expr = text_or_empty(reader, "scale_expr");
  if (const std::optional<JsonValue> operands = reader.find("operands"))
    for (const JsonValue& operand : operands->array(0, kMaxOperands))
      op.operands.push_back(read_operand(plan, kernel, operand));
  check_expressions(op, reader);
  return op;
}

void add_step(Kernel& kernel, const Entry& entry, const std::map<std::string, int>& order_of) {
  const auto found = order_of.find(entry.id);
  ObjectReader reader = entry.value.object();
  if (found == order_of.end())
    reader.at("id").reject("is no op of this kernel: an op is stated in full, with its kind, in one of its entries.");
  Step step{found->second, 0, kernel.ops[static_cast<std::size_t>(found->second)].slices};
  if (entry.stretch) {
    const Range range = range_of(*entry.stretch, step.slice_end);
    step = {step.op, range.begin, range.end};
  }
  Role& role = kernel.roles[entry.role];
  const bool is_late = entry.section == "prologue" ? !role.body.empty() || !role.epilogue.empty()
                                                   : entry.section == "body" && !role.epilogue.empty();
  if (is_late) entry.value.reject(fmt::format("of the {} stands after ops of a later section.", entry.section));
  (entry.section == "prologue" ? role.prologue : entry.section == "body" ? role.body : role.epilogue).push_back(step);
}

}  // namespace

void read_ops(const Plan& plan, Kernel& kernel, const std::vector<JsonValue>& roles) {
  std::vector<Entry> entries;
  OrderedList<Op> ops;
  std::map<std::string, int> order_of;
  for (std::size_t r = 0; r < roles.size(); ++r)
    for (const JsonValue& value : roles[r].object().array("ops", 0, kMaxListed)) {
      ObjectReader reader = value.object();
      Entry entry{value, r, name_at(reader, "id"), read_section(reader), reader.find("stretch")};
      if (reader.find("kind")) {
        const int position = ops.add(reader, read_op(plan, kernel, reader));
        if (!order_of.try_emplace(entry.id, position).second)
          reader.at("id").reject(
              "is the id of another op with a kind; ids must differ, and later stretches of an op "
              "have id, section and stretch only.");
      }
      reader.finish();
      entries.push_back(std::move(entry));
    }
  kernel.ops = ops.take();
  for (const Entry& entry : entries) add_step(kernel, entry, order_of);
}

}  // namespace gdr::plan_file
