// Which accesses of a block's threads are ordered: vector clocks. A thread knows what it has acquired; a component is a
// thread's own accesses, or the copies that it issued, which are done by somebody else (cp.async). What threads know
// is shared between them until one learns more, so that 32 lanes that wait for one barrier cost one join.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gdr::host {

using Epoch = std::uint32_t;
using Knowledge = std::shared_ptr<const std::vector<Epoch>>;  // by component: the last epoch known

// What the arrivals at one phase of a barrier bring together.
class Gathering {
 public:
  explicit Gathering(std::size_t components) : known_(components, 0) {}
  // Components [skip_begin, skip_end) stay out.
  void join(const Knowledge& knowledge, int skip_begin = 0, int skip_end = 0);
  void add(int component, Epoch epoch);
  Knowledge finish();  // and starts again, with what it had: phases follow each other

 private:
  std::vector<Epoch> known_;
  Knowledge last_joined_;
  int last_skipped_ = -1;
};

class Clocks {
 public:
  explicit Clocks(int threads);

  int num_components() const { return 2 * threads_; }
  int copies_of(int thread) const { return threads_ + thread; }
  bool is_copies(int component) const { return component >= threads_; }
  int thread_of(int component) const { return component % threads_; }

  Epoch now(int thread) const { return own_[index(thread)]; }
  Epoch copies_now(int thread) const { return copies_[index(thread)]; }
  const Knowledge& knowledge(int thread) const { return known_[index(thread)]; }

  // Whether what `component` did in `epoch` comes before what the thread does next.
  bool is_before(int component, Epoch epoch, int thread) const {
    return component == thread || (*known_[index(thread)])[index(component)] >= epoch;
  }

  // The thread's accesses so far come before whoever acquires the gathering.
  void release(int thread, Gathering& into);
  // The thread's copies up to `epoch` do, and what the thread knew of others when it issued the last of them; not its
  // own warp's ordinary accesses, which no copy orders.
  void release_copies(int thread, Epoch epoch, const Knowledge& at_issue, Gathering& into);
  void end_copies_epoch(int thread) { ++copies_[index(thread)]; }
  void acquire(int thread, const Knowledge& from);
  // Everything of each before everything of all that follows.
  void meet(std::span<const int> threads);

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  struct Joined {  // the last acquisition of a warp: its other lanes do the same
    Knowledge before, from, after;
  };

  int threads_;
  std::vector<Epoch> own_, copies_;
  std::vector<Knowledge> known_;
  std::vector<Joined> joined_;
};

}  // namespace gdr::host
