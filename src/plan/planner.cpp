#include "plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "plan/candidates.hpp"
#include "plan/cost.hpp"
#include "plan/direct_port.hpp"
#include "plan/passes.hpp"

namespace gdr {
namespace {

constexpr std::array kChunks = {32, 64, 128, 16};  // of equals the first is taken

// The workload that candidates are costed for, the same for all shapes of a class: so no plan depends on head counts or
// lengths, and one compilation serves them all. About 32 v-heads and 32,768 tokens in one sequence.
Shape reference_workload(const Shape& shape) {
  Shape reference = shape;
  reference.k_heads = std::max(1, 32 / shape.group());
  reference.v_heads = reference.k_heads * shape.group();
  reference.tokens = 32'768;
  reference.sequences = 1;
  return reference;
}

// A kernel with everything decided.
struct Finished {
  Kernel kernel;
  PassResult passes;
  KernelCost cost;
  std::string label;
  int state_split = 1;
};

// The kernels of a strategy for one chunk length.
struct Sequence {
  int chunk = 0;
  std::vector<TensorSpec> tensors;
  std::vector<Finished> kernels;
  double predicted_us = 0;
};

class Planner {
 public:
  explicit Planner(const PlanRequest& request)
      : request_(request),
        problem_(problem_of(request.shape)),
        reference_(reference_workload(request.shape)),
        limit_(static_cast<int>(smem_limit_bytes(request.budget, request.arch))) {}

  PlanResult run() {
    const Strategy& strategy = find_strategy();
    check_head_dims();
    const double start = now();
    std::optional<Sequence> best;
    for (const int chunk : kChunks) {
      std::optional<Sequence> sequence = try_chunk(strategy, chunk);
      if (sequence && (!best || sequence->predicted_us < best->predicted_us)) best = std::move(sequence);
    }
    if (!best) refuse(strategy);
    const double chosen = now();
    PlanResult result;
    result.plan = assemble(*best);
    result.proof = verify(result.plan);
    log("candidates", chosen - start, fmt::format("{} tried", candidates_.size()));
    for (const Finished& finished : best->kernels)
      for (const PassNote& note : finished.passes.notes)
        log(finished.kernel.function + ": " + note.pass, note.microseconds, note.summary);
    log("verify", now() - chosen,
        fmt::format("{} accesses to shared memory ordered, no deadlock", result.proof.accesses_checked));
    if (!result.proof.ok())
      fail(ErrorKind::internal, "GDR-X04",
           "plan {} for {}: the planner made a plan that does not verify; please report it:\n{}", request_.strategy,
           request_.arch.name, result.proof.text());
    result.facts = facts(*best);
    return result;
  }

 private:
  double now() const { return request_.clock_us ? request_.clock_us() : 0; }

  void log(std::string name, double microseconds, std::string summary) {
    passes_.push_back({std::move(name), microseconds, std::move(summary)});
  }

  const Strategy& find_strategy() const {
    std::string known;
    for (const Strategy& strategy : strategies()) {
      if (strategy.name == request_.strategy) return strategy;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", strategy.name);
    }
    fail(ErrorKind::config, "GDR-P01", "strategy {}: there is none of this name; known are {}", request_.strategy,
         known);
  }

  // Matrix products work on 16 x 16 blocks.
  void check_head_dims() const {
    if (problem_.head_dim_k % 16 != 0 || problem_.head_dim_v % 16 != 0)
      fail(ErrorKind::unsupported, "GDR-P04", "plan {} for {}: head dims {} x {}; the kernels take multiples of 16",
           request_.strategy, request_.arch.name, problem_.head_dim_k, problem_.head_dim_v);
  }

  std::optional<Sequence> try_chunk(const Strategy& strategy, int chunk) {
    Sequence sequence;
    sequence.chunk = chunk;
    sequence.tensors = backward_tensors(strategy.tensors(problem_, chunk));
    const std::vector<KernelSlot> slots = strategy.kernels(problem_, chunk);
    sequence.kernels.resize(slots.size());
    // The kernel with the most ways to do it is the one that may not fit: it is asked first.
    std::vector<std::size_t> order(slots.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return slots[x].families.size() > slots[y].families.size(); });
    for (const std::size_t i : order) {
      std::optional<Finished> best = best_of(slots[i], sequence);
      if (!best) return std::nullopt;
      sequence.predicted_us += best->cost.predicted_us;
      sequence.kernels[i] = std::move(*best);
    }
    return sequence;
  }

  std::optional<Finished> best_of(const KernelSlot& slot, const Sequence& sequence) {
    std::optional<Finished> best;
    try_candidates(slot, [&](const KernelCandidate& candidate) {
      Finished finished = finish(candidate, sequence);
      const Tried tried{finished.passes.registers.fits, finished.passes.fits};
      const auto rank = [](const Finished& f) { return std::tuple(f.cost.predicted_us, f.kernel.smem_bytes); };
      if (finished.passes.fits && (!best || rank(finished) < rank(*best))) best = std::move(finished);
      return tried;
    });
    return best;
  }

  struct Tried {
    bool registers_fit = false, fits = false;
  };

  // Fallback families are left out once an earlier candidate fits, and the rest of a family where registers do not
  // suffice. `attempt(candidate)` tries one.
  template <typename Attempt>
  static void try_candidates(const KernelSlot& slot, const Attempt& attempt) {
    bool some_fit = false;
    for (const Family& family : slot.families) {
      if (family.is_fallback && some_fit) continue;
      for (const KernelCandidate& candidate : family.candidates) {
        const Tried tried = attempt(candidate);
        if (!tried.registers_fit) break;
        some_fit |= tried.fits;
      }
    }
  }

  PassResult pass(const KernelCandidate& candidate, const std::vector<TensorSpec>& tensors, int limit,
                  Kernel& kernel) const {
    kernel = candidate.build(tensors);
    kernel.blocks_per_sm = request_.budget.blocks_per_sm;
    return run_passes(kernel, request_.arch, {Aliasing::any, limit, request_.clock_us});
  }

  Finished finish(const KernelCandidate& candidate, const Sequence& sequence) {
    Finished finished;
    finished.label = candidate.label;
    finished.state_split = candidate.state_split;
    finished.passes = pass(candidate, sequence.tensors, limit_, finished.kernel);
    CandidateFacts tried;
    tried.name = candidate.label;
    tried.smem_bytes = finished.passes.smem_bytes;
    const auto& needed = finished.passes.registers.needed;
    tried.registers = needed.empty() ? 0 : *std::max_element(needed.begin(), needed.end());
    tried.reason = finished.passes.reason;
    if (finished.passes.fits) {
      finished.cost = cost(sequence, finished.kernel, reference_);
      tried.predicted_us = finished.cost.predicted_us;
      tried.verdict = Verdict::runner_up;
    } else if (!finished.passes.registers.fits) {
      register_reason_ = fmt::format("{}: {}", finished.label, finished.passes.reason);
    }
    candidates_.push_back(tried);
    return finished;
  }

  KernelCost cost(const Sequence& sequence, const Kernel& kernel, const Shape& workload) const {
    Plan plan;
    plan.problem = problem_;
    plan.chunk = sequence.chunk;
    plan.tensors = sequence.tensors;
    return kernel_cost(plan, kernel, request_.arch, workload);
  }

  // What a kernel needs, at least; `label` is the candidate that needs least.
  struct Need {
    int bytes = 0;
    std::string function, label;
  };

  // The most that a kernel of this chunk length needs under `limit`, each by its smallest candidate. One that does not
  // fit reports a bound: that it fits with so much is not said. Nothing if registers suffice for no candidate of a
  // kernel.
  std::optional<Need> largest_need(const Strategy& strategy, int chunk, int limit) {
    const std::vector<TensorSpec> tensors = backward_tensors(strategy.tensors(problem_, chunk));
    Need largest;
    for (const KernelSlot& slot : strategy.kernels(problem_, chunk)) {
      std::optional<Need> smallest;
      try_candidates(slot, [&](const KernelCandidate& candidate) {
        Kernel kernel;
        const PassResult passes = pass(candidate, tensors, limit, kernel);
        if (passes.registers.fits && (!smallest || passes.smem_bytes < smallest->bytes))
          smallest = {passes.smem_bytes, slot.function, candidate.label};
        return Tried{passes.registers.fits, false};  // fallbacks may need less
      });
      if (slot.families.empty()) has_no_kernel_ = true;
      if (!smallest) return std::nullopt;
      if (smallest->bytes > largest.bytes) largest = *smallest;
    }
    return largest;
  }

  // The least limit under which the kernels of this chunk length fit: raised to what is asked for until it is enough.
  std::optional<Need> least_limit(const Strategy& strategy, int chunk) {
    std::optional<Need> need = largest_need(strategy, chunk, limit_);
    while (need) {
      const std::optional<Need> with_it = largest_need(strategy, chunk, need->bytes);
      if (!with_it || with_it->bytes <= need->bytes) break;
      need = with_it;
    }
    return need;
  }

  [[noreturn]] void refuse(const Strategy& strategy) {
    const std::string subject = fmt::format("plan {} for {}", request_.strategy, request_.arch.name);
    std::optional<Need> least;
    for (const int chunk : kChunks) {
      const std::optional<Need> need = least_limit(strategy, chunk);
      if (need && (!least || need->bytes < least->bytes)) least = need;
    }
    if (least)
      fail(
          ErrorKind::unsupported, "GDR-P03",
          "{}: {} needs at least {} B of shared memory, budget {} grants {} B per block: {} B too many (smallest: {}). "
          "Raise the budget; {} allows up to {} B",
          subject, least->function, least->bytes, request_.budget.name, limit_, least->bytes - limit_, least->label,
          request_.arch.name, request_.arch.smem_per_block_optin_bytes);
    if (has_no_kernel_ && register_reason_.empty())
      fail(ErrorKind::unsupported, "GDR-P04", "{}: there is no kernel for head dims {} x {} and {} v-heads a k-head",
           subject, problem_.head_dim_k, problem_.head_dim_v, problem_.group);
    fail(ErrorKind::unsupported, "GDR-P02", "{}: no candidate's registers suffice; the last tried was {}", subject,
         register_reason_);
  }

  Plan assemble(const Sequence& sequence) const {
    Plan plan;
    plan.arch = request_.arch.name;
    plan.strategy = request_.strategy;
    plan.problem = problem_;
    plan.chunk = sequence.chunk;
    plan.smem_limit_bytes = limit_;
    plan.tensors = sequence.tensors;
    for (const Finished& finished : sequence.kernels) {
      plan.state_split = std::max(plan.state_split, finished.state_split);
      plan.kernels.push_back(finished.kernel);
      plan.kernels.back().name = fmt::format("gdr_{}_{}_k{}v{}_c{}_s{}__{}", finished.kernel.function,
                                             to_string(problem_.dtype), problem_.head_dim_k, problem_.head_dim_v,
                                             sequence.chunk, finished.state_split, request_.arch.name);
    }
    return plan;
  }

  PlanFacts facts(const Sequence& sequence) {
    PlanFacts facts;
    facts.shape = request_.shape.name;
    facts.budget = request_.budget.name;
    facts.workload = {request_.shape.tokens, request_.shape.sequences, request_.shape.k_heads, request_.shape.v_heads};
    for (const Finished& finished : sequence.kernels) {
      const KernelCost cost = this->cost(sequence, finished.kernel, request_.shape);
      KernelFacts kernel;
      kernel.blocks = cost.blocks;
      kernel.flops = cost.flops;
      kernel.hbm_bytes = cost.hbm_bytes;
      kernel.l2_bytes = cost.global_bytes;
      kernel.workspace_bytes = cost.workspace_bytes;
      kernel.floor_us = cost.floor_us;
      kernel.predicted_us = cost.predicted_us;
      kernel.cycles_per_iteration = cost.cycles_per_iteration;
      kernel.lower_bound_bytes = finished.passes.lower_bound_bytes;
      kernel.packing_is_optimal = finished.passes.packing_is_optimal;
      if (finished.kernel.function == "bwd_fused")
        kernel.direct_port_bytes = direct_port_bytes(problem_, sequence.chunk);
      for (std::size_t r = 0; r < finished.kernel.roles.size(); ++r)
        kernel.registers_note += fmt::format("{}{} {}", r == 0 ? "" : ", ", finished.kernel.roles[r].name,
                                             finished.passes.registers.needed[r]);
      facts.kernels.push_back(kernel);
      for (CandidateFacts& candidate : candidates_)
        if (candidate.name == finished.label) candidate.verdict = Verdict::chosen;
    }
    rank_candidates(sequence);
    facts.candidates = std::move(candidates_);
    facts.passes = std::move(passes_);
    return facts;
  }

  void rank_candidates(const Sequence& sequence) {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const CandidateFacts& x, const CandidateFacts& y) {
      const auto time = [](const CandidateFacts& c) {
        return c.verdict == Verdict::refused ? std::numeric_limits<double>::infinity() : c.predicted_us;
      };
      return std::tuple(x.verdict, time(x)) < std::tuple(y.verdict, time(y));
    });
    for (CandidateFacts& candidate : candidates_) {
      if (candidate.verdict == Verdict::chosen) candidate.reason = "fits and is predicted to be fastest";
      if (candidate.verdict == Verdict::runner_up)
        candidate.reason = fmt::format("fits; chunk {} with another choice is predicted to be faster", sequence.chunk);
    }
  }

  const PlanRequest& request_;
  const Problem problem_;
  const Shape reference_;
  const int limit_;
  std::vector<CandidateFacts> candidates_;
  std::vector<PassFacts> passes_;
  std::string register_reason_;
  bool has_no_kernel_ = false;
};

}  // namespace

const std::vector<std::string_view>& strategy_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Strategy& strategy : strategies()) all.push_back(strategy.name);
    return all;
  }();
  return names;
}

Problem problem_of(const Shape& shape) {
  Problem problem;
  problem.head_dim_k = shape.head_dim_k;
  problem.head_dim_v = shape.head_dim_v;
  problem.group = shape.group();
  problem.dtype = shape.dtype;
  problem.state_dtype = shape.state_dtype;
  return problem;
}

PlanResult make_plan(const PlanRequest& request) { return Planner(request).run(); }

}  // namespace gdr
