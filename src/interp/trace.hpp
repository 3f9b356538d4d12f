// Where in a run something happens, and how a fault there is reported.
#pragma once

#include <string>

#include "interp/launch.hpp"
#include "interp/program.hpp"

namespace gdr::interp {

// One warp at one step of its list.
struct At {
  int role = 0;
  int warp = 0;  // of the role
  int op = -1;   // index in Kernel::ops
  int slice_begin = 0, slice_end = 1;
  std::int64_t iteration = 0;  // -1 in the prologue, the iteration count in the epilogue
  std::int64_t time() const { return iteration + 1; }
};

struct Context {
  const Program* program = nullptr;
  const Block* block = nullptr;
  const InterpOptions* options = nullptr;
};

// "kernel x, block (sequence 0, v_head 1), role y, warp 2, op z, iteration 3"
std::string describe(const Context& context, const At& at);

// Throws Error (check_failed): place, what happened, and the options that bring it back.
[[noreturn]] void fault(const Context& context, const At& at, const char* code, const std::string& what);

}  // namespace gdr::interp
