// The warps of one block: who may run next, barriers, and when copies land. What the ops do is left to `Actions`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "interp/trace.hpp"

namespace gdr::interp {

// The same numbers on every machine (std distributions are not).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }

 private:
  std::uint64_t state_;
};

class Actions {
 public:
  virtual ~Actions() = default;
  virtual void execute(const At& at) = 0;     // any op but barriers and copy_in
  virtual void issue_copy(const At& at) = 0;  // the bytes are undefined from here on
  virtual void land_copy(const At& at) = 0;   // and defined from here on
};

class Machine {
 public:
  Machine(const Context& context, std::uint64_t seed, Actions& actions);

  // Runs every warp to its end. Throws Error (check_failed): GDR-I03 on a deadlock, GDR-I13 on an arrival or a wait in
  // another phase than its own, and whatever the actions throw.
  void run();

  std::int64_t num_steps() const { return num_steps_; }

 private:
  struct PendingCopy {
    std::uint64_t id;
    At at;
  };
  struct PendingArrival {
    std::uint64_t after;  // copies with smaller or equal id must have landed
    At at;
  };
  struct Warp {
    int role = 0;
    int index = 0;
    Section section = Section::prologue;
    std::int64_t iteration = -1;
    std::size_t next_step = 0;
    bool done = false;
    bool in_sync = false;
    std::uint64_t sync_generation = 0;
    std::vector<PendingCopy> copies;
    std::deque<PendingArrival> arrivals;
    std::uint64_t priority = 0;
  };
  struct BarrierState {
    std::vector<std::int64_t> completed;  // phases, by copy
    std::vector<int> arrived;             // in the current phase
    int synced_warps = 0;                 // named
    std::uint64_t generation = 0;
  };

  const Op& op_of(const At& at) const { return *context_.program->ops[static_cast<std::size_t>(at.op)].op; }
  BarrierState& barrier_of(const At& at);
  const Barrier& barrier_model(const At& at) const;
  const std::vector<Step>& list_of(const Warp& warp) const;
  At at_of(const Warp& warp) const;
  void settle(Warp& warp);   // moves on to the next list that has a step
  void advance(Warp& warp);  // past the step just executed

  bool can_run(Warp& warp);
  bool wait_passes(const At& at);
  void step(Warp& warp);
  void enter_sync(Warp& warp, const At& at);
  void arrive(const At& at);
  void fire_arrivals(Warp& warp);
  void land(Warp& warp, std::size_t copy);
  bool land_some(bool forced);
  std::size_t choose(const std::vector<std::size_t>& runnable);
  [[noreturn]] void deadlock();
  std::string what_it_waits_for(const Warp& warp);

  Context context_;
  Random random_;
  Actions& actions_;
  std::vector<Warp> warps_;
  std::vector<BarrierState> barriers_;
  std::uint64_t next_copy_id_ = 1;
  std::int64_t num_steps_ = 0;
  std::size_t last_chosen_ = 0;
  int favoured_role_ = 0;
};

}  // namespace gdr::interp
