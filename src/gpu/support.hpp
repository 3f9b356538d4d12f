// What the generated kernels cannot do yet: the one place that says so, for calls, why_not and the command line alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/dtype.hpp"
#include "cpu/call.hpp"
#include "schedule/model.hpp"

namespace gdr {

// What matters about a call besides sizes.
struct GpuClass {
  bool forward = false, backward = false;  // which of them is wanted
  DType dtype = DType::bf16;               // of q, k, v, do
  bool is_packed = false;                  // cu_seqlens is given
  bool is_vk_in_place = false;  // states lie as [V, K] in device memory; from host memory they are transposed
};

// Why the kernels cannot serve it, to follow "cuda backend: "; empty if they can.
std::string gpu_refusal(const GpuClass& problem);

// Throws Error (unsupported, GDR-G03) with that reason.
void check_gpu_class(const GpuClass& problem);

// A tensor of a call in device memory, as a kernel would use it without a copy: throws Error (unsupported, GDR-G03)
// that names the tensor, if its element type is not the kernel's, its last dimension is not contiguous, or address or
// strides are not multiples of 16 bytes (of an element, for g, beta and their gradients). `sizes`: of its dimensions,
// strides of those of size 1 do not count.
void check_in_place(std::string_view name, const cpu::View& view, const TensorSpec& tensor,
                    const std::array<std::int64_t, 4>& sizes);

}  // namespace gdr
