#include "plan/pack.hpp"

#include <algorithm>
#include <numeric>

namespace gdr {
namespace {

int align_up(int value, int alignment) { return (value + alignment - 1) / alignment * alignment; }

std::vector<int> by_weight(const std::vector<PackItem>& items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
    return items[static_cast<std::size_t>(x)].bytes > items[static_cast<std::size_t>(y)].bytes;
  });
  return order;
}

class CliqueSearch {
 public:
  CliqueSearch(const std::vector<PackItem>& items, const std::vector<std::vector<bool>>& conflicts)
      : items_(items), conflicts_(conflicts) {}

  int run() {
    extend(by_weight(items_), 0);
    return best_;
  }

 private:
  // Candidates conflict with all members so far; their whole weight bounds what can still be added.
  void extend(const std::vector<int>& candidates, int weight) {
    best_ = std::max(best_, weight);
    int rest = 0;
    for (const int c : candidates) rest += bytes(c);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (weight + rest <= best_) return;
      std::vector<int> next;
      for (std::size_t j = i + 1; j < candidates.size(); ++j)
        if (conflict(candidates[i], candidates[j])) next.push_back(candidates[j]);
      extend(next, weight + bytes(candidates[i]));
      rest -= bytes(candidates[i]);
    }
  }

  int bytes(int item) const { return items_[static_cast<std::size_t>(item)].bytes; }
  bool conflict(int x, int y) const { return conflicts_[static_cast<std::size_t>(x)][static_cast<std::size_t>(y)]; }

  const std::vector<PackItem>& items_;
  const std::vector<std::vector<bool>>& conflicts_;
  int best_ = 0;
};

// Places items one by one, each at its lowest free offset; tries all orders, heaviest first, cut by the best total so
// far. An optimal packing pushed down item by item, in order of its offsets, is one of these.
class PackSearch {
 public:
  PackSearch(const std::vector<PackItem>& items, const std::vector<std::vector<bool>>& conflicts, int bound)
      : items_(items), conflicts_(conflicts), bound_(bound), order_(by_weight(items)), offsets_(items.size(), -1) {
    best_.lower_bound_bytes = bound;
    best_.total_bytes = -1;
  }

  Packing run() {
    place(0);
    best_.is_proven_optimal = best_.total_bytes <= bound_ || placements_left_ > 0;
    return best_;
  }

 private:
  bool is_done() const { return placements_left_ <= 0 || (best_.total_bytes >= 0 && best_.total_bytes <= bound_); }
  const PackItem& item(int i) const { return items_[static_cast<std::size_t>(i)]; }
  int& offset(int i) { return offsets_[static_cast<std::size_t>(i)]; }

  int lowest_offset(int me) {
    const std::vector<bool>& conflicts = conflicts_[static_cast<std::size_t>(me)];
    int lowest = 0;
    for (const int other : placed_) {
      if (!conflicts[static_cast<std::size_t>(other)]) continue;
      if (lowest + item(me).bytes <= offset(other)) break;
      lowest = std::max(lowest, align_up(offset(other) + item(other).bytes, item(me).alignment));
    }
    return lowest;
  }

  void place(int total) {
    if (placed_.size() == items_.size()) {
      best_.offsets = offsets_;
      best_.total_bytes = total;
      return;
    }
    for (const int next : order_) {
      if (is_done()) return;
      if (offset(next) >= 0) continue;
      const int lowest = lowest_offset(next);
      const int reach = std::max(total, lowest + item(next).bytes);
      if (best_.total_bytes >= 0 && reach >= best_.total_bytes) continue;
      --placements_left_;
      offset(next) = lowest;
      const auto at = std::upper_bound(placed_.begin(), placed_.end(), lowest,
                                       [&](int value, int other) { return value < offset(other); });
      const auto index = at - placed_.begin();
      placed_.insert(at, next);
      place(reach);
      placed_.erase(placed_.begin() + index);
      offset(next) = -1;
    }
  }

  const std::vector<PackItem>& items_;
  const std::vector<std::vector<bool>>& conflicts_;
  const int bound_;
  const std::vector<int> order_;
  std::vector<int> offsets_;  // -1: not placed
  std::vector<int> placed_;   // by offset
  Packing best_;
  int placements_left_ = 20'000;
};

}  // namespace

int heaviest_clique(const std::vector<PackItem>& items, const std::vector<std::vector<bool>>& conflicts) {
  return CliqueSearch(items, conflicts).run();
}

Packing pack(const std::vector<PackItem>& items, const std::vector<std::vector<bool>>& conflicts) {
  return PackSearch(items, conflicts, heaviest_clique(items, conflicts)).run();
}

}  // namespace gdr
