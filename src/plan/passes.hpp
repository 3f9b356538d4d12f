// The passes that turn the dataflow of a kernel into a schedule, in order: footprints, dependences, conflicts, pack,
// synchronise, registers. What they decide is written into the Kernel; what they learnt is returned.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/arch.hpp"
#include "plan/conflicts.hpp"
#include "plan/registers.hpp"
#include "schedule/model.hpp"

namespace gdr {

// One line of the pass log: what the pass found, for people.
struct PassNote {
  std::string pass;
  double microseconds = 0;  // if there is a clock
  std::string summary;
};

struct PassOptions {
  Aliasing aliasing = Aliasing::any;  // the most that may be shared; less is taken if it fits
  int smem_limit_bytes = 0;           // decides nothing else
  std::function<double()> clock_us;   // microseconds of any clock, for the notes; may be empty
};

struct PassResult {
  bool fits = false;
  std::string reason;                  // why not, with the figures
  Aliasing aliasing = Aliasing::none;  // as taken
  int smem_bytes = 0;
  int lower_bound_bytes = 0;  // tiles alone
  bool packing_is_optimal = false;
  RegisterAllocation registers;
  std::vector<PassNote> notes;
};

// Fills in offsets, barriers, registers and smem_bytes of `kernel`. A kernel that does not fit is left incomplete.
PassResult run_passes(Kernel& kernel, const Arch& arch, const PassOptions& options);

}  // namespace gdr
