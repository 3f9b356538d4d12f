#include "global_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace gdr::host {

void GlobalMemory::Freed::operator()(std::byte* p) const { std::free(p); }

std::byte* GlobalMemory::allocate(const std::string& name, std::size_t bytes, AllocationKind kind) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t size = std::max<std::size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
  Allocation allocation;
  allocation.name = name;
  allocation.kind = kind;
  allocation.size = bytes;
  allocation.data.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  std::fill_n(allocation.data.get(), size, std::byte{0xff});
  allocation.writers.assign(bytes, kUnwritten);
  std::byte* const at = allocation.data.get();
  allocations_.emplace(at, std::move(allocation));
  return at;
}

GlobalMemory::Allocation& GlobalMemory::named(const std::string& name) {
  for (auto& [at, allocation] : allocations_)
    if (allocation.name == name) return allocation;
  throw std::logic_error("there is no allocation " + name);
}

void GlobalMemory::give(const std::string& name, std::size_t begin, std::size_t end) {
  std::fill(named(name).writers.begin() + static_cast<std::ptrdiff_t>(begin),
            named(name).writers.begin() + static_cast<std::ptrdiff_t>(end), kGiven);
}

void GlobalMemory::forbid(const std::string& name, std::size_t begin, std::size_t end) {
  std::fill(named(name).writers.begin() + static_cast<std::ptrdiff_t>(begin),
            named(name).writers.begin() + static_cast<std::ptrdiff_t>(end), kForbidden);
}

GlobalMemory::Allocation* GlobalMemory::find(const void* at, int bytes) {
  const auto* const first = static_cast<const std::byte*>(at);
  auto next = allocations_.upper_bound(first);
  if (next == allocations_.begin()) return nullptr;
  Allocation& allocation = std::prev(next)->second;
  const std::byte* const end = allocation.data.get() + allocation.size;
  return first < end && bytes <= end - first ? &allocation : nullptr;
}

std::string GlobalMemory::misplaced(const void* at, int bytes, const std::vector<std::string>* allowed,
                                    Allocation*& found) {
  found = find(at, bytes);
  if (found == nullptr) return fmt::format("{} bytes of global memory that are in no tensor", bytes);
  const std::ptrdiff_t offset = static_cast<const std::byte*>(at) - found->data.get();
  if (allowed != nullptr && std::find(allowed->begin(), allowed->end(), found->name) == allowed->end())
    return fmt::format("{} at byte {}, which is no operand for this", found->name, offset);
  if (offset % bytes != 0) return fmt::format("{} at byte {}: no multiple of {}", found->name, offset, bytes);
  const auto first = found->writers.begin() + offset;
  if (std::find(first, first + bytes, kForbidden) != first + bytes)
    return fmt::format("{} at byte {}: the row does not exist", found->name, offset);
  return "";
}

std::string GlobalMemory::read(const void* at, int bytes, const std::vector<std::string>* allowed) {
  Allocation* found = nullptr;
  std::string wrong = misplaced(at, bytes, allowed, found);
  if (!wrong.empty()) return wrong;
  const std::ptrdiff_t offset = static_cast<const std::byte*>(at) - found->data.get();
  for (std::ptrdiff_t i = offset; i < offset + bytes; ++i) {
    const std::uint16_t writer = found->writers[static_cast<std::size_t>(i)];
    if (writer == kUnwritten) return fmt::format("{} at byte {}: never written", found->name, i);
    if (writer == launch_) return fmt::format("{} at byte {}: written by the same launch", found->name, i);
  }
  return "";
}

std::string GlobalMemory::write(const void* at, int bytes, const std::vector<std::string>* allowed) {
  Allocation* found = nullptr;
  std::string wrong = misplaced(at, bytes, allowed, found);
  if (!wrong.empty()) return wrong;
  const std::ptrdiff_t offset = static_cast<const std::byte*>(at) - found->data.get();
  if (found->kind == AllocationKind::input) return fmt::format("{} at byte {}: it is an input", found->name, offset);
  for (std::ptrdiff_t i = offset; i < offset + bytes; ++i) {
    std::uint16_t& writer = found->writers[static_cast<std::size_t>(i)];
    if (writer == launch_ || (writer != kUnwritten && found->kind == AllocationKind::output))
      return fmt::format("{} at byte {}: written twice", found->name, i);
    writer = launch_;
  }
  return "";
}

std::int64_t GlobalMemory::first_unwritten(const std::string& name) const {
  for (const auto& [at, allocation] : allocations_) {
    if (allocation.name != name) continue;
    const auto missing = std::find(allocation.writers.begin(), allocation.writers.end(), kUnwritten);
    return missing == allocation.writers.end() ? -1 : missing - allocation.writers.begin();
  }
  throw std::logic_error("there is no allocation " + name);
}

}  // namespace gdr::host
