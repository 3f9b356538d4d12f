#include "harness.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "schedule/layout.hpp"

using namespace gdr;

namespace harness {
namespace {

constexpr int kMbarrierBytes = 8;

constexpr Order kOrders[] = {Order::random, Order::round_robin, Order::role_ahead, Order::role_behind,
                             Order::priorities};
constexpr Landing kLandings[] = {Landing::late, Landing::random, Landing::early};

TensorSpec tensor_of(const std::string& name, TensorKind kind, TensorIndex index, int rows, int cols, DType dtype) {
  TensorSpec tensor;
  tensor.name = name;
  tensor.kind = kind;
  tensor.index = index;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.dtype = dtype;
  return tensor;
}

}  // namespace

double rounded(double value, DType dtype) {
  if (dtype == DType::bf16) return static_cast<double>(round_to_bf16(static_cast<float>(value)));
  if (dtype == DType::fp16) return static_cast<double>(round_to_fp16(static_cast<float>(value)));
  return dtype == DType::fp32 ? static_cast<double>(static_cast<float>(value)) : value;
}

HostTensor tensor(DType dtype, std::vector<std::int64_t> shape, const std::function<double(std::int64_t)>& value) {
  HostTensor result;
  result.dtype = dtype;
  result.shape = std::move(shape);
  std::int64_t count = 1;
  for (const std::int64_t length : result.shape) count *= length;
  const std::size_t elem = size_bytes(dtype);
  result.bytes.resize(static_cast<std::size_t>(count) * elem);
  for (std::int64_t n = 0; n < count; ++n) {
    const double real = value(n);
    const auto single = static_cast<float>(real);
    const std::uint16_t bits = dtype == DType::bf16 ? bf16_from_float(single) : fp16_from_float(single);
    const void* from = &bits;
    if (dtype == DType::fp32) from = &single;
    if (dtype == DType::fp64) from = &real;
    std::memcpy(result.bytes.data() + static_cast<std::size_t>(n) * elem, from, elem);
  }
  return result;
}

HostTensor noise(DType dtype, std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  return tensor(dtype, std::move(shape), [&](std::int64_t) { return static_cast<double>(random()) * 0x1p-31 - 1.0; });
}

std::vector<double> values(const HostTensor& host) {
  const std::size_t elem = size_bytes(host.dtype);
  std::vector<double> result(host.bytes.size() / elem);
  for (std::size_t n = 0; n < result.size(); ++n) {
    const std::byte* at = host.bytes.data() + n * elem;
    std::uint16_t bits = 0;
    float single = 0;
    if (elem == 2) std::memcpy(&bits, at, 2);
    if (elem == 4) std::memcpy(&single, at, 4);
    if (elem == 8) std::memcpy(&result[n], at, 8);
    if (host.dtype == DType::bf16) single = float_from_bf16(bits);
    if (host.dtype == DType::fp16) single = float_from_fp16(bits);
    if (elem != 8) result[n] = static_cast<double>(single);
  }
  return result;
}

void place(Kernel& kernel) {
  constexpr int kAlign = 128;
  int end = 0;
  for (Tile& tile : kernel.tiles) {
    if (tile.space != Space::smem) continue;
    tile.offset_bytes = end;
    end += (tile_bytes(tile) + kAlign - 1) / kAlign * kAlign;
  }
  kernel.barrier_offset_bytes = end;
  for (const Barrier& barrier : kernel.barriers)
    if (barrier.kind == BarrierKind::mbarrier) end += kMbarrierBytes * barrier.stages;
  kernel.smem_bytes = end;
  kernel.name = "test_" + kernel.function;
}

void mbarrier(Kernel& kernel, const std::string& name, int arrivals, int stages) {
  Barrier barrier;
  barrier.name = name;
  barrier.arrivals = arrivals;
  barrier.stages = stages;
  kernel.barriers.push_back(barrier);
}

Op arrive(const std::string& barrier, bool after_copies) {
  Op op;
  op.kind = OpKind::arrive;
  op.barrier = barrier;
  op.after_copies = after_copies;
  return op;
}

Op wait(const std::string& barrier, int distance) {
  Op op;
  op.kind = OpKind::wait;
  op.barrier = barrier;
  op.distance = distance;
  return op;
}

Op sync(const std::string& barrier) {
  Op op;
  op.kind = OpKind::sync;
  op.barrier = barrier;
  return op;
}

void insert(Kernel& kernel, const std::string& role, int position, Op op) {
  const char* kind = op.kind == OpKind::arrive ? "arrive" : op.kind == OpKind::wait ? "wait" : "sync";
  op.id = fmt::format("{}.{}{}", op.barrier, kind, kernel.ops.size());
  kernel.ops.push_back(op);
  for (Role& r : kernel.roles)
    if (r.name == role)
      r.body.insert(position < 0 ? r.body.end() : r.body.begin() + position,
                    Step{static_cast<int>(kernel.ops.size()) - 1, 0, 1});
}

void serialise(Kernel& kernel) {
  Role& role = kernel.roles.at(0);
  const std::vector<Step> steps = role.body;
  Barrier meet;
  meet.name = "meet";
  meet.kind = BarrierKind::named;
  meet.arrivals = role.warps * 32;
  meet.id = 1;
  kernel.barriers.push_back(meet);
  const std::string name = role.name;
  role.body.clear();
  for (const Step& step : steps) {
    kernel.roles[0].body.push_back(step);
    const Op op = kernel.ops[static_cast<std::size_t>(step.op)];
    if (op.kind != OpKind::copy_in) {
      insert(kernel, name, -1, sync("meet"));
      continue;
    }
    const std::string landed = op.id + ".landed";
    mbarrier(kernel, landed, kernel.roles[0].warps);
    insert(kernel, name, -1, arrive(landed, true));
    insert(kernel, name, -1, wait(landed));
  }
}

Plan plan_of(int chunk, std::vector<TensorSpec> tensors, std::vector<Kernel> kernels) {
  Plan plan;
  plan.arch = "sm_120";
  plan.strategy = "test";
  plan.chunk = chunk;
  plan.tensors = std::move(tensors);
  plan.kernels = std::move(kernels);
  return plan;
}

LaunchShape one_sequence(std::int64_t tokens) {
  LaunchShape shape;
  shape.tokens = tokens;
  shape.sequences = {{0, tokens}};
  return shape;
}

TensorSpec chunk_tensor(const std::string& name, TensorKind kind, int rows, int cols, DType dtype) {
  return tensor_of(name, kind, TensorIndex::chunk, rows, cols, dtype);
}
TensorSpec token_tensor(const std::string& name, TensorKind kind, int chunk, int cols, DType dtype) {
  return tensor_of(name, kind, TensorIndex::token, chunk, cols, dtype);
}
TensorSpec sequence_tensor(const std::string& name, TensorKind kind, int rows, int cols, DType dtype) {
  return tensor_of(name, kind, TensorIndex::sequence, rows, cols, dtype);
}

std::vector<TensorSpec> pipeline_tensors() {
  return {token_tensor("x", TensorKind::input, kPipelineRows, kPipelineCols, DType::bf16),
          sequence_tensor("h0", TensorKind::input, kPipelineRows, kPipelineCols, DType::fp32),
          chunk_tensor("y", TensorKind::output, kPipelineRows, kPipelineCols, DType::fp32),
          sequence_tensor("h1", TensorKind::output, kPipelineRows, kPipelineCols, DType::fp32)};
}

Kernel pipeline(int stages, LoopKind loop) {
  const std::vector<TensorSpec> tensors = pipeline_tensors();
  KernelBuilder build("pipeline", {GridAxis::sequence, GridAxis::v_head}, loop, tensors);
  build.role("loader", 3);
  build.role("adder", 2);
  build.smem("x", kPipelineRows, kPipelineCols, DType::bf16, {.stages = stages});
  build.acc("adder", "sum", kPipelineRows, kPipelineCols, {1, 2});
  build.section(KernelBuilder::Section::prologue);
  build.load("adder", "sum", View("h0").global(), "");
  build.section(KernelBuilder::Section::body);
  build.copy_in("loader", "x", "x", "", Where::row_valid);
  build.map("adder", "sum[i,j] = sum[i,j] + x[i,j]", "");
  build.copy_out("adder", "y", "sum", "", Where::all);
  build.section(KernelBuilder::Section::epilogue);
  build.copy_out("adder", "h1", "sum", "", Where::all);
  Kernel kernel = std::move(build).finish();
  mbarrier(kernel, "x_arrived", 3, stages);
  mbarrier(kernel, "x_free", 2, stages);
  insert(kernel, "loader", 0, wait("x_free", stages));
  insert(kernel, "loader", -1, arrive("x_arrived", true));
  insert(kernel, "adder", 0, wait("x_arrived"));
  insert(kernel, "adder", 2, arrive("x_free"));
  place(kernel);
  return kernel;
}

Tensors pipeline_inputs(std::int64_t tokens, int sequences) {
  return {{"x", noise(DType::bf16, {tokens, 1, kPipelineCols}, 41)},
          {"h0", noise(DType::fp32, {sequences, 1, kPipelineRows, kPipelineCols}, 42)}};
}

Tensors run(const Plan& plan, const LaunchShape& shape, const Tensors& inputs, const InterpOptions& options) {
  Tensors tensors = inputs;
  interpret(plan, shape, tensors, options);
  return tensors;
}

Tensors run_everywhere(const Plan& plan, const LaunchShape& shape, const Tensors& inputs, bool exact) {
  Tensors first;
  std::uint64_t seed = 1;
  for (const Order order : kOrders)
    for (const Landing landing : kLandings)
      for (const bool check : {true, false}) {
        CAPTURE(seed);
        InterpOptions options;
        options.seed = seed++;
        options.order = order;
        options.landing = landing;
        options.check = check;
        options.exact = exact;
        const Tensors found = run(plan, shape, inputs, options);
        if (first.empty()) first = found;
        for (const auto& entry : found) {
          CAPTURE(entry.first);
          CHECK(entry.second.bytes == first.at(entry.first).bytes);
        }
      }
  return first;
}

std::string fault_of(const Plan& plan, const LaunchShape& shape, const Tensors& inputs, int seeds) {
  for (int seed = 1; seed <= seeds; ++seed)
    for (const Order order : kOrders)
      for (const Landing landing : kLandings) {
        InterpOptions options;
        options.seed = static_cast<std::uint64_t>(seed);
        options.order = order;
        options.landing = landing;
        try {
          run(plan, shape, inputs, options);
        } catch (const Error& error) {
          return error.what();
        }
      }
  return "";
}

void check_equal(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t n = 0; n < found.size(); ++n) {
    CAPTURE(n);
    REQUIRE(found[n] == wanted[n]);
  }
}

void check_near(const std::vector<double>& found, const std::vector<double>& wanted, double relative) {
  REQUIRE(found.size() == wanted.size());
  double largest = 0;
  for (const double value : wanted) largest = std::max(largest, std::fabs(value));
  for (std::size_t n = 0; n < found.size(); ++n) {
    CAPTURE(n);
    CAPTURE(found[n]);
    CAPTURE(wanted[n]);
    REQUIRE(std::fabs(found[n] - wanted[n]) <= relative * largest);
  }
}

}  // namespace harness
