#include "cpu/group_sum.hpp"

#include <cstddef>

#include "cpu/chunk.hpp"

namespace gdr::cpu {
namespace {

std::int64_t chunks_of(const Sequence& sequence) { return (sequence.length() + kChunk - 1) / kChunk; }

// Where each sequence's flags begin; one more entry, for their number. Empty if no sums are needed.
std::vector<std::int64_t> flag_offsets(const BwdCall& call) {
  std::vector<std::int64_t> offsets;
  if (call.heads_per_group() == 1) return offsets;
  offsets.push_back(0);
  for (const Sequence& sequence : call.sequences)
    offsets.push_back(offsets.back() + chunks_of(sequence) * call.sizes.v_heads);
  return offsets;
}

}  // namespace

template <class T>
GroupSum<T>::GroupSum(const BwdCall& call)
    : call_(call),
      members_(call.heads_per_group()),
      first_flag_(flag_offsets(call)),
      added_(first_flag_.empty() ? 0 : static_cast<std::size_t>(first_flag_.back())),
      groups_(members_ == 1 ? 0 : call.sequences.size() * static_cast<std::size_t>(call.sizes.k_heads)) {}

template <class T>
GroupSum<T>::Turn::Turn(GroupSum& sum, std::int64_t sequence, std::int64_t v_head) noexcept
    : sum_(sum),
      span_(sum.call_.sequences[static_cast<std::size_t>(sequence)]),
      sequence_(sequence),
      k_head_(v_head / sum.members_),
      member_(v_head % sum.members_),
      chunks_(chunks_of(span_)) {}

template <class T>
GroupSum<T>::Turn::~Turn() {
  if (sum_.members_ == 1 || num_added_.load() == chunks_) return;
  sum_.failed_.store(true);
  for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
    added(member_, chunk).store(true, std::memory_order_release);
    added(member_, chunk).notify_all();
  }
}

template <class T>
std::atomic<bool>& GroupSum<T>::Turn::added(std::int64_t member, std::int64_t chunk) const {
  const std::int64_t v_head = k_head_ * sum_.members_ + member;
  return sum_.added_[static_cast<std::size_t>(sum_.first_flag_[static_cast<std::size_t>(sequence_)] + v_head * chunks_ +
                                              chunk)];
}

template <class T>
void GroupSum<T>::Turn::add(std::int64_t begin, std::int64_t rows, const T* dq, const T* dk) {
  const std::int64_t dim_k = sum_.call_.sizes.dim_k;
  const Block block = token_rows(span_.batch, begin, k_head_, rows, dim_k);
  if (sum_.members_ == 1) {
    write_block(sum_.call_.dq, block, dq);
    write_block(sum_.call_.dk, block, dk);
    return;
  }

  const std::int64_t chunk = (begin - span_.begin) / kChunk;
  if (member_ > 0) added(member_ - 1, chunk).wait(false, std::memory_order_acquire);
  if (!sum_.failed_.load()) {
    Group& group = sum_.groups_[static_cast<std::size_t>(sequence_ * sum_.call_.sizes.k_heads + k_head_)];
    if (member_ == 0) {
      const std::lock_guard<std::mutex> lock(group.mutex);
      if (group.dq.data() == nullptr) {
        group.dk = Buffer<T>(span_.length() * dim_k);
        group.dq = Buffer<T>(span_.length() * dim_k);
      }
    }
    T* const sum_dq = group.dq.data() + (begin - span_.begin) * dim_k;
    T* const sum_dk = group.dk.data() + (begin - span_.begin) * dim_k;
    for (std::int64_t i = 0; i < rows * dim_k; ++i) {
      sum_dq[i] = member_ == 0 ? dq[i] : sum_dq[i] + dq[i];
      sum_dk[i] = member_ == 0 ? dk[i] : sum_dk[i] + dk[i];
    }
    if (member_ + 1 == sum_.members_) {
      write_block(sum_.call_.dq, block, sum_dq);
      write_block(sum_.call_.dk, block, sum_dk);
      const std::lock_guard<std::mutex> lock(group.mutex);
      if (++group.written == chunks_) {
        group.dq = Buffer<T>();
        group.dk = Buffer<T>();
      }
    }
  }
  ++num_added_;
  added(member_, chunk).store(true, std::memory_order_release);
  added(member_, chunk).notify_all();
}

template class GroupSum<float>;
template class GroupSum<double>;

}  // namespace gdr::cpu
