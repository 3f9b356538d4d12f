// What the tests of this room share: a library of kernels on a folder of its own with the compiler of tests/fakes, a
// count of what that compiles, and requests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "../cache/support.hpp"
#include "gpu/kernel_library.hpp"

namespace gdr::test {

// Sets a variable of the environment, and gives it back its value at the end.
class Environment {
 public:
  Environment(const char* name, const std::string& value);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string before_;  // empty: was not set
};

// A folder for a cache, and a counted compiler.
class Place {
 public:
  Place();
  std::filesystem::path cache() const { return folder_.path() / "cache"; }
  std::filesystem::path path() const { return folder_.path(); }
  // Options of a library here. `notices` outlives it.
  LibraryOptions options(Notices& notices) const;
  // Compilations so far, of all processes.
  int num_compiled() const;

 private:
  TempFolder folder_;
  Environment counting_;
};

// The path where there is no library.
inline constexpr const char* kNoNvrtc = "/nowhere/libnvrtc.so";

// A request for a shipped architecture, in machine code for that of `device` (the same one if empty). Small head dims
// are planned soonest.
KernelRequest request_for_arch(const std::string& arch, int k_heads = 16, int v_heads = 32,
                               const std::string& device = "", int head_dim = 16);

}  // namespace gdr::test
