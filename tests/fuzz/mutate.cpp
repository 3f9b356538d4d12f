// Mutations that keep the text JSON: a value anywhere in the tree is replaced by another of the same file or by an
// extreme one, removed, or doubled. Random bytes alone seldom get past the parser; these reach what stands behind it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

using nlohmann::ordered_json;

extern "C" std::size_t LLVMFuzzerMutate(unsigned char* data, std::size_t size, std::size_t max_size);

namespace {

void collect(ordered_json& value, std::vector<ordered_json*>& out) {
  out.push_back(&value);
  if (value.is_structured())
    for (ordered_json& child : value) collect(child, out);
}

std::size_t below(std::mt19937& random, std::size_t bound) { return random() % bound; }

ordered_json extreme(std::mt19937& random) {
  const ordered_json values[] = {0,
                                 1,
                                 -1,
                                 16,
                                 31,
                                 32,
                                 33,
                                 255,
                                 65536,
                                 INT32_MAX,
                                 nullptr,
                                 true,
                                 "",
                                 "unknown",
                                 1.5,
                                 -0.0,
                                 1e300,
                                 INT64_MAX,
                                 INT64_MIN,
                                 UINT64_MAX,
                                 ordered_json::array(),
                                 ordered_json::object()};
  return values[below(random, std::size(values))];
}

void mutate(ordered_json& root, std::mt19937& random) {
  std::vector<ordered_json*> values;
  collect(root, values);
  ordered_json& target = *values[below(random, values.size())];
  switch (below(random, 5)) {
    case 0:
      target = extreme(random);
      break;
    case 1:
      target = ordered_json(*values[below(random, values.size())]);
      break;
    case 2:
      if (target.is_number_integer()) {  // a neighbour; unsigned, because it may wrap around
        target = static_cast<std::int64_t>(target.get<std::uint64_t>() + below(random, 65) - 32);
      } else {
        target = extreme(random);
      }
      break;
    case 3:
      if (target.is_structured() && !target.empty()) {
        auto at = target.begin();
        std::advance(at, below(random, target.size()));
        target.erase(at);
      } else {
        target = extreme(random);
      }
      break;
    default:
      if (target.is_array() && !target.empty()) {
        ordered_json copy = target[below(random, target.size())];
        target.insert(target.begin() + static_cast<std::ptrdiff_t>(below(random, target.size() + 1)), copy);
      } else {
        target = ordered_json(*values[below(random, values.size())]);
      }
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(unsigned char* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::mt19937 random(seed);
  if (below(random, 3) != 0) {
    ordered_json root = ordered_json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
    if (!root.is_discarded()) {
      for (std::size_t i = 0, count = 1 + below(random, 3); i < count; ++i) mutate(root, random);
      const std::string text = root.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
      if (text.size() <= max_size) {
        std::memcpy(data, text.data(), text.size());
        return text.size();
      }
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
