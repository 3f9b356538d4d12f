#include "gpu/host_call.hpp"

#include <vector>

namespace gdr {

std::map<std::string, Binding> bindings_of(const cpu::BwdCall& call) {
  return {{"q", {&call.q, true}},         {"k", {&call.k, true}},
          {"v", {&call.v, true}},         {"g", {&call.g, true}},
          {"beta", {&call.beta, true}},   {"do", {&call.do_, true}},
          {"h0", {&call.initial_state}},  {"dht", {&call.final_state_grad}},
          {"dq", {&call.dq, true}},       {"dk", {&call.dk, true}},
          {"dv", {&call.dv, true}},       {"dg", {&call.dg, true}},
          {"dbeta", {&call.dbeta, true}}, {"dh0", {&call.dh0}}};
}

HostCall::HostCall(const cpu::BwdCall& call, const Plan& plan, const LaunchSizes& sizes,
                   const std::shared_ptr<const Driver>& driver, const Context& context)
    : plan_(plan), sizes_(sizes), bindings_(bindings_of(call)) {
  for (const TensorSpec& tensor : plan_.tensors) {
    if (tensor.kind == TensorKind::workspace) continue;
    const Binding& binding = bindings_.at(tensor.name);
    if (!binding.view->present) continue;
    const auto bytes = static_cast<std::size_t>(num_bytes(tensor, sizes_, plan_.chunk));
    DeviceBuffer& buffer = buffers_.try_emplace(tensor.name, driver, context, bytes).first->second;
    if (tensor.kind == TensorKind::input) {
      std::vector<std::byte> packed(bytes);
      copy(tensor, binding, *binding.view, staging(tensor, binding, packed.data()));
      buffer.upload(packed.data());
    }
    places_[tensor.name] = dense_place(tensor, sizes_, buffer.pointer());
  }
}

void HostCall::finish() const {
  for (const TensorSpec& tensor : plan_.tensors) {
    const auto buffer = buffers_.find(tensor.name);
    if (tensor.kind != TensorKind::output || buffer == buffers_.end()) continue;
    std::vector<std::byte> bytes(buffer->second.bytes());
    buffer->second.download(bytes.data());
    const Binding& binding = bindings_.at(tensor.name);
    copy(tensor, binding, staging(tensor, binding, bytes.data()), *binding.view);
  }
}

// The dense copy of a tensor in its own element type, as a view that is addressed like the caller's.
cpu::View HostCall::staging(const TensorSpec& tensor, const Binding& binding, std::byte* bytes) const {
  const TensorPlace dense = dense_place(tensor, sizes_, 0);
  cpu::View view{bytes, tensor.dtype, {}, true};
  if (binding.is_token)
    view.strides = {dense.item_stride, dense.row_stride, dense.head_stride, 1};
  else
    view.strides = {dense.item_stride, dense.head_stride, dense.row_stride, 1};
  return view;
}

// Copies all of a tensor, head by head, converted on the way.
void HostCall::copy(const TensorSpec& tensor, const Binding& binding, const cpu::View& from,
                    const cpu::View& to) const {
  const std::int64_t heads = heads_of(tensor, sizes_);
  const std::int64_t rows = binding.is_token ? sizes_.tokens : tensor.rows;
  std::vector<float> values(static_cast<std::size_t>(rows * tensor.cols));
  for (std::int64_t item = 0; item < sizes_.sequences; ++item)
    for (std::int64_t head = 0; head < heads; ++head) {
      const cpu::Block block = binding.is_token ? cpu::token_rows(item, 0, head, rows, tensor.cols)
                                                : cpu::state_rows(item, head, rows, tensor.cols);
      cpu::read_block(from, block, values.data());
      cpu::write_block(to, block, values.data());
    }
}

}  // namespace gdr
