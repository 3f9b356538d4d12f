// The happens-before order of a kernel, as vector clocks over one maximal run of its warps.
//
// The run takes barriers at their intended meaning: a wait passes when all arrivals of the iteration it means have been
// made. That makes execution confluent (an event that is possible stays possible), so one run that goes as far as it
// can decides whether every run ends, and its clocks are the order that holds in every run. `check_phases` then proves
// that the hardware, which keeps a count and one parity bit for each copy, cannot behave otherwise; see there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "verify/index.hpp"

namespace gdr::verifying {

constexpr int kMaxWarps = 32;  // 1024 threads

// What has surely happened: for every warp its epoch (counted up after each arrival and sync), and for the asynchronous
// copies of every warp how many `after_copies` arrivals have fired.
struct Clock {
  std::array<std::uint32_t, 2 * kMaxWarps> at{};

  void join(const Clock& other) {
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = at[i] > other.at[i] ? at[i] : other.at[i];
  }
  bool knows(int component, std::uint32_t epoch) const { return at[static_cast<std::size_t>(component)] >= epoch; }
};

inline int copies_of(int warp) { return kMaxWarps + warp; }  // the component of a warp's copies

// Iterations after which nothing new can happen: 1 for a kernel that runs its body once. See timeline.cpp for why.
int iterations_to_run(const KernelIndex& index);

// One step that is no barrier operation, executed by one warp.
struct StepRun {
  int role = 0;
  int step = 0;        // in the role's body
  int warp = 0;        // in the role
  int block_warp = 0;  // in the block
  int iteration = 0;
  const Clock* clock = nullptr;  // when the step begins; its own component is the step's epoch
  std::uint32_t landing = 0;     // epoch of copies_of(block_warp) at which a copy issued now has landed
};

class Timeline {
 public:
  Timeline(const KernelIndex& index, int iterations);

  // Runs all warps as far as they go and hands over every step in an order that the barriers allow: of the warps that
  // can go on, the one whose next op stands first by iteration and Kernel::ops. So a run of a correct kernel is the one
  // that the kernel means, and a fault shows as what it is. False, with a finding (V11), if a warp is stuck.
  bool run(const std::function<void(const StepRun&)>& on_step, Findings& findings);
  // After run: mbarriers behave in every run as they are meant to (V12).
  void check_phases(Findings& findings);

  std::int64_t steps_run() const { return steps_run_; }
  std::int64_t phases_checked() const { return phases_checked_; }

 private:
  struct Arrival {
    int op = 0;
    int warp = 0;
    int iteration = 0;
    int component = 0;
    std::uint32_t epoch = 0;
    Clock clock;
  };
  struct Waiter {
    int op = 0;
    int warp = 0;
    int iteration = 0;
    std::uint32_t epoch = 0;
  };
  struct Phase {
    std::vector<Arrival> arrivals;
    std::vector<Waiter> waiters;
    Clock joined;
  };
  struct SyncRound {
    int arrived = 0;
    Clock joined;
  };
  struct Warp {
    int role = 0;
    int in_role = 0;
    int iteration = 0;
    int step = 0;
    Clock clock;
    std::uint32_t landings = 0;  // after_copies arrivals so far
    bool at_sync = false;
    bool is_blocked = false;
    std::vector<int> syncs;  // by barrier: rounds passed
  };

  bool is_done(const Warp& warp) const;
  int next_warp() const;
  bool advance(int warp, const std::function<void(const StepRun&)>& on_step);
  void arrive(int warp, int op);
  bool wait(int warp, int op);
  bool sync(int warp, int op);
  void report_stuck(Findings& findings) const;
  std::string describe_wait(const Warp& warp, int op) const;
  OpPlace place(int op, int warp, int iteration) const;
  std::string describe(int op, int warp, int iteration) const;
  void check_early_arrivals(int barrier, int iteration, Findings& findings);
  void check_late_waiters(int barrier, int iteration, Findings& findings);
  Phase& phase(int barrier, int iteration) { return at(at(phases_, barrier), iteration); }
  const Phase& phase(int barrier, int iteration) const { return at(at(phases_, barrier), iteration); }
  bool is_complete(int barrier, int iteration) const {
    return count_of(phase(barrier, iteration).arrivals) == at(expected_, barrier);
  }

  const KernelIndex& index_;
  int iterations_;
  std::vector<int> expected_;  // by barrier: arrivals of one iteration
  std::vector<std::vector<Phase>> phases_;
  std::vector<std::vector<SyncRound>> rounds_;
  std::vector<std::vector<int>> next_op_;  // by role, step: the next op from there that is no barrier operation
  std::vector<Warp> warps_;
  std::int64_t steps_run_ = 0;
  std::int64_t phases_checked_ = 0;
  std::vector<bool> early_reported_, late_reported_;  // by barrier
};

}  // namespace gdr::verifying
