// An advisory lock between processes on one key, so that they need not make the same entry at once. It saves work and
// nothing else: what holds it may die (the system releases it), time out or be missing, and everything is still right.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cache/folder.hpp"
#include "cache/posix.hpp"

namespace gdr {

class KeyLock {
 public:
  enum class State { held, timed_out, impossible };

  // Waits for the lock of a key for at most `timeout`: flock(2) on <shard>/<key>.lock. Throws nothing.
  KeyLock(const Shard& shard, std::string_view key, std::chrono::milliseconds timeout, const CacheFault& fault);

  State state() const { return state_; }
  // Why it is impossible: the errno and what was tried.
  const IoError& failure() const { return failure_; }

  // Call before the lock goes if its entry can be found now: who waits will find it, so the lock file can go too.
  void entry_is_published();

 private:
  int folder_;
  std::string name_;
  Fd fd_;
  State state_ = State::impossible;
  IoError failure_;
};

}  // namespace gdr
