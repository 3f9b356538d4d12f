// Where libnvrtc is looked for, in which order.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "compile/nvrtc.hpp"

namespace fs = std::filesystem;

namespace gdr {
namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("gdrjit_search_test_" + std::to_string(getpid()))) {
    fs::remove_all(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string add(const std::string& file) const {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << "no library";
    return (path / file).string();
  }
  fs::path path;
};

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

TEST_CASE("an override is the only candidate") {
  CHECK(nvrtc_candidates({"/a/b.so", "/cuda", {"/usr"}}) == std::vector<std::string>{"/a/b.so"});
}

TEST_CASE("the loader's names, CUDA_HOME, and the wheels' folders of Python environments, where they are") {
  const Folder folder;
  const std::string toolkit = folder.add("cuda/lib64/libnvrtc.so.12");
  const std::string conda = folder.add("conda/lib/libnvrtc.so.13");
  const std::string wheel13 = folder.add("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string wheel12 = folder.add("venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string debian = folder.add("usr/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  folder.add("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
  const std::vector<std::string> names = nvrtc_candidates(
      {"", (folder.path / "cuda").string(), {folder.path / "venv", folder.path / "conda", folder.path / "usr"}});
  const std::string in_order[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", toolkit,
                                  wheel13,          wheel12,          conda,         debian};
  std::size_t before = 0;
  for (const std::string& name : in_order) {
    CAPTURE(name);
    const std::size_t at = place_of(names, name);
    REQUIRE(at < names.size());
    CHECK((name == in_order[0] || at > before));
    before = at;
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(std::count(names.begin(), names.end(), name) == 1);
    CHECK((name.find('/') == std::string::npos || fs::exists(name)));
  }
}

TEST_CASE("what the process has loaded already comes first, and is what is opened") {
  CHECK(loaded_nvrtc().empty());
  void* const loaded = dlopen(GDR_FAKE_NVRTC, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(loaded);
  CHECK(loaded_nvrtc() == GDR_FAKE_NVRTC);
  const NvrtcSearch search;
  CHECK(nvrtc_candidates(search).front() == GDR_FAKE_NVRTC);
  const auto nvrtc = Nvrtc::open(search);
  CHECK(nvrtc->path() == GDR_FAKE_NVRTC);
  CHECK(nvrtc->version() == "13.0");
  CHECK(nvrtc->choose_target({"sm_70", "sm_120f", "sm_120a"}) == "sm_120f");
  CHECK(!nvrtc->choose_target({"sm_70"}));
  dlclose(loaded);
}

}  // namespace gdr
