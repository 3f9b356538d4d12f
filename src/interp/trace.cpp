#include "interp/trace.hpp"

#include "core/error.hpp"

namespace gdr::interp {
namespace {

const char* name_of(Order order) {
  switch (order) {
    case Order::random:
      return "random";
    case Order::round_robin:
      return "round robin";
    case Order::role_ahead:
      return "role ahead";
    case Order::role_behind:
      return "role behind";
    case Order::priorities:
      return "priorities";
  }
  return "?";
}

const char* name_of(Landing landing) {
  switch (landing) {
    case Landing::late:
      return "late";
    case Landing::random:
      return "random";
    case Landing::early:
      return "early";
  }
  return "?";
}

}  // namespace

std::string describe(const Context& context, const At& at) {
  const Kernel& kernel = *context.program->kernel;
  const std::string when = at.iteration < 0                       ? "prologue"
                           : at.iteration == context.block->count ? "epilogue"
                                                                  : fmt::format("iteration {}", at.iteration);
  return fmt::format("kernel {}, block ({}), role {}, warp {}, op {}, {}", kernel.name, context.block->describe(),
                     kernel.roles[static_cast<std::size_t>(at.role)].name, at.warp,
                     kernel.ops[static_cast<std::size_t>(at.op)].id, when);
}

void fault(const Context& context, const At& at, const char* code, const std::string& what) {
  fail(ErrorKind::check_failed, code, "interp: {}: {} (order {}, landing {}, seed {})", describe(context, at), what,
       name_of(context.options->order), name_of(context.options->landing), context.options->seed);
}

}  // namespace gdr::interp
