// What the cache has to tell: it goes on without a disk and never prints, so whoever owns it is told once per cause.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace gdr {

struct Notice {
  const char* code;  // one of kNoticeCodes; a code never changes meaning
  std::string text;  // "GDR-K03 cache: cannot create ...": complete, with what to do
};

// Called outside every lock, possibly by several threads at once. Must not throw.
using NoticeCallback = std::function<void(const Notice&)>;

struct NoticeCode {
  const char* code;
  const char* meaning;
};

inline constexpr NoticeCode kNoticeCodes[] = {
    {"GDR-K01", "a folder is not used because of its owner"},
    {"GDR-K02", "there is no cache folder: none of the three variables is set"},
    {"GDR-K03", "writing to the cache folder failed"},
    {"GDR-K04", "reading from the cache folder or a bundle failed"},
    {"GDR-K05", "an entry is bad"},
    {"GDR-K06", "waited in vain for another process that makes the same entry"},
    {"GDR-K07", "the cache folder has no locks between processes"},
    {"GDR-K08", "a file is not a bundle, or its index is damaged"},
};

// Passes each notice on once per cause.
class NoticeBoard {
 public:
  explicit NoticeBoard(NoticeCallback callback) : callback_(std::move(callback)) {}

  // `cause` tells causes apart: a path, an errno. Two codes may share one, and the first to come is told.
  void tell(const char* code, const std::string& cause, const std::string& text);

 private:
  NoticeCallback callback_;
  std::mutex mutex_;
  std::set<std::string> told_;
};

}  // namespace gdr
