// Shared memory between strided tensors, against counting bytes.
#include "api/overlap.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

namespace gdr::test {
namespace {

char arena[1 << 16];

// Every byte that the tensor touches, and whether one is touched twice.
std::set<std::ptrdiff_t> bytes_of(const Tensor& tensor, bool& twice) {
  std::set<std::ptrdiff_t> result;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  for (std::int64_t index = 0; index < count; ++index) {
    std::int64_t rest = index, offset = 0;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      offset += rest % tensor.shape[i] * tensor.strides[i];
      rest /= tensor.shape[i];
    }
    for (std::int64_t byte = 0; byte < 4; ++byte)
      if (!result.insert(static_cast<char*>(tensor.data) - arena + offset * 4 + byte).second) twice = true;
  }
  return result;
}

}  // namespace

TEST_CASE("overlap: never misses a shared byte, and is exact for parts of one tensor") {
  std::mt19937 generator(11);
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(generator); };
  int num_shared = 0, num_apart = 0, num_apart_same_strides = 0, num_parts_apart = 0;
  for (int round = 0; round < 20000; ++round) {
    CAPTURE(round);
    const auto draw = [&](const Tensor* like) {
      Tensor tensor;
      tensor.data = arena + (1 << 15) + 2 * pick(-60, 60);
      tensor.shape = {pick(0, 9) == 0 ? 0 : pick(1, 4), pick(1, 4), pick(1, 4)};
      tensor.strides = {pick(-30, 30), pick(-9, 9), pick(0, 3)};
      if (pick(0, 1) == 1) tensor.strides = {pick(20, 60), pick(3, 12), pick(1, 3)};
      if (like != nullptr) tensor.strides = like->strides;
      return tensor;
    };
    const Tensor a = draw(nullptr);
    const bool same_strides = pick(0, 1) == 1;
    const Tensor b = draw(same_strides ? &a : nullptr);
    bool a_twice = false, b_twice = false, shared = false;
    const auto a_bytes = bytes_of(a, a_twice);
    for (const auto byte : bytes_of(b, b_twice)) shared |= a_bytes.count(byte) > 0;
    const ByteFootprint fa = footprint_of(a), fb = footprint_of(b);
    if (is_nested(fa)) CHECK(!a_twice);
    const bool answer = may_share_memory(fa, fb);
    CHECK(answer == may_share_memory(fb, fa));
    if (shared) {
      ++num_shared;
      CHECK(answer);
    } else {
      const bool is_part = same_strides && is_nested(fa) && is_nested(fb) && fa.dims.size() == 3 && fb.dims.size() == 3;
      if (is_part) {
        ++num_parts_apart;
        CHECK(!answer);
      }
    }
    if (!answer) {
      ++num_apart;
      num_apart_same_strides += same_strides ? 1 : 0;
    }
  }
  CHECK(num_shared > 1000);
  CHECK(num_apart > 1000);
  CHECK(num_apart_same_strides > 1000);
  CHECK(num_parts_apart > 100);
}

TEST_CASE("overlap: thirds of one tensor do not share memory, shifted ones do") {
  const auto third = [](std::int64_t first_elem, std::int64_t tokens, std::int64_t heads) {
    return Tensor{arena + first_elem * 4, DType::fp32, {2, tokens, heads, 8}, {10 * 48, 48, 8, 1}, {}};
  };
  struct Row {
    std::int64_t first_elem, tokens, heads;
    bool shared;
  };
  // q is heads 0 and 1 of rows of six heads.
  for (const Row& row : {Row{16, 10, 2, false},
                         {32, 10, 2, false},
                         {16, 9, 4, false},
                         {15, 10, 2, true},
                         {33, 10, 2, true},
                         {32, 10, 3, true},
                         {480 * 2, 10, 2, false},
                         {480, 10, 2, true}}) {
    CAPTURE(row.first_elem);
    CAPTURE(row.heads);
    CHECK(may_share_memory(footprint_of(third(0, 10, 2)), footprint_of(third(row.first_elem, row.tokens, row.heads))) ==
          row.shared);
  }
}

}  // namespace gdr::test
