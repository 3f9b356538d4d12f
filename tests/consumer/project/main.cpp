// Uses the installed library through its public headers alone: one token, so that all results are known by hand.
// With no state before it, o = scale (q.k) beta v, and for beta = scale = 1
//     dq = (v.do) k,  dk = (v.do) q,  dv = (q.k) do.
#include <gdr/gdr.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  constexpr int kDim = 16;
  const auto values = [](float first) { return std::vector<float>(kDim, first); };
  const std::vector<float> q = values(0.5f), k = values(0.25f), v = values(2.0f), d_o = values(-1.0f);
  const std::vector<float> g = {0.0f}, beta = {1.0f};
  std::vector<float> o(kDim), dq(kDim), dk(kDim), dv(kDim), dg(1), dbeta(1);
  const gdr::Dims heads = {1, 1, 1, kDim}, gates = {1, 1, 1};
  const auto in = [](const std::vector<float>& data, const gdr::Dims& shape) {
    return gdr::input(data.data(), gdr::DType::fp32, shape);
  };
  const auto out = [](std::vector<float>& data, const gdr::Dims& shape) {
    gdr::Tensor tensor;
    tensor.data = data.data();
    tensor.dtype = gdr::DType::fp32;
    tensor.shape = shape;
    return tensor;
  };

  gdr::FwdArgs forward;
  forward.q = in(q, heads);
  forward.k = in(k, heads);
  forward.v = in(v, heads);
  forward.g = in(g, gates);
  forward.beta = in(beta, gates);
  forward.o = out(o, heads);
  forward.scale = 1.0;
  gdr::run_fwd(forward);

  gdr::BwdArgs backward;
  backward.q = forward.q;
  backward.k = forward.k;
  backward.v = forward.v;
  backward.g = forward.g;
  backward.beta = forward.beta;
  backward.do_ = in(d_o, heads);
  backward.dq = out(dq, heads);
  backward.dk = out(dk, heads);
  backward.dv = out(dv, heads);
  backward.dg = out(dg, gates);
  backward.dbeta = out(dbeta, gates);
  backward.scale = 1.0;
  const gdr::Result result = gdr::run_bwd(backward);
  std::printf("gdrjit %s on %s\n", GDRJIT_VERSION, result.device.c_str());

  const float q_k = kDim * 0.5f * 0.25f, v_do = kDim * 2.0f * -1.0f;
  bool is_right = true;
  for (std::size_t i = 0; i < kDim; ++i) {
    is_right = is_right && std::fabs(o[i] - q_k * v[i]) < 1e-5f && std::fabs(dq[i] - v_do * k[i]) < 1e-4f &&
               std::fabs(dk[i] - v_do * q[i]) < 1e-4f && std::fabs(dv[i] - q_k * d_o[i]) < 1e-4f;
  }
  if (!is_right) {
    std::puts("wrong result");
    return 1;
  }

  try {  // an error crosses the library's border as the type that the header declares
    forward.q.shape = {1, 1, 1};
    gdr::run_fwd(forward);
  } catch (const gdr::Error& error) {
    std::puts(error.what());
    return error.kind() == gdr::ErrorKind::config ? 0 : 1;
  }
  std::puts("a wrong shape was accepted");
  return 1;
}
