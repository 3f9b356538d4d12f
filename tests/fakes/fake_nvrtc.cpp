// A libnvrtc for tests: it "compiles" in an instant, so that what surrounds the compiler can be tested on any machine.
// Its cubin is text that follows from source and options and tells fake_cuda.cpp the kernel's name and the tensors
// among its arguments; its log has the form of the real one. Controlled by the environment at each call:
//   FAKE_NVRTC_VERSION  "12.8"; default 13.0. Before 12.8 the architectures 100, 120, 121 are not known
//   FAKE_NVRTC_COUNT    a file that grows by one byte a compilation, from whatever process
//   FAKE_NVRTC_FAIL     compilations of sources that hold this text fail
//   FAKE_NVRTC_HANG     a file: the compiler makes it and then sleeps as long as it is there
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

struct Program {
  std::string source, log, cubin;
};

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void version(int* major, int* minor) {
  *major = 13, *minor = 0;
  if (const char* text = variable("FAKE_NVRTC_VERSION")) std::sscanf(text, "%d.%d", major, minor);
}

std::vector<int> architectures() {
  std::vector<int> known = {80, 86, 89, 90};
  int major = 0, minor = 0;
  version(&major, &minor);
  if (major * 100 + minor >= 1208) known.insert(known.end(), {100, 120, 121});
  return known;
}

// What stands between `open` and `close` somewhere after `word`.
std::string after(const std::string& text, const std::string& word, const std::string& open, const std::string& close) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.find(open, at) + open.size();
  return text.substr(begin, text.find(close, begin) - begin);
}

std::size_t give(const std::string& text, char* target) {
  if (target != nullptr) std::memcpy(target, text.data(), text.size());
  return text.size();
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE const char* nvrtcGetErrorString(int result) {
  return result == 6 ? "NVRTC_ERROR_COMPILATION" : result == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}
FAKE int nvrtcVersion(int* major, int* minor) { return version(major, minor), 0; }
FAKE int nvrtcGetNumSupportedArchs(int* count) { return *count = static_cast<int>(architectures().size()), 0; }
FAKE int nvrtcGetSupportedArchs(int* list) {
  for (const int arch : architectures()) *list++ = arch;
  return 0;
}
FAKE int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                            const char* const*) {
  *program = new Program{source, "", ""};
  return 0;
}
FAKE int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
FAKE int nvrtcCompileProgram(void* handle, int num_options, const char* const* options) {
  Program& program = *static_cast<Program*>(handle);
  if (const char* path = variable("FAKE_NVRTC_COUNT")) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || ::write(fd, "x", 1) != 1) return 11;
    ::close(fd);
  }
  if (const char* path = variable("FAKE_NVRTC_HANG")) {
    if (const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644); fd >= 0) ::close(fd);
    while (::access(path, F_OK) == 0) ::usleep(1000);
  }
  if (const char* text = variable("FAKE_NVRTC_FAIL");
      text != nullptr && program.source.find(text) != std::string::npos) {
    program.log = "kernel.cu(7): error: identifier \"" + std::string(text) + "\" is undefined\n";
    return 6;
  }
  std::string all = program.source;
  for (int i = 0; i < num_options; ++i) all += std::string("\n") + options[i];
  program.cubin = "fake cubin " + std::to_string(std::hash<std::string>{}(all)) + " " + options[0] + "\nkernel " +
                  after(program.source, "// gdrjit", ", ", ",") + "\nargs";
  for (std::size_t at = 0; (at = program.source.find("  TensorArg t_", at)) != std::string::npos; at += 14)
    program.cubin += " " + program.source.substr(at + 14, program.source.find(';', at) - at - 14);
  program.cubin += "\nend\n";
  program.cubin.resize(5000, '.');
  program.log =
      "ptxas info    : Compiling entry function 'kernel'\n"
      "ptxas         .     24 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 96 registers, used 2 barriers, 512 bytes smem\n";
  return 0;
}
// The real library's sizes count a final zero, and so does its log.
FAKE int nvrtcGetProgramLogSize(void* program, std::size_t* bytes) {
  return *bytes = static_cast<Program*>(program)->log.size() + 1, 0;
}
FAKE int nvrtcGetProgramLog(void* program, char* log) {
  log[give(static_cast<Program*>(program)->log, log)] = '\0';
  return 0;
}
FAKE int nvrtcGetCUBINSize(void* program, std::size_t* bytes) {
  return *bytes = static_cast<Program*>(program)->cubin.size(), 0;
}
FAKE int nvrtcGetCUBIN(void* program, char* cubin) { return give(static_cast<Program*>(program)->cubin, cubin), 0; }
