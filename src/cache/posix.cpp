#include "cache/posix.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <system_error>

namespace gdr {

std::string describe(const IoError& failure) {
  return fmt::format("cannot {} {}: {}", failure.action, failure.path.string(),
                     std::generic_category().message(failure.error));
}

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Fd open_at(int folder, const char* name, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::openat(folder, name, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return Fd(fd);
}

void at_step(const CacheFault& fault, CacheStep step, const char* action, const std::filesystem::path& path) {
  if (!fault) return;
  if (const int error = fault(step); error != 0) throw IoError(action, path, error);
}

struct ::stat status_of(const Fd& fd, const std::filesystem::path& path) {
  struct ::stat status = {};
  if (::fstat(fd.get(), &status) != 0) throw IoError("examine", path, errno);
  return status;
}

std::string read_at(const Fd& fd, std::uint64_t offset, std::uint64_t bytes, const std::filesystem::path& path) {
  std::string result;
  result.resize(bytes);
  std::size_t done = 0;
  while (done < result.size()) {
    const ssize_t got =
        ::pread(fd.get(), result.data() + done, result.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("read", path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  result.resize(done);
  return result;
}

void write_all(const Fd& fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw IoError("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void sync_file(const Fd& fd, const std::filesystem::path& path) {
  while (::fsync(fd.get()) != 0)
    if (errno != EINTR) throw IoError("write", path, errno);
}

std::string temporary_name() {
  std::uint64_t random = 0;
  // Early at boot there may be no random bytes yet; names are opened exclusively, so the clock serves as well.
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random))
    random = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return fmt::format("{}{}-{:016x}", kTemporaryPrefix, ::getpid(), random);
}

}  // namespace gdr
