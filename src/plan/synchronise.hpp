// Pass 6, synchronise: the fewest waits that order all dependences, as barriers with their counts, stages and phases.
//
// Every wait is for an event, "all warps of a role are done with operation x of iteration i", kept in an mbarrier;
// inside a role the warps meet at a named barrier instead. Waits that others imply are dropped; events that the same
// operation waits for are merged into one barrier. Stages are as many as parity needs: a barrier never completes a
// second phase before all who wait for the first have passed.
#pragma once

#include <string>
#include <vector>

#include "plan/dependences.hpp"
#include "plan/happens_before.hpp"
#include "schedule/model.hpp"

namespace gdr {

// What orders a kernel, before it is written down as barriers.
struct Synchronisation {
  std::vector<Wait> waits;
  std::vector<Meeting> meetings;
};

// The waits and meetings that order `dependences`; none of them is implied by the others.
Synchronisation order_dependences(const std::vector<BodyOp>& ops, int num_roles,
                                  const std::vector<Dependence>& dependences, int max_distance);

// Writes the synchronisation into the kernel: barriers, and arrive, wait and sync operations in the roles' lists.
void place_barriers(Kernel& kernel, const Synchronisation& synchronisation, const std::vector<Dependence>& dependences);

}  // namespace gdr
