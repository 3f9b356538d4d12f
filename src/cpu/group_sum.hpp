// dq and dk of a k-head, summed over the v-heads of its group while these run on different threads. A v-head adds the
// rows of a chunk only after the v-head before it has, so the order of additions is always the same; the last one
// rounds and writes the caller's tensors. With one v-head a group nothing is held or waited for.
#pragma once

#include <atomic>
#include <cstdint>
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

    // Adds dq, dk [rows, K] of the tokens [begin, begin + rows). All v-heads of a group make the same calls in the
    // same order, and cover the sequence.
    void add(std::int64_t begin, std::int64_t rows, const T* dq, const T* dk);

   private:
    void wait_for_previous() const;
    std::atomic<std::int64_t>& progress(std::int64_t member) const;

    GroupSum& sum_;
    const Sequence& span_;
    std::int64_t sequence_, k_head_, member_;
    std::int64_t added_ = 0;  // rows
  };

 private:
  struct Group {
    Buffer<T> dq, dk;  // [length, K], held from the first v-head's first chunk to the last one's end
  };

  const BwdCall& call_;
  std::int64_t members_;                             // v-heads of a group
  std::vector<std::atomic<std::int64_t>> progress_;  // [N, Hv]: rows added
  std::vector<Group> groups_;                        // [N, Hk]
  std::atomic<bool> failed_{false};
};

}  // namespace gdr::cpu
