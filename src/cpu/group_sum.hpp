// dq and dk of a k-head, summed over the v-heads of its group while these run on different threads. A v-head adds the
// rows of a chunk only after the v-head before it has added them, so the order of additions is always the same; the
// last one rounds and writes the caller's tensors. With one v-head a group nothing is held or waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cpu/buffer.hpp"
#include "cpu/call.hpp"

namespace gdr::cpu {

template <class T>
class GroupSum {
 public:
  explicit GroupSum(const BwdCall& call);

  // The part of one (sequence, v-head). To be made before anything in its task can throw: its destructor lets the
  // later v-heads of the group pass even if this one stopped half-way (then nothing more is summed).
  // Requires that the v-heads of a group start in increasing order (run_tasks): the one waited for is running.
  class Turn {
   public:
    Turn(GroupSum& sum, std::int64_t sequence, std::int64_t v_head) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Adds dq, dk [rows, K] of the chunk of tokens [begin, begin + rows). Every v-head of a group adds each chunk of
    // the sequence once, in any order and from any thread.
    void add(std::int64_t begin, std::int64_t rows, const T* dq, const T* dk);

   private:
    std::atomic<bool>& added(std::int64_t member, std::int64_t chunk) const;

    GroupSum& sum_;
    const Sequence& span_;
    std::int64_t sequence_, k_head_, member_, chunks_;
    std::atomic<std::int64_t> num_added_{0};
  };

 private:
  struct Group {
    std::mutex mutex;          // of making and giving up the sums
    Buffer<T> dq, dk;          // [length, K], held from the first chunk of the first v-head to the last one of the last
    std::int64_t written = 0;  // chunks
  };

  const BwdCall& call_;
  std::int64_t members_;                  // v-heads of a group
  std::vector<std::int64_t> first_flag_;  // [N]: where the flags of a sequence begin
  std::vector<std::atomic<bool>> added_;  // of each sequence [Hv, chunks]; set too where nothing more will be added
  std::vector<Group> groups_;             // [N, Hk]
  std::atomic<bool> failed_{false};
};

}  // namespace gdr::cpu
