#include "gpu/support.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace gdr {
namespace {

// cp.async and vector stores move 16 bytes at a time.
constexpr std::int64_t kAlignment = 16;

}  // namespace

std::string gpu_refusal(const GpuClass& problem) {
  if (problem.forward) return "there are no forward kernels yet; use the cpu backend";
  if (problem.dtype != DType::bf16)
    return fmt::format("q is {}, the kernels are for bf16; use the cpu backend", to_string(problem.dtype));
  if (problem.is_packed) return "cu_seqlens is given, the kernels take sequences of one length; use the cpu backend";
  if (problem.is_vk_in_place)
    return "states in device memory must lie as [K, V]; use state layout kv, or host memory, which is transposed";
  return "";
}

void check_gpu_class(const GpuClass& problem) {
  if (const std::string reason = gpu_refusal(problem); !reason.empty())
    fail(ErrorKind::unsupported, "GDR-G03", "cuda backend: {}", reason);
}

void check_in_place(std::string_view name, const cpu::View& view, const TensorSpec& tensor,
                    const std::array<std::int64_t, 4>& sizes) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::unsupported, "GDR-G03", "cuda backend: {} {}", name, what);
  };
  if (view.dtype != tensor.dtype)
    refuse(fmt::format("is {}, the kernels take {} in device memory", to_string(view.dtype), to_string(tensor.dtype)));
  if (tensor.cols > 1 && view.strides[3] != 1)
    refuse(fmt::format("has stride {} in its last dimension, the kernels need 1", view.strides[3]));
  const auto element = static_cast<std::int64_t>(size_bytes(tensor.dtype));
  const std::int64_t alignment = tensor.cols > 1 ? kAlignment : element;
  if (reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(alignment) != 0)
    refuse(fmt::format("begins at {}, the kernels need a multiple of {} bytes", view.data, alignment));
  for (std::size_t i = 0; i < 3; ++i)
    if (sizes[i] > 1 && view.strides[i] * element % alignment != 0)
      refuse(fmt::format("has stride {} in dimension {}, {} bytes; the kernels need a multiple of {}", view.strides[i],
                         i, view.strides[i] * element, alignment));
}

}  // namespace gdr
