#include "runtime/measure.hpp"

#include <utility>

#include "core/error.hpp"
#include "runtime/driver_functions.hpp"

namespace gdr {

Event::Event(std::shared_ptr<const Driver> driver, const Context& context)
    : driver_(std::move(driver)), context_(context) {
  const Driver::Functions& f = driver_->functions();
  if (!f.create_event || !f.destroy_event || !f.record_event || !f.event_distance)
    fail(ErrorKind::device, "GDR-D01", "libcuda: has no events; the driver is too old to measure with");
  const InContext in(*driver_, context_);
  driver_->check(f.create_event(&event_, 0), "cuEventCreate", driver_->device(context_.device).name);
}

Event::Event(Event&& other) noexcept
    : driver_(other.driver_), context_(other.context_), event_(std::exchange(other.event_, nullptr)) {}

Event::~Event() {
  if (event_ == nullptr) return;
  const Driver::Functions& f = driver_->functions();
  if (f.push_context(context_.handle) != 0) return;  // the context is gone, and its events with it
  f.destroy_event(event_);
  void* ignored = nullptr;
  f.pop_context(&ignored);
}

void Event::record(StreamHandle stream) const {
  const InContext in(*driver_, context_);
  driver_->check(driver_->functions().record_event(event_, stream_handle(stream)), "cuEventRecord",
                 driver_->device(context_.device).name);
}

double Event::milliseconds_since(const Event& earlier) const {
  const InContext in(*driver_, context_);
  float milliseconds = 0;
  driver_->check(driver_->functions().event_distance(&milliseconds, earlier.event_, event_), "cuEventElapsedTime",
                 driver_->device(context_.device).name);
  return static_cast<double>(milliseconds);
}

void fill_bytes(const Driver& driver, const Context& context, const DeviceBuffer& buffer, int value,
                StreamHandle stream) {
  const Driver::Functions& f = driver.functions();
  if (!f.fill_async)
    fail(ErrorKind::device, "GDR-D01", "libcuda: has no function cuMemsetD8Async; the driver is too old");
  if (buffer.bytes() == 0) return;
  const InContext in(driver, context);
  driver.check(f.fill_async(buffer.pointer(), static_cast<unsigned char>(value), buffer.bytes(), stream_handle(stream)),
               "cuMemsetD8Async", driver.device(context.device).name);
}

}  // namespace gdr
