#include "runtime/memory.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/driver_functions.hpp"

namespace gdr {

DeviceBuffer::DeviceBuffer(std::shared_ptr<const Driver> driver, const Context& context, std::size_t bytes)
    : driver_(std::move(driver)), context_(context), bytes_(bytes) {
  if (bytes == 0) return;
  const InContext in(*driver_, context_);
  driver_->check(driver_->functions().allocate(&pointer_, bytes), "cuMemAlloc", fmt::format("{} bytes", bytes));
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : driver_(other.driver_),
      context_(other.context_),
      bytes_(other.bytes_),
      pointer_(std::exchange(other.pointer_, 0)) {}

DeviceBuffer::~DeviceBuffer() {
  if (pointer_ == 0) return;
  const Driver::Functions& f = driver_->functions();
  if (f.push_context(context_.handle) != 0) return;  // the context is gone, and its memory with it
  f.free(pointer_);
  void* ignored = nullptr;
  f.pop_context(&ignored);
}

void DeviceBuffer::upload(const void* source) {
  if (bytes_ == 0) return;
  const InContext in(*driver_, context_);
  driver_->check(driver_->functions().upload(pointer_, source, bytes_), "cuMemcpyHtoD",
                 fmt::format("{} bytes", bytes_));
}

void DeviceBuffer::download(void* target) const {
  if (bytes_ == 0) return;
  const InContext in(*driver_, context_);
  driver_->check(driver_->functions().download(target, pointer_, bytes_), "cuMemcpyDtoH",
                 fmt::format("{} bytes", bytes_));
}

StreamBuffer::StreamBuffer(const Driver& driver, const Context& context, StreamHandle stream, std::size_t bytes)
    : driver_(driver), context_(context), stream_(stream) {
  const InContext in(driver_, context_);
  driver_.check(driver_.functions().allocate_async(&pointer_, bytes, stream_handle(stream)), "cuMemAllocAsync",
                fmt::format("workspace of {} bytes", bytes));
}

StreamBuffer::~StreamBuffer() {
  if (pointer_ == 0) return;
  const Driver::Functions& f = driver_.functions();
  if (f.push_context(context_.handle) != 0) return;
  f.free_async(pointer_, stream_handle(stream_));
  void* ignored = nullptr;
  f.pop_context(&ignored);
}

void StreamBuffer::free() {
  const InContext in(driver_, context_);
  const DevicePointer pointer = std::exchange(pointer_, 0);
  driver_.check(driver_.functions().free_async(pointer, stream_handle(stream_)), "cuMemFreeAsync", "workspace");
}

}  // namespace gdr
