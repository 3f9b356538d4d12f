#include "sample_plan.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "schedule/builder.hpp"

namespace gdr::test {
namespace {

constexpr int kChunk = 32;
constexpr int kDim = 64;

std::vector<TensorSpec> tensors() {
  using enum TensorKind;
  using enum TensorIndex;
  using enum HeadAxis;
  constexpr GlobalOrder rows = GlobalOrder::rows;
  return {{"k", input, token, k_head, kChunk, kDim, DType::bf16, rows, false},
          {"do", input, token, v_head, kChunk, kDim, DType::bf16, rows, false},
          {"gam", workspace, chunk, v_head, 1, kChunk, DType::fp32, rows, false},
          {"h", workspace, chunk, v_head, kDim, kDim, DType::bf16, GlobalOrder::fragment, false},
          {"dht", input, sequence, v_head, kDim, kDim, DType::fp32, rows, true},
          {"dv", output, token, v_head, kChunk, kDim, DType::bf16, rows, false},
          {"dh0", output, sequence, v_head, kDim, kDim, DType::fp32, rows, true}};
}

class Sample {
 public:
  explicit Sample(const std::vector<TensorSpec>& table)
      : build_("sample", {GridAxis::sequence, GridAxis::v_head}, LoopKind::chunks_descending, table) {}

  Kernel kernel() && {
    tiles();
    dataflow();
    kernel_ = std::move(build_).finish();
    kernel_.name = "gdr_sample_bf16_k64v64_c32_s2__sm_120";
    place();
    synchronise();
    return std::move(kernel_);
  }

 private:
  void tiles() {
    build_.role("loader", 1);
    build_.role("state", 4);
    build_.role("pairs", 2);
    build_.smem("k", kChunk, kDim, DType::bf16);
    build_.smem("do", kChunk, kDim, DType::bf16);
    build_.smem("h", kDim, kDim, DType::bf16, {.parts = 2});
    build_.smem("ds", kDim, kDim, DType::bf16);
    build_.smem("p", kChunk, kChunk, DType::bf16, {.lower16 = true});
    build_.smem("x", kChunk, kDim, DType::bf16);
    build_.smem("e", kChunk, kDim, DType::bf16);
    build_.vec("gam", kChunk, 1, 2);
    build_.acc("state", "dS", kDim, kDim, {4, 1});
    build_.acc("state", "d", kChunk, kDim, {2, 2});
    build_.acc("state", "u", kChunk, kDim, {2, 2});
    build_.acc("pairs", "P", kChunk, kChunk, {2, 1});
  }

  void dataflow() {
    using enum KernelBuilder::Section;
    build_.section(prologue);
    build_.load("state", "dS", View("dht").global(), "dS of the last chunk is dht");
    build_.section(body);
    build_.copy_in("loader", "k", "k", "k of the chunk", Where::row_valid);
    build_.copy_in("loader", "do", "do", "do of the chunk", Where::row_valid);
    build_.copy_in("loader", "gam", "gam", "gamma of the chunk", Where::all);
    Op& p = build_.mma("pairs", "P", "k", View("k").t(), "1: P = K K^T", false);
    p.mask_d = Mask::lower;
    p.slices = 4;
    build_.map("pairs", "P[i,j] = select(i>=j, exp(gam[i] - gam[j]) * P[i,j], 0)", "1: Pg = P o G").mask_d =
        Mask::lower;
    build_.store("pairs", "p", "P", "1: c1 = bf16(Pg)").mask_d = Mask::lower;
    build_.mma("state", "d", "k", "ds", "3: D = K dS", false);
    build_.mma("state", "d", View("p").t(), "do", "3: D += Pg^T dO", true).mask_a = Mask::lower;
    build_.store("state", "x", "d", "3: x = bf16(D)");
    build_.copy_out("state", "dv", "x", "4: dv", Where::row_valid);
    for (int part = 0; part < 2; ++part) {
      build_.copy_in("loader", View("h").part(part), View("h").part_of(part, 2), "h of the chunk", Where::all);
      build_.mma("state", "u", View("k").cols(part * kDim / 2, (part + 1) * kDim / 2), View("h").part(part),
                 "5: U = K S0", part > 0);
    }
    build_.map("state", "u[i,j] = d[i,j] - exp(gam[i]) * u[i,j]", "7: W = V - eg U");
    build_.store("state", "e", "u", "8: x1 = bf16(E)");
    build_.mma("state", "dS", View("k").t(), "e", "13: dS += K^T e", true, "exp(gam[l])");
    build_.store("state", "ds", "dS", "14: dSb = bf16(dS)");
    build_.section(epilogue);
    build_.copy_out("state", "dh0", "dS", "dS before the first chunk is dh0", Where::all);
  }

  void place() {
    const auto at = [&](const char* name, int offset_bytes) {
      for (Tile& tile : kernel_.tiles)
        if (tile.name == name && tile.space == Space::smem) tile.offset_bytes = offset_bytes;
    };
    at("k", 0);
    at("do", 4096);
    at("e", 4096);
    at("h", 8192);
    at("x", 8192);
    at("ds", 12288);
    at("p", 20480);
    at("gam", 22016);
    kernel_.barrier_offset_bytes = 22272;
    kernel_.launch_registers = 96;
    kernel_.roles[0].registers = 40;
    kernel_.roles[1].registers = 120;
    kernel_.roles[2].registers = 72;
  }

  void barrier(const char* name, int arrivals, const char* why = "") {
    kernel_.barriers.push_back({name, BarrierKind::mbarrier, 1, arrivals, -1, why});
  }

  // Puts a synchronisation op before or after the op `at`, in the canonical order and in the list of its role.
  void insert(const char* at, bool after, Op op, const char* role_name) {
    auto& ops = kernel_.ops;
    const auto found = std::find_if(ops.begin(), ops.end(), [&](const Op& known) { return known.id == at; });
    const int position = static_cast<int>(found - ops.begin()) + (after ? 1 : 0);
    op.id = std::string(to_verb(op.kind)) + "." + op.barrier + "." + role_name;
    if (const auto same = std::count_if(ops.begin(), ops.end(), [&](const Op& o) { return o.id.starts_with(op.id); }))
      op.id += std::to_string(same + 1);
    ops.insert(ops.begin() + position, op);
    for (Role& role : kernel_.roles)
      for (auto* list : {&role.prologue, &role.body, &role.epilogue})
        for (Step& step : *list)
          if (step.op >= position) ++step.op;
    for (Role& role : kernel_.roles) {
      if (role.name != role_name) continue;
      const auto place =
          std::find_if(role.body.begin(), role.body.end(), [&](const Step& step) { return step.op > position; });
      role.body.insert(place, {position, 0, 1});
    }
  }
  static const char* to_verb(OpKind kind) {
    return kind == OpKind::arrive ? "arrive" : kind == OpKind::wait ? "wait" : "sync";
  }
  void arrive_after(const char* at, const char* barrier, const char* role, bool after_copies = false) {
    Op op;
    op.kind = OpKind::arrive;
    op.barrier = barrier;
    op.after_copies = after_copies;
    insert(at, true, op, role);
  }
  void wait_before(const char* at, const char* barrier, const char* role, int distance = 0) {
    Op op;
    op.kind = OpKind::wait;
    op.barrier = barrier;
    op.distance = distance;
    insert(at, false, op, role);
  }
  void sync_after(const char* at, const char* barrier, const char* role) {
    Op op;
    op.kind = OpKind::sync;
    op.barrier = barrier;
    insert(at, true, op, role);
  }

  void synchronise() {
    barrier("chunk_arrived", 1);
    barrier("chunk_free", 6, "the next chunk's k, do and gam overwrite what state and pairs read");
    barrier("p_ready", 2);
    barrier("x_free", 4, "h lies on the bytes of x");
    barrier("h0_arrived", 1);
    barrier("h0_free", 4);
    barrier("h1_arrived", 1);
    kernel_.barriers.push_back({"state_sync", BarrierKind::named, 1, 128, 1, ""});
    kernel_.smem_bytes = kernel_.barrier_offset_bytes + 7 * 8;

    wait_before("k.in", "chunk_free", "loader", 1);
    arrive_after("gam.in", "chunk_arrived", "loader", true);
    wait_before("P.mma", "chunk_arrived", "pairs");
    arrive_after("p.store", "p_ready", "pairs");
    arrive_after("arrive.p_ready.pairs", "chunk_free", "pairs");
    wait_before("d.mma", "p_ready", "state");
    wait_before("wait.p_ready.state", "chunk_arrived", "state");
    sync_after("x.store", "state_sync", "state");
    arrive_after("dv.out", "x_free", "state");
    sync_after("e.store", "state_sync", "state");
    wait_before("h.in", "x_free", "loader");
    arrive_after("h.in", "h0_arrived", "loader", true);
    wait_before("u.mma", "h0_arrived", "state");
    arrive_after("u.mma", "h0_free", "state");
    wait_before("h.in2", "h0_free", "loader");
    arrive_after("h.in2", "h1_arrived", "loader", true);
    wait_before("u.mma2", "h1_arrived", "state");
    arrive_after("ds.store", "chunk_free", "state");
    sync_after("arrive.chunk_free.state", "state_sync", "state");
    split_p_mma();
  }

  // Software pipelining: the second half of P's slices stands after a wait's worth of other work.
  void split_p_mma() {
    for (Step& step : kernel_.roles[2].body)
      if (kernel_.ops[static_cast<std::size_t>(step.op)].id == "P.mma") {
        const int op = step.op;
        step.slice_end = 2;
        auto& body = kernel_.roles[2].body;
        const auto here = std::find_if(body.begin(), body.end(), [&](const Step& s) { return s.op == op; });
        body.insert(here + 1, {op, 2, 4});
        return;
      }
  }

  KernelBuilder build_;
  Kernel kernel_;
};

}  // namespace

Plan sample_plan() {
  Plan plan;
  plan.arch = "sm_120";
  plan.strategy = "fused";
  plan.problem.head_dim_k = kDim;
  plan.problem.head_dim_v = kDim;
  plan.problem.group = 2;
  plan.chunk = kChunk;
  plan.state_split = 2;
  plan.smem_limit_bytes = 24576;
  plan.tensors = tensors();
  plan.kernels.push_back(Sample(plan.tensors).kernel());
  return plan;
}

}  // namespace gdr::test
