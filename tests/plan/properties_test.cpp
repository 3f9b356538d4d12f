// Random small cases of the passes that are pure combinatorics, against brute force and plain definitions.
// RapidCheck prints the seed of a failing run; RC_PARAMS="seed=..." repeats it.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "plan/happens_before.hpp"
#include "plan/pack.hpp"
#include "plan/synchronise.hpp"

namespace gdr::test {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }
int range(int begin, int end) { return *rc::gen::inRange(begin, end); }

// ------------------------------------------------------------------------------------------------------- pack

using Conflicts = std::vector<std::vector<bool>>;

struct PackCase {
  std::vector<PackItem> items;
  Conflicts conflicts;
};

// Up to six items of 1 to 6 bytes, some aligned to 2 or 4. Interval graphs come from lives on a line, others are
// random.
PackCase pack_case() {
  PackCase c;
  const int count = range(1, 7);
  const bool intervals = *rc::gen::arbitrary<bool>();
  std::vector<std::pair<int, int>> lives;
  for (int i = 0; i < count; ++i) {
    c.items.push_back({range(1, 7), 1 << range(0, 3)});
    const int first = range(0, 8);
    lives.emplace_back(first, range(first, 8));
  }
  c.conflicts.assign(at(count), std::vector<bool>(at(count)));
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j)
      c.conflicts[at(i)][at(j)] = c.conflicts[at(j)][at(i)] =
          intervals ? lives[at(i)].first <= lives[at(j)].second && lives[at(j)].first <= lives[at(i)].second
                    : *rc::gen::arbitrary<bool>();
  return c;
}

bool overlap(const PackCase& c, const std::vector<int>& offsets, int i, int j) {
  return offsets[at(i)] < offsets[at(j)] + c.items[at(j)].bytes &&
         offsets[at(j)] < offsets[at(i)] + c.items[at(i)].bytes;
}

// Does some choice of offsets for items `next` and later stay below `total` bytes? Tries every aligned offset.
bool fits(const PackCase& c, std::vector<int>& offsets, int next, int total) {
  if (next == static_cast<int>(c.items.size())) return true;
  const PackItem& item = c.items[at(next)];
  for (int offset = 0; offset + item.bytes <= total; offset += item.alignment) {
    offsets[at(next)] = offset;
    bool free = true;
    for (int other = 0; other < next && free; ++other)
      free = !c.conflicts[at(next)][at(other)] || !overlap(c, offsets, next, other);
    if (free && fits(c, offsets, next + 1, total)) return true;
  }
  return false;
}

int least_bytes(const PackCase& c) {
  std::vector<int> offsets(c.items.size());
  for (int total = 0;; ++total)
    if (fits(c, offsets, 0, total)) return total;
}

int heaviest_subset(const PackCase& c) {
  int heaviest = 0;
  for (unsigned subset = 0; subset < 1u << c.items.size(); ++subset) {
    int bytes = 0;
    bool clique = true;
    for (int i = 0; i < static_cast<int>(c.items.size()); ++i) {
      if (!(subset >> i & 1)) continue;
      bytes += c.items[at(i)].bytes;
      for (int j = 0; j < i; ++j)
        if (subset >> j & 1) clique &= c.conflicts[at(i)][at(j)];
    }
    if (clique) heaviest = std::max(heaviest, bytes);
  }
  return heaviest;
}

// -------------------------------------------------------------------------------------------- waits and meetings

constexpr int kRoles = 3, kMostDistance = 3;

struct Body {
  std::vector<BodyOp> ops;
  std::vector<Wait> waits;
  std::vector<Meeting> meetings;
};

std::vector<BodyOp> body() {
  std::vector<BodyOp> ops;
  const int count = range(2, 9);
  for (int i = 0; i < count; ++i) ops.push_back({range(0, kRoles), range(0, 3) == 0});
  return ops;
}

// A pair that some execution can order: the earlier one first if they are of the same iteration.
Wait pair_of(int count) {
  Wait wait{range(0, count), range(0, count), range(0, kMostDistance)};
  if (wait.distance == 0 && wait.before >= wait.after) wait.distance = 1;
  return wait;
}

// The definition, warp by warp: every role has two warps, every op of every iteration and warp is a node, every copy
// has a second node, its landing. Edges: program order of a warp; issue to landing; from all warps' op (and, where the
// op is a copy, from the landings of the copies that the warp has issued so far) to all warps of the waiter; meetings.
class WarpGraph {
 public:
  explicit WarpGraph(const Body& body) : body_(body), count_(static_cast<int>(body.ops.size())) {
    reached_.assign(at(nodes()), std::vector<bool>(at(nodes())));
    for (int it = 0; it < kIterations; ++it)
      for (int op = 0; op < count_; ++op)
        for (int warp = 0; warp < 2; ++warp) add(it, op, warp);
    for (int middle = 0; middle < nodes(); ++middle)
      for (int from = 0; from < nodes(); ++from)
        if (reached_[at(from)][at(middle)])
          for (int to = 0; to < nodes(); ++to)
            if (reached_[at(middle)][at(to)]) reached_[at(from)][at(to)] = true;
  }

  // Does `before` of `distance` iterations earlier end, in every warp, before any warp starts `after`? In one warp of
  // one role, program order alone does not count: the question is about different warps.
  bool holds(int before, int after, int distance) const {
    const int it = kIterations - 1;
    const bool is_copy = body_.ops[at(before)].is_copy;
    for (int x = 0; x < 2; ++x)
      for (int y = 0; y < 2; ++y) {
        if (body_.ops[at(before)].role == body_.ops[at(after)].role && !is_copy && x == y) continue;
        const int from = is_copy ? landing(it - distance, before, x) : node(it - distance, before, x);
        if (!reached_[at(from)][at(node(it, after, y))]) return false;
      }
    return true;
  }

 private:
  static constexpr int kIterations = 2 * kMostDistance + 2;

  int nodes() const { return kIterations * count_ * 4; }
  int node(int it, int op, int warp) const { return ((it * count_ + op) * 2 + warp) * 2; }
  int landing(int it, int op, int warp) const { return node(it, op, warp) + 1; }
  void edge(int from, int to) { reached_[at(from)][at(to)] = true; }

  // Calls visit(iteration, op) for all ops of the role up to and with this one; the nearest last.
  template <typename Visit>
  void for_earlier(int it, int op, int role, bool inclusive, const Visit& visit) const {
    for (int i = 0; i <= it; ++i)
      for (int o = 0; o < (i < it ? count_ : op + (inclusive ? 1 : 0)); ++o)
        if (body_.ops[at(o)].role == role) visit(i, o);
  }

  void add(int it, int op, int warp) {
    const BodyOp& me = body_.ops[at(op)];
    edge(node(it, op, warp), landing(it, op, warp));
    for_earlier(it, op, me.role, false, [&](int i, int o) { edge(node(i, o, warp), node(it, op, warp)); });
    for (const Wait& wait : body_.waits) {
      if (wait.after != op || wait.distance > it) continue;
      const BodyOp& source = body_.ops[at(wait.before)];
      for (int other = 0; other < 2; ++other) {
        edge(node(it - wait.distance, wait.before, other), node(it, op, warp));
        if (source.is_copy)
          for_earlier(it - wait.distance, wait.before, source.role, true, [&](int i, int o) {
            if (body_.ops[at(o)].is_copy) edge(landing(i, o, other), node(it, op, warp));
          });
      }
    }
    for (const Meeting& meeting : body_.meetings)
      if (meeting.op == op)
        for_earlier(it, op, me.role, false, [&](int i, int o) {
          for (int other = 0; other < 2; ++other) edge(node(i, o, other), node(it, op, warp));
        });
  }

  const Body& body_;
  const int count_;
  std::vector<std::vector<bool>> reached_;
};

}  // namespace

TEST_CASE("property: packings are legal and as small as brute force finds, and the bound is the heaviest clique") {
  CHECK(rc::check("pack", [] {
    const PackCase c = pack_case();
    const Packing packing = pack(c.items, c.conflicts);
    const int count = static_cast<int>(c.items.size());
    int end = 0;
    for (int i = 0; i < count; ++i) {
      RC_ASSERT(packing.offsets[at(i)] >= 0);
      RC_ASSERT(packing.offsets[at(i)] % c.items[at(i)].alignment == 0);
      end = std::max(end, packing.offsets[at(i)] + c.items[at(i)].bytes);
      for (int j = 0; j < i; ++j) RC_ASSERT(!c.conflicts[at(i)][at(j)] || !overlap(c, packing.offsets, i, j));
    }
    RC_ASSERT(packing.total_bytes == end);
    RC_ASSERT(packing.lower_bound_bytes == heaviest_subset(c));
    RC_ASSERT(heaviest_clique(c.items, c.conflicts) == packing.lower_bound_bytes);
    RC_ASSERT(packing.is_proven_optimal);
    RC_ASSERT(packing.total_bytes == least_bytes(c));
    const Packing again = pack(c.items, c.conflicts);
    RC_ASSERT(again.offsets == packing.offsets);
  }));
}

TEST_CASE("property: happens-before is what its definition, warp by warp, gives") {
  CHECK(rc::check("happens-before", [] {
    Body b;
    b.ops = body();
    const int count = static_cast<int>(b.ops.size());
    for (int i = range(0, 7); i > 0; --i) b.waits.push_back(pair_of(count));
    for (int i = range(0, 3); i > 0; --i) b.meetings.push_back({range(0, count)});
    const HappensBefore order(b.ops, kRoles, b.waits, b.meetings, kMostDistance);
    const WarpGraph graph(b);
    for (int before = 0; before < count; ++before)
      for (int after = 0; after < count; ++after)
        for (int distance = before < after ? 0 : 1; distance <= kMostDistance; ++distance)
          RC_ASSERT(order.holds(before, after, distance) == graph.holds(before, after, distance));
  }));
}

TEST_CASE("property: waits and meetings order every dependence, and none of them can be left out") {
  CHECK(rc::check("order_dependences", [] {
    const std::vector<BodyOp> ops = body();
    const int count = static_cast<int>(ops.size());
    std::vector<Dependence> wanted;
    for (int i = range(0, 12); i > 0; --i) {
      const Wait pair = pair_of(count);
      wanted.push_back({pair.before, pair.after, pair.distance, Hazard::read_after_write, 0, 0});
    }
    const Synchronisation found = order_dependences(ops, kRoles, wanted, kMostDistance);
    const auto all_hold = [&](const Synchronisation& s) {
      const HappensBefore order(ops, kRoles, s.waits, s.meetings, kMostDistance);
      return std::all_of(wanted.begin(), wanted.end(),
                         [&](const Dependence& d) { return order.holds(d.before, d.after, d.distance); });
    };
    RC_ASSERT(all_hold(found));
    for (std::size_t i = 0; i < found.waits.size(); ++i) {
      Synchronisation less = found;
      less.waits.erase(less.waits.begin() + static_cast<std::ptrdiff_t>(i));
      RC_ASSERT(!all_hold(less));
    }
    for (std::size_t i = 0; i < found.meetings.size(); ++i) {
      Synchronisation less = found;
      less.meetings.erase(less.meetings.begin() + static_cast<std::ptrdiff_t>(i));
      RC_ASSERT(!all_hold(less));
    }
  }));
}

}  // namespace gdr::test
