#include "api/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "api/overlap.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

constexpr int kMostThreads = 4096;

std::string text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", ")); }

bool is_floating(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::fp16 || dtype == DType::fp32 || dtype == DType::fp64;
}

bool equal(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

enum class Use { input, output };

// One tensor under its name.
struct Argument {
  std::string_view name;
  const Tensor* tensor = nullptr;  // null: not given, and need not be
  Use use = Use::input;
};

class Checker {
 public:
  explicit Checker(std::string_view function) : function_(function) {}

  template <class... Args>
  [[noreturn]] void wrong(const char* code, fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorKind::config, code,
                fmt::format("{}: {}", function_, fmt::format(format, std::forward<Args>(args)...)));
  }

  // What holds for every tensor by itself.
  void check_tensor(const Argument& argument, std::size_t rank, std::string_view dims) const {
    const Tensor& tensor = *argument.tensor;
    if (tensor.shape.empty()) wrong("GDR-A01", "{} has no shape; expected a tensor {}.", argument.name, dims);
    if (tensor.shape.size() != rank)
      wrong("GDR-A03", "{} has shape {}, {} dimensions; expected {} {}.", argument.name, text(tensor.shape),
            tensor.shape.size(), rank, dims);
    std::int64_t elems = 1;
    for (const std::int64_t size : tensor.shape) {
      if (size < 0) wrong("GDR-A04", "{} has shape {}; sizes cannot be negative.", argument.name, text(tensor.shape));
      if (__builtin_mul_overflow(elems, size, &elems) ||
          elems > std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeof(double)))
        wrong("GDR-A04", "{} has shape {}: more bytes than an address can name.", argument.name, text(tensor.shape));
    }
    if (!tensor.strides.empty()) check_strides(argument);
    if (tensor.data == nullptr && elems > 0)
      wrong("GDR-A01", "{} is a null pointer; its shape is {}, {} elements.", argument.name, text(tensor.shape), elems);
    if (argument.use == Use::output && !is_nested(footprint_of(tensor)))
      wrong("GDR-A05", "{} is an output with shape {} and strides {}: its elements share memory.", argument.name,
            text(tensor.shape), text(tensor.strides));
  }

  void check_floating(const Argument& argument) const {
    if (!is_floating(argument.tensor->dtype))
      wrong("GDR-A02", "{} is of dtype {}; expected bf16, fp16, fp32 or fp64.", argument.name,
            to_string(argument.tensor->dtype));
  }

  void check_same_dtype(const Argument& argument, DType q_dtype) const {
    if (argument.tensor->dtype != q_dtype)
      wrong("GDR-A02", "{} is of dtype {}; expected {}, the dtype of q.", argument.name,
            to_string(argument.tensor->dtype), to_string(q_dtype));
  }

  void check_shape(const Argument& argument, const Dims& expected, std::string_view dims) const {
    if (!equal(argument.tensor->shape, expected))
      wrong("GDR-A04", "{} has shape {}; expected {} {}.", argument.name, text(argument.tensor->shape), text(expected),
            dims);
  }

  void check_sharing(const std::vector<Argument>& arguments) const {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const Argument &one = arguments[i], &other = arguments[j];
        if (one.tensor == nullptr || other.tensor == nullptr) continue;
        if (one.use == Use::input && other.use == Use::input) continue;
        if (may_share_memory(footprint_of(*one.tensor), footprint_of(*other.tensor)))
          wrong("GDR-A06", "{} shares memory with {}; an output needs memory of its own.",
                one.use == Use::output ? one.name : other.name, one.use == Use::output ? other.name : one.name);
      }
  }

 private:
  void check_strides(const Argument& argument) const {
    const Tensor& tensor = *argument.tensor;
    if (tensor.strides.size() != tensor.shape.size())
      wrong("GDR-A05",
            "{} has {} strides {}; expected {}, one for each dimension of {}, or none for a contiguous tensor.",
            argument.name, tensor.strides.size(), text(tensor.strides), tensor.shape.size(), text(tensor.shape));
    std::int64_t reach = 0;  // elements from the first to the farthest, in either direction
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (tensor.shape[i] < 2) continue;
      std::int64_t step = 0;
      const std::int64_t stride = tensor.strides[i];
      if (stride == std::numeric_limits<std::int64_t>::min() ||
          __builtin_mul_overflow(tensor.shape[i] - 1, std::abs(stride), &step) ||
          __builtin_add_overflow(reach, step, &reach) ||
          reach > std::numeric_limits<std::int64_t>::max() / (2 * static_cast<std::int64_t>(sizeof(double))))
        wrong("GDR-A05", "{} has shape {} and strides {}: they reach farther than an address can name.", argument.name,
              text(tensor.shape), text(tensor.strides));
    }
  }

  std::string_view function_;
};

// The tensors that FwdArgs and BwdArgs both have, under their names.
template <class Args>
struct Common {
  explicit Common(const Args& args)
      : q{"q", &args.q},
        k{"k", &args.k},
        v{"v", &args.v},
        g{"g", &args.g},
        beta{"beta", &args.beta},
        initial_state{"initial_state", args.initial_state ? &*args.initial_state : nullptr},
        cu_seqlens{"cu_seqlens", args.cu_seqlens ? &*args.cu_seqlens : nullptr} {}
  Argument q, k, v, g, beta, initial_state, cu_seqlens;
};

const Tensor* pointer(const std::optional<Tensor>& tensor) { return tensor ? &*tensor : nullptr; }

std::vector<Argument> all_arguments(const FwdArgs& args) {
  const Common<FwdArgs> c(args);
  return {c.q,
          c.k,
          c.v,
          c.g,
          c.beta,
          c.initial_state,
          c.cu_seqlens,
          {"o", &args.o, Use::output},
          {"final_state", pointer(args.final_state), Use::output}};
}

std::vector<Argument> all_arguments(const BwdArgs& args) {
  const Common<BwdArgs> c(args);
  return {c.q,
          c.k,
          c.v,
          c.g,
          c.beta,
          {"do_", &args.do_},
          c.initial_state,
          {"final_state_grad", pointer(args.final_state_grad)},
          c.cu_seqlens,
          {"dq", &args.dq, Use::output},
          {"dk", &args.dk, Use::output},
          {"dv", &args.dv, Use::output},
          {"dg", &args.dg, Use::output},
          {"dbeta", &args.dbeta, Use::output},
          {"dh0", pointer(args.dh0), Use::output}};
}

// The tensor as the CPU backend sees it: four strides, in elements.
cpu::View view_of(const Argument& argument, bool swap_last_two = false) {
  if (argument.tensor == nullptr) return {};
  const Tensor& tensor = *argument.tensor;
  cpu::View view{tensor.data, tensor.dtype, {}, true};
  std::int64_t contiguous = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    view.strides[i] = tensor.strides.empty() ? contiguous : tensor.strides[i];
    contiguous *= tensor.shape[i];
  }
  if (swap_last_two) std::swap(view.strides[2], view.strides[3]);
  return view;
}

std::int64_t read_index(const Tensor& tensor, std::int64_t index) {
  const std::int64_t stride = tensor.strides.empty() ? 1 : tensor.strides[0];
  const char* address =
      static_cast<const char*>(tensor.data) + index * stride * static_cast<std::int64_t>(size_bytes(tensor.dtype));
  if (tensor.dtype == DType::i32) {
    std::int32_t value = 0;
    std::memcpy(&value, address, sizeof(value));
    return value;
  }
  std::int64_t value = 0;
  std::memcpy(&value, address, sizeof(value));
  return value;
}

std::vector<cpu::Sequence> check_sequences(const Checker& check, const Argument& cu_seqlens, std::int64_t batch,
                                           std::int64_t tokens) {
  std::vector<cpu::Sequence> sequences;
  if (cu_seqlens.tensor == nullptr) {
    for (std::int64_t b = 0; b < batch; ++b) sequences.push_back({b, 0, tokens});
    return sequences;
  }
  const Tensor& tensor = *cu_seqlens.tensor;
  check.check_tensor(cu_seqlens, 1, "[N + 1]");
  if (tensor.dtype != DType::i32 && tensor.dtype != DType::i64)
    check.wrong("GDR-A02", "cu_seqlens is of dtype {}; expected i32 or i64.", to_string(tensor.dtype));
  if (batch != 1)
    check.wrong("GDR-A07", "cu_seqlens is given and q has {} batch entries; packed sequences lie in one.", batch);
  if (tensor.shape[0] < 1) check.wrong("GDR-A07", "cu_seqlens is empty; expected N + 1 values, the first one 0.");
  std::int64_t before = read_index(tensor, 0);
  if (before != 0) check.wrong("GDR-A07", "cu_seqlens[0] is {}; the first sequence begins at 0.", before);
  for (std::int64_t n = 1; n < tensor.shape[0]; ++n) {
    const std::int64_t next = read_index(tensor, n);
    if (next < before)
      check.wrong("GDR-A07", "cu_seqlens[{}] is {}, less than cu_seqlens[{}], {}; it must not decrease.", n, next,
                  n - 1, before);
    if (next > tokens) check.wrong("GDR-A07", "cu_seqlens[{}] is {}; q has {} tokens.", n, next, tokens);
    sequences.push_back({0, before, next});
    before = next;
  }
  return sequences;
}

struct Checked {
  cpu::Inputs inputs;
  Dims qk_shape, v_shape, gate_shape, state_shape;
  std::string_view state_dims;
  bool is_vk = false;
};

template <class Args>
Checked check_inputs(const Checker& check, std::string_view function, const Args& args, const Options& options) {
  const Common<Args> c(args);
  Checked result;
  check.check_tensor(c.q, 4, "[B, T, Hk, K]");
  check.check_floating(c.q);
  check.check_tensor(c.v, 4, "[B, T, Hv, V]");
  const Dims& q_shape = args.q.shape;
  const std::int64_t B = q_shape[0], T = q_shape[1], Hk = q_shape[2], K = q_shape[3];
  const std::int64_t Hv = args.v.shape[2], V = args.v.shape[3];
  check_heads(function, Hk, Hv, K, V);
  result.qk_shape = q_shape;
  result.v_shape = {B, T, Hv, V};
  result.gate_shape = {B, T, Hv};
  check.check_tensor(c.k, 4, "[B, T, Hk, K]");
  check.check_shape(c.k, result.qk_shape, "[B, T, Hk, K], the shape of q");
  check.check_shape(c.v, result.v_shape, "[B, T, Hv, V], B and T being those of q");
  for (const Argument& argument : {c.k, c.v}) check.check_same_dtype(argument, args.q.dtype);
  for (const Argument& argument : {c.g, c.beta}) {
    check.check_tensor(argument, 3, "[B, T, Hv]");
    check.check_shape(argument, result.gate_shape, "[B, T, Hv]");
    check.check_floating(argument);
  }

  cpu::Inputs& inputs = result.inputs;
  inputs.sizes = {B, T, Hk, Hv, K, V};
  inputs.sequences = check_sequences(check, c.cu_seqlens, B, T);
  result.is_vk = options.state_layout == StateLayout::vk;
  const std::int64_t N = static_cast<std::int64_t>(inputs.sequences.size());
  result.state_shape = result.is_vk ? Dims{N, Hv, V, K} : Dims{N, Hv, K, V};
  result.state_dims = result.is_vk ? "[N, Hv, V, K] (state layout vk)" : "[N, Hv, K, V] (state layout kv)";
  inputs.scale = args.scale.value_or(1.0 / std::sqrt(static_cast<double>(K)));
  if (!std::isfinite(inputs.scale)) check.wrong("GDR-A11", "scale is {}; expected a finite number.", inputs.scale);
  inputs.q = view_of(c.q);
  inputs.k = view_of(c.k);
  inputs.v = view_of(c.v);
  inputs.g = view_of(c.g);
  inputs.beta = view_of(c.beta);
  return result;
}

void check_state(const Checker& check, const Checked& checked, const Argument& argument) {
  if (argument.tensor == nullptr) return;
  check.check_tensor(argument, 4, checked.state_dims);
  check.check_shape(argument, checked.state_shape, checked.state_dims);
  check.check_floating(argument);
}

void check_rows(const Checker& check, const Argument& argument, const Dims& shape, std::string_view dims) {
  check.check_tensor(argument, shape.size(), dims);
  check.check_shape(argument, shape, dims);
  check.check_floating(argument);
}

template <class Args>
Device common_device(std::string_view function, const Args& args) {
  const auto name = [](const Device& device) {
    return device.kind == DeviceKind::cpu ? std::string("host memory")
                                          : fmt::format("the memory of cuda device {}", device.index);
  };
  const Device& first = args.q.device;
  for (const Argument& argument : all_arguments(args)) {
    if (argument.tensor == nullptr) continue;
    const Device& device = argument.tensor->device;
    if (device.kind != first.kind || (first.kind == DeviceKind::cuda && device.index != first.index))
      throw Error(ErrorKind::unsupported, "GDR-A09",
                  fmt::format("{}: {} lies in {} and q in {}; all tensors of a call must lie on one device.", function,
                              argument.name, name(device), name(first)));
  }
  return first;
}

}  // namespace

void Dims::push_back(std::int64_t value) {
  if (size_ == kMost)
    fail(ErrorKind::config, "GDR-A03", "a tensor cannot have more than {} dimensions; gdrjit uses at most four.",
         kMost);
  values_[size_++] = value;
}

void check_heads(std::string_view function, std::int64_t k_heads, std::int64_t v_heads, std::int64_t dim_k,
                 std::int64_t dim_v) {
  const Checker check(function);
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"Hk", k_heads}, {"Hv", v_heads}, {"K", dim_k}, {"V", dim_v}};
  for (const auto& [name, size] : sizes)
    if (size < 1) check.wrong("GDR-A04", "{} is {}; expected at least 1.", name, size);
  if (v_heads % k_heads != 0)
    check.wrong("GDR-A08", "v has {} heads and q has {}; Hv must be a multiple of Hk.", v_heads, k_heads);
}

void check_options(std::string_view function, const Options& options) {
  const Checker check(function);
  if (options.num_threads < 0 || options.num_threads > kMostThreads)
    check.wrong("GDR-A11", "num_threads is {}; expected 1 to {}, or 0 for the number the machine has.",
                options.num_threads, kMostThreads);
  if (options.compute_dtype && *options.compute_dtype != DType::fp32 && *options.compute_dtype != DType::fp64)
    check.wrong("GDR-A11", "compute_dtype is {}; expected fp32 or fp64.", to_string(*options.compute_dtype));
}

cpu::FwdCall check_fwd(const FwdArgs& args, const Options& options) {
  constexpr std::string_view kFunction = "run_fwd";
  const Checker check(kFunction);
  const Checked checked = check_inputs(check, kFunction, args, options);
  const Argument initial_state{"initial_state", pointer(args.initial_state)};
  const Argument o{"o", &args.o, Use::output};
  const Argument final_state{"final_state", pointer(args.final_state), Use::output};
  check_state(check, checked, initial_state);
  check_rows(check, o, checked.v_shape, "[B, T, Hv, V]");
  check_state(check, checked, final_state);
  check.check_sharing(all_arguments(args));

  cpu::FwdCall call;
  static_cast<cpu::Inputs&>(call) = checked.inputs;
  call.initial_state = view_of(initial_state, checked.is_vk);
  call.o = view_of(o);
  call.final_state = view_of(final_state, checked.is_vk);
  return call;
}

cpu::BwdCall check_bwd(const BwdArgs& args, const Options& options) {
  constexpr std::string_view kFunction = "run_bwd";
  const Checker check(kFunction);
  const Checked checked = check_inputs(check, kFunction, args, options);
  const Argument do_{"do_", &args.do_};
  check_rows(check, do_, checked.v_shape, "[B, T, Hv, V]");
  check.check_same_dtype(do_, args.q.dtype);
  const Argument initial_state{"initial_state", pointer(args.initial_state)};
  const Argument final_state_grad{"final_state_grad", pointer(args.final_state_grad)};
  const Argument dh0{"dh0", pointer(args.dh0), Use::output};
  for (const Argument& state : {initial_state, final_state_grad, dh0}) check_state(check, checked, state);
  const Argument dq{"dq", &args.dq, Use::output}, dk{"dk", &args.dk, Use::output}, dv{"dv", &args.dv, Use::output};
  const Argument dg{"dg", &args.dg, Use::output}, dbeta{"dbeta", &args.dbeta, Use::output};
  for (const Argument& argument : {dq, dk}) check_rows(check, argument, checked.qk_shape, "[B, T, Hk, K]");
  check_rows(check, dv, checked.v_shape, "[B, T, Hv, V]");
  for (const Argument& argument : {dg, dbeta}) check_rows(check, argument, checked.gate_shape, "[B, T, Hv]");
  check.check_sharing(all_arguments(args));

  cpu::BwdCall call;
  static_cast<cpu::Inputs&>(call) = checked.inputs;
  call.initial_state = view_of(initial_state, checked.is_vk);
  call.do_ = view_of(do_);
  call.final_state_grad = view_of(final_state_grad, checked.is_vk);
  call.dq = view_of(dq);
  call.dk = view_of(dk);
  call.dv = view_of(dv);
  call.dg = view_of(dg);
  call.dbeta = view_of(dbeta);
  call.dh0 = view_of(dh0, checked.is_vk);
  return call;
}

Device device_of(const FwdArgs& args) { return common_device("run_fwd", args); }
Device device_of(const BwdArgs& args) { return common_device("run_bwd", args); }

}  // namespace gdr
