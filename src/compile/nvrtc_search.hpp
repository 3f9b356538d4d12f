// Where libnvrtc may lie: what the process has loaded already, the loader's own search, CUDA_HOME, the folders into
// which the PyPI wheels put it, the usual folder of the toolkit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/settings.hpp"

namespace gdr {

struct NvrtcSearch {
  std::string override_path;  // not empty: this file alone
  std::string cuda_home;      // may be empty
  // Prefixes of Python environments: <prefix>/lib/python3.x/site-packages may hold the wheels nvidia-cuda-nvrtc*.
  std::vector<std::filesystem::path> python_prefixes;
};

// As the environment says.
NvrtcSearch nvrtc_search(const Settings& settings);

// Files and names for dlopen, in the order in which they are to be tried, each once. Of folders only what is there is
// listed; names without a slash are left to the loader.
std::vector<std::string> nvrtc_candidates(const NvrtcSearch& search);

// The libnvrtc that this process has loaded, by the path it was loaded from; empty if there is none.
std::string loaded_nvrtc();

}  // namespace gdr
