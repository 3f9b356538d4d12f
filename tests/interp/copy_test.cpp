// Ops that move elements: copy_in, copy_out, load, store, relayout.
#include "harness.hpp"

using namespace gdr;
using namespace harness;
using enum TensorKind;
using Section = KernelBuilder::Section;

namespace {

constexpr int kChunk = 32;

KernelBuilder builder(LoopKind loop, const std::vector<TensorSpec>& tensors, int warps,
                      std::vector<GridAxis> grid = {GridAxis::sequence, GridAxis::v_head}) {
  KernelBuilder build("copies", std::move(grid), loop, tensors);
  build.role("all", warps);
  return build;
}

Kernel finished(KernelBuilder build) {
  Kernel kernel = std::move(build).finish();
  serialise(kernel);
  place(kernel);
  return kernel;
}

}  // namespace

TEST_CASE("token tensors: chunks of ragged sequences, rounding on the way in and out") {
  struct Row {
    std::string name;
    DType in, smem, out;
    LoopKind loop;
  };
  const Row rows[] = {
      {"bf16 throughout", DType::bf16, DType::bf16, DType::bf16, LoopKind::chunks_ascending},
      {"fp32 rounded to bf16 in shared memory", DType::fp32, DType::bf16, DType::fp32, LoopKind::chunks_ascending},
      {"fp32 rounded to fp16 on the way out", DType::fp32, DType::fp32, DType::fp16, LoopKind::chunks_descending},
      {"fp16 widened", DType::fp16, DType::fp32, DType::fp32, LoopKind::chunks_descending},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::vector<TensorSpec> tensors = {token_tensor("x", input, kChunk, 24, row.in),
                                             token_tensor("y", output, kChunk, 24, row.out)};
    KernelBuilder build = builder(row.loop, tensors, 3);
    build.smem("s", kChunk, 24, row.smem);
    build.copy_in("all", "s", "x", "", Where::row_valid);
    build.copy_out("all", "y", "s", "", Where::row_valid);
    LaunchShape shape;
    shape.tokens = 110;  // the last ten belong to no sequence
    shape.sequences = {{0, 40}, {40, 40}, {40, 100}};
    shape.v_heads = 2;
    const Tensors found =
        run_everywhere(plan_of(kChunk, tensors, {finished(build)}), shape, {{"x", noise(row.in, {110, 2, 24}, 7)}});
    std::vector<double> wanted = values(found.at("x"));
    for (std::size_t n = 0; n < wanted.size(); ++n)
      wanted[n] = n < 100 * 2 * 24 ? rounded(rounded(wanted[n], row.smem), row.out) : 0.0;
    check_equal(values(found.at("y")), wanted);
    CHECK(found.at("y").dtype == row.out);
  }
}

TEST_CASE("rows past the end of a chunk are zeros in shared memory, transposed or not") {
  const std::vector<TensorSpec> tensors = {token_tensor("x", input, kChunk, 16, DType::bf16),
                                           chunk_tensor("whole", output, kChunk, 16, DType::bf16),
                                           chunk_tensor("turned", output, 16, kChunk, DType::fp32)};
  KernelBuilder build = builder(LoopKind::chunks_ascending, tensors, 2);
  build.smem("s", kChunk, 16, DType::bf16);
  build.acc("all", "r", 16, kChunk, {1, 2, 8});
  build.copy_in("all", "s", "x", "", Where::row_valid);
  build.copy_out("all", "whole", "s", "", Where::all);
  build.load("all", "r", View("s").t(), "");
  build.copy_out("all", "turned", "r", "", Where::all);
  const Tensors found = run_everywhere(plan_of(kChunk, tensors, {finished(build)}), one_sequence(40),
                                       {{"x", noise(DType::bf16, {40, 1, 16}, 3)}});
  const std::vector<double> x = values(found.at("x"));
  std::vector<double> whole(2 * kChunk * 16), turned(2 * 16 * kChunk);
  for (std::size_t row = 0; row < 40; ++row)
    for (std::size_t col = 0; col < 16; ++col) {
      whole[row * 16 + col] = x[row * 16 + col];
      turned[row / kChunk * 16 * kChunk + col * kChunk + row % kChunk] = x[row * 16 + col];
    }
  check_equal(values(found.at("whole")), whole);
  check_equal(values(found.at("turned")), turned);
}

TEST_CASE("registers straight from and to tensors, transposed, row_valid counts tokens") {
  const std::vector<TensorSpec> tensors = {token_tensor("x", input, kChunk, 16, DType::bf16),
                                           token_tensor("y", output, kChunk, 16, DType::fp32)};
  KernelBuilder build = builder(LoopKind::chunks_ascending, tensors, 1);
  build.frag("all", "r", 16, kChunk, DType::bf16, {1, 1});
  build.acc("all", "a", 16, kChunk, {1, 1});
  build.load("all", "r", View("x").t(), "", Where::row_valid);
  build.relayout("all", "a", "r", "");
  build.copy_out("all", View("y").t(), "a", "", Where::row_valid);
  const Tensors found = run_everywhere(plan_of(kChunk, tensors, {finished(build)}), one_sequence(40),
                                       {{"x", noise(DType::bf16, {40, 1, 16}, 4)}});
  check_equal(values(found.at("y")), values(found.at("x")));
}

TEST_CASE("triangular tiles hold the blocks on or below the diagonal only") {
  std::vector<TensorSpec> tensors = {chunk_tensor("x", input, kChunk, kChunk, DType::bf16),
                                     chunk_tensor("whole", output, kChunk, kChunk, DType::bf16),
                                     chunk_tensor("packed", output, kChunk, kChunk, DType::bf16)};
  tensors[0].order = tensors[2].order = GlobalOrder::lower16;
  KernelBuilder build = builder(LoopKind::chunks_ascending, tensors, 4);
  build.smem("s", kChunk, kChunk, DType::bf16, {.lower16 = true});
  build.smem("s2", kChunk, kChunk, DType::bf16, {.lower16 = true});
  build.acc("all", "r", kChunk, kChunk, {2, 2});
  build.copy_in("all", "s", "x", "", Where::all);
  build.load("all", "r", "s", "");
  build.copy_out("all", "whole", "r", "", Where::all);
  build.store("all", "s2", "r", "");
  build.copy_out("all", "packed", "s2", "", Where::all);
  const Tensors found = run_everywhere(plan_of(kChunk, tensors, {finished(build)}), one_sequence(50),
                                       {{"x", noise(DType::bf16, {2, 1, 48, 16}, 5)}});
  const std::vector<double> x = values(found.at("x"));
  std::vector<double> whole(2 * kChunk * kChunk);
  const std::size_t block_rows[] = {0, 1, 1}, block_cols[] = {0, 0, 1};
  for (std::size_t chunk = 0; chunk < 2; ++chunk)
    for (std::size_t block = 0; block < 3; ++block)
      for (std::size_t n = 0; n < 256; ++n) {
        const std::size_t row = block_rows[block] * 16 + n / 16, col = block_cols[block] * 16 + n % 16;
        whole[(chunk * kChunk + row) * kChunk + col] = x[(chunk * 3 + block) * 256 + n];
      }
  check_equal(values(found.at("whole")), whole);
  check_equal(values(found.at("packed")), x);
  CHECK(found.at("packed").shape == std::vector<std::int64_t>{2, 1, 48, 16});
}

TEST_CASE("vectors: tokens of a column, partial rows written as their sum") {
  const std::vector<TensorSpec> tensors = {token_tensor("x", input, kChunk, 1, DType::fp32),
                                           token_tensor("y", output, kChunk, 1, DType::fp32),
                                           token_tensor("sum", output, kChunk, 1, DType::fp32)};
  KernelBuilder build = builder(LoopKind::chunks_ascending, tensors, 2);
  build.vec("v", kChunk);
  build.vec("p", kChunk, 2);
  build.acc("all", "r", kChunk, 16, {1, 2});
  build.copy_in("all", "v", View("x").t(), "", Where::row_valid);
  build.copy_out("all", View("y").t(), "v", "", Where::row_valid);
  build.map("all", "r[i,j] = v[i]", "");
  build.reduce("all", ReduceAxis::cols, "p[i] = r[i,j]", "r", "");
  build.copy_out("all", View("sum").t(), "p", "", Where::row_valid);
  const Tensors found = run_everywhere(
      plan_of(kChunk, tensors, {finished(build)}), one_sequence(45),
      {{"x", tensor(DType::fp32, {45, 1, 1}, [](std::int64_t n) { return static_cast<double>(n) * 0.25; })}});
  std::vector<double> wanted = values(found.at("x"));
  check_equal(values(found.at("y")), wanted);
  for (double& value : wanted) value *= 16;
  check_equal(values(found.at("sum")), wanted);
}

TEST_CASE("absent optional tensors read as zeros and drop what is written") {
  std::vector<TensorSpec> tensors = {sequence_tensor("in", input, 16, 16, DType::fp32),
                                     sequence_tensor("copy", output, 16, 16, DType::fp32),
                                     sequence_tensor("out", output, 16, 16, DType::fp32)};
  tensors[0].optional = tensors[2].optional = true;
  KernelBuilder build = builder(LoopKind::chunks_ascending, tensors, 1);
  build.acc("all", "r", 16, 16, {1, 1});
  build.section(Section::prologue);
  build.load("all", "r", View("in").global(), "");
  build.section(Section::epilogue);
  build.copy_out("all", "copy", "r", "", Where::all);
  build.copy_out("all", "out", "r", "", Where::all);
  const Plan plan = plan_of(kChunk, tensors, {finished(build)});
  LaunchShape shape = one_sequence(70);
  shape.sequences = {{0, 70}, {70, 70}};  // the second is empty: prologue and epilogue run all the same

  const Tensors without = run_everywhere(plan, shape, {});
  check_equal(values(without.at("copy")), std::vector<double>(512, 0.0));
  CHECK(without.count("out") == 0);

  const HostTensor state = noise(DType::fp32, {2, 1, 16, 16}, 9);
  const Tensors with = run_everywhere(plan, shape, {{"in", state}, {"out", HostTensor{}}});
  check_equal(values(with.at("copy")), values(state));
  check_equal(values(with.at("out")), values(state));
}

TEST_CASE("slices of V") {
  const std::vector<TensorSpec> tensors = {
      sequence_tensor("in", input, 16, 64, DType::fp32), sequence_tensor("out", output, 16, 64, DType::fp32),
      token_tensor("x", input, kChunk, 64, DType::bf16), token_tensor("y", output, kChunk, 64, DType::bf16)};
  KernelBuilder build =
      builder(LoopKind::chunks_ascending, tensors, 2, {GridAxis::sequence, GridAxis::v_head, GridAxis::v_slice});
  build.v_slice(16);
  build.acc("all", "r", 16, 16, {1, 2});
  build.smem("s", kChunk, 16, DType::bf16);
  build.section(Section::prologue);
  build.load("all", "r", View("in").t().sliced(), "");
  build.section(Section::body);
  build.copy_in("all", "s", View("x").sliced(), "", Where::row_valid);
  build.copy_out("all", View("y").sliced(), "s", "", Where::row_valid);
  build.section(Section::epilogue);
  build.copy_out("all", View("out").t().sliced(), "r", "", Where::all);
  Plan plan = plan_of(kChunk, tensors, {finished(build)});
  plan.problem.head_dim_v = 64;
  const Tensors found =
      run_everywhere(plan, one_sequence(40),
                     {{"in", noise(DType::fp32, {1, 1, 16, 64}, 1)}, {"x", noise(DType::bf16, {40, 1, 64}, 2)}});
  check_equal(values(found.at("out")), values(found.at("in")));
  check_equal(values(found.at("y")), values(found.at("x")));
}

TEST_CASE("heads: a k-head serves its group, and a k-head's block reaches each v-head of it") {
  std::vector<TensorSpec> tensors = {
      token_tensor("k", input, kChunk, 16, DType::fp32), token_tensor("v", input, kChunk, 16, DType::fp32),
      token_tensor("per_v", output, kChunk, 16, DType::fp32), token_tensor("per_k", output, kChunk, 16, DType::fp32)};
  tensors[0].heads = tensors[3].heads = HeadAxis::k_head;
  KernelBuilder spread = builder(LoopKind::once, tensors, 1, {GridAxis::chunk, GridAxis::v_head});
  spread.acc("all", "r", kChunk, 16, {1, 1});
  spread.load("all", "r", View("k").global(), "", Where::row_valid);
  spread.copy_out("all", "per_v", "r", "", Where::row_valid);
  KernelBuilder gather = builder(LoopKind::once, tensors, 1, {GridAxis::k_head, GridAxis::chunk});
  gather.acc("all", "r", kChunk, 16, {1, 1});
  gather.acc("all", "more", kChunk, 16, {1, 1});
  gather.load("all", "r", View("v").head(0).global(), "", Where::row_valid);
  for (int head = 1; head < 3; ++head) {
    gather.load("all", "more", View("v").head(head).global(), "", Where::row_valid);
    gather.map("all", "r[i,j] = 2*r[i,j] + more[i,j]", "");
  }
  gather.copy_out("all", "per_k", "r", "", Where::row_valid);
  LaunchShape shape;
  shape.tokens = 45;
  shape.sequences = {{0, 5}, {5, 45}};
  shape.k_heads = 2;
  shape.v_heads = 6;
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const Tensors found = run_everywhere(
      plan_of(kChunk, tensors, {finished(spread), finished(gather)}), shape,
      {{"k", tensor(DType::fp32, {45, 2, 16}, number)}, {"v", tensor(DType::fp32, {45, 6, 16}, number)}});
  const std::vector<double> k = values(found.at("k")), v = values(found.at("v"));
  std::vector<double> per_v, per_k;
  for (std::size_t token = 0; token < 45; ++token) {
    for (std::size_t head = 0; head < 6; ++head)
      for (std::size_t col = 0; col < 16; ++col) per_v.push_back(k[(token * 2 + head / 3) * 16 + col]);
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t col = 0; col < 16; ++col) {
        const auto at = [&](std::size_t member) { return v[(token * 6 + head * 3 + member) * 16 + col]; };
        per_k.push_back(2 * (2 * at(0) + at(1)) + at(2));
      }
  }
  check_equal(values(found.at("per_v")), per_v);
  check_equal(values(found.at("per_k")), per_k);
}
