#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "present/kernel_view.hpp"
#include "present/text.hpp"
#include "present/timeline.hpp"
#include "schedule/layout.hpp"
#include "schedule/names.hpp"

namespace gdr {
namespace {

using Cells = std::vector<std::string>;

std::string bytes(std::int64_t count) { return with_commas(count); }

std::string grid_text(const Kernel& kernel) {
  std::string text;
  for (const GridAxis axis : kernel.grid) text += fmt::format("{}{}", text.empty() ? "" : " x ", to_string(axis));
  return text;
}

std::string loop_text(LoopKind loop) {
  switch (loop) {
    case LoopKind::once:
      return "one chunk a block";
    case LoopKind::chunks_ascending:
      return "a block walks its sequence's chunks";
    case LoopKind::chunks_descending:
      return "a block walks its sequence's chunks in reverse";
  }
  return {};
}

std::string slots_text(const Tile& tile) {
  std::string text = tile.parts == 1 ? "whole" : fmt::format("{} of {} parts", tile.resident, tile.parts);
  if (tile.smem.lower16) text = "lower blocks";
  if (tile.stages > 1) text += fmt::format(", {} stages", tile.stages);
  return text;
}

// "k.in to dS.mma" for each life of the tile; of more than three the first two and how many more.
std::string lives_text(const Kernel& kernel, const TileFacts& facts) {
  const auto id = [&](int op) { return kernel.ops[static_cast<std::size_t>(op)].id; };
  const std::size_t shown = facts.lives.size() > 3 ? 2 : facts.lives.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const LiveRange& life = facts.lives[i];
    if (!text.empty()) text += "; ";
    if (facts.tile->parts > 1) text += fmt::format("part {}: ", life.part);
    text += fmt::format("{} to {}", id(life.first_op), id(life.last_op));
    if (life.wraps) text += " of the next chunk";
  }
  if (shown < facts.lives.size()) text += fmt::format("; and {} times more", facts.lives.size() - shown);
  return text.empty() ? "never used" : text;
}

std::vector<const TileFacts*> by_offset(const KernelView& view) {
  std::vector<const TileFacts*> tiles;
  for (const TileFacts& facts : view.tiles) tiles.push_back(&facts);
  std::stable_sort(tiles.begin(), tiles.end(), [](const TileFacts* left, const TileFacts* right) {
    return left->tile->offset_bytes < right->tile->offset_bytes;
  });
  return tiles;
}

std::string tile_table(const KernelView& view, const Style& style) {
  TextTable table({{"tile"},
                   {"rows x cols", Align::right},
                   {"type"},
                   {"resident"},
                   {"bytes", Align::right},
                   {"offset", Align::right},
                   {"shares bytes with", Align::left, 24},
                   {"lives from op to op"}},
                  2);
  for (const TileFacts* facts : by_offset(view)) {
    const Tile& tile = *facts->tile;
    table.add({tile.name, fmt::format("{} x {}", tile.rows, tile.cols), std::string(to_string(tile.dtype)),
               slots_text(tile), bytes(facts->bytes), bytes(tile.offset_bytes),
               fmt::format("{}", fmt::join(facts->aliases, " ")), lives_text(*view.kernel, *facts)});
  }
  return table.text(style);
}

// "23 mma, 9 map", most frequent first.
std::string op_counts(const KernelView& view, int role) {
  std::map<OpKind, int> counts;
  for (const OpColumn& column : view.columns)
    if (column.role == role) ++counts[view.op(column).kind];
  std::vector<std::pair<OpKind, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  std::string text;
  for (const auto& [kind, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(kind));
  return text;
}

std::string role_table(const KernelView& view, const Style& style) {
  TextTable table({{"role"},
                   {"warps", Align::right},
                   {"registers", Align::right},
                   {"register tiles (registers a thread)", Align::left, 56},
                   {"operations"}},
                  2);
  for (int r = 0; r < static_cast<int>(view.kernel->roles.size()); ++r) {
    const Role& role = view.kernel->roles[static_cast<std::size_t>(r)];
    std::string tiles;
    for (const Tile& tile : view.kernel->tiles)
      if (tile.space == Space::reg && tile.role == role.name)
        tiles += fmt::format("{}{} {}", tiles.empty() ? "" : ", ", tile.name, registers_per_thread(tile));
    table.add({role.name, std::to_string(role.warps), std::to_string(role.registers), tiles.empty() ? "none" : tiles,
               op_counts(view, r)});
  }
  return table.text(style);
}

std::string barrier_table(const KernelView& view, bool explain, const Style& style) {
  const auto role_name = [&](int role) { return view.kernel->roles[static_cast<std::size_t>(role)].name; };
  const auto column_id = [&](int column) { return view.op(view.columns[static_cast<std::size_t>(column)]).id; };
  const auto add = [](std::string& text, const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  TextTable table({{"event"}, {"arrivals", Align::right}, {"arrive", Align::left, 44}, {"wait"}}, 2);
  for (const BarrierView& view_of : view.barriers) {
    const Barrier& barrier = *view_of.barrier;
    std::string arrive, wait;
    for (const BarrierUse& use : view_of.arrivals)
      add(arrive, role_name(use.role) + (use.before < 0 ? " at the start" : " after " + column_id(use.before)));
    for (const BarrierUse& use : view_of.waits) {
      const int distance = view.kernel->ops[static_cast<std::size_t>(use.op)].distance;
      add(wait, role_name(use.role) + (use.after < 0 ? " at the end" : " before " + column_id(use.after)) +
                    (distance == 0   ? ""
                     : distance == 1 ? " of the next chunk"
                                     : fmt::format(" {} chunks later", distance)));
    }
    constexpr std::size_t kShownMeetings = 12;
    for (std::size_t i = 0; i < view_of.syncs.size() && i < kShownMeetings; ++i)
      add(wait,
          view_of.syncs[i].before < 0 ? "at the start" : (i == 0 ? "after " : "") + column_id(view_of.syncs[i].before));
    if (view_of.syncs.size() > kShownMeetings)
      wait += fmt::format(" and {} times more", view_of.syncs.size() - kShownMeetings);
    if (!view_of.syncs.empty()) arrive = role_name(view_of.syncs.front().role) + ", all warps meet";
    table.add({barrier.name,
               fmt::format("{}{}", barrier.arrivals, barrier.kind == BarrierKind::named ? " threads" : ""), arrive,
               wait + (explain && !barrier.why.empty() ? fmt::format(" ({})", barrier.why) : "")});
  }
  return table.text(style);
}

std::string smem_sentence(const Plan& plan, const Kernel& kernel, const KernelFacts& facts, const Style& style) {
  const std::int64_t left = std::int64_t{plan.smem_limit_bytes} - kernel.smem_bytes;
  std::string text = fmt::format("{} of {} bytes, ", bytes(kernel.smem_bytes), bytes(plan.smem_limit_bytes));
  text += left >= 0 ? style.good(bytes(left) + " left") : style.bad(bytes(-left) + " too many");
  if (facts.lower_bound_bytes > 0)
    text += fmt::format("; the tiles that must be alive together take {}{}", bytes(facts.lower_bound_bytes),
                        facts.packing_is_optimal ? ", no packing is smaller than this one" : "");
  return text;
}

std::string cost_sentence(const KernelFacts& facts) {
  if (facts.blocks == 0) return {};
  std::string text =
      fmt::format("{}, {}, {} to and from HBM", plural(facts.blocks, "block"),
                  flops_text(static_cast<double>(facts.flops)), bytes_text(static_cast<double>(facts.hbm_bytes)));
  if (facts.workspace_bytes > 0)
    text += fmt::format(" ({} of it workspace)", bytes_text(static_cast<double>(facts.workspace_bytes)));
  text += fmt::format(", {} in all; not under {}, expected {}", bytes_text(static_cast<double>(facts.l2_bytes)),
                      microseconds_text(facts.floor_us), microseconds_text(facts.predicted_us));
  return text;
}

std::string kernel_text(const Plan& plan, std::size_t index, const KernelFacts& facts, bool explain,
                        const Style& style) {
  const Kernel& kernel = plan.kernels[index];
  const KernelView view = view_kernel(kernel);
  std::string text = fmt::format(
      "\n{}\n", style.title(fmt::format("Kernel {} of {}: {}", index + 1, plan.kernels.size(), kernel.name)));
  const auto fact = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    const std::vector<std::string> lines = wrapped(value, kTextWidth - 18);
    for (std::size_t i = 0; i < lines.size(); ++i) text += fmt::format("  {:<14}  {}\n", i == 0 ? name : "", lines[i]);
  };
  fact("grid", fmt::format("{}; {}", grid_text(kernel), loop_text(kernel.loop)));
  fact("threads",
       fmt::format("{} a block, {} meant for an SM{}", kernel.threads(), plural(kernel.blocks_per_sm, "block"),
                   kernel.setmaxnreg ? "; registers move between roles" : ""));
  fact("shared memory", smem_sentence(plan, kernel, facts, style));
  fact("cost", cost_sentence(facts));
  fact("registers", facts.registers_note);
  text += '\n' + tile_table(view, style);
  text += '\n' + timeline_text(view, style);
  text += '\n' + role_table(view, style);
  if (!view.barriers.empty()) text += '\n' + barrier_table(view, explain, style);
  return text;
}

std::string summary_table(const Plan& plan, const PlanFacts& facts, const Style& style) {
  TextTable table({{"kernel"},
                   {"threads", Align::right},
                   {"shared bytes", Align::right},
                   {"left", Align::right},
                   {"blocks", Align::right},
                   {"work", Align::right},
                   {"HBM", Align::right},
                   {"floor", Align::right},
                   {"expected", Align::right},
                   {"grid"}},
                  2);
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const Kernel& kernel = plan.kernels[i];
    const KernelFacts& cost = facts.kernels[i];
    table.add({kernel.function, std::to_string(kernel.threads()), bytes(kernel.smem_bytes),
               bytes(plan.smem_limit_bytes - kernel.smem_bytes), bytes(cost.blocks),
               flops_text(static_cast<double>(cost.flops)), bytes_text(static_cast<double>(cost.hbm_bytes)),
               microseconds_text(cost.floor_us), microseconds_text(cost.predicted_us), grid_text(kernel)});
  }
  return table.text(style);
}

// The kernel that a candidate is for: the first word of its name.
std::string candidate_kernel(const CandidateFacts& candidate) {
  return candidate.name.substr(0, candidate.name.find_first_of(" :"));
}

// For each kernel the chosen candidate and the best of the others of each kind; the rest is counted.
std::string candidates_text(const PlanFacts& facts, const Style& style) {
  constexpr int kShown = 8;
  std::string text = fmt::format("\n{}\n", style.title("What was tried"));
  std::vector<std::string> kernels;
  for (const CandidateFacts& candidate : facts.candidates)
    if (std::find(kernels.begin(), kernels.end(), candidate_kernel(candidate)) == kernels.end())
      kernels.push_back(candidate_kernel(candidate));
  for (const std::string& kernel : kernels) {
    TextTable table({{"outcome"},
                     {"expected", Align::right},
                     {"shared bytes", Align::right},
                     {"registers", Align::right},
                     {"candidate and reason"}},
                    2);
    std::map<Verdict, int> counts;
    for (const CandidateFacts& c : facts.candidates) {
      if (candidate_kernel(c) != kernel || ++counts[c.verdict] > kShown) continue;
      table.add({c.verdict == Verdict::chosen      ? "CHOSEN"
                 : c.verdict == Verdict::runner_up ? "fits"
                                                   : "refused",
                 c.predicted_us > 0 ? microseconds_text(c.predicted_us) : "-",
                 c.smem_bytes > 0 ? bytes(c.smem_bytes) : "-", c.registers > 0 ? std::to_string(c.registers) : "-",
                 fmt::format("{}; {}", c.name, c.reason)});
    }
    text += table.text(style);
    const int more = std::max(counts[Verdict::runner_up] - kShown, 0),
              worse = std::max(counts[Verdict::refused] - kShown, 0);
    if (more + worse > 0)
      text += style.dim(fmt::format("  and {} that fit, {} that were refused: --format json --explain lists them", more,
                                    worse)) +
              '\n';
    text += '\n';
  }
  text.pop_back();
  return text;
}

std::string passes_text(const PlanFacts& facts, const Style& style) {
  TextTable table({{"pass"}, {"time", Align::right}, {"result"}}, 2);
  for (const PassFacts& pass : facts.passes)
    table.add({pass.name, pass.microseconds > 0 ? microseconds_text(pass.microseconds) : "", pass.summary});
  return fmt::format("\n{}\n{}", style.title("Passes"), table.text(style));
}

std::string problem_text(const Plan& plan, const PlanFacts& facts) {
  const Problem& p = plan.problem;
  std::string text = fmt::format("{}", plan.arch);
  if (!facts.shape.empty()) text += ", shape " + facts.shape;
  if (facts.workload.v_heads > 0)
    text += fmt::format(" ({} k-heads, {} v-heads, K {}, V {}, {}; {} in {})", facts.workload.k_heads,
                        facts.workload.v_heads, p.head_dim_k, p.head_dim_v, to_string(p.dtype),
                        plural(facts.workload.tokens, "token"), plural(facts.workload.sequences, "sequence"));
  if (!facts.budget.empty()) text += ", budget " + facts.budget;
  return text;
}

// The first of those with the most shared memory.
std::size_t largest_kernel(const Plan& plan) {
  const auto largest =
      std::max_element(plan.kernels.begin(), plan.kernels.end(),
                       [](const Kernel& left, const Kernel& right) { return left.smem_bytes < right.smem_bytes; });
  return static_cast<std::size_t>(largest - plan.kernels.begin());
}

}  // namespace

bool is_meant(const Kernel& kernel, const std::string& name) {
  return name.empty() || kernel.name == name || kernel.function == name;
}

void check_meant(const Plan& plan, const std::string& name) {
  std::string known;
  for (const Kernel& kernel : plan.kernels) {
    if (is_meant(kernel, name)) return;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", kernel.function);
  }
  fail(ErrorKind::config, "GDR-T01", "kernel {}: the plan has none of this name; it has {}.", name, known);
}

std::string plan_sentence(const Plan& plan) {
  if (plan.kernels.empty()) return fmt::format("{}: no kernels", plan.strategy);
  const Kernel& largest = plan.kernels[largest_kernel(plan)];
  const std::int64_t left = std::int64_t{plan.smem_limit_bytes} - largest.smem_bytes;
  return fmt::format("{}, chunk {}, state {}: {} takes {} of {} bytes of shared memory, {} {}", plan.strategy,
                     plan.chunk, plan.state_split == 1 ? "whole" : fmt::format("in {} parts", plan.state_split),
                     largest.function, bytes(largest.smem_bytes), bytes(plan.smem_limit_bytes),
                     bytes(left < 0 ? -left : left), left < 0 ? "too many" : "left");
}

std::string direct_port_sentence(const Plan& plan, const PlanFacts& facts) {
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const std::optional<std::int64_t> direct = facts.kernels[i].direct_port_bytes;
    if (!direct) continue;
    const std::int64_t excess = *direct - plan.smem_limit_bytes;
    return fmt::format("A direct port of {} (every tile whole, resident and on bytes of its own) takes {} bytes: {} {}",
                       plan.kernels[i].function, bytes(*direct), bytes(excess > 0 ? excess : -excess),
                       excess > 0 ? "too many" : "left");
  }
  return {};
}

std::string plan_table(const Plan& plan, const PlanFacts& facts, const TableOptions& options) {
  internal_check(facts.kernels.size() == plan.kernels.size(), "facts of another plan");
  check_meant(plan, options.kernel);
  const Style style(options.color);
  std::string text = fmt::format("{}\n{}\n", problem_text(plan, facts), style.title(plan_sentence(plan)));
  for (const std::string& sentence : {direct_port_sentence(plan, facts), options.proof})
    for (const std::string& line : wrapped(sentence, kTextWidth))
      if (!line.empty()) text += line + '\n';
  if (plan.kernels.size() > 1) text += '\n' + summary_table(plan, facts, style);
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    if (is_meant(plan.kernels[i], options.kernel))
      text += kernel_text(plan, i, facts.kernels[i], options.explain, style);
  if (options.explain) text += candidates_text(facts, style) + passes_text(facts, style);
  return text;
}

}  // namespace gdr
