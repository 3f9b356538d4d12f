#include "cpu/chunked.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
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

// One (sequence, v-head). The order in which they are handed out: long sequences first, so that no thread is
// left alone with one at the end; the v-heads of a group after one another, as GroupSum needs.
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

// How `threads` are shared by as many workers as there are tasks for. Half of a task's work is its two recurrences,
// which run one after the other: more than a few threads would find nothing to do in it.
std::vector<int> share_threads(int threads, std::size_t num_tasks) {
  constexpr int kMost = 4;
  const int all = std::max(1, threads);
  const int workers = static_cast<int>(std::clamp<std::size_t>(num_tasks, 1, static_cast<std::size_t>(all)));
  std::vector<int> shares;
  for (int worker = 0; worker < workers; ++worker)
    shares.push_back(std::min(kMost, all / workers + (worker < all % workers ? 1 : 0)));
  return shares;
}

// What one worker, a team of one or more threads, works in: the chunks at work and the states that its recurrences hand
// from one to the next.
template <class T>
class Workshop {
 public:
  Workshop(const Sizes& sizes, int threads)
      : sizes_(sizes),
        threads_(threads),
        slots_(threads == 1 ? 1 : 2 * std::int64_t{threads}),
        states_((slots_ + 1) * state_elems()) {
    for (std::int64_t slot = 0; slot < slots_; ++slot) chunks_.emplace_back(sizes);
  }

  std::int64_t state_elems() const { return sizes_.dim_k * sizes_.dim_v; }

  // The chunk that is at work for step `index` of a chain.
  Chunk<T>& chunk(std::int64_t index) { return chunks_[static_cast<std::size_t>(index % slots_)]; }
  // The state between the steps index - 1 and index. There is one more than chunks: a step reads one and writes
  // another.
  T* state(std::int64_t index) { return states_.data() + index % (slots_ + 1) * state_elems(); }

  void run(std::int64_t count, std::function<void(std::int64_t)> before, std::function<void(std::int64_t)> step,
           std::function<void(std::int64_t)> after) {
    run_chain(threads_, {count, slots_, std::move(before), std::move(step), std::move(after)});
  }

  std::int64_t slots() const { return slots_; }

 private:
  const Sizes& sizes_;
  int threads_;
  std::int64_t slots_;
  std::vector<Chunk<T>> chunks_;
  Buffer<T> states_;
};

template <class T>
class ForwardWorker {
 public:
  ForwardWorker(const FwdCall& call, int threads)
      : call_(call), shop_(call.sizes, threads), inverses_(shop_.slots() * kChunk * kChunk) {}

  void run(const Task& task) {
    const Sequence& sequence = call_.sequences[static_cast<std::size_t>(task.sequence)];
    const Block states = state_rows(task.sequence, task.v_head, call_.sizes.dim_k, call_.sizes.dim_v);
    const std::int64_t chunks = ceil_div(sequence.length(), kChunk);
    const auto inverse = [&](std::int64_t c) { return inverses_.data() + c % shop_.slots() * kChunk * kChunk; };
    read_state(call_.initial_state, states, shop_.state(0));
    shop_.run(
        chunks,
        [&](std::int64_t c) {
          Chunk<T>& chunk = shop_.chunk(c);
          chunk.load(call_, place_of(sequence, task.v_head, c));
          chunk.load_q(call_);
          chunk.invert(inverse(c));
        },
        [&](std::int64_t c) {
          shop_.chunk(c).solve_errors(inverse(c), shop_.state(c));
          shop_.chunk(c).advance(shop_.state(c), shop_.state(c + 1));
        },
        [&](std::int64_t c) {
          const ChunkPlace place = place_of(sequence, task.v_head, c);
          write_block(call_.o, token_rows(place.batch, place.begin, place.v_head, place.rows, call_.sizes.dim_v),
                      shop_.chunk(c).output(shop_.state(c)));
        });
    if (call_.final_state.present) write_block(call_.final_state, states, shop_.state(chunks));
  }

 private:
  const FwdCall& call_;
  Workshop<T> shop_;
  Buffer<T> inverses_;  // A' - I of each chunk at work
};

template <class T>
class BackwardWorker {
 public:
  BackwardWorker(const BwdCall& call, int threads, std::int64_t state_bytes, std::int64_t longest_span)
      : call_(call),
        state_bytes_(state_bytes),
        shop_(call.sizes, threads),
        starts_((longest_span + 1) * shop_.state_elems()),
        inverses_(longest_span * kChunk * kChunk) {}

  void run(const Task& task, typename GroupSum<T>::Turn& turn) {
    const Sequence& sequence = call_.sequences[static_cast<std::size_t>(task.sequence)];
    const Chunking chunking = make_chunking<T>(call_.sizes, sequence.length(), state_bytes_);
    const Block states = state_rows(task.sequence, task.v_head, call_.sizes.dim_k, call_.sizes.dim_v);

    // The state at the start of every span. The last span's chunks are first walked when they are needed.
    Buffer<T> marks(std::max<std::int64_t>(1, chunking.spans()) * shop_.state_elems());
    read_state(call_.initial_state, states, marks.data());
    for (std::int64_t span = 0; span + 1 < chunking.spans(); ++span) {
      copy_state(mark(marks, span), start(0));
      walk(sequence, task.v_head, span * chunking.span, chunking.span, chunking.span);
      copy_state(start(chunking.span), mark(marks, span + 1));
    }

    read_state(call_.final_state_grad, states, shop_.state(0));
    for (std::int64_t span = chunking.spans() - 1; span >= 0; --span) {
      const std::int64_t first = span * chunking.span, count = std::min(chunking.span, chunking.chunks - first);
      copy_state(mark(marks, span), start(0));
      walk(sequence, task.v_head, first, count, count - 1);
      walk_back(sequence, task.v_head, first, count, turn);
    }
    if (call_.dh0.present) write_block(call_.dh0, states, shop_.state(0));
  }

 private:
  T* start(std::int64_t chunk) { return starts_.data() + chunk * shop_.state_elems(); }
  T* inverse(std::int64_t chunk) { return inverses_.data() + chunk * kChunk * kChunk; }
  T* mark(Buffer<T>& marks, std::int64_t span) { return marks.data() + span * shop_.state_elems(); }
  void copy_state(const T* from, T* to) { std::copy_n(from, shop_.state_elems(), to); }

  // From start(0), the state at the start of chunk `first`: the inverses of `count` chunks and the states at the ends
  // of the first `ends` of them.
  void walk(const Sequence& sequence, std::int64_t v_head, std::int64_t first, std::int64_t count, std::int64_t ends) {
    shop_.run(
        count,
        [&](std::int64_t c) {
          shop_.chunk(c).load(call_, place_of(sequence, v_head, first + c));
          shop_.chunk(c).invert(inverse(c));
        },
        [&](std::int64_t c) {
          if (c == ends) return;
          shop_.chunk(c).solve_errors(inverse(c), start(c));
          shop_.chunk(c).advance(start(c), start(c + 1));
        },
        [](std::int64_t) {});
  }

  // After walk: the gradients of these chunks, the last one first, from shop_.state(0), the gradient of the state at
  // their end, which becomes that of the state at their start.
  void walk_back(const Sequence& sequence, std::int64_t v_head, std::int64_t first, std::int64_t count,
                 typename GroupSum<T>::Turn& turn) {
    shop_.run(
        count,
        [&](std::int64_t i) {
          Chunk<T>& chunk = shop_.chunk(i);
          chunk.load(call_, place_of(sequence, v_head, first + count - 1 - i));
          chunk.load_q(call_);
          chunk.load_do(call_);
          chunk.score_pairs();
        },
        [&](std::int64_t i) {
          shop_.chunk(i).solve_gradient(inverse(count - 1 - i), shop_.state(i));
          shop_.chunk(i).retreat(shop_.state(i), shop_.state(i + 1));
        },
        [&](std::int64_t i) {
          const std::int64_t c = count - 1 - i;
          Chunk<T>& chunk = shop_.chunk(i);
          chunk.differentiate(inverse(c), start(c), shop_.state(i));
          const ChunkPlace place = place_of(sequence, v_head, first + c);
          write_rows(chunk, place);
          turn.add(place.begin, place.rows, chunk.dq(), chunk.dk());
        });
    if (shop_.state(count) != shop_.state(0)) copy_state(shop_.state(count), shop_.state(0));
  }

  void write_rows(const Chunk<T>& chunk, const ChunkPlace& place) {
    write_block(call_.dv, token_rows(place.batch, place.begin, place.v_head, place.rows, call_.sizes.dim_v),
                chunk.dv());
    const Block column = token_rows(place.batch, place.begin, place.v_head, place.rows, 1);
    write_block(call_.dg, column, chunk.dg());
    write_block(call_.dbeta, column, chunk.dbeta());
  }

  const BwdCall& call_;
  std::int64_t state_bytes_;  // limit of starts_ and inverses_ together
  Workshop<T> shop_;
  Buffer<T> starts_;    // states at the starts of the chunks of a span, and at its end
  Buffer<T> inverses_;  // A' - I of each chunk of a span
};

}  // namespace

template <class T>
void chunked_forward(const FwdCall& call, const ChunkedOptions& options) {
  const std::vector<Task> tasks = make_tasks(call);
  const std::vector<int> shares = share_threads(options.threads, tasks.size());
  std::vector<std::unique_ptr<ForwardWorker<T>>> workers(shares.size());
  run_tasks(static_cast<int>(shares.size()), static_cast<std::int64_t>(tasks.size()),
            [&](int worker, std::int64_t index) {
              auto& own = workers[static_cast<std::size_t>(worker)];
              if (!own) own = std::make_unique<ForwardWorker<T>>(call, shares[static_cast<std::size_t>(worker)]);
              own->run(tasks[static_cast<std::size_t>(index)]);
            });
  zero_rows_past_end(call, call.o, call.sizes.v_heads, call.sizes.dim_v);
}

template <class T>
void chunked_backward(const BwdCall& call, const ChunkedOptions& options) {
  const std::vector<Task> tasks = make_tasks(call);
  const std::vector<int> shares = share_threads(options.threads, tasks.size());
  std::int64_t longest_span = 1;
  for (const Sequence& sequence : call.sequences)
    longest_span =
        std::max(longest_span, make_chunking<T>(call.sizes, sequence.length(), options.state_bytes_per_task).span);
  GroupSum<T> sum(call);
  std::vector<std::unique_ptr<BackwardWorker<T>>> workers(shares.size());
  run_tasks(static_cast<int>(shares.size()), static_cast<std::int64_t>(tasks.size()),
            [&](int worker, std::int64_t index) {
              const Task& task = tasks[static_cast<std::size_t>(index)];
              typename GroupSum<T>::Turn turn(sum, task.sequence, task.v_head);
              auto& own = workers[static_cast<std::size_t>(worker)];
              if (!own)
                own = std::make_unique<BackwardWorker<T>>(call, shares[static_cast<std::size_t>(worker)],
                                                          options.state_bytes_per_task, longest_span);
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
