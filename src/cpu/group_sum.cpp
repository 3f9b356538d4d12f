#include "cpu/group_sum.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace gdr::cpu {
namespace {

// Progress of a v-head that will add nothing more.
constexpr std::int64_t kLeft = std::numeric_limits<std::int64_t>::max();

std::size_t count(const BwdCall& call, std::int64_t heads) {
  return call.heads_per_group() == 1 ? 0 : call.sequences.size() * static_cast<std::size_t>(heads);
}

}  // namespace

template <class T>
GroupSum<T>::GroupSum(const BwdCall& call)
    : call_(call),
      members_(call.heads_per_group()),
      progress_(count(call, call.sizes.v_heads)),
      groups_(count(call, call.sizes.k_heads)) {}

template <class T>
GroupSum<T>::Turn::Turn(GroupSum& sum, std::int64_t sequence, std::int64_t v_head) noexcept
    : sum_(sum),
      span_(sum.call_.sequences[static_cast<std::size_t>(sequence)]),
      sequence_(sequence),
      k_head_(v_head / sum.members_),
      member_(v_head % sum.members_) {}

template <class T>
GroupSum<T>::Turn::~Turn() {
  if (sum_.members_ == 1) return;
  if (added_ < span_.length()) sum_.failed_.store(true);
  progress(member_).store(kLeft, std::memory_order_release);
  progress(member_).notify_all();
}

template <class T>
std::atomic<std::int64_t>& GroupSum<T>::Turn::progress(std::int64_t member) const {
  return sum_
      .progress_[static_cast<std::size_t>(sequence_ * sum_.call_.sizes.v_heads + k_head_ * sum_.members_ + member)];
}

template <class T>
void GroupSum<T>::Turn::wait_for_previous() const {
  const std::atomic<std::int64_t>& previous = progress(member_ - 1);
  std::int64_t rows = previous.load(std::memory_order_acquire);
  while (rows <= added_) {
    previous.wait(rows, std::memory_order_acquire);
    rows = previous.load(std::memory_order_acquire);
  }
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

  if (member_ > 0) wait_for_previous();
  if (!sum_.failed_.load()) {
    Group& group = sum_.groups_[static_cast<std::size_t>(sequence_ * sum_.call_.sizes.k_heads + k_head_)];
    if (member_ == 0 && added_ == 0) {
      group.dq = Buffer<T>(span_.length() * dim_k);
      group.dk = Buffer<T>(span_.length() * dim_k);
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
      if (added_ + rows == span_.length()) group = Group();
    }
  }
  added_ += rows;
  progress(member_).store(added_, std::memory_order_release);
  progress(member_).notify_all();
}

template class GroupSum<float>;
template class GroupSum<double>;

}  // namespace gdr::cpu
