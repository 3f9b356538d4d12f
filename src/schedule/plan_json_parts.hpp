// The inside of plan_from_json: limits of numbers, readers of the values that occur all over a plan file, and the
// part that reads the operations. Not for other rooms.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/json.hpp"
#include "schedule/model.hpp"
#include "schedule/names.hpp"

namespace gdr::plan_file {

// Far above any kernel, and low enough that no product of them leaves an int.
inline constexpr int kMaxDim = 1024;  // rows, columns
inline constexpr int kMaxStages = 16;
inline constexpr int kMaxBytes = 1 << 24;  // of shared memory
inline constexpr int kMaxWarps = 32;       // 1,024 threads a block
inline constexpr int kMaxRegisters = 255;  // per thread, of the instruction set
inline constexpr int kMaxSlices = 64;
inline constexpr int kMaxArrivals = 1024;
inline constexpr int kMaxNamedBarrier = 15;
inline constexpr std::size_t kMaxListed = 1024;  // elements of any list
inline constexpr std::size_t kMaxOperands = 16;
inline constexpr int kBlock = 16;      // of lower16 tiles
inline constexpr int kUnitBytes = 16;  // what a swizzle moves

template <NamedEnum T>
T choice(ObjectReader& reader, std::string_view key) {
  return reader.choice(key, EnumNames<T>::kTable);
}
template <NamedEnum T>
T choice_or(ObjectReader& reader, std::string_view key, T otherwise) {
  const std::optional<JsonValue> value = reader.find(key);
  return value ? value->choice(EnumNames<T>::kTable) : otherwise;
}

// Names and texts are short printable ASCII, so that they can stand in messages and in emitted source.
std::string name_at(ObjectReader& reader, std::string_view key);
std::string text_or_empty(ObjectReader& reader, std::string_view key);
DType dtype_at(ObjectReader& reader, std::string_view key, const std::string& source);
// A pair [begin, end] with 0 <= begin < end <= max.
Range range_of(const JsonValue& value, int max);

template <typename T>
void refuse_repeated_names(const std::vector<T>& items, const std::vector<JsonValue>& values) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!seen.insert(items[i].name).second)
      values[i].object().at("name").reject("is the name of an earlier element too; names must differ.");
}

// A list whose elements stand in several places of the file: the key `order` of each says where in the list it is.
template <typename T>
class OrderedList {
 public:
  int add(ObjectReader& reader, T item) {
    const JsonValue order = reader.at("order");
    const int position = order.integer(0, static_cast<int>(kMaxListed) - 1);
    const auto [at, is_new] = items_.try_emplace(position, std::move(item), order);
    if (!is_new) order.reject(fmt::format("is already taken by {}.", at->second.second.path()));
    return position;
  }
  // The elements, which must fill the positions from 0 on.
  std::vector<T> take() {
    std::vector<T> list;
    for (auto& [position, item] : items_) {
      if (position != static_cast<int>(list.size()))
        item.second.reject(
            fmt::format("leaves a gap: no element has the order {}, of {} elements.", list.size(), items_.size()));
      list.push_back(std::move(item.first));
    }
    return list;
  }

 private:
  std::map<int, std::pair<T, JsonValue>> items_;
};

// Refuses a derived key that is there and does not say what the model says (GDR-S10).
class DerivedCheck {
 public:
  explicit DerivedCheck(const std::string& source) : source_(source) {}
  void integer(ObjectReader& reader, std::string_view key, std::int64_t expected) const;
  void op_id(ObjectReader& reader, std::string_view key, const std::string& expected) const;  // null if empty
  void names(ObjectReader& reader, std::string_view key, const std::vector<std::string>& expected) const;

 private:
  [[noreturn]] void disagree(const JsonValue& value, const std::string& given, const std::string& expected) const;
  const std::string& source_;
};

// Fills kernel.ops and the lists of kernel.roles from the key `ops` of each role. The plan's tensors and the kernel's
// tiles, barriers and roles must be there.
void read_ops(const Plan& plan, Kernel& kernel, const std::vector<JsonValue>& roles);

}  // namespace gdr::plan_file
