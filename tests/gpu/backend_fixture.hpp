// What tests of the backend share: a session on a cache of its own with the fake driver's two devices, an sm_90 and an
// sm_120.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "device_call.hpp"
#include "gpu/backend.hpp"
#include "support.hpp"

namespace gdr::test {

// Two devices: an sm_90 and an sm_120. Read when the fake driver is opened.
inline const int kDevices = ::setenv("FAKE_CUDA_DEVICES", "9.0,12.0", 1);

// A session on a cache that holds what it needs, and a driver that has forgotten what was before.
class Fixture {
 public:
  Fixture() {
    fake().set_current(nullptr);
    fake().set_driver_version(13000);
    fake().set_memory_pools(true);
    fake().reset();
  }
  GpuSession session() { return GpuSession(GDR_FAKE_CUDA, place_.options(notices_)); }
  const Place& place() const { return place_; }
  LibraryOptions options() { return place_.options(notices_); }

 private:
  Place place_;
  Notices notices_;
};

inline std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(error.exit_code()) + " " + error.what();
  }
  return "none";
}

inline GpuChoice on(int device, StreamHandle stream = 0) {
  GpuChoice choice;
  choice.device = device;
  choice.stream = stream;
  return choice;
}

inline std::string hex(std::uintptr_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%zx", static_cast<std::size_t>(value));
  return text;
}

inline std::int64_t count(const std::vector<std::string>& lines, const std::string& begin) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(begin); });
}

}  // namespace gdr::test
