#include "cpu/chunked.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "cpu/buffer.hpp"
#include "cpu/chunk.hpp"
#include "cpu/group_sum.hpp"
#include "cpu/parallel.hpp"

namespace gdr::cpu {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A sequence of one v-head as chunks, and the spans of chunks whose states are held at the same time.
struct Chunking {
  std::int64_t chunks = 0;
  std::int64_t span = 1;  // chunks of a span; the last one may be shorter

  std::int64_t spans() const { return ceil_div(chunks, span); }
};

template <class T>
Chunking make_chunking(const Sizes& sizes, std::int64_t length, std::int64_t state_bytes) {
  const std::int64_t bytes = (sizes.dim_k * sizes.dim_v + kChunk * kChunk) * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t most = std::max<std::int64_t>(1, state_bytes / bytes);
  Chunking result;
  result.chunks = ceil_div(length, kChunk);
  const std::int64_t spans = std::max<std::int64_t>(1, ceil_div(result.chunks, most));
  result.span = std::max<std::int64_t>(1, ceil_div(result.chunks, spans));
  return result;
}

ChunkPlace place_of(const Sequence& sequence, std::int64_t v_head, std::int64_t chunk) {
  const std::int64_t begin = sequence.begin + chunk * kChunk;
  return {sequence.batch, begin, std::min(kChunk, sequence.end - begin), v_head};
}

// The order in which tasks are handed out: long sequences first, so that no thread is left alone with one at the end;
// the v-heads of a group after one another, as GroupSum needs.
struct Task {
  std::int64_t sequence = 0;
  std::int64_t v_head = 0;
};

std::vector<Task> make_tasks(const Inputs& inputs) {
  std::vector<Task> tasks;
  const std::int64_t num_sequences = static_cast<std::int64_t>(inputs.sequences.size());
  tasks.reserve(static_cast<std::size_t>(num_sequences * inputs.sizes.v_heads));
  for (std::int64_t sequence = 0; sequence < num_sequences; ++sequence)
    for (std::int64_t head = 0; head < inputs.sizes.v_heads; ++head) tasks.push_back({sequence, head});
  std::stable_sort(tasks.begin(), tasks.end(), [&](const Task& x, const Task& y) {
    return inputs.sequences[static_cast<std::size_t>(x.sequence)].length() >
           inputs.sequences[static_cast<std::size_t>(y.sequence)].length();
  });
  return tasks;
}

template <class T>
void read_state(const View& view, const Block& block, T* state) {
  if (view.present) {
    read_block(view, block, state);
  } else {
    std::fill_n(state, block.rows * block.cols, T(0));
  }
}

// What one thread works in; made by the thread itself on its first task.
template <class T>
struct ForwardWorker {
  explicit ForwardWorker(const FwdCall& call)
      : chunk(call.sizes), state(call.sizes.dim_k * call.sizes.dim_v), inverse(kChunk * kChunk) {}

  void run(const FwdCall& call, const Task& task) {
    const Sequence& sequence = call.sequences[static_cast<std::size_t>(task.sequence)];
    const Block states = state_rows(task.sequence, task.v_head, call.sizes.dim_k, call.sizes.dim_v);
    read_state(call.initial_state, states, state.data());
    const std::int64_t chunks = ceil_div(sequence.length(), kChunk);
    for (std::int64_t c = 0; c < chunks; ++c) {
      const ChunkPlace place = place_of(sequence, task.v_head, c);
      chunk.load(call, place);
      chunk.load_q(call);
      chunk.invert(inverse.data());
      chunk.solve_errors(inverse.data(), state.data());
      write_block(call.o, token_rows(place.batch, place.begin, place.v_head, place.rows, call.sizes.dim_v),
                  chunk.output(state.data()));
      chunk.advance(state.data());
    }
    if (call.final_state.present) write_block(call.final_state, states, state.data());
  }

  Chunk<T> chunk;
  Buffer<T> state;
  Buffer<T> inverse;
};

template <class T>
class BackwardWorker {
 public:
  BackwardWorker(const BwdCall& call, std::int64_t state_bytes, std::int64_t longest_span)
      : call_(call),
        state_bytes_(state_bytes),
        state_elems_(call.sizes.dim_k * call.sizes.dim_v),
        chunk_(call.sizes),
        state_(state_elems_),
        gradient_(state_elems_),
        starts_(longest_span * state_elems_),
        inverses_(longest_span * kChunk * kChunk) {}

  void run(const Task& task, typename GroupSum<T>::Turn& turn) {
    const Sequence& sequence = call_.sequences[static_cast<std::size_t>(task.sequence)];
    const Chunking chunking = make_chunking<T>(call_.sizes, sequence.length(), state_bytes_);
    const Block states = state_rows(task.sequence, task.v_head, call_.sizes.dim_k, call_.sizes.dim_v);

    // The state at the start of every span. The last span's chunks are first walked when they are needed.
    read_state(call_.initial_state, states, state_.data());
    Buffer<T> marks(chunking.spans() * state_elems_);
    for (std::int64_t span = 0; span < chunking.spans(); ++span) {
      std::copy_n(state_.data(), state_elems_, marks.data() + span * state_elems_);
      if (span + 1 == chunking.spans()) break;
      for (std::int64_t c = span * chunking.span; c < (span + 1) * chunking.span; ++c) {
        chunk_.load(call_, place_of(sequence, task.v_head, c));
        chunk_.invert(inverses_.data());
        chunk_.solve_errors(inverses_.data(), state_.data());
        chunk_.advance(state_.data());
      }
    }

    read_state(call_.final_state_grad, states, gradient_.data());
    for (std::int64_t span = chunking.spans() - 1; span >= 0; --span) {
      std::copy_n(marks.data() + span * state_elems_, state_elems_, starts_.data());
      const std::int64_t first = span * chunking.span, last = std::min(first + chunking.span, chunking.chunks);
      store_span(sequence, task.v_head, first, last);
      for (std::int64_t c = last - 1; c >= first; --c) {
        const ChunkPlace place = place_of(sequence, task.v_head, c);
        chunk_.load(call_, place);
        chunk_.load_q(call_);
        chunk_.load_do(call_);
        chunk_.backward(inverse(c - first), start(c - first), gradient_.data());
        write_rows(place);
        turn.add(place.begin, place.rows, chunk_.dq(), chunk_.dk());
      }
    }
    if (call_.dh0.present) write_block(call_.dh0, states, gradient_.data());
  }

 private:
  T* start(std::int64_t chunk) { return starts_.data() + chunk * state_elems_; }
  T* inverse(std::int64_t chunk) { return inverses_.data() + chunk * kChunk * kChunk; }

  // From the state at the start of chunk `first`: the inverse of every chunk up to `last` and the state at its start.
  void store_span(const Sequence& sequence, std::int64_t v_head, std::int64_t first, std::int64_t last) {
    for (std::int64_t c = 0; c < last - first; ++c) {
      chunk_.load(call_, place_of(sequence, v_head, first + c));
      chunk_.invert(inverse(c));
      if (first + c + 1 == last) break;
      chunk_.solve_errors(inverse(c), start(c));
      std::copy_n(start(c), state_elems_, start(c + 1));
      chunk_.advance(start(c + 1));
    }
  }

  void write_rows(const ChunkPlace& place) {
    write_block(call_.dv, token_rows(place.batch, place.begin, place.v_head, place.rows, call_.sizes.dim_v),
                chunk_.dv());
    const Block column = token_rows(place.batch, place.begin, place.v_head, place.rows, 1);
    write_block(call_.dg, column, chunk_.dg());
    write_block(call_.dbeta, column, chunk_.dbeta());
  }

  const BwdCall& call_;
  std::int64_t state_bytes_;  // limit of starts_ and inverses_ together
  std::int64_t state_elems_;
  Chunk<T> chunk_;
  Buffer<T> state_, gradient_;  // S and dS, [K, V]
  Buffer<T> starts_;            // state at the start of each chunk of a span
  Buffer<T> inverses_;          // A' - I of each chunk of a span
};

}  // namespace

template <class T>
void chunked_forward(const FwdCall& call, const ChunkedOptions& options) {
  const std::vector<Task> tasks = make_tasks(call);
  std::vector<std::unique_ptr<ForwardWorker<T>>> workers(static_cast<std::size_t>(options.threads));
  run_tasks(options.threads, static_cast<std::int64_t>(tasks.size()), [&](int worker, std::int64_t index) {
    auto& own = workers[static_cast<std::size_t>(worker)];
    if (!own) own = std::make_unique<ForwardWorker<T>>(call);
    own->run(call, tasks[static_cast<std::size_t>(index)]);
  });
  zero_rows_past_end(call, call.o, call.sizes.v_heads, call.sizes.dim_v);
}

template <class T>
void chunked_backward(const BwdCall& call, const ChunkedOptions& options) {
  const std::vector<Task> tasks = make_tasks(call);
  std::int64_t longest_span = 1;
  for (const Sequence& sequence : call.sequences)
    longest_span =
        std::max(longest_span, make_chunking<T>(call.sizes, sequence.length(), options.state_bytes_per_thread).span);
  GroupSum<T> sum(call);
  std::vector<std::unique_ptr<BackwardWorker<T>>> workers(static_cast<std::size_t>(options.threads));
  run_tasks(options.threads, static_cast<std::int64_t>(tasks.size()), [&](int worker, std::int64_t index) {
    const Task& task = tasks[static_cast<std::size_t>(index)];
    typename GroupSum<T>::Turn turn(sum, task.sequence, task.v_head);
    auto& own = workers[static_cast<std::size_t>(worker)];
    if (!own) own = std::make_unique<BackwardWorker<T>>(call, options.state_bytes_per_thread, longest_span);
    own->run(task, turn);
  });
  zero_rows_past_end(call, call.dq, call.sizes.k_heads, call.sizes.dim_k);
  zero_rows_past_end(call, call.dk, call.sizes.k_heads, call.sizes.dim_k);
  zero_rows_past_end(call, call.dv, call.sizes.v_heads, call.sizes.dim_v);
  zero_rows_past_end(call, call.dg, call.sizes.v_heads, 1);
  zero_rows_past_end(call, call.dbeta, call.sizes.v_heads, 1);
}

template void chunked_forward<float>(const FwdCall&, const ChunkedOptions&);
template void chunked_forward<double>(const FwdCall&, const ChunkedOptions&);
template void chunked_backward<float>(const BwdCall&, const ChunkedOptions&);
template void chunked_backward<double>(const BwdCall&, const ChunkedOptions&);

}  // namespace gdr::cpu
