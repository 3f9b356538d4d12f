// Pass 7, registers: fragments alive at each operation, per thread, and what the roles are given. A limit as hard as
// bytes. The estimate is live fragments plus a fixed share for addresses, operands in flight and loop state.
#pragma once

#include <string>
#include <vector>

#include "config/arch.hpp"
#include "schedule/model.hpp"

namespace gdr {

// Calibrated on NVRTC 13.0: with these no kernel of the shipped configurations spills on any target.
inline constexpr int kWorkingRegisters = 32;
inline constexpr int kMovingRegisters = 8;         // more of them where registers move between roles
inline constexpr int kCopyingRegisters = 24;       // of a role that holds no fragments: addresses and counters
inline constexpr int kAmpleCopyingRegisters = 40;  // of the same, where there are enough

struct RegisterAllocation {
  bool fits = false;
  bool setmaxnreg = false;     // roles have counts of their own
  std::vector<int> needed;     // per role: live fragments and the fixed share
  std::vector<int> registers;  // per role, as granted
  int at_launch = 0;           // that every thread starts with
  std::string reason;          // why it does not fit, with the figures
};

// The most fragment registers a thread of `role` holds at once in the loop body.
int live_registers(const Kernel& kernel, const Role& role);

RegisterAllocation allocate_registers(const Kernel& kernel, const Arch& arch);

}  // namespace gdr
