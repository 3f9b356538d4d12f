// A call on host memory: dense copies of its tensors on the device, in the kernels' element types.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "cpu/call.hpp"
#include "gpu/program.hpp"
#include "runtime/memory.hpp"

namespace gdr {

// One tensor of a call: tokens as [sequence, token, head, col], states as [sequence, head, row, col].
struct Binding {
  const cpu::View* view = nullptr;
  bool is_token = false;
};

// The tensors of a backward call by their names in a plan.
std::map<std::string, Binding> bindings_of(const cpu::BwdCall& call);

class HostCall {
 public:
  // Allocates and uploads. `call` outlives this object.
  HostCall(const cpu::BwdCall& call, const Plan& plan, const LaunchSizes& sizes,
           const std::shared_ptr<const Driver>& driver, const Context& context);

  const std::map<std::string, TensorPlace>& places() const { return places_; }
  // Downloads the outputs into the caller's tensors, after all work on the default stream.
  void finish() const;

 private:
  cpu::View staging(const TensorSpec& tensor, const Binding& binding, std::byte* bytes) const;
  void copy(const TensorSpec& tensor, const Binding& binding, const cpu::View& from, const cpu::View& to) const;

  const Plan& plan_;
  LaunchSizes sizes_;
  std::map<std::string, Binding> bindings_;
  std::map<std::string, TensorPlace> places_;
  std::map<std::string, DeviceBuffer> buffers_;
};

}  // namespace gdr
