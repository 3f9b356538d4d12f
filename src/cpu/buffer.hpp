// Uninitialised memory for tiles, aligned to 64 bytes so that equal work has equal alignment on every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace gdr::cpu {

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t num_elems)
      : memory_(static_cast<T*>(::operator new(static_cast<std::size_t>(num_elems) * sizeof(T), kAlignment))) {}

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<T, Free> memory_;
};

}  // namespace gdr::cpu
