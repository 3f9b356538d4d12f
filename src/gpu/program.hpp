// A plan loaded on one device, and the launches of one call, with the arguments that the emitted text expects.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/kernel_library.hpp"
#include "runtime/driver.hpp"
#include "schedule/model.hpp"

namespace gdr {

// Where a tensor of the plan lies, strides in elements. Absent tensors have no data.
struct TensorPlace {
  DevicePointer data = 0;
  std::int64_t item_stride = 0;  // of a sequence, or of a chunk
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;  // of a token, or a row of a tile
};

// Sizes of one call: `sequences` of `tokens` each.
struct LaunchSizes {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  int k_heads = 0;
  int v_heads = 0;
  float scale = 0;
};

// The place of a dense tensor with rows of tokens as [sequence, token, head, col], of chunks as [chunk, head, ...], of
// states as [sequence, head, row, col]; and its elements.
TensorPlace dense_place(const TensorSpec& tensor, const LaunchSizes& sizes, DevicePointer data);
std::int64_t num_elements(const TensorSpec& tensor, const LaunchSizes& sizes, int chunk);

class GpuProgram {
 public:
  // Loads the plan's kernels on a device. Throws Error (device).
  GpuProgram(const ReadyPlan& ready, std::shared_ptr<const Driver> driver, int ordinal);

  const Plan& plan() const { return *plan_; }
  // Enqueues all kernels on the stream. `places` holds every tensor of the plan that is there.
  void launch(const LaunchSizes& sizes, const std::map<std::string, TensorPlace>& places, StreamHandle stream) const;

 private:
  void launch_kernel(std::size_t index, const LaunchSizes& sizes, const std::map<std::string, TensorPlace>& places,
                     StreamHandle stream) const;

  std::shared_ptr<const Plan> plan_;
  std::vector<LoadedKernel> loaded_;
};

}  // namespace gdr
