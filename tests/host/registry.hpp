// The kernels that are compiled into a test program: emitted text with the host's primitives, one object file each,
// written at build time by generate.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gdr::host {

struct TensorArgument {  // as in the text: strides in elements; absent tensors have no data
  void* data = nullptr;
  std::int64_t item_stride = 0, head_stride = 0, row_stride = 0;
};

struct Arguments {
  std::map<std::string, TensorArgument> tensors;
  std::int64_t tokens = 0;  // of each sequence
  int num_sequences = 0, k_heads = 0, v_heads = 0;
  float scale = 0;

  // Fills the text's own argument structs.
  template <typename TensorArg>
  void fill(const char* name, TensorArg& argument) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return;
    const TensorArgument& t = found->second;
    argument = {t.data, t.item_stride, t.head_stride, t.row_stride};
  }
  template <typename Args>
  void fill_sizes(Args& args) const {
    args.tokens = tokens;
    args.num_sequences = num_sequences;
    args.k_heads = k_heads;
    args.v_heads = v_heads;
    args.scale = scale;
  }
};

struct CompiledKernel {
  std::string arch, strategy, function;
  std::string name;
  std::string text_hash;                                        // of emit_kernel(..., Primitives::host)
  std::function<std::function<void()>(const Arguments&)> bind;  // what each thread executes
};

// All of this program.
std::vector<CompiledKernel>& compiled_kernels();

struct Registered {
  explicit Registered(CompiledKernel kernel) { compiled_kernels().push_back(std::move(kernel)); }
};

}  // namespace gdr::host
