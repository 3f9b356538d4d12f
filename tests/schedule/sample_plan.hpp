// A small plan made by hand, for the tests of plan files and pictures: a reverse walk over chunks by a loader and two
// consumers, with a split tile, an alias, a carried tile, stages, slices, masks and both kinds of barrier.
#pragma once

#include "schedule/model.hpp"

namespace gdr::test {

Plan sample_plan();

}  // namespace gdr::test
