#include "support.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "core/hash.hpp"

namespace gdr::test {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "gdrjit-cache-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0755) != 0)
    throw std::runtime_error("no folder " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string key_of(int n) { return hash_hex(fmt::format("key {}", n)); }

std::string payload_of(std::string_view key, std::size_t bytes) {
  std::seed_seq seed(key.begin(), key.end());
  std::mt19937 random(seed);
  std::string payload(bytes, '\0');
  for (char& byte : payload) byte = static_cast<char>(random() & 0xff);
  return payload;
}

std::filesystem::path file_of(const std::filesystem::path& folder, std::string_view kind, std::string_view key,
                              std::string_view suffix) {
  return folder / "v1" / kind / key.substr(0, 2) / (std::string(key) + std::string(suffix));
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // a file that is truncated and closed is written through at once: slow
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::string> other_files(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
    if (!item.is_directory() && item.path().filename().string().size() != 32)
      names.push_back(item.path().filename().string());
  return names;
}

NoticeCallback Notices::callback() {
  return [this](const Notice& notice) {
    const std::lock_guard lock(mutex_);
    notices_.push_back(notice);
  };
}

std::vector<std::string> Notices::texts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const Notice& notice : notices_) texts.push_back(notice.text);
  return texts;
}

std::string Notices::codes() const {
  const std::lock_guard lock(mutex_);
  std::string codes;
  for (const Notice& notice : notices_) codes += (codes.empty() ? "" : " ") + std::string(notice.code);
  return codes;
}

Child::Child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("no process");
  if (process_ == 0) {
    std::string text;
    try {
      text = work();
    } catch (const std::exception& error) {
      text = std::string("threw: ") + error.what();
    }
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t put = ::write(ends[1], text.data() + done, text.size() - done);
      if (put <= 0) break;
      done += static_cast<std::size_t>(put);
    }
    ::_exit(0);  // without the ends of the test program
  }
  ::close(ends[1]);
  pipe_ = ends[0];
}

Child::Child(Child&& other) noexcept : process_(other.process_), pipe_(other.pipe_) {
  other.process_ = -1;
  other.pipe_ = -1;
}

Child::~Child() {
  if (process_ > 0) {
    kill();
    result();
  }
}

void Child::kill() {
  if (process_ > 0) ::kill(process_, SIGKILL);
}

std::string Child::result() {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(pipe_, buffer, sizeof buffer)) != 0;) {
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  ::close(pipe_);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return text;
}

std::string in_child(const std::function<std::string()>& work) { return Child(work).result(); }

void become(unsigned user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0)
    throw std::runtime_error("cannot change the user");
}

bool is_root() { return ::geteuid() == 0; }

std::string mount_small_disk(const std::filesystem::path& folder, std::uint64_t bytes) {
  if (::unshare(CLONE_NEWNS) != 0) return fmt::format("no mount namespace: {}", std::strerror(errno));
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fmt::format("no private mounts: {}", std::strerror(errno));
  const std::string options = fmt::format("size={},mode=0755", bytes);
  if (::mount("none", folder.c_str(), "tmpfs", 0, options.c_str()) != 0)
    return fmt::format("no tmpfs: {}", std::strerror(errno));
  return {};
}

std::string make_read_only(const std::filesystem::path& folder) {
  if (::mount(nullptr, folder.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
    return fmt::format("no read-only mount: {}", std::strerror(errno));
  return {};
}

}  // namespace gdr::test
