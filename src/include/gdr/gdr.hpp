// The C++ interface of gdrjit: the chunked gated delta rule, forward and backward, on tensors of the caller.
//
// Sizes: B batch entries, T tokens each, Hk k-heads, Hv = r Hk v-heads (v-head j uses k-head j / r), K and V the head
// dimensions, N sequences. Per token t and v-head, with state S [K, V]:
//     S <- e^g S;  u = beta (v - S^T k);  S <- S + k u^T;  o = scale S^T q
// Every function may be called from several threads at once, on different outputs. Nothing is printed and nothing
// aborts: what goes wrong is a gdr::Error that names the argument, its value and what was expected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "gdr/dtype.hpp"
#include "gdr/error.hpp"
#include "gdr/export.hpp"
#include "gdr/version.hpp"

namespace gdr {

enum class DeviceKind { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
};

// A short list of sizes or strides, held in place.
class Dims {
 public:
  static constexpr std::size_t kMost = 8;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  // Throws a config Error (GDR-A03) beyond kMost.
  GDR_API void push_back(std::int64_t value);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t operator[](std::size_t index) const { return values_[index]; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + size_; }

 private:
  std::array<std::int64_t, kMost> values_{};
  std::size_t size_ = 0;
};

// A tensor in the caller's memory, which must stay as it is until the call is complete: for host memory when the call
// returns, for device memory when the stream has passed it. Inputs are not written to.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::fp32;
  Dims shape;
  Dims strides;  // elements, any sign; empty: contiguous, last dimension fastest
  Device device;
};

// A tensor that is only read.
inline Tensor input(const void* data, DType dtype, const Dims& shape, const Dims& strides = {}, Device device = {}) {
  return {const_cast<void*>(data), dtype, shape, strides, device};
}

// Arguments of the forward pass. q, k, v have one floating dtype; every other tensor any floating dtype of its own.
// Inputs may be strided in any way; outputs too, if no two of their elements share memory. No output may share memory
// with an input or another output (interleaved ones, such as thirds of one [T, 3, H, D] tensor, are fine).
struct FwdArgs {
  Tensor q, k;                          // [B, T, Hk, K]
  Tensor v;                             // [B, T, Hv, V]
  Tensor g;                             // [B, T, Hv], log decay per token, <= 0
  Tensor beta;                          // [B, T, Hv]
  std::optional<Tensor> initial_state;  // [N, Hv, K, V] ([N, Hv, V, K] with StateLayout::vk); absent: zero
  // [N + 1] i32 or i64, from 0, not decreasing, at most T: sequence n is the tokens [cu_seqlens[n], cu_seqlens[n + 1])
  // of one batch entry (B = 1). Absent: every batch entry is a sequence, N = B. Rows past the last sequence are not
  // read, and are set to zero in the outputs.
  std::optional<Tensor> cu_seqlens;
  Tensor o;                           // [B, T, Hv, V]
  std::optional<Tensor> final_state;  // as initial_state; absent: not wanted
  std::optional<double> scale;        // absent: K^-0.5
};

// Arguments of the backward pass: inputs as above, the gradient of o, and the gradients wanted.
struct BwdArgs {
  Tensor q, k, v, g, beta;  // as in FwdArgs
  Tensor do_;               // [B, T, Hv, V], of q's dtype
  std::optional<Tensor> initial_state;
  std::optional<Tensor> final_state_grad;  // dht, shaped like initial_state; absent: zero
  std::optional<Tensor> cu_seqlens;
  Tensor dq, dk;              // [B, T, Hk, K], summed over the r v-heads of a k-head
  Tensor dv;                  // [B, T, Hv, V]
  Tensor dg, dbeta;           // [B, T, Hv]
  std::optional<Tensor> dh0;  // shaped like initial_state; absent: not wanted
  std::optional<double> scale;
};

enum class Backend { automatic, cuda, cpu };
enum class StateLayout { kv, vk };

struct Options {
  // automatic: cpu for tensors in host memory, cuda for tensors in device memory.
  // cuda: uses tensors in device memory where they lie, and copies tensors in host memory to device 0 and back.
  // cpu: takes tensors in host memory only.
  Backend backend = Backend::automatic;
  // Order of the last two dimensions of initial_state, final_state, final_state_grad and dh0.
  StateLayout state_layout = StateLayout::kv;
  // Host threads of the cpu backend; 0: GDRJIT_NUM_THREADS, else what the machine has. Results do not depend on it.
  int num_threads = 0;
  // fp32 or fp64: the type the cpu backend computes in. Absent: fp64 if q is fp64, else fp32.
  std::optional<DType> compute_dtype;
  // Architecture (such as "sm_120") and strategy of the cuda backend; empty: chosen.
  std::string arch, strategy;

  // What follows is for tensors in device memory.
  // The stream on which the call is enqueued: a CUstream or cudaStream_t of the tensors' device. Null: the legacy
  // default stream; the value 2: the default stream of the thread.
  void* stream = nullptr;
  // Device memory that the call may use until it is complete: at least bwd_workspace_bytes, from a multiple of 256
  // bytes on. Null: allocated and freed in the stream's order (cuMemAllocAsync).
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  // A call that would need more is refused. Absent: no limit.
  std::optional<std::size_t> max_workspace_bytes;
};

// What a call did.
struct Result {
  Backend backend = Backend::cpu;
  std::string device;                // in words
  std::vector<std::string> kernels;  // in the order of their launches
};

// Runs the forward pass; o and final_state are complete when it returns. Throws Error: config (GDR-A01 to A08, A11) for
// a wrong argument, unsupported (GDR-A09, A10, G03) if the backend is not there or cannot do it.
GDR_API Result run_fwd(const FwdArgs& args, const Options& options = {});

// Runs the backward pass. Recomputes what it needs of the forward pass. Throws as run_fwd.
// Tensors in host memory: all gradients are complete when it returns.
// Tensors in device memory, all on one device: enqueues kernels on the stream and returns. Nothing is copied, the host
// waits for nothing, and the call may be captured into a CUDA graph. Any strides whose last is 1, in multiples of 16
// bytes (g, beta and their gradients: any); q, k, v, do and their gradients bf16, all else fp32; states as [K, V]; no
// cu_seqlens. Works in the stream's context, for default streams in the calling thread's current one if it is of that
// device, else in the device's primary one, whatever device is current. The first call of a class of problems loads
// kernels, and plans and compiles what the cache does not hold: see prepare_bwd.
// Throws besides: unsupported (GDR-G01 to G04, D05), compilation (GDR-N01, N02), config (GDR-G05: would have to load
// during a capture, G06: workspace, G07: not device memory), device (GDR-D01 to D04).
GDR_API Result run_bwd(const BwdArgs& args, const Options& options = {});

// What decides whether a call is supported.
struct ProblemClass {
  std::int64_t k_heads = 1, v_heads = 1;  // Hk, Hv
  std::int64_t dim_k = 128, dim_v = 128;  // K, V
  DType dtype = DType::bf16;              // of q, k, v, do
  bool forward = true, backward = true;   // which passes are meant
  bool is_packed = false;                 // cu_seqlens is given
  DeviceKind memory = DeviceKind::cpu;    // where the tensors lie
};

// The reason why such calls would be refused with these options; nothing if they would run.
GDR_API std::optional<std::string> why_not(const ProblemClass& problem, const Options& options = {});

// Plans, compiles and loads the kernels of such backward calls for tensors on a cuda device, in the context that a call
// with these options would work in, so that no later call has to: before a capture, or when a program starts.
// Throws Error as run_bwd. Returns what such a call would launch.
GDR_API Result prepare_bwd(const ProblemClass& problem, Device device, const Options& options = {});

// Bytes of workspace that a backward call on device memory needs for B batch entries of T tokens. options.arch may name
// an architecture; then no device has to be there. Throws Error as run_bwd.
GDR_API std::size_t bwd_workspace_bytes(const ProblemClass& problem, std::int64_t batch, std::int64_t tokens,
                                        const Options& options = {});

// A backend, and why it cannot be used here (empty: it can).
struct BackendInfo {
  Backend backend = Backend::cpu;
  std::string device;
  std::string unavailable;
};
GDR_API std::vector<BackendInfo> backends();

// Who hears of what does not stop a call but is worth knowing, once per cause: the cache's folder cannot be written to,
// an entry was damaged. A whole sentence that begins with a code (GDR-K01 to K08). May be called by several threads at
// once and must not throw. At first nobody listens: the library prints nothing.
GDR_API void set_notice_handler(std::function<void(const std::string& text)> handler);

}  // namespace gdr
