// The settings that come from the environment, read once and parsed strictly: a variable with a value that is not
// allowed is an Error naming both, never a silent default. An empty variable counts as unset.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gdr {

struct Settings {
  // Folder of the kernel cache: GDRJIT_CACHE_DIR, else $XDG_CACHE_HOME/gdrjit, else $HOME/.cache/gdrjit.
  // Empty if none of the three is set: then nothing is cached on disk.
  std::filesystem::path cache_dir;
  // Bundles and read-only cache folders that are looked up after cache_dir: GDRJIT_BUNDLE_PATH, separated by colons.
  std::vector<std::filesystem::path> bundle_paths;
  // The CUDA libraries, opened at run time: GDRJIT_LIBCUDA and GDRJIT_LIBNVRTC name the file to open instead of
  // searching; CUDA_HOME is searched. Empty: not set.
  std::string libcuda, libnvrtc, cuda_home;
  // Prefixes of Python environments, whose packages may bring libnvrtc: VIRTUAL_ENV, CONDA_PREFIX, $HOME/.local. Those
  // that are not absolute paths are left out.
  std::vector<std::filesystem::path> python_prefixes;
  // Host threads of the cpu backend and of compilation: GDRJIT_NUM_THREADS (1..4096), else what the machine has (at
  // least 1).
  int num_threads = 1;
  // NO_COLOR is set: no colours on a terminal.
  bool no_color = false;
};

// Returns the value of a variable, or nothing if it is unset.
using ReadVariable = std::function<std::optional<std::string>(const char* name)>;

// Parses the settings. Throws a config Error (GDR-C21) on a value that is not allowed.
Settings parse_settings(const ReadVariable& read_variable);

// The settings of this process, from its environment at the first call. Thread-safe.
const Settings& settings();

}  // namespace gdr
