#include "compile/nvrtc_search.hpp"

#include <link.h>

#include <algorithm>
#include <string_view>
#include <system_error>

namespace gdr {
namespace {

namespace fs = std::filesystem;

// Newest first: a library knows all architectures of the older ones that gdrjit plans for.
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
// Below site-packages: the wheels nvidia-cuda-nvrtc (from 13.0 on) and nvidia-cuda-nvrtc-cu12.
constexpr const char* kWheelFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

bool is_nvrtc(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libnvrtc") && !file.starts_with("libnvrtc-builtins");
}

// Folders of packages below a prefix of Python, such as /usr: sorted, so that the order does not depend on the disk.
std::vector<fs::path> package_folders(const fs::path& prefix) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (fs::directory_iterator entry(prefix / "lib", ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (entry->path().filename().string().starts_with("python3"))
      for (const char* packages : {"site-packages", "dist-packages"}) folders.push_back(entry->path() / packages);
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

NvrtcSearch nvrtc_search(const Settings& settings) {
  NvrtcSearch search{settings.libnvrtc, settings.cuda_home, settings.python_prefixes};
  for (const char* prefix : {"/usr/local", "/usr"}) search.python_prefixes.emplace_back(prefix);
  return search;
}

std::vector<std::string> nvrtc_candidates(const NvrtcSearch& search) {
  if (!search.override_path.empty()) return {search.override_path};
  std::vector<std::string> candidates;
  const auto add = [&](const std::string& name) {
    if (std::find(candidates.begin(), candidates.end(), name) == candidates.end()) candidates.push_back(name);
  };
  const auto add_folder = [&](const fs::path& folder) {
    std::error_code ignored;
    for (const char* name : kNames)
      if (fs::exists(folder / name, ignored)) add((folder / name).string());
  };
  if (const std::string loaded = loaded_nvrtc(); !loaded.empty()) add(loaded);
  for (const char* name : kNames) add(name);
  for (const std::string& home : {search.cuda_home, std::string("/usr/local/cuda")}) {
    if (home.empty()) continue;
    for (const char* folder : {"lib64", "lib"}) add_folder(fs::path(home) / folder);
  }
  for (const fs::path& prefix : search.python_prefixes) {
    add_folder(prefix / "lib");  // conda puts the toolkit there
    for (const fs::path& packages : package_folders(prefix))
      for (const char* folder : kWheelFolders) add_folder(packages / folder);
  }
  return candidates;
}

std::string loaded_nvrtc() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (info->dlpi_name == nullptr || !is_nvrtc(info->dlpi_name)) return 0;
        *static_cast<std::string*>(found) = info->dlpi_name;
        return 1;
      },
      &path);
  return path;
}

}  // namespace gdr
