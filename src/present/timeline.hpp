// The loop body of a kernel as a block of characters: a column for each operation in canonical order, a line for each
// role (who does what) and for each tile (when it is written, read, alive). Tiles that share bytes stand one under the
// other, since lines go by offset.
#pragma once

#include <string>

#include "present/kernel_view.hpp"
#include "present/text.hpp"

namespace gdr {

std::string timeline_text(const KernelView& view, const Style& style);

}  // namespace gdr
