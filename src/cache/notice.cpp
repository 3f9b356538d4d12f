#include "cache/notice.hpp"

namespace gdr {

void NoticeBoard::tell(const char* code, const std::string& cause, const std::string& text) {
  if (!callback_) return;
  {
    const std::lock_guard lock(mutex_);
    if (!told_.insert(cause).second) return;
  }
  callback_({code, std::string(code) + " cache: " + text});
}

}  // namespace gdr
