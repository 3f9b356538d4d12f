// Global memory of a host launch: named allocations, and for every byte who wrote it. An access outside all of them, to
// bytes that do not exist, or a read of what nobody or the same launch wrote, is a fault; so is a second write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gdr::host {

enum class AllocationKind { input, output, workspace };

class GlobalMemory {
 public:
  // `bytes` of poison, aligned to 256.
  std::byte* allocate(const std::string& name, std::size_t bytes, AllocationKind kind);
  // The caller has written these bytes of an allocation; or they do not exist for a kernel.
  void give(const std::string& name, std::size_t begin, std::size_t end);
  void forbid(const std::string& name, std::size_t begin, std::size_t end);

  void begin_launch() { ++launch_; }

  // What is wrong with an access of the running launch, or "". A write is noted. `allowed` names the allocations that
  // may be touched here; null: all.
  std::string read(const void* at, int bytes, const std::vector<std::string>* allowed);
  std::string write(const void* at, int bytes, const std::vector<std::string>* allowed);

  // The first byte of an allocation that exists and that nobody wrote; -1 if there is none.
  std::int64_t first_unwritten(const std::string& name) const;

 private:
  enum : std::uint16_t { kUnwritten, kForbidden, kGiven, kFirstLaunch };  // then launches in order
  struct Freed {
    void operator()(std::byte* p) const;
  };
  struct Allocation {
    std::string name;
    AllocationKind kind = AllocationKind::input;
    std::size_t size = 0;
    std::unique_ptr<std::byte[], Freed> data;
    std::vector<std::uint16_t> writers;
  };

  Allocation& named(const std::string& name);
  Allocation* find(const void* at, int bytes);
  std::string misplaced(const void* at, int bytes, const std::vector<std::string>* allowed, Allocation*& found);

  std::map<const std::byte*, Allocation> allocations_;  // by address
  std::uint16_t launch_ = kGiven;
};

}  // namespace gdr::host
