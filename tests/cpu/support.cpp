#include "support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "cpu/chunked.hpp"
#include "cpu/recurrence.hpp"

namespace gdr::cpu::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::array<std::int64_t, 4> dense_strides(const std::array<std::int64_t, 4>& shape) {
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}
  double normal() { return normal_(generator_); }
  std::vector<double> normals(std::int64_t count, double factor = 1.0) {
    std::vector<double> result(static_cast<std::size_t>(count));
    for (double& x : result) x = factor * normal();
    return result;
  }
  // Rows of length 1 in direction N(0, 1), with a common direction per head where cosine > 0.
  std::vector<double> unit_rows(std::int64_t tokens, std::int64_t heads, std::int64_t dim, double cosine, bool equal) {
    std::vector<double> result = normals(tokens * heads * dim);
    std::vector<double> axes = normals(heads * dim);
    const auto normalise = [dim](double* row) {
      double sum = 0;
      for (std::int64_t i = 0; i < dim; ++i) sum += row[i] * row[i];
      for (std::int64_t i = 0; i < dim; ++i) row[i] /= std::sqrt(sum);
    };
    for (std::int64_t head = 0; head < heads; ++head) normalise(axes.data() + head * dim);
    for (std::int64_t row = 0; row < tokens * heads; ++row) {
      double* const x = result.data() + row * dim;
      const double* const axis = axes.data() + row % heads * dim;
      normalise(x);
      for (std::int64_t i = 0; i < dim; ++i)
        x[i] = equal ? axis[i] : std::sqrt(cosine) * axis[i] + std::sqrt(1 - cosine) * x[i];
      normalise(x);
    }
    return result;
  }
  double uniform() { return uniform_(generator_); }

 private:
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

// The log decay of one token.
double draw_gate(Draw& draw, const std::string& kind, std::int64_t token, std::int64_t head, std::int64_t heads) {
  const double x = draw.normal();
  const double realistic = -0.5 * softplus(x);
  if (kind == "realistic") return realistic;
  if (kind == "slow") return 0.04 * realistic;
  if (kind == "zero") return 0.0;
  if (kind == "-0.0") return -0.0;
  if (kind == "zero_every_other") return token % 2 == 0 ? 0.0 : realistic;
  if (kind == "-30") return -30.0;
  if (kind == "-100") return -100.0;
  if (kind == "half the heads 0, half realistic") return head % 2 == 0 ? 0.0 : realistic;
  if (kind == "-A*softplus, A up to 16") {
    const double rate = 16.0 * static_cast<double>(head + 1) / static_cast<double>(heads);
    return -rate * softplus(x + 1.0);
  }
  if (kind == "extreme") {  // strong decay, single tokens without any, single tokens that forget everything
    const double pick = draw.uniform();
    return pick < 0.15 ? 0.0 : pick > 0.9 ? -60.0 : -16.0 * softplus(x + 1.0);
  }
  if (kind == "beyond all") {  // values that must be clamped before they are summed
    const double pick = draw.uniform();
    return pick < 0.1 ? -std::numeric_limits<double>::infinity() : pick < 0.2 ? -1e6 : realistic;
  }
  throw std::invalid_argument("gates: the tests do not know the kind '" + kind + "'");
}

double draw_beta(Draw& draw, const std::string& kind) {
  const double x = 1.0 / (1.0 + std::exp(-draw.normal()));
  if (kind == "random") return x;
  if (kind == "zero_every_third") return draw.uniform() < 1.0 / 3 ? 0.0 : x;
  std::size_t used = 0;
  const double value = std::stod(kind, &used);
  if (used != kind.size()) throw std::invalid_argument("beta: the tests do not know the kind '" + kind + "'");
  return value;
}

}  // namespace

Tensor::Tensor(DType dtype, std::array<std::int64_t, 4> shape) : Tensor(dtype, shape, dense_strides(shape), 0) {}

Tensor::Tensor(DType dtype, std::array<std::int64_t, 4> shape, std::array<std::int64_t, 4> strides,
               std::int64_t first_byte)
    : dtype_(dtype), shape_(shape), strides_(strides), first_byte_(first_byte), present_(true) {
  std::int64_t last = 0;
  for (std::size_t dim = 0; dim < 4; ++dim) last += std::max<std::int64_t>(0, shape[dim] - 1) * strides[dim];
  memory_.resize(static_cast<std::size_t>(first_byte + (last + 1) * static_cast<std::int64_t>(size_bytes(dtype))));
}

View Tensor::view() const {
  if (!present_) return {};
  return {memory_.data() + first_byte_, dtype_, strides_, true};
}

template <class Body>
void Tensor::for_rows(Body&& body) const {
  std::int64_t index = 0;
  for (std::int64_t i0 = 0; i0 < shape_[0]; ++i0)
    for (std::int64_t i1 = 0; i1 < shape_[1]; ++i1)
      for (std::int64_t i2 = 0; i2 < shape_[2]; ++i2, index += shape_[3])
        body(Block{{i0, i1, i2, 0}, 2, 1, shape_[3]}, index);
}

std::vector<double> Tensor::values() const {
  std::vector<double> result(static_cast<std::size_t>(num_elems()));
  for_rows([&](const Block& block, std::int64_t index) { read_block(view(), block, result.data() + index); });
  return result;
}

void Tensor::assign(const std::vector<double>& values) {
  for_rows([&](const Block& block, std::int64_t index) { write_block(view(), block, values.data() + index); });
}

void Tensor::poison() {
  // All bits set is a NaN in every floating type.
  std::fill(memory_.begin(), memory_.end(), std::byte{0xff});
}

Problem::Problem(const Spec& of) : spec(of) {
  Draw draw(spec.seed);
  std::int64_t total = 0;
  for (const std::int64_t length : spec.lengths) total += length;
  sizes = {1, total + spec.pad, spec.k_heads, spec.v_heads, spec.dim_k, spec.dim_v};
  std::int64_t begin = 0;
  for (std::size_t n = 0; n < spec.lengths.size(); ++n) {
    const std::int64_t length = spec.lengths[n];
    if (spec.varlen) {
      sequences.push_back({0, begin, begin + length});
      begin += length;
    } else {
      if (length != spec.lengths[0]) throw std::invalid_argument("lengths: those of a batch must be equal");
      sequences.push_back({static_cast<std::int64_t>(n), 0, length});
    }
  }
  if (!spec.varlen) {
    sizes.batch = static_cast<std::int64_t>(spec.lengths.size());
    sizes.tokens = spec.lengths.at(0);
  }
  scale = spec.scale.value_or(1.0 / std::sqrt(static_cast<double>(sizes.dim_k)));

  const auto [B, T, Hk, Hv, K, V] = sizes;
  const std::int64_t N = static_cast<std::int64_t>(sequences.size());
  const bool equal = spec.keys == "all equal, beta 1, g 0";
  if (!equal && spec.keys != "random")
    throw std::invalid_argument("keys: the tests do not know the kind '" + spec.keys + "'");
  q = Tensor(spec.dtype, {B, T, Hk, K});
  k = Tensor(spec.dtype, {B, T, Hk, K});
  v = Tensor(spec.dtype, {B, T, Hv, V});
  do_ = Tensor(spec.dtype, {B, T, Hv, V});
  g = Tensor(spec.aux_dtype, {B, T, Hv, 1});
  beta = Tensor(spec.aux_dtype, {B, T, Hv, 1});
  std::vector<double> qs = draw.unit_rows(B * T, Hk, K, spec.key_cosine, false);
  std::vector<double> ks = draw.unit_rows(B * T, Hk, K, spec.key_cosine, equal);
  std::vector<double> vs = draw.normals(B * T * Hv * V), dos = draw.normals(B * T * Hv * V);
  std::vector<double> gs, betas;
  for (std::int64_t token = 0; token < B * T; ++token)
    for (std::int64_t head = 0; head < Hv; ++head) {
      gs.push_back(equal ? 0.0 : draw_gate(draw, spec.gates, token % T, head, Hv));
      betas.push_back(equal ? 1.0 : draw_beta(draw, spec.beta));
    }
  for (auto* values : {&qs, &ks, &vs, &dos, &gs, &betas})  // rows that belong to no sequence
    std::fill(values->end() - static_cast<std::ptrdiff_t>(values->size()) * spec.pad / std::max<std::int64_t>(1, T),
              values->end(), kNaN);
  q.assign(qs);
  k.assign(ks);
  v.assign(vs);
  do_.assign(dos);
  g.assign(gs);
  beta.assign(betas);
  const auto draw_state = [&](bool wanted) {
    if (!wanted) return Tensor();
    Tensor state(spec.aux_dtype, {N, sizes.v_heads, sizes.dim_k, sizes.dim_v});
    state.assign(draw.normals(state.num_elems(), 0.1));
    return state;
  };
  initial_state = draw_state(spec.initial_state);
  final_state_grad = draw_state(spec.final_state_grad);
}

Inputs Problem::inputs() const {
  Inputs result;
  result.sizes = sizes;
  result.sequences = sequences;
  result.scale = scale;
  result.q = q.view();
  result.k = k.view();
  result.v = v.view();
  result.g = g.view();
  result.beta = beta.view();
  result.initial_state = initial_state.view();
  return result;
}

double Problem::work() const {
  double tokens = 0;
  for (const Sequence& sequence : sequences) tokens += static_cast<double>(sequence.length());
  return tokens * static_cast<double>(sizes.v_heads * sizes.dim_k * sizes.dim_v);
}

Outputs run(const Problem& problem, Method method, DType output_dtype, int threads) {
  const auto [B, T, Hk, Hv, K, V] = problem.sizes;
  const std::int64_t N = static_cast<std::int64_t>(problem.sequences.size());
  Outputs out;
  const auto add = [&](const char* name, std::array<std::int64_t, 4> shape) {
    out[name] = Tensor(output_dtype, shape);
    out[name].poison();
    return out[name].view();
  };
  FwdCall fwd;
  static_cast<Inputs&>(fwd) = problem.inputs();
  fwd.o = add("o", {B, T, Hv, V});
  fwd.final_state = add("final_state", {N, Hv, K, V});
  BwdCall bwd;
  static_cast<Inputs&>(bwd) = problem.inputs();
  bwd.do_ = problem.do_.view();
  bwd.final_state_grad = problem.final_state_grad.view();
  bwd.dq = add("dq", {B, T, Hk, K});
  bwd.dk = add("dk", {B, T, Hk, K});
  bwd.dv = add("dv", {B, T, Hv, V});
  bwd.dg = add("dg", {B, T, Hv, 1});
  bwd.dbeta = add("dbeta", {B, T, Hv, 1});
  if (problem.spec.dh0) bwd.dh0 = add("dh0", {N, Hv, K, V});
  switch (method) {
    case Method::recurrence:
      recurrence_forward(fwd, threads);
      recurrence_backward(bwd, threads);
      break;
    case Method::chunked_fp32:
      chunked_forward<float>(fwd, {threads, problem.spec.state_bytes});
      chunked_backward<float>(bwd, {threads, problem.spec.state_bytes});
      break;
    case Method::chunked_fp64:
      chunked_forward<double>(fwd, {threads, problem.spec.state_bytes});
      chunked_backward<double>(bwd, {threads, problem.spec.state_bytes});
      break;
  }
  return out;
}

double relative_l2(const std::vector<double>& a, const std::vector<double>& b, double least_norm) {
  if (a.size() != b.size()) throw std::invalid_argument("relative_l2: the sizes differ");
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<double>::infinity();
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  const double denominator = std::max(std::sqrt(norm), least_norm);
  return denominator > 0 ? std::sqrt(difference) / denominator : std::sqrt(difference);
}

std::map<std::string, double> errors(const Outputs& outputs, const Outputs& reference, Method method) {
  std::map<std::string, double> result;
  for (const auto& [name, tensor] : outputs) {
    const double least =
        method == Method::chunked_fp32 ? 1e-30 * std::sqrt(static_cast<double>(tensor.num_elems())) : 0;
    result[name] = relative_l2(tensor.values(), reference.at(name).values(), least);
  }
  return result;
}

Errors compare_chunked(const Problem& problem) {
  const Outputs expected = truth(problem);
  return {errors(run(problem, Method::chunked_fp64, DType::fp64, 2), expected, Method::chunked_fp64),
          errors(run(problem, Method::chunked_fp32, DType::fp32, 2), expected, Method::chunked_fp32)};
}

double largest(const std::map<std::string, double>& errors) {
  double result = 0;
  for (const auto& [name, error] : errors) result = std::max(result, error);
  return result;
}

std::string to_text(const std::map<std::string, double>& errors) {
  std::string result;
  for (const auto& [name, error] : errors)
    result += fmt::format("{}{} {:.1e}", result.empty() ? "" : ", ", name, error);
  return result;
}

std::uint64_t fresh_seed() {
  if (const char* given = std::getenv("GDRJIT_TEST_SEED")) return std::stoull(given);
  return std::random_device{}();
}

}  // namespace gdr::cpu::test
