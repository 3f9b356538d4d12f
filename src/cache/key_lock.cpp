#include "cache/key_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace gdr {
namespace {

constexpr mode_t kLockMode = 0644;
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{20};

}  // namespace

KeyLock::KeyLock(const Shard& shard, std::string_view key, std::chrono::milliseconds timeout, const CacheFault& fault)
    : folder_(shard.fd.get()),
      name_(std::string(key) + kLockSuffix),
      failure_("lock", shard.path / (std::string(key) + kLockSuffix), 0) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  fd_ = open_at(folder_, name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, kLockMode);
  if (!fd_) {
    failure_.error = errno;
    return;
  }
  // flock without waiting, again and again: a wait inside flock could only be ended by a signal.
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const int error = fault ? fault(CacheStep::lock) : 0;
    if (error == 0 && ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) {
      state_ = State::held;
      return;
    }
    failure_.error = error != 0 ? error : errno;
    if (failure_.error == EINTR) continue;
    if (failure_.error != EWOULDBLOCK) return;
    if (std::chrono::steady_clock::now() >= deadline) {
      state_ = State::timed_out;
      return;
    }
    std::this_thread::sleep_for(pause);
  }
}

// Who still waits on the removed file gets the lock of a file that nobody else can open, looks again, and finds the
// entry; so does who makes a new lock file. No order of these events makes an entry twice, and whoever makes a lock
// file removes it, unless killed.
void KeyLock::entry_is_published() {
  if (state_ == State::held) ::unlinkat(folder_, name_.c_str(), 0);
}

}  // namespace gdr
