// Ops with an expression (map, reduce, scan) and the inverse of triangular blocks, against plain loops.
#include <cmath>

#include "core/error.hpp"
#include "harness.hpp"

using namespace gdr;
using namespace harness;
using enum TensorKind;

namespace {

constexpr int kRows = 32, kCols = 64;

// One chunk: matrix x and vectors r (a number a row) and c (a number a column) in, y out.
struct Bench {
  std::vector<TensorSpec> tensors;
  KernelBuilder build;

  Bench(const std::vector<TensorSpec>& outputs, int warps)
      : tensors(with_inputs(outputs)), build("expr", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors) {
    build.role("all", warps);
    build.smem("x", kRows, kCols, DType::fp32);
    build.vec("r", kRows);
    build.vec("c", kCols);
    for (const char* name : {"x", "r", "c"}) build.copy_in("all", name, name, "", Where::all);
  }

  static std::vector<TensorSpec> with_inputs(std::vector<TensorSpec> tensors) {
    tensors.push_back(chunk_tensor("x", input, kRows, kCols, DType::fp32));
    tensors.push_back(chunk_tensor("r", input, 1, kRows, DType::fp32));
    tensors.push_back(chunk_tensor("c", input, 1, kCols, DType::fp32));
    return tensors;
  }

  Plan plan() {
    Kernel kernel = std::move(build).finish();
    serialise(kernel);
    place(kernel);
    return plan_of(kRows, tensors, {kernel});
  }
};

Tensors inputs() {
  return {{"x", noise(DType::fp32, {1, 1, kRows, kCols}, 21)},
          {"r", noise(DType::fp32, {1, 1, 1, kRows}, 22)},
          {"c", noise(DType::fp32, {1, 1, 1, kCols}, 23)}};
}

LaunchShape shape() {
  LaunchShape result = one_sequence(kRows);
  result.scale = 0.75;
  return result;
}

struct Values {
  std::vector<double> x, r, c;
  double X(int i, int j) const { return x[static_cast<std::size_t>(i * kCols + j)]; }
  double R(int i) const { return r[static_cast<std::size_t>(i)]; }
  double C(int j) const { return c[static_cast<std::size_t>(j)]; }
};

Values input_values() {
  const Tensors given = inputs();
  return {values(given.at("x")), values(given.at("r")), values(given.at("c"))};
}

// Both arithmetics: float within its rounding, double almost exactly.
void check_both(const Plan& plan, const std::string& output, const std::vector<double>& wanted) {
  check_near(values(run_everywhere(plan, shape(), inputs()).at(output)), wanted, 3e-6);
  check_near(values(run_everywhere(plan, shape(), inputs(), true).at(output)), wanted, 1e-14);
}

}  // namespace

TEST_CASE("map on register tiles") {
  struct Row {
    std::string expr;
    double (*value)(const Values&, int i, int j);
  };
  const Row rows[] = {
      {"y[i,j] = x[i,j]", [](const Values& v, int i, int j) { return v.X(i, j); }},
      {"y[i,j] = 1.5", [](const Values&, int, int) { return 1.5; }},
      {"y[i,j] = scale*x[i,j] - r[i]/(2 + c[j])",
       [](const Values& v, int i, int j) { return 0.75 * v.X(i, j) - v.R(i) / (2 + v.C(j)); }},
      {"y[i,j] = -exp(r[C-1] - c[0])*x[i,j]",
       [](const Values& v, int i, int j) { return -std::exp(v.R(kRows - 1) - v.C(0)) * v.X(i, j); }},
      {"y[i,j] = select(i>=j, x[i,j], c[j])",
       [](const Values& v, int i, int j) { return i >= j ? v.X(i, j) : v.C(j); }},
      {"y[i,j] = select(i>j, x[i,j], 0)", [](const Values& v, int i, int j) { return i > j ? v.X(i, j) : 0.0; }},
      {"y[i,j] = select(r[i] > c[j], exp(x[i,j]), select(i>j, 1, 2))",
       [](const Values& v, int i, int j) { return v.R(i) > v.C(j) ? std::exp(v.X(i, j))
                                                  : i > j         ? 1.0
                                                                  : 2.0; }},
      {"y[i,j] = 0.5*(exp(r[i])*exp(x[i,j]) + (c[j] - (r[i] - (c[j] - x[i,j]))))",
       [](const Values& v, int i, int j) {
         return 0.5 * (std::exp(v.R(i)) * std::exp(v.X(i, j)) + (v.C(j) - (v.R(i) - (v.C(j) - v.X(i, j)))));
       }},
  };
  const Values given = input_values();
  for (const Row& row : rows) {
    CAPTURE(row.expr);
    Bench bench({chunk_tensor("y", output, kRows, kCols, DType::fp32)}, 4);
    bench.build.acc("all", "y", kRows, kCols, {2, 2, 8});
    bench.build.map("all", row.expr, "");
    bench.build.copy_out("all", "y", "y", "", Where::all);
    std::vector<double> wanted;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kCols; ++j) wanted.push_back(row.value(given, i, j));
    check_both(bench.plan(), "y", wanted);
  }
}

TEST_CASE("map in place, on a rectangle, and under a mask, the unchosen side of a select is not read") {
  Bench bench({chunk_tensor("y", output, kRows, kCols, DType::fp32)}, 2);
  bench.build.acc("all", "y", kRows, kCols, {2, 1});
  bench.build.acc("all", "half", kRows, kCols, {2, 1});
  // Only the left half of `half` is ever written: reading the rest would be a fault.
  bench.build.map("all", "half[i,j] = x[i,j]", "", View("half").cols(0, 32));
  bench.build.map("all", "y[i,j] = select(32.5 > c[j]*0 + 33, half[i,j], r[i])", "");
  bench.build.map("all", "y[i,j] = select(i>=j, half[i,j], y[i,j])", "");
  bench.build.map("all", "y[i,j] = 2*y[i,j] + c[j]", "", View("y").rows(16, 32).cols(8, 24));
  bench.build.map("all", "half[i,j] = 7", "").mask_d = Mask::lower;
  bench.build.map("all", "y[i,j] = y[i,j] + half[i,j]", "");
  bench.build.copy_out("all", "y", "y", "", Where::all);
  const Values given = input_values();
  std::vector<double> wanted;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kCols; ++j) {
      double y = i >= j ? given.X(i, j) : given.R(i);
      if (i >= 16 && j >= 8 && j < 24) y = 2 * y + given.C(j);
      wanted.push_back(y + (j / 16 > i / 16 ? 0 : 7));
    }
  check_both(bench.plan(), "y", wanted);
}

TEST_CASE("map on vectors, partial rows are read as their sum") {
  Bench bench({chunk_tensor("y", output, 1, kCols, DType::fp32)}, 3);
  bench.build.acc("all", "t", kRows, kCols, {1, 2, 32});
  bench.build.vec("p", kRows, 2);
  bench.build.vec("y", kCols);
  bench.build.map("all", "t[i,j] = r[i]", "");
  bench.build.reduce("all", ReduceAxis::cols, "p[i] = t[i,j]", "t", "");
  bench.build.map("all", "y[i] = select(c[i] > 0, p[C-1]*c[i], p[0])", "");
  bench.build.copy_out("all", "y", "y", "", Where::all);
  const Values given = input_values();
  std::vector<double> wanted;
  for (int j = 0; j < kCols; ++j) wanted.push_back(given.C(j) > 0 ? 64 * given.R(31) * given.C(j) : 64 * given.R(0));
  check_both(bench.plan(), "y", wanted);
}

TEST_CASE("reduce along every axis, with partial rows, rectangles, and added to what is there") {
  struct Row {
    std::string name;
    ReduceAxis axis;
    std::string expr;
    WarpGrid grid;
    int length, partial_rows;
    Range rows, cols;
    bool twice;
  };
  const Row rows[] = {
      {"columns", ReduceAxis::cols, "s[i] = y[i,j]*c[j]", {2, 2}, kRows, 2, {0, 32}, {0, 64}, false},
      {"columns, dealt", ReduceAxis::cols, "s[i] = y[i,j]*c[j]", {1, 4, 8}, kRows, 4, {0, 32}, {0, 64}, false},
      {"columns of a part", ReduceAxis::cols, "s[i] = y[i,j]*c[j]", {1, 4, 8}, kRows, 4, {0, 32}, {32, 64}, false},
      {"rows", ReduceAxis::rows, "s[j] = y[i,j]*c[j]", {2, 2}, kCols, 2, {0, 32}, {0, 64}, false},
      {"rows, dealt, twice", ReduceAxis::rows, "s[j] = y[i,j]*c[j]", {2, 2, 8}, kCols, 2, {0, 32}, {0, 64}, true},
      {"all", ReduceAxis::all, "s[0] = y[i,j]*c[j]", {2, 2}, 1, 4, {0, 32}, {0, 64}, false},
      {"all, twice", ReduceAxis::all, "s[0] = y[i,j]*c[j]", {2, 2}, 1, 4, {0, 32}, {0, 64}, true},
  };
  const Values given = input_values();
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Bench bench({chunk_tensor("s", output, 1, row.length, DType::fp32)}, 4);
    bench.build.acc("all", "y", kRows, kCols, row.grid);
    bench.build.vec("s", row.length, row.partial_rows);
    bench.build.map("all", "y[i,j] = x[i,j]", "");
    const View domain = View("y").rows(row.rows.begin, row.rows.end).cols(row.cols.begin, row.cols.end);
    bench.build.reduce("all", row.axis, row.expr, domain, "");
    if (row.twice) bench.build.reduce("all", row.axis, row.expr, domain, "", true);
    bench.build.copy_out("all", "s", "s", "", Where::all);
    std::vector<double> wanted(static_cast<std::size_t>(row.length));
    for (int i = row.rows.begin; i < row.rows.end; ++i)
      for (int j = row.cols.begin; j < row.cols.end; ++j) {
        const int at = row.axis == ReduceAxis::cols ? i : row.axis == ReduceAxis::rows ? j : 0;
        wanted[static_cast<std::size_t>(at)] += (row.twice ? 2 : 1) * given.X(i, j) * given.C(j);
      }
    check_both(bench.plan(), "s", wanted);
  }
}

TEST_CASE("a warp without a share of the domain leaves its partial row alone") {
  Bench bench({chunk_tensor("s", output, 1, 1, DType::fp32)}, 4);
  bench.build.acc("all", "y", kRows, kCols, {2, 2});
  bench.build.vec("s", 1, 4);
  bench.build.map("all", "y[i,j] = x[i,j]", "");
  bench.build.reduce("all", ReduceAxis::all, "s[0] = y[i,j]", View("y").rows(0, 16), "");
  bench.build.reduce("all", ReduceAxis::all, "s[0] = y[i,j]", View("y").rows(16, 32), "");
  bench.build.copy_out("all", "s", "s", "", Where::all);
  const Values given = input_values();
  double sum = 0;
  for (const double x : given.x) sum += x;
  check_both(bench.plan(), "s", {sum});
}

TEST_CASE("scan") {
  Bench bench({chunk_tensor("y", output, 1, kCols, DType::fp32)}, 2);
  bench.build.vec("y", kCols);
  bench.build.scan("all",
                   "y[i] = exp(c[C-1]) + prefix(select(-0.5 > c[i], -0.5, c[i])) - 2*suffix(c[i]) + "
                   "select(c[i] > 0, before(c[i]*c[i]), 0)",
                   "");
  bench.build.copy_out("all", "y", "y", "", Where::all);
  const Values given = input_values();
  std::vector<double> wanted;
  for (int at = 0; at < kCols; ++at) {
    double sum = std::exp(given.C(kCols - 1));
    for (int j = 0; j <= at; ++j) sum += std::max(-0.5, given.C(j));
    for (int j = at; j < kCols; ++j) sum -= 2 * given.C(j);
    for (int j = 0; j < at && given.C(at) > 0; ++j) sum += given.C(j) * given.C(j);
    wanted.push_back(sum);
  }
  check_both(bench.plan(), "y", wanted);
}

TEST_CASE("tri_inverse: diagonal blocks, in place too, zeros on and above the diagonal") {
  for (const bool in_place : {false, true}) {
    CAPTURE(in_place);
    constexpr int kSize = 48;
    const std::vector<TensorSpec> tensors = {chunk_tensor("l", input, kSize, kSize, DType::fp32),
                                             chunk_tensor("x", output, kSize, kSize, DType::fp32)};
    KernelBuilder build("inverse", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors);
    build.role("all", 2);
    build.smem("l", kSize, kSize, DType::fp32);
    build.smem("inv", kSize, kSize, DType::fp32);
    build.copy_in("all", "l", "l", "", Where::all);
    build.copy_in("all", "inv", "l", "", Where::all);
    build.tri_inverse("all", "inv", in_place ? "inv" : "l", "");
    build.copy_out("all", "x", "inv", "", Where::all);
    Kernel kernel = std::move(build).finish();
    serialise(kernel);
    place(kernel);
    const Tensors given = {{"l", noise(DType::fp32, {1, 1, kSize, kSize}, 31)}};
    const Tensors found = run_everywhere(plan_of(kSize, tensors, {kernel}), one_sequence(kSize), given, true);
    const std::vector<double> l = values(given.at("l")), x = values(found.at("x"));
    for (int i = 0; i < kSize; ++i)
      for (int j = 0; j < kSize; ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const auto at = [](const std::vector<double>& matrix, int row, int col) {
          return matrix[static_cast<std::size_t>(row * kSize + col)];
        };
        if (i / 16 != j / 16) {
          REQUIRE(at(x, i, j) == at(l, i, j));  // untouched
        } else if (i <= j) {
          REQUIRE(at(x, i, j) == 0);
        } else {  // (I + L) (I + X) = I below the diagonal: L + X + L X = 0
          double sum = at(l, i, j) + at(x, i, j);
          for (int k = j + 1; k < i; ++k) sum += at(l, i, k) * at(x, k, j);
          REQUIRE(std::fabs(sum) < 1e-13);
        }
      }
  }
}
