#include "support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "config/registry.hpp"
#include "plan/passes.hpp"
#include "verify/verify.hpp"

namespace gdr::test {
namespace {

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}

  Values normals(std::int64_t count, double factor = 1) {
    Values result(static_cast<std::size_t>(count));
    for (double& x : result) x = factor * normal_(generator_);
    return result;
  }
  Values unit_rows(std::int64_t rows, int cols) {
    Values result = normals(rows * cols);
    for (auto row = result.begin(); row != result.end(); row += cols) {
      double sum = 0;
      for (auto x = row; x != row + cols; ++x) sum += *x * *x;
      for (auto x = row; x != row + cols; ++x) *x /= std::sqrt(sum);
    }
    return result;
  }
  double uniform() { return uniform_(generator_); }

 private:
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

}  // namespace

int Case::tokens() const {
  int sum = pad;
  for (const int length : lengths) sum += length;
  return sum;
}

Problem Case::problem() const {
  Problem p;
  p.head_dim_k = dim_k;
  p.head_dim_v = dim_v;
  p.group = group;
  p.dtype = dtype;
  p.gate_dtype = gate_dtype;
  return p;
}

LaunchShape Case::launch() const {
  LaunchShape shape;
  shape.k_heads = k_heads;
  shape.v_heads = v_heads();
  shape.tokens = tokens();
  shape.scale = 1 / std::sqrt(static_cast<double>(dim_k));
  std::int64_t begin = 0;
  for (const int length : lengths) {
    shape.sequences.emplace_back(begin, begin + length);
    begin += length;
  }
  return shape;
}

Values values(const HostTensor& tensor) {
  Values result(tensor.bytes.size() / size_bytes(tensor.dtype));
  const auto read = [&](auto bits, const auto& convert) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::memcpy(&bits, tensor.bytes.data() + i * sizeof bits, sizeof bits);
      result[i] = static_cast<double>(convert(bits));
    }
  };
  switch (tensor.dtype) {
    case DType::bf16:
      read(std::uint16_t{}, float_from_bf16);
      break;
    case DType::fp16:
      read(std::uint16_t{}, float_from_fp16);
      break;
    case DType::fp32:
      read(float{}, [](float x) { return x; });
      break;
    default:
      read(double{}, [](double x) { return x; });
  }
  return result;
}

HostTensor host_tensor(DType dtype, std::vector<std::int64_t> shape, const Values& elements) {
  HostTensor tensor{dtype, std::move(shape), std::vector<std::byte>(elements.size() * size_bytes(dtype))};
  const auto write = [&](const auto& convert) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto bits = convert(static_cast<float>(elements[i]));
      std::memcpy(tensor.bytes.data() + i * sizeof bits, &bits, sizeof bits);
    }
  };
  REQUIRE((dtype == DType::bf16 || dtype == DType::fp16 || dtype == DType::fp32));
  if (dtype == DType::bf16) write(bf16_from_float);
  if (dtype == DType::fp16) write(fp16_from_float);
  if (dtype == DType::fp32) write([](float x) { return x; });
  return tensor;
}

Tensors make_inputs(const Case& c, std::uint64_t seed) {
  Draw draw(seed);
  const Problem p = c.problem();
  const std::int64_t tokens = c.tokens(), n = static_cast<std::int64_t>(c.lengths.size());
  Tensors tensors;
  const auto token_tensor = [&](const char* name, int heads, int cols, DType dtype, Values elements) {
    std::fill(elements.end() - std::int64_t{c.pad} * heads * cols, elements.end(),
              std::numeric_limits<double>::quiet_NaN());
    tensors[name] = host_tensor(dtype, {tokens, heads, cols}, elements);
  };
  Values gates = draw.normals(tokens * c.v_heads()), betas = draw.normals(tokens * c.v_heads());
  for (double& g : gates) g = -0.5 * c.gate_scale * softplus(g);
  for (double& b : betas) b = draw.uniform() < c.zero_betas ? 0 : 1 / (1 + std::exp(-b));
  if (c.huge_gates > 0)
    for (double& g : gates)
      if (const double pick = draw.uniform(); pick < c.huge_gates)
        g = pick < c.huge_gates / 2 ? -1e6 : -std::numeric_limits<double>::infinity();
  token_tensor("q", c.k_heads, c.dim_k, p.dtype, draw.unit_rows(tokens * c.k_heads, c.dim_k));
  token_tensor("k", c.k_heads, c.dim_k, p.dtype, draw.unit_rows(tokens * c.k_heads, c.dim_k));
  token_tensor("v", c.v_heads(), c.dim_v, p.dtype, draw.normals(tokens * c.v_heads() * c.dim_v));
  token_tensor("do", c.v_heads(), c.dim_v, p.dtype, draw.normals(tokens * c.v_heads() * c.dim_v));
  token_tensor("g", c.v_heads(), 1, p.gate_dtype, gates);
  token_tensor("beta", c.v_heads(), 1, p.gate_dtype, betas);
  for (const char* name : {"h0", "dht"}) {
    const Values state = draw.normals(n * c.v_heads() * c.dim_k * c.dim_v, 0.1);
    if (name[0] == 'h' ? c.h0 : c.dht)
      tensors[name] = host_tensor(p.state_dtype, {n, c.v_heads(), c.dim_k, c.dim_v}, state);
  }
  return tensors;
}

Plan finished_plan(const Case& c, const std::vector<TensorSpec>& tensors, std::vector<Kernel> kernels) {
  const Arch arch = load_arch("sm_120");
  Plan plan;
  plan.arch = arch.name;
  plan.strategy = "chunk_parallel";
  plan.problem = c.problem();
  plan.chunk = c.chunk;
  plan.smem_limit_bytes = static_cast<int>(arch.smem_per_block_optin_bytes);
  plan.tensors = tensors;
  for (Kernel& kernel : kernels) {
    kernel.name = kernel.function;
    PassOptions options;
    options.smem_limit_bytes = plan.smem_limit_bytes;
    const PassResult result = run_passes(kernel, arch, options);
    REQUIRE_MESSAGE(result.fits, kernel.name << ": " << result.reason);
    plan.kernels.push_back(kernel);
  }
  const VerifyReport proof = verify(plan);
  REQUIRE_MESSAGE(proof.ok(), proof.text());
  return plan;
}

double relative_error(const Values& x, const Values& y) {
  if (x.size() != y.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<double>::infinity();
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace gdr::test
