// Points in a stream's work whose distance in time is measured, and filling of memory in its order: for benchmarks.
#pragma once

#include <memory>

#include "runtime/driver.hpp"
#include "runtime/memory.hpp"

namespace gdr {

class Event {
 public:
  // Throws Error (device): GDR-D01 (the driver cannot measure), GDR-D03.
  Event(std::shared_ptr<const Driver> driver, const Context& context);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;

  void record(StreamHandle stream) const;  // after what is on the stream by now. Throws Error (device, GDR-D03)
  // Both were recorded and have come to pass. Throws Error (device, GDR-D03).
  double milliseconds_since(const Event& earlier) const;

 private:
  std::shared_ptr<const Driver> driver_;
  Context context_;
  void* event_ = nullptr;
};

// Sets all bytes of a buffer, in the stream's order. Throws Error (device): GDR-D01, GDR-D03.
void fill_bytes(const Driver& driver, const Context& context, const DeviceBuffer& buffer, int value,
                StreamHandle stream);

}  // namespace gdr
