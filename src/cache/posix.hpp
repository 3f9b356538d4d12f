// File descriptors, and system calls that either succeed or throw an IoError which says what was tried on which path.
// Also the points at which a test can make a step fail or kill the process.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

struct stat;

namespace gdr {

// The steps that the cache takes on a disk. Reading: open_entry. Writing, in this order: open_folder, create,
// write_first_half, write_second_half, sync, rename. Then: set_aside (of a bad entry), lock (one attempt).
enum class CacheStep {
  open_entry,
  open_folder,
  create,
  write_first_half,
  write_second_half,
  sync,
  rename,
  renamed,  // nothing is left to do but to report success
  set_aside,
  lock,
};

// For tests, in every build: called before each step. Returns 0 to go on, or the errno with which the step shall fail
// without being tried; it may also end the process. Called by several threads at once.
using CacheFault = std::function<int(CacheStep step)>;

// A system call that failed. Stays inside the room: callers of the cache get a Notice or an Error.
struct IoError : std::exception {
  IoError(std::string what_failed, std::filesystem::path on_path, int error_number)
      : action(std::move(what_failed)), path(std::move(on_path)), error(error_number) {}
  std::string action;  // as in "cannot <action> <path>"
  std::filesystem::path path;
  int error;
};

// "cannot rename /x/y: No space left on device".
std::string describe(const IoError& failure);

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// openat(2), close-on-exec, repeated when interrupted. The descriptor is negative and errno is set on failure.
Fd open_at(int folder, const char* name, int flags, unsigned mode = 0);

// Throws IoError(action) if `fault` wants this step to fail.
void at_step(const CacheFault& fault, CacheStep step, const char* action, const std::filesystem::path& path);

// fstat(2).
struct ::stat status_of(const Fd& fd, const std::filesystem::path& path);

// Reads `bytes` bytes from `offset` on, or fewer if the file ends before.
std::string read_at(const Fd& fd, std::uint64_t offset, std::uint64_t bytes, const std::filesystem::path& path);

void write_all(const Fd& fd, std::string_view bytes, const std::filesystem::path& path);

void sync_file(const Fd& fd, const std::filesystem::path& path);

// A name for a new file that no other process or thread uses: ".tmp-<process>-<16 random digits>".
std::string temporary_name();
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

}  // namespace gdr
