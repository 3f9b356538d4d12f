// Memory of a device: allocated at once, or in the order of a stream.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/driver.hpp"

namespace gdr {

// Freed with this object, which waits for the device. Copies are for the legacy default stream.
class DeviceBuffer {
 public:
  // Throws Error (device, GDR-D03).
  DeviceBuffer(std::shared_ptr<const Driver> driver, const Context& context, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  DevicePointer pointer() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }
  void upload(const void* source);    // all bytes
  void download(void* target) const;  // all bytes, after all work on the default stream

 private:
  std::shared_ptr<const Driver> driver_;
  Context context_;
  std::size_t bytes_;
  DevicePointer pointer_ = 0;
};

// Memory that exists between two points of a stream's work: nobody waits for anything, and a call that is captured into
// a graph captures both points.
class StreamBuffer {
 public:
  // Throws Error (device, GDR-D03).
  StreamBuffer(const Driver& driver, const Context& context, StreamHandle stream, std::size_t bytes);
  ~StreamBuffer();  // frees, if `free` did not
  StreamBuffer(const StreamBuffer&) = delete;
  StreamBuffer& operator=(const StreamBuffer&) = delete;

  DevicePointer pointer() const { return pointer_; }
  void free();  // after what is on the stream by now. Throws Error (device, GDR-D03)

 private:
  const Driver& driver_;
  Context context_;
  StreamHandle stream_;
  DevicePointer pointer_ = 0;
};

}  // namespace gdr
