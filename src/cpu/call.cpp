#include "cpu/call.hpp"

#include <algorithm>

namespace gdr::cpu {

void zero_rows_past_end(const Inputs& inputs, const View& output, std::int64_t heads, std::int64_t dim) {
  for (std::int64_t batch = 0; batch < inputs.sizes.batch; ++batch) {
    std::int64_t end = 0;
    for (const Sequence& sequence : inputs.sequences)
      if (sequence.batch == batch) end = std::max(end, sequence.end);
    for (std::int64_t head = 0; head < heads; ++head)
      zero_block(output, token_rows(batch, end, head, inputs.sizes.tokens - end, dim));
  }
}

}  // namespace gdr::cpu
