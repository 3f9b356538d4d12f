#include "device_call.hpp"

#include <sstream>
#include <stdexcept>

#include "core/dtype.hpp"

namespace gdr::test {

FakeCuda& fake() {
  static FakeCuda* const instance = [] {
    void* const library = dlopen(GDR_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
  }();
  return *instance;
}

const std::vector<std::string>& DeviceCall::names() {
  static const std::vector<std::string> all = {"q",   "k",  "v",  "g",  "beta", "do",    "h0",
                                               "dht", "dq", "dk", "dv", "dg",   "dbeta", "dh0"};
  return all;
}

DeviceCall::DeviceCall(int device, const CallSizes& s) {
  call.sizes = {s.batch, s.tokens, s.k_heads, s.v_heads, s.dim_k, s.dim_v};
  for (std::int64_t b = 0; b < s.batch; ++b) call.sequences.push_back({b, 0, s.tokens});
  call.scale = 0.25;
  for (const std::string& name : names()) {
    const bool is_key = name == "q" || name == "k" || name == "dq" || name == "dk";
    const bool is_value = name == "v" || name == "do" || name == "dv";
    const bool is_gate = name == "g" || name == "beta" || name == "dg" || name == "dbeta";
    std::array<std::int64_t, 4> shape = {s.batch, s.tokens, s.v_heads, 1};
    if (is_key) shape = {s.batch, s.tokens, s.k_heads, s.dim_k};
    if (is_value) shape = {s.batch, s.tokens, s.v_heads, s.dim_v};
    if (!is_key && !is_value && !is_gate) shape = {s.batch, s.v_heads, s.dim_k, s.dim_v};
    const DType dtype = is_key || is_value ? DType::bf16 : DType::fp32;
    const std::int64_t elements = shape[0] * shape[1] * shape[2] * shape[3];
    memory_.push_back(fake().allocate(device, static_cast<std::size_t>(elements) * size_bytes(dtype)));
    shapes_[name] = shape;
    view(name) = {memory_.back(), dtype, {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}, true};
  }
}

DeviceCall::~DeviceCall() {
  for (void* pointer : memory_) fake().release(pointer);
}

cpu::View& DeviceCall::view(const std::string& name) {
  const std::map<std::string, cpu::View*> views = {{"q", &call.q},
                                                   {"k", &call.k},
                                                   {"v", &call.v},
                                                   {"g", &call.g},
                                                   {"beta", &call.beta},
                                                   {"do", &call.do_},
                                                   {"h0", &call.initial_state},
                                                   {"dht", &call.final_state_grad},
                                                   {"dq", &call.dq},
                                                   {"dk", &call.dk},
                                                   {"dv", &call.dv},
                                                   {"dg", &call.dg},
                                                   {"dbeta", &call.dbeta},
                                                   {"dh0", &call.dh0}};
  return *views.at(name);
}

std::vector<Launch> launches(const std::vector<std::string>& log) {
  std::vector<Launch> result;
  for (const std::string& line : log) {
    if (!line.starts_with("launch ")) continue;
    std::istringstream words(line);
    std::string word;
    Launch launch;
    words >> word >> launch.kernel >> word >> launch.blocks >> word >> launch.threads >> word >> launch.smem_bytes >>
        word >> launch.stream;
    while (words >> word) {
      const std::string name = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
      if (value.find(':') == std::string::npos) {
        launch.sizes[name] = value;
        continue;
      }
      Launch::Place place;
      char colon = 0;
      std::istringstream numbers(value);
      numbers >> std::hex >> place.data >> std::dec >> colon >> place.item >> colon >> place.head >> colon >> place.row;
      launch.tensors[name] = place;
    }
    result.push_back(launch);
  }
  return result;
}

std::vector<std::string> events(const std::vector<std::string>& log) {
  std::vector<std::string> result;
  for (const std::string& line : log) {
    std::istringstream words(line);
    std::string word, kernel;
    words >> word;
    if (word == "launch" || word == "load") words >> kernel;
    result.push_back(kernel.empty() ? word : word + " " + kernel);
  }
  return result;
}

}  // namespace gdr::test
