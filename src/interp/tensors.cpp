#include "interp/tensors.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace gdr::interp {
namespace {

std::int64_t tiles_of(const TensorSpec& tensor, const Launch& launch) {
  switch (tensor.index) {
    case TensorIndex::token:
      return launch.shape.tokens;
    case TensorIndex::chunk:
      return static_cast<std::int64_t>(launch.chunks.size());
    case TensorIndex::sequence:
      return launch.num_sequences();
  }
  return 0;
}

std::vector<std::int64_t> shape_of(const TensorSpec& tensor, const Launch& launch) {
  const std::int64_t tiles = tiles_of(tensor, launch), heads = launch.num_heads(tensor.heads);
  if (tensor.index == TensorIndex::token) return {tiles, heads, tensor.cols};
  if (tensor.order == GlobalOrder::lower16) return {tiles, heads, lower_blocks(tensor.rows) * kBlock, kBlock};
  return {tiles, heads, tensor.rows, tensor.cols};
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t result = 1;
  for (const std::int64_t length : shape) result *= length;
  return result;
}

template <typename Real>
Real load_element(const HostTensor& host, std::size_t index) {
  const std::byte* at = host.bytes.data() + index * size_bytes(host.dtype);
  std::uint16_t bits = 0;
  float single = 0;
  double real = 0;
  switch (host.dtype) {
    case DType::bf16:
      std::memcpy(&bits, at, sizeof bits);
      return static_cast<Real>(float_from_bf16(bits));
    case DType::fp16:
      std::memcpy(&bits, at, sizeof bits);
      return static_cast<Real>(float_from_fp16(bits));
    case DType::fp32:
      std::memcpy(&single, at, sizeof single);
      return static_cast<Real>(single);
    default:
      std::memcpy(&real, at, sizeof real);
      return static_cast<Real>(real);
  }
}

void store_element(double value, HostTensor& host, std::size_t index) {
  std::byte* at = host.bytes.data() + index * size_bytes(host.dtype);
  const auto single = static_cast<float>(value);  // exact: a 16-bit or 32-bit dtype holds what the store had rounded
  const std::uint16_t bits = host.dtype == DType::bf16 ? bf16_from_float(single) : fp16_from_float(single);
  switch (host.dtype) {
    case DType::bf16:
    case DType::fp16:
      std::memcpy(at, &bits, sizeof bits);
      break;
    case DType::fp32:
      std::memcpy(at, &single, sizeof single);
      break;
    default:
      std::memcpy(at, &value, sizeof value);
      break;
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

void check_given(const TensorSpec& tensor, const HostTensor& host, const std::vector<std::int64_t>& shape, bool exact) {
  if (host.dtype != tensor.dtype && !(exact && host.dtype == DType::fp64))
    fail(ErrorKind::config, "GDR-I01", "interp: tensor {} is {}; the plan wants {}.", tensor.name,
         to_string(host.dtype), to_string(tensor.dtype));
  if (host.shape != shape)
    fail(ErrorKind::config, "GDR-I01", "interp: tensor {} has shape {}; this launch needs {}.", tensor.name,
         shape_text(host.shape), shape_text(shape));
  const std::size_t want = static_cast<std::size_t>(product(shape)) * size_bytes(host.dtype);
  if (host.bytes.size() != want)
    fail(ErrorKind::config, "GDR-I01", "interp: tensor {} holds {} bytes; its shape {} needs {}.", tensor.name,
         host.bytes.size(), shape_text(shape), want);
}

void check_tensor(const TensorSpec& tensor) {
  const bool square_blocks = tensor.rows == tensor.cols && tensor.rows % kBlock == 0;
  if (tensor.cols <= 0 || (tensor.index != TensorIndex::token && tensor.rows <= 0) ||
      (tensor.order == GlobalOrder::lower16 && (tensor.index == TensorIndex::token || !square_blocks)))
    fail(ErrorKind::check_failed, "GDR-I02", "interp: tensor {} of {} x {} cannot be laid out.", tensor.name,
         tensor.rows, tensor.cols);
  if (tensor.dtype != DType::bf16 && tensor.dtype != DType::fp16 && tensor.dtype != DType::fp32)
    fail(ErrorKind::check_failed, "GDR-I02", "interp: tensor {} is {}; kernels know bf16, fp16 and fp32.", tensor.name,
         to_string(tensor.dtype));
}

}  // namespace

template <typename Real>
TensorStore<Real>::TensorStore(const Plan& plan, const Launch& launch, const std::map<std::string, HostTensor>& given) {
  for (const auto& [name, host] : given)
    if (plan.find_tensor(name) == nullptr)
      fail(ErrorKind::config, "GDR-I01", "interp: tensor {} is none of the plan's.", name);
  for (const TensorSpec& tensor : plan.tensors) {
    check_tensor(tensor);
    Slot slot;
    slot.tensor = &tensor;
    slot.heads = launch.num_heads(tensor.heads);
    const std::vector<std::int64_t> shape = shape_of(tensor, launch);
    slot.tile_elems = tensor.index == TensorIndex::token ? 0 : shape[2] * shape[3];
    slot.row_stride = tensor.index == TensorIndex::token ? slot.heads * tensor.cols : tensor.cols;
    const auto found = given.find(tensor.name);
    slot.present = !tensor.optional || found != given.end();
    if (slot.present) {
      const auto count = static_cast<std::size_t>(product(shape));
      slot.values.assign(count, std::numeric_limits<Real>::quiet_NaN());
      slot.writers.assign(count, kUnwritten);
      if (tensor.kind == TensorKind::input) {
        if (found == given.end())
          fail(ErrorKind::config, "GDR-I01", "interp: input tensor {} is missing; give {} {}.", tensor.name,
               shape_text(shape), to_string(tensor.dtype));
        check_given(tensor, found->second, shape, std::is_same_v<Real, double>);
        for (std::size_t index = 0; index < count; ++index)
          slot.values[index] = load_element<Real>(found->second, index);
        std::fill(slot.writers.begin(), slot.writers.end(), kGiven);
      }
    }
    slots_.push_back(std::move(slot));
  }
}

template <typename Real>
void TensorStore<Real>::finish(const Launch& launch, bool check) {
  std::vector<char> in_sequence(static_cast<std::size_t>(launch.shape.tokens), 0);
  for (const auto& [begin, end] : launch.shape.sequences)
    std::fill(in_sequence.begin() + begin, in_sequence.begin() + end, char{1});
  for (Slot& slot : slots_) {
    const TensorSpec& tensor = *slot.tensor;
    if (tensor.kind != TensorKind::output || !slot.present || slot.values.empty()) continue;
    const std::int64_t tiles = tiles_of(tensor, launch);
    const std::int64_t per_tile = static_cast<std::int64_t>(slot.values.size()) / tiles;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t begin = tile * per_tile;
      if (tensor.index == TensorIndex::token && in_sequence[static_cast<std::size_t>(tile)] == 0) {
        std::fill_n(slot.values.begin() + begin, per_tile, Real{0});
        continue;
      }
      if (!check) continue;
      const auto first = slot.writers.begin() + begin;
      const auto missing = std::find(first, first + per_tile, kUnwritten);
      if (missing == first + per_tile) continue;
      const std::int64_t at = missing - first, per_head = per_tile / slot.heads;
      fail(ErrorKind::check_failed, "GDR-I11",
           "interp: output {}: {} {}, head {}, element {} of {} was never written. Some block must write it.",
           tensor.name,
           tensor.index == TensorIndex::token ? "token" : (tensor.index == TensorIndex::chunk ? "chunk" : "sequence"),
           tile, at / per_head, at % per_head, per_head);
    }
  }
}

template <typename Real>
void TensorStore<Real>::give_back(const Launch& launch, std::map<std::string, HostTensor>& tensors) const {
  for (const Slot& slot : slots_) {
    if (slot.tensor->kind == TensorKind::input || !slot.present) continue;
    HostTensor& host = tensors[slot.tensor->name];
    host.dtype = std::is_same_v<Real, double> ? DType::fp64 : slot.tensor->dtype;
    host.shape = shape_of(*slot.tensor, launch);
    host.bytes.resize(slot.values.size() * size_bytes(host.dtype));
    for (std::size_t index = 0; index < slot.values.size(); ++index)
      store_element(static_cast<double>(slot.values[index]), host, index);
  }
}

template class TensorStore<float>;
template class TensorStore<double>;

}  // namespace gdr::interp
