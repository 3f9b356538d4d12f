#include "clocks.hpp"

#include <algorithm>

namespace gdr::host {
namespace {

constexpr int kLanes = 32;

void join_into(std::vector<Epoch>& into, const std::vector<Epoch>& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

}  // namespace

void Gathering::join(const Knowledge& knowledge, int skip_begin, int skip_end) {
  if (knowledge == last_joined_ && skip_begin == last_skipped_) return;
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (i < static_cast<std::size_t>(skip_begin) || i >= static_cast<std::size_t>(skip_end))
      known_[i] = std::max(known_[i], (*knowledge)[i]);
  last_joined_ = knowledge;
  last_skipped_ = skip_begin;
}

void Gathering::add(int component, Epoch epoch) {
  Epoch& known = known_[static_cast<std::size_t>(component)];
  known = std::max(known, epoch);
}

Knowledge Gathering::finish() { return std::make_shared<const std::vector<Epoch>>(known_); }

Clocks::Clocks(int threads)
    : threads_(threads),
      own_(index(threads), 1),
      copies_(index(threads), 1),
      known_(index(threads), std::make_shared<const std::vector<Epoch>>(2 * index(threads), 0)),
      joined_(index(threads) / kLanes + 1) {}

void Clocks::release(int thread, Gathering& into) {
  into.join(known_[index(thread)]);
  into.add(thread, own_[index(thread)]++);
}

void Clocks::release_copies(int thread, Epoch epoch, const Knowledge& at_issue, Gathering& into) {
  const int warp_begin = thread / kLanes * kLanes;
  if (at_issue) into.join(at_issue, warp_begin, warp_begin + kLanes);
  into.add(copies_of(thread), epoch);
}

void Clocks::acquire(int thread, const Knowledge& from) {
  Knowledge& known = known_[index(thread)];
  Joined& joined = joined_[index(thread / kLanes)];
  if (joined.before != known || joined.from != from) {
    std::vector<Epoch> sum = *known;
    join_into(sum, *from);
    joined = {known, from, std::make_shared<const std::vector<Epoch>>(std::move(sum))};
  }
  known = joined.after;
}

void Clocks::meet(std::span<const int> threads) {
  std::vector<Epoch> sum = *known_[index(threads.front())];
  const std::vector<Epoch>* last = known_[index(threads.front())].get();
  for (const int thread : threads) {
    const Knowledge& known = known_[index(thread)];
    if (known.get() != last) join_into(sum, *known);
    last = known.get();
  }
  // A warp's lanes go on with one number, so that their reads are noted together.
  std::vector<Epoch> next(own_.size() / kLanes + 1, 0);
  for (const int thread : threads) {
    sum[index(thread)] = own_[index(thread)];
    next[index(thread / kLanes)] = std::max(next[index(thread / kLanes)], own_[index(thread)] + 1);
  }
  const Knowledge all = std::make_shared<const std::vector<Epoch>>(std::move(sum));
  for (const int thread : threads) {
    known_[index(thread)] = all;
    own_[index(thread)] = next[index(thread / kLanes)];
  }
}

}  // namespace gdr::host
