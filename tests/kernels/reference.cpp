#include "reference.hpp"

#include <algorithm>
#include <cmath>

namespace gdr::test {
namespace {

constexpr int kBlock = 16;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

int lower_blocks(int chunk) { return chunk / kBlock * (chunk / kBlock + 1) / 2; }

// Where element (i, j), j <= i, of a triangular tile lies among its stored blocks.
int lower_index(int i, int j) {
  return ((i / kBlock * (i / kBlock + 1) / 2 + j / kBlock) * kBlock + i % kBlock) * kBlock + j % kBlock;
}

class Reference {
 public:
  Reference(const Case& c, const Tensors& inputs) : c_(c), launch_(c.launch()) {
    for (const auto& [name, tensor] : inputs) in_[name] = values(tensor);
    const std::int64_t tokens = c.tokens(), heads = c.v_heads(), n = static_cast<std::int64_t>(c.lengths.size());
    for (const int length : c.lengths) num_chunks_ += (length + c.chunk - 1) / c.chunk;
    out_["dq"].assign(at(tokens * c.k_heads * c.dim_k), 0);
    out_["dk"] = out_["dq"];
    out_["dv"].assign(at(tokens * heads * c.dim_v), 0);
    out_["dg"].assign(at(tokens * heads), 0);
    out_["dbeta"] = out_["dg"];
    out_["ht"].assign(at(n * heads * state_elems()), 0);
    out_["dh0"] = out_["ht"];
    out_["h_chunk"].assign(at(num_chunks_ * heads * state_elems()), 0);
    out_["ds_chunk"] = out_["h_chunk"];
    out_["gamma_chunk"].assign(at(num_chunks_ * heads * c.chunk), 0);
    out_["beta_chunk"] = out_["gamma_chunk"];
    out_["a_chunk"].assign(at(num_chunks_ * heads * lower_blocks(c.chunk) * kBlock * kBlock), 0);
    out_["pg_chunk"] = out_["a_chunk"];
  }

  std::map<std::string, Values> run() && {
    std::int64_t chunk = 0;
    for (std::size_t n = 0; n < launch_.sequences.size(); ++n) {
      for (int head = 0; head < c_.v_heads(); ++head) sequence(static_cast<std::int64_t>(n), head, chunk);
      chunk += (c_.lengths[n] + c_.chunk - 1) / c_.chunk;
    }
    return std::move(out_);
  }

 private:
  std::int64_t state_elems() const { return std::int64_t{c_.dim_k} * c_.dim_v; }
  int k_head(int head) const { return head / c_.group; }

  const double* row(const char* name, std::int64_t token, int head) const {
    const bool of_keys = name[0] == 'q' || name[0] == 'k';
    const int heads = of_keys ? c_.k_heads : c_.v_heads(), cols = of_keys ? c_.dim_k : c_.dim_v;
    return in_.at(name).data() + (token * heads + (of_keys ? k_head(head) : head)) * cols;
  }
  double gate(const char* name, std::int64_t token, int head) const {
    return in_.at(name)[at(token * c_.v_heads() + head)];
  }
  double decay(std::int64_t token, int head) const { return std::exp(gate("g", token, head)); }

  Values initial(const char* name, std::int64_t n, int head) const {
    const auto found = in_.find(name);
    if (found == in_.end()) return Values(at(state_elems()), 0);
    const auto begin = found->second.begin() + (n * c_.v_heads() + head) * state_elems();
    return {begin, begin + state_elems()};
  }
  void store(const char* name, std::int64_t tile, int head, const Values& state) {
    std::copy(state.begin(), state.end(), out_[name].begin() + (tile * c_.v_heads() + head) * state_elems());
  }

  // s <- e^g s, e = v - s^T k; s <- s + beta k e^T. The decayed state and e are kept where asked for.
  void advance(Values& s, std::int64_t token, int head, Values* decayed, Values* error) const {
    const double *k = row("k", token, head), *v = row("v", token, head);
    const double g = decay(token, head), beta = gate("beta", token, head);
    for (double& x : s) x *= g;
    if (decayed) *decayed = s;
    Values e(v, v + c_.dim_v);
    for (int i = 0; i < c_.dim_k; ++i)
      for (int j = 0; j < c_.dim_v; ++j) e[at(j)] -= s[at(i * c_.dim_v + j)] * k[i];
    for (int i = 0; i < c_.dim_k; ++i)
      for (int j = 0; j < c_.dim_v; ++j) s[at(i * c_.dim_v + j)] += beta * k[i] * e[at(j)];
    if (error) *error = e;
  }

  void sequence(std::int64_t n, int head, std::int64_t first_chunk) {
    const auto [begin, end] = launch_.sequences[at(n)];
    Values s = initial("h0", n, head);
    std::vector<Values> starts;
    for (std::int64_t token = begin; token < end; ++token) {
      if ((token - begin) % c_.chunk == 0) {
        starts.push_back(s);
        store("h_chunk", first_chunk + (token - begin) / c_.chunk, head, s);
        chunk_tiles(first_chunk + (token - begin) / c_.chunk, token, std::min(end, token + c_.chunk), head);
      }
      advance(s, token, head, nullptr, nullptr);
    }
    store("ht", n, head, s);
    Values d = initial("dht", n, head);
    for (std::size_t chunk = starts.size(); chunk-- > 0;) {
      const std::int64_t from = begin + static_cast<std::int64_t>(chunk) * c_.chunk;
      store("ds_chunk", first_chunk + static_cast<std::int64_t>(chunk), head, d);
      backward(starts[chunk], d, from, std::min(end, from + c_.chunk), head);
    }
    store("dh0", n, head, d);
  }

  // Tokens [from, to), last first; `d` is dL/dS behind them and becomes dL/dS before them.
  void backward(Values s, Values& d, std::int64_t from, std::int64_t to, int head) {
    std::vector<Values> decayed(at(to - from)), errors(at(to - from)), states;
    for (std::int64_t token = from; token < to; ++token) {
      advance(s, token, head, &decayed[at(token - from)], &errors[at(token - from)]);
      states.push_back(s);
    }
    for (std::int64_t token = to - 1; token >= from; --token)
      token_gradients(token, head, decayed[at(token - from)], errors[at(token - from)], states[at(token - from)], d);
  }

  void token_gradients(std::int64_t token, int head, const Values& decayed, const Values& e, const Values& state,
                       Values& d) {
    const double *q = row("q", token, head), *k = row("k", token, head), *o = row("do", token, head);
    const double beta = gate("beta", token, head), g = decay(token, head), scale = launch_.scale;
    const std::int64_t keys = (token * c_.k_heads + k_head(head)) * c_.dim_k;
    const std::int64_t cols = (token * c_.v_heads() + head) * c_.dim_v, gates = token * c_.v_heads() + head;
    const auto elem = [&](int i, int j) { return at(i * c_.dim_v + j); };
    Values du(at(c_.dim_v), 0);
    for (int i = 0; i < c_.dim_k; ++i)
      for (int j = 0; j < c_.dim_v; ++j) {
        d[elem(i, j)] += scale * q[i] * o[j];
        out_["dq"][at(keys + i)] += scale * state[elem(i, j)] * o[j];
        du[at(j)] += d[elem(i, j)] * k[i];
      }
    double dbeta = 0, dg = 0;
    for (int j = 0; j < c_.dim_v; ++j) {
      out_["dv"][at(cols + j)] = beta * du[at(j)];
      dbeta += du[at(j)] * e[at(j)];
    }
    for (int i = 0; i < c_.dim_k; ++i)
      for (int j = 0; j < c_.dim_v; ++j) {
        const double dv = beta * du[at(j)];
        out_["dk"][at(keys + i)] += d[elem(i, j)] * beta * e[at(j)] - decayed[elem(i, j)] * dv;
        d[elem(i, j)] -= k[i] * dv;
        dg += d[elem(i, j)] * decayed[elem(i, j)];
        d[elem(i, j)] *= g;
      }
    out_["dbeta"][at(gates)] = dbeta;
    out_["dg"][at(gates)] = dg;
  }

  double dot(const double* x, const double* y) const {
    double sum = 0;
    for (int i = 0; i < c_.dim_k; ++i) sum += x[i] * y[i];
    return sum;
  }

  // gamma, beta, A' - I by substitution, and Pg of the chunk [from, to).
  void chunk_tiles(std::int64_t chunk, std::int64_t from, std::int64_t to, int head) {
    const int size = c_.chunk, rows = static_cast<int>(to - from);
    const std::int64_t tile = chunk * c_.v_heads() + head;
    Values gamma(at(size), 0), l(at(size * size), 0), a(at(size * size), 0);
    for (int i = 0; i < size; ++i) {
      const double before = i > 0 ? gamma[at(i - 1)] : 0;
      gamma[at(i)] = i < rows ? before + std::max(-120.0, gate("g", from + i, head)) : before;
      out_["gamma_chunk"][at(tile * size + i)] = gamma[at(i)];
      out_["beta_chunk"][at(tile * size + i)] = i < rows ? gate("beta", from + i, head) : 0;
    }
    const std::int64_t blocks = tile * lower_blocks(size) * kBlock * kBlock;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j <= i; ++j) {
        const double g = std::exp(gamma[at(i)] - gamma[at(j)]);
        const double *q = row("q", from + i, head), *k = row("k", from + i, head), *other = row("k", from + j, head);
        out_["pg_chunk"][at(blocks + lower_index(i, j))] = launch_.scale * g * dot(q, other);
        l[at(i * size + j)] = g * gate("beta", from + j, head) * dot(k, other);
      }
      a[at(i * size + i)] = 1;
      for (int j = 0; j < i; ++j) {
        for (int m = j; m < i; ++m) a[at(i * size + j)] -= l[at(i * size + m)] * a[at(m * size + j)];
        out_["a_chunk"][at(blocks + lower_index(i, j))] = a[at(i * size + j)];
      }
    }
  }

  const Case& c_;
  const LaunchShape launch_;
  std::int64_t num_chunks_ = 0;
  std::map<std::string, Values> in_, out_;
};

}  // namespace

std::map<std::string, Values> reference(const Case& c, const Tensors& inputs) { return Reference(c, inputs).run(); }

}  // namespace gdr::test
