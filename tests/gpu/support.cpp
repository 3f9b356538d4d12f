#include "support.hpp"

#include <cstdlib>

#include "config/registry.hpp"

namespace gdr::test {

Environment::Environment(const char* name, const std::string& value) : name_(name) {
  if (const char* const old = std::getenv(name)) before_ = old;
  ::setenv(name, value.c_str(), 1);
}

Environment::~Environment() {
  if (before_.empty()) {
    ::unsetenv(name_);
  } else {
    ::setenv(name_, before_.c_str(), 1);
  }
}

Place::Place() : counting_("FAKE_NVRTC_COUNT", (folder_.path() / "compiled").string()) {}

LibraryOptions Place::options(Notices& notices) const {
  LibraryOptions options;
  options.cache.directory = cache();
  options.cache.notice = notices.callback();
  options.nvrtc.override_path = GDR_FAKE_NVRTC;
  options.threads = 4;
  options.failed_sources = {path() / "failed"};
  return options;
}

int Place::num_compiled() const {
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(folder_.path() / "compiled", none);
  return none ? 0 : static_cast<int>(bytes);
}

KernelRequest request_for_arch(const std::string& arch, int k_heads, int v_heads, const std::string& device,
                               int head_dim) {
  KernelRequest request;
  request.plan.arch = load_arch(arch);
  request.plan.shape = load_shape("qwen3_next");
  request.plan.shape.k_heads = k_heads;
  request.plan.shape.v_heads = v_heads;
  request.plan.shape.head_dim_k = request.plan.shape.head_dim_v = head_dim;
  request.plan.budget = load_budget("default");
  if (!device.empty()) request.targets = load_arch(device).targets;
  return request;
}

}  // namespace gdr::test
