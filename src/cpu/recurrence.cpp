#include "cpu/recurrence.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cpu/parallel.hpp"

namespace gdr::cpu {
namespace {

using Vector = std::vector<double>;

// y[cols] += x^T A for A [rows, cols].
void add_xT_A(const Vector& x, const Vector& a, Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * a[i * y.size() + j];
}

// y[rows] += factor A x for A [rows, cols].
void add_A_x(double factor, const Vector& a, const Vector& x, Vector& y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += a[i * x.size() + j] * x[j];
    y[i] += factor * sum;
  }
}

// A [rows, cols] += factor x y^T.
void add_outer(double factor, const Vector& x, const Vector& y, Vector& a) {
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j) a[i * y.size() + j] += factor * x[i] * y[j];
}

double dot(const Vector& x, const Vector& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

void scale_by(double factor, Vector& x) {
  for (double& value : x) value *= factor;
}

void set_zero(Vector& x) { std::fill(x.begin(), x.end(), 0.0); }

Vector sized(std::int64_t count) { return Vector(static_cast<std::size_t>(count), 0.0); }

// One sequence of one v-head, a token at a time.
class Head {
 public:
  Head(const Inputs& inputs, std::int64_t sequence, std::int64_t v_head)
      : q(sized(inputs.sizes.dim_k)),
        k(sized(inputs.sizes.dim_k)),
        v(sized(inputs.sizes.dim_v)),
        inputs_(inputs),
        sequence_(sequence),
        v_head_(v_head) {}

  // Token t of the sequence.
  Vector q, k, v;
  double decay = 1;  // e^g
  double beta = 0;

  Block rows(std::int64_t t, std::int64_t head, std::int64_t cols) const {
    const Sequence& span = inputs_.sequences[static_cast<std::size_t>(sequence_)];
    return token_rows(span.batch, span.begin + t, head, 1, cols);
  }
  Block v_row(std::int64_t t) const { return rows(t, v_head_, inputs_.sizes.dim_v); }
  Block scalar(std::int64_t t) const { return rows(t, v_head_, 1); }
  Block state() const { return state_rows(sequence_, v_head_, inputs_.sizes.dim_k, inputs_.sizes.dim_v); }

  void load(std::int64_t t) {
    const std::int64_t k_head = v_head_ / inputs_.heads_per_group();
    read_block(inputs_.q, rows(t, k_head, inputs_.sizes.dim_k), q.data());
    read_block(inputs_.k, rows(t, k_head, inputs_.sizes.dim_k), k.data());
    read_block(inputs_.v, v_row(t), v.data());
    double g = 0;
    read_block(inputs_.g, scalar(t), &g);
    read_block(inputs_.beta, scalar(t), &beta);
    decay = std::exp(g);
  }

  // The state before the first token, or its gradient after the last: zero where the caller gave none.
  Vector load_state(const View& view) const {
    Vector result = sized(inputs_.sizes.dim_k * inputs_.sizes.dim_v);
    if (view.present) read_block(view, state(), result.data());
    return result;
  }

  // S <- e^g S (the decayed state); e <- v - S^T k.
  void decay_and_compare(Vector& s, Vector& e) const {
    scale_by(decay, s);
    set_zero(e);
    add_xT_A(k, s, e);
    for (std::size_t j = 0; j < e.size(); ++j) e[j] = v[j] - e[j];
  }

  // S <- S + beta k e^T.
  void write_delta(const Vector& e, Vector& s) const { add_outer(beta, k, e, s); }

 private:
  const Inputs& inputs_;
  std::int64_t sequence_;
  std::int64_t v_head_;
};

void forward_head(const FwdCall& call, std::int64_t sequence, std::int64_t v_head) {
  Head head(call, sequence, v_head);
  Vector s = head.load_state(call.initial_state);
  Vector e = sized(call.sizes.dim_v), o = sized(call.sizes.dim_v);
  const std::int64_t length = call.sequences[static_cast<std::size_t>(sequence)].length();
  for (std::int64_t t = 0; t < length; ++t) {
    head.load(t);
    head.decay_and_compare(s, e);
    head.write_delta(e, s);
    set_zero(o);
    add_xT_A(head.q, s, o);
    scale_by(call.scale, o);
    write_block(call.o, head.v_row(t), o.data());
  }
  if (call.final_state.present) write_block(call.final_state, head.state(), s.data());
}

// Gradients of one v-head. Those of q and k are added to dq, dk [length][K], which its group shares.
void backward_head(const BwdCall& call, std::int64_t sequence, std::int64_t v_head, std::vector<Vector>& dq,
                   std::vector<Vector>& dk) {
  const std::int64_t length = call.sequences[static_cast<std::size_t>(sequence)].length();
  const std::int64_t every = std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(length))));
  Head head(call, sequence, v_head);
  Vector e = sized(call.sizes.dim_v), du = e, dv = e, do_ = e, u = e;

  // The state before every `every`-th token.
  std::vector<Vector> marks;
  Vector s = head.load_state(call.initial_state);
  for (std::int64_t t = 0; t < length; ++t) {
    if (t % every == 0) marks.push_back(s);
    head.load(t);
    head.decay_and_compare(s, e);
    head.write_delta(e, s);
  }

  Vector d = head.load_state(call.final_state_grad);  // dL/dS_t, every later use included
  std::vector<Vector> decayed(static_cast<std::size_t>(every)), errors(decayed.size());
  for (std::int64_t mark = static_cast<std::int64_t>(marks.size()) - 1; mark >= 0; --mark) {
    const std::int64_t begin = mark * every, end = std::min(begin + every, length);
    s = marks[static_cast<std::size_t>(mark)];
    for (std::int64_t t = begin; t < end; ++t) {
      head.load(t);
      head.decay_and_compare(s, e);
      decayed[static_cast<std::size_t>(t - begin)] = s;
      errors[static_cast<std::size_t>(t - begin)] = e;
      head.write_delta(e, s);
      read_block(call.do_, head.v_row(t), do_.data());
      add_A_x(call.scale, s, do_, dq[static_cast<std::size_t>(t)]);  // dq = s S_t do
    }
    for (std::int64_t t = end - 1; t >= begin; --t) {
      const Vector& st = decayed[static_cast<std::size_t>(t - begin)];
      const Vector& et = errors[static_cast<std::size_t>(t - begin)];
      head.load(t);
      read_block(call.do_, head.v_row(t), do_.data());
      add_outer(call.scale, head.q, do_, d);  // D += s q do^T
      set_zero(du);
      add_xT_A(head.k, d, du);  // du = D^T k
      const double dbeta = dot(du, et);
      for (std::size_t j = 0; j < dv.size(); ++j) {
        u[j] = head.beta * et[j];
        dv[j] = head.beta * du[j];
      }
      add_A_x(1.0, d, u, dk[static_cast<std::size_t>(t)]);  // dk = D u - St dv
      add_A_x(-1.0, st, dv, dk[static_cast<std::size_t>(t)]);
      add_outer(-1.0, head.k, dv, d);  // D~ = D - k dv^T
      const double dg = dot(d, st);
      scale_by(head.decay, d);
      write_block(call.dv, head.v_row(t), dv.data());
      write_block(call.dbeta, head.scalar(t), &dbeta);
      write_block(call.dg, head.scalar(t), &dg);
    }
  }
  if (call.dh0.present) write_block(call.dh0, head.state(), d.data());
}

}  // namespace

void recurrence_forward(const FwdCall& call, int threads) {
  const Sizes& sizes = call.sizes;
  const std::int64_t num_sequences = static_cast<std::int64_t>(call.sequences.size());
  run_tasks(threads, num_sequences * sizes.v_heads,
            [&](int, std::int64_t index) { forward_head(call, index / sizes.v_heads, index % sizes.v_heads); });
  zero_rows_past_end(call, call.o, sizes.v_heads, sizes.dim_v);
}

void recurrence_backward(const BwdCall& call, int threads) {
  const Sizes& sizes = call.sizes;
  const std::int64_t num_sequences = static_cast<std::int64_t>(call.sequences.size());
  run_tasks(threads, num_sequences * sizes.k_heads, [&](int, std::int64_t index) {
    const std::int64_t sequence = index / sizes.k_heads, k_head = index % sizes.k_heads;
    const Sequence& span = call.sequences[static_cast<std::size_t>(sequence)];
    std::vector<Vector> dq(static_cast<std::size_t>(span.length()), sized(sizes.dim_k)), dk = dq;
    for (std::int64_t member = 0; member < call.heads_per_group(); ++member)
      backward_head(call, sequence, k_head * call.heads_per_group() + member, dq, dk);
    for (std::int64_t t = 0; t < span.length(); ++t) {
      const Block row = token_rows(span.batch, span.begin + t, k_head, 1, sizes.dim_k);
      write_block(call.dq, row, dq[static_cast<std::size_t>(t)].data());
      write_block(call.dk, row, dk[static_cast<std::size_t>(t)].data());
    }
  });
  zero_rows_past_end(call, call.dq, sizes.k_heads, sizes.dim_k);
  zero_rows_past_end(call, call.dk, sizes.k_heads, sizes.dim_k);
  zero_rows_past_end(call, call.dv, sizes.v_heads, sizes.dim_v);
  zero_rows_past_end(call, call.dg, sizes.v_heads, 1);
  zero_rows_past_end(call, call.dbeta, sizes.v_heads, 1);
}

}  // namespace gdr::cpu
