// A backward call on memory of the fake driver's devices, and what its log says about launches.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../fakes/fake_cuda.hpp"
#include "cpu/call.hpp"

namespace gdr::test {

// The fake driver of this process.
FakeCuda& fake();

// Sizes of a call.
struct CallSizes {
  std::int64_t batch = 2, tokens = 70, k_heads = 2, v_heads = 4, dim_k = 16, dim_v = 16;
};

// Dense tensors in the memory of a device, freed at the end; `call` views them and may be changed.
class DeviceCall {
 public:
  explicit DeviceCall(int device = 0, const CallSizes& sizes = {});
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  // A tensor by its name in a plan.
  cpu::View& view(const std::string& name);
  // Its sizes.
  const std::array<std::int64_t, 4>& shape(const std::string& name) const { return shapes_.at(name); }
  static const std::vector<std::string>& names();

  cpu::BwdCall call;

 private:
  std::map<std::string, std::array<std::int64_t, 4>> shapes_;
  std::vector<void*> memory_;
};

// One launch of the log.
struct Launch {
  std::string kernel, stream;  // stream as hexadecimal digits
  std::int64_t blocks = 0, threads = 0, smem_bytes = 0;
  struct Place {
    std::uint64_t data = 0;
    std::int64_t item = 0, head = 0, row = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::map<std::string, Place> tensors;
  std::map<std::string, std::string> sizes;  // T, N, Hk, Hv, scale
};

std::vector<Launch> launches(const std::vector<std::string>& log);
// The log without its launches' details: "alloc_async", "launch gdr_prepare..", ...
std::vector<std::string> events(const std::vector<std::string>& log);

}  // namespace gdr::test
