// The element types of tensors.
#pragma once

namespace gdr {

enum class DType { bf16, fp16, fp32, fp64, i32, i64 };

}  // namespace gdr
