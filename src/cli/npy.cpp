#include "cli/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeaderBytes = 1 << 16;
constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"<f2", DType::fp16}, {"<f4", DType::fp32}, {"<f8", DType::fp64}, {"<i4", DType::i32}, {"<i8", DType::i64}};

[[noreturn]] void reject(const std::filesystem::path& path, const std::string& what) {
  fail(ErrorKind::config, "GDR-R01", "{}: {}", path.string(), what);
}

struct Header {
  DType dtype = DType::fp32;
  Dims shape;
  std::int64_t num_elems = 1;
};

// The header's text, a Python dict such as {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }.
class HeaderParser {
 public:
  HeaderParser(const std::filesystem::path& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        read_type();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        read_order();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        read_shape();
      } else {
        bad(fmt::format("key '{}' is unknown or there twice", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (position_ + 1 != text_.size() || text_[position_] != '\n') bad("it does not end with one newline");
    if (!has_type || !has_order || !has_shape) bad("it lacks one of descr, fortran_order, shape");
    return header_;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    reject(path_, fmt::format("the header is not that of a .npy file: {} (at byte {} of its text).", what, position_));
  }
  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool accept(char c) {
    skip_spaces();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(fmt::format("expected '{}'", c));
  }
  std::string_view quoted() {
    expect('\'');
    const std::size_t end = text_.find('\'', position_);
    if (end == std::string_view::npos) bad("a string is not closed");
    const std::string_view result = text_.substr(position_, end - position_);
    position_ = end + 1;
    return result;
  }
  void read_type() {
    const std::string_view name = quoted();
    for (const auto& [text, dtype] : kTypes)
      if (text == name) {
        header_.dtype = dtype;
        return;
      }
    reject(path_, fmt::format("dtype '{}' is not one of '<f2', '<f4', '<f8', '<i4', '<i8'.", name));
  }
  void read_order() {
    skip_spaces();
    if (text_.substr(position_).starts_with("True"))
      reject(path_, "the array is in Fortran order; save it with numpy.ascontiguousarray.");
    if (!text_.substr(position_).starts_with("False")) bad("fortran_order is neither True nor False");
    position_ += 5;
  }
  void read_shape() {
    expect('(');
    std::int64_t bytes = static_cast<std::int64_t>(sizeof(double));
    while (!accept(')')) {
      skip_spaces();
      std::int64_t size = 0;
      const char* const begin = text_.data() + position_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) bad("a size in shape is no whole number from 0 on");
      position_ += static_cast<std::size_t>(end - begin);
      if (header_.shape.size() == Dims::kMost) bad(fmt::format("it has more than {} dimensions", Dims::kMost));
      if (size > 0 && bytes > std::numeric_limits<std::int64_t>::max() / size) bad("its size exceeds 2^63 bytes");
      header_.shape.push_back(size);
      header_.num_elems *= size;
      if (size > 0) bytes *= size;
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  std::size_t position_ = 0;
  Header header_;
};

std::string header_text(std::string_view type, const Dims& shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                                 fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
  // The array begins at a multiple of 64 bytes; 10 bytes of magic, version and length stand before the text.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  return text;
}

}  // namespace

OwnedTensor read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) reject(path, fmt::format("cannot be read ({}).", std::strerror(errno)));
  const std::streamoff file_bytes = file.tellg();
  if (file_bytes < 0) reject(path, "cannot be read (not a file).");
  file.seekg(0);

  std::array<char, 12> start{};
  file.read(start.data(), 10);
  if (file.gcount() < 10 || std::string_view(start.data(), kMagic.size()) != kMagic)
    reject(path, "is not a .npy file: it does not begin with \\x93NUMPY, a version and a length.");
  const int major = static_cast<unsigned char>(start[6]), minor = static_cast<unsigned char>(start[7]);
  if ((major != 1 && major != 2) || minor != 0)
    reject(path, fmt::format("is of .npy version {}.{}; read are 1.0 and 2.0.", major, minor));
  std::size_t start_bytes = 10;
  if (major == 2) {
    file.read(start.data() + 10, 2);
    start_bytes = 12;
  }
  std::size_t header_bytes = 0;
  for (std::size_t i = start_bytes; i-- > 8;) header_bytes = header_bytes * 256 + static_cast<unsigned char>(start[i]);
  if (header_bytes > kMostHeaderBytes)
    reject(path,
           fmt::format("says that its header has {} bytes; at most {} are read.", header_bytes, kMostHeaderBytes));
  std::string text(header_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(header_bytes));
  if (!file) reject(path, fmt::format("is truncated: its header has {} bytes, the file {}.", header_bytes, file_bytes));

  const Header header = HeaderParser(path, text).parse();
  const std::int64_t expected = header.num_elems * static_cast<std::int64_t>(size_bytes(header.dtype));
  const std::int64_t found = file_bytes - static_cast<std::int64_t>(start_bytes + header_bytes);
  if (found != expected)
    reject(path, fmt::format("{}: shape [{}] of {} takes {} bytes, {} follow the header.",
                             found < expected ? "is truncated" : "has bytes too many",
                             fmt::join(header.shape.begin(), header.shape.end(), ", "), to_string(header.dtype),
                             expected, found));
  OwnedTensor tensor(header.dtype, header.shape);
  file.read(reinterpret_cast<char*>(tensor.data()), expected);
  if (!file) reject(path, "became shorter while it was read.");
  return tensor;
}

void write_npy(const std::filesystem::path& path, const OwnedTensor& tensor) {
  if (tensor.dtype() == DType::bf16) return write_npy(path, tensor.cast(DType::fp32));
  std::string_view type;
  for (const auto& [text, dtype] : kTypes)
    if (dtype == tensor.dtype()) type = text;
  const std::string header = header_text(type, tensor.shape());
  std::string bytes(kMagic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, header.size() % 256, header.size() / 256})
    bytes += static_cast<char>(byte);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.num_bytes());
  write_file(path.string(), bytes);
}

}  // namespace gdr
