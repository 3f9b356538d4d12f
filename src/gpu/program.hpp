// A plan loaded into one context, its workspace, and the launches of one call, with the arguments that the emitted text
// expects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/kernel_library.hpp"
#include "runtime/driver.hpp"
#include "runtime/kernel.hpp"
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

// How many heads a tensor has.
std::int64_t heads_of(const TensorSpec& tensor, const LaunchSizes& sizes);

// The place of a dense tensor with rows of tokens as [sequence, token, head, col], of chunks as [chunk, head, ...], of
// states as [sequence, head, row, col]; and its bytes.
TensorPlace dense_place(const TensorSpec& tensor, const LaunchSizes& sizes, DevicePointer data);
std::int64_t num_bytes(const TensorSpec& tensor, const LaunchSizes& sizes, int chunk);

// Where each workspace tensor of a plan lies in one piece of memory, in bytes from its begin.
struct WorkspaceLayout {
  std::vector<std::pair<const TensorSpec*, std::int64_t>> tensors;
  std::int64_t bytes = 0;
};
// The layout for a call. Throws Error (unsupported, GDR-G02) if it would have more bytes than addresses.
WorkspaceLayout workspace_layout(const Plan& plan, const LaunchSizes& sizes);
// Bytes at which a workspace must begin.
inline constexpr std::int64_t kWorkspaceAlignment = 256;

class GpuProgram {
 public:
  // Loads the plan's kernels. `smem_bytes`: of each kernel's launches, where it is not to be what the plan asks for.
  // Throws Error as LoadedKernel.
  GpuProgram(const ReadyPlan& ready, const std::shared_ptr<const Driver>& driver, const Context& context,
             const std::vector<int>& smem_bytes = {});

  const Plan& plan() const { return *plan_; }
  const std::vector<LoadedKernel>& loaded() const { return loaded_; }  // as the plan has kernels
  // Blocks of each kernel's launch. Throws Error (unsupported, GDR-G02): more than a launch takes.
  std::vector<std::int64_t> num_blocks(const LaunchSizes& sizes) const;
  // Enqueues all kernels on the stream. `places` holds the caller's tensors that are there; workspace tensors are
  // placed by `layout` from `workspace` on. Throws Error: device GDR-D03, unsupported GDR-G02 (more blocks than a
  // launch takes; before anything is launched). `after`, if any, is called behind each kernel's launch with its index.
  void launch(const LaunchSizes& sizes, const std::map<std::string, TensorPlace>& places, const WorkspaceLayout& layout,
              DevicePointer workspace, StreamHandle stream, const std::function<void(std::size_t)>& after = {}) const;

 private:
  std::vector<std::byte> arguments_of(const Kernel& kernel, const LaunchSizes& sizes,
                                      const std::map<std::string, TensorPlace>& places) const;

  std::shared_ptr<const Plan> plan_;
  std::vector<LoadedKernel> loaded_;
};

}  // namespace gdr
