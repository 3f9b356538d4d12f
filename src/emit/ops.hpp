// One renderer for each kind of operation: the plan's fields as the arguments of a function of templates/device.
#pragma once

#include <string>

#include "schedule/model.hpp"

namespace gdr {

// Names in emitted text: a tile's type and variable, a barrier's first byte.
std::string shared_type(const std::string& tile);
std::string register_type(const std::string& tile);
std::string register_name(const std::string& tile);
std::string barrier_name(const std::string& barrier);

// How an arrival is written. That of cp.async comes from every lane, and is about copies by cp.async alone: a role that
// also copies by ordinary stores arrives for those as well.
bool copies_by_stores(const Kernel& kernel, const Role& role);
int arrivals_of_warp(const Kernel& kernel, const Role& role, const Op& arrive);

// The statement of one step, with its formula as a comment. `indent` spaces in front.
std::string step_text(const Plan& plan, const Kernel& kernel, const Role& role, const Step& step, bool in_loop);

}  // namespace gdr
