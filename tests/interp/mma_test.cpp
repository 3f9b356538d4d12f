// Matrix products against plain loops.
#include <cmath>
#include <limits>

#include "harness.hpp"

using namespace gdr;
using namespace harness;
using enum TensorKind;

namespace {

struct Row {
  std::string name;
  int m = 32, n = 32, k = 32;  // of the whole tiles
  bool a_transposed = false, b_transposed = false;
  Mask mask_d = Mask::none, mask_a = Mask::none, mask_b = Mask::none;
  DType dtype = DType::bf16;
  bool a_in_registers = false;
  bool accumulate = false;
  int slices = 1;
  WarpGrid grid{2, 2};
  bool scaled = false;
  Range rows{0, 32}, cols{0, 32}, contraction{0, 32};  // the rectangles that take part
};

bool above(std::int64_t row, std::int64_t col) { return col / 16 > row / 16; }

// A tile in which what the mask hides is NaN: it must not be touched.
HostTensor masked_noise(DType dtype, int rows, int cols, Mask mask, unsigned seed) {
  const std::vector<double> base = values(noise(dtype, {1, 1, rows, cols}, seed));
  return tensor(dtype, {1, 1, rows, cols}, [&](std::int64_t at) {
    return mask == Mask::lower && above(at / cols, at % cols) ? std::numeric_limits<double>::quiet_NaN()
                                                              : base[static_cast<std::size_t>(at)];
  });
}

Plan plan_for(const Row& row) {
  const int a_rows = row.a_transposed ? row.k : row.m, a_cols = row.a_transposed ? row.m : row.k;
  const int b_rows = row.b_transposed ? row.n : row.k, b_cols = row.b_transposed ? row.k : row.n;
  const std::vector<TensorSpec> tensors = {
      chunk_tensor("a", input, a_rows, a_cols, row.dtype), chunk_tensor("b", input, b_rows, b_cols, row.dtype),
      chunk_tensor("f", input, 1, row.k, DType::fp32), chunk_tensor("d0", input, row.m, row.n, DType::fp32),
      chunk_tensor("d", output, row.m, row.n, DType::fp32)};
  KernelBuilder build("mma", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors);
  build.role("all", row.grid.rows * row.grid.cols);
  build.smem("a", a_rows, a_cols, row.dtype);
  build.smem("b", b_rows, b_cols, row.dtype);
  build.vec("f", row.k);
  build.acc("all", "d", row.m, row.n, row.grid);
  if (row.a_in_registers) build.frag("all", "ar", a_rows, a_cols, row.dtype, {row.grid.rows * row.grid.cols, 1});
  build.copy_in("all", "a", "a", "", Where::all);
  build.copy_in("all", "b", "b", "", Where::all);
  build.copy_in("all", "f", "f", "", Where::all);
  build.load("all", "d", View("d0").global(), "");
  if (row.a_in_registers) build.load("all", "ar", "a", "");
  const auto rect = [](const char* name, const Range& rows, const Range& cols, bool transposed) {
    View view = transposed ? View(name).rows(cols.begin, cols.end).cols(rows.begin, rows.end).t()
                           : View(name).rows(rows.begin, rows.end).cols(cols.begin, cols.end);
    return view;
  };
  Op& op = build.mma("all", rect("d", row.rows, row.cols, false),
                     rect(row.a_in_registers ? "ar" : "a", row.rows, row.contraction, row.a_transposed),
                     rect("b", row.contraction, row.cols, row.b_transposed), "", row.accumulate,
                     row.scaled ? "2*exp(f[l]) - f[C-1]" : "");
  op.mask_d = row.mask_d;
  op.mask_a = row.mask_a;
  op.mask_b = row.mask_b;
  op.slices = row.slices;
  build.copy_out("all", "d", "d", "", Where::all);
  Kernel kernel = std::move(build).finish();
  Role& role = kernel.roles[0];
  for (std::size_t at = 0; at < role.body.size(); ++at)
    if (kernel.ops[static_cast<std::size_t>(role.body[at].op)].kind == OpKind::mma) {
      const Step step = role.body[at];
      role.body.erase(role.body.begin() + static_cast<std::ptrdiff_t>(at));
      for (int slice = 0; slice < row.slices; ++slice)
        role.body.insert(role.body.begin() + static_cast<std::ptrdiff_t>(at) + slice, {step.op, slice, slice + 1});
      break;
    }
  serialise(kernel);
  place(kernel);
  return plan_of(row.m, tensors, {kernel});
}

template <typename Real>
std::vector<double> reference(const Row& row, const Tensors& given) {
  const std::vector<double> a = values(given.at("a")), b = values(given.at("b")), f = values(given.at("f"));
  std::vector<double> d = values(given.at("d0"));
  const bool exact = sizeof(Real) == sizeof(double);
  const auto element = [](const std::vector<double>& x, int cols, int i, int j) {
    return static_cast<Real>(x[static_cast<std::size_t>(i * cols + j)]);
  };
  for (int i = row.rows.begin; i < row.rows.end; ++i)
    for (int j = row.cols.begin; j < row.cols.end; ++j) {
      double& out = d[static_cast<std::size_t>(i * row.n + j)];
      if (row.mask_d == Mask::lower && above(i, j)) {
        if (!row.accumulate) out = 0;
        continue;
      }
      Real sum = row.accumulate ? static_cast<Real>(out) : Real{0};
      for (int l = row.contraction.begin; l < row.contraction.end; ++l) {
        const int ar = row.a_transposed ? l : i, ac = row.a_transposed ? i : l;
        const int br = row.b_transposed ? j : l, bc = row.b_transposed ? l : j;
        if ((row.mask_a == Mask::lower && above(ar, ac)) || (row.mask_b == Mask::lower && above(br, bc))) continue;
        Real left = element(a, row.a_transposed ? row.m : row.k, ar, ac);
        if (row.scaled) {
          left *= 2 * std::exp(element(f, row.k, 0, l)) - element(f, row.k, 0, row.k - 1);
          if (!exact) left = static_cast<Real>(rounded(static_cast<double>(left), row.dtype));
        }
        sum += left * element(b, row.b_transposed ? row.k : row.n, br, bc);
      }
      out = static_cast<double>(sum);
    }
  return d;
}

}  // namespace

TEST_CASE("mma agrees with plain loops") {
  const Row rows[] = {
      {.name = "plain"},
      {.name = "fp16", .dtype = DType::fp16},
      {.name = "fp32 operands are not rounded", .dtype = DType::fp32},
      {.name = "a transposed", .m = 48, .a_transposed = true, .grid = {3, 2}, .rows = {0, 48}},
      {.name = "b transposed", .n = 64, .b_transposed = true, .cols = {0, 64}},
      {.name = "both transposed", .k = 48, .a_transposed = true, .b_transposed = true, .contraction = {0, 48}},
      {.name = "sum into d", .accumulate = true},
      {.name = "columns dealt in eights", .n = 64, .grid = {2, 2, 8}, .cols = {0, 64}},
      {.name = "rectangles",
       .m = 64,
       .n = 64,
       .k = 64,
       .grid = {4, 2, 8},
       .rows = {16, 48},
       .cols = {32, 64},
       .contraction = {16, 64}},
      {.name = "rectangles, transposed",
       .m = 64,
       .n = 64,
       .k = 64,
       .a_transposed = true,
       .b_transposed = true,
       .accumulate = true,
       .grid = {2, 2, 16},
       .rows = {32, 64},
       .cols = {16, 48},
       .contraction = {32, 64}},
      {.name = "rectangles not on 16-blocks",
       .n = 40,
       .grid = {1, 1},
       .rows = {3, 30},
       .cols = {5, 38},
       .contraction = {1, 32}},
      {.name = "d lower", .mask_d = Mask::lower},
      {.name = "d lower, sum", .mask_d = Mask::lower, .accumulate = true, .grid = {1, 4}},
      {.name = "a lower", .n = 48, .mask_a = Mask::lower, .grid = {2, 3}, .cols = {0, 48}},
      {.name = "a lower transposed", .a_transposed = true, .mask_a = Mask::lower},
      {.name = "b lower", .mask_b = Mask::lower, .grid = {2, 1}},
      {.name = "b lower transposed", .b_transposed = true, .mask_b = Mask::lower, .grid = {2, 4}},
      {.name = "all masks",
       .m = 64,
       .n = 64,
       .k = 64,
       .b_transposed = true,
       .mask_d = Mask::lower,
       .mask_a = Mask::lower,
       .mask_b = Mask::lower,
       .grid = {4, 1},
       .rows = {0, 64},
       .cols = {0, 64},
       .contraction = {0, 64}},
      {.name = "masks in rectangles",
       .m = 64,
       .n = 64,
       .k = 64,
       .mask_d = Mask::lower,
       .mask_a = Mask::lower,
       .accumulate = true,
       .grid = {2, 2},
       .rows = {16, 64},
       .cols = {0, 48},
       .contraction = {16, 48}},
      {.name = "slices", .k = 64, .slices = 4, .contraction = {0, 64}},
      {.name = "slices, sum, masks", .mask_a = Mask::lower, .accumulate = true, .slices = 8},
      {.name = "scaled rows of the contraction", .k = 64, .scaled = true, .contraction = {0, 64}},
      {.name = "scaled rectangle, transposed, slices",
       .k = 64,
       .a_transposed = true,
       .slices = 2,
       .scaled = true,
       .contraction = {32, 64}},
      {.name = "scaled fp16", .dtype = DType::fp16, .scaled = true},
      {.name = "a in registers", .a_in_registers = true, .grid = {2, 1}},
      {.name = "a in registers, scaled, sum",
       .a_in_registers = true,
       .accumulate = true,
       .grid = {2, 1},
       .scaled = true},
      {.name = "a in registers, lower, slices",
       .mask_a = Mask::lower,
       .a_in_registers = true,
       .slices = 2,
       .grid = {2, 1}},
  };
  unsigned seed = 1;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const int a_rows = row.a_transposed ? row.k : row.m, b_rows = row.b_transposed ? row.n : row.k;
    const Tensors given = {{"a", masked_noise(row.dtype, a_rows, row.m + row.k - a_rows, row.mask_a, seed)},
                           {"b", masked_noise(row.dtype, b_rows, row.n + row.k - b_rows, row.mask_b, seed + 1)},
                           {"f", noise(DType::fp32, {1, 1, 1, row.k}, seed + 2)},
                           {"d0", noise(DType::fp32, {1, 1, row.m, row.n}, seed + 3)}};
    seed += 4;
    const Plan plan = plan_for(row);
    check_near(values(run_everywhere(plan, one_sequence(row.m), given).at("d")), reference<float>(row, given), 1e-6);
    check_near(values(run_everywhere(plan, one_sequence(row.m), given, true).at("d")), reference<double>(row, given),
               1e-14);
  }
}

TEST_CASE("slices of sums into one accumulator may alternate") {
  const std::vector<TensorSpec> tensors = {chunk_tensor("x", input, 32, 32, DType::bf16),
                                           chunk_tensor("y", output, 32, 32, DType::fp32)};
  KernelBuilder build("mma", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors);
  build.role("all", 2);
  build.smem("x", 32, 32, DType::bf16);
  build.acc("all", "d", 32, 32, {2, 1});
  build.copy_in("all", "x", "x", "", Where::all);
  build.mma("all", "d", "x", "x", "", false).slices = 2;
  build.mma("all", "d", View("x").t(), "x", "", true).slices = 2;
  build.copy_out("all", "y", "d", "", Where::all);
  Kernel kernel = std::move(build).finish();
  std::vector<Step>& body = kernel.roles[0].body;
  body = {body[0], {1, 0, 1}, {2, 0, 1}, {1, 1, 2}, {2, 1, 2}, body[3]};
  serialise(kernel);
  place(kernel);
  const Tensors found = run_everywhere(plan_of(32, tensors, {kernel}), one_sequence(32),
                                       {{"x", noise(DType::bf16, {1, 1, 32, 32}, 77)}}, true);
  const std::vector<double> x = values(found.at("x"));
  std::vector<double> wanted(1024);
  for (std::size_t i = 0; i < 32; ++i)
    for (std::size_t j = 0; j < 32; ++j)
      for (std::size_t l = 0; l < 32; ++l) wanted[i * 32 + j] += (x[i * 32 + l] + x[l * 32 + i]) * x[l * 32 + j];
  check_near(values(found.at("y")), wanted, 1e-14);
}
