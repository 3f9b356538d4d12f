// .npy files: what is written is read again, and every damage is refused with its reason.
#include "cli/npy.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/dtype.hpp"

namespace gdr::test {
namespace {

// A folder of its own, removed at the end.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("gdrjit_npy_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string file_with(const std::string& dict, const std::string& data, char major = 1) {
  const std::string text = dict + "\n";
  std::string result = "\x93NUMPY";
  result += major;
  result += '\0';
  result += static_cast<char>(text.size() % 256);
  result += static_cast<char>(text.size() / 256);
  if (major == 2) result += std::string(2, '\0');
  return result + text + data;
}

std::string read_error(const std::filesystem::path& path) {
  try {
    read_npy(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace

TEST_CASE("npy: what is written is read again") {
  const Folder folder;
  for (const DType dtype : {DType::fp16, DType::fp32, DType::fp64, DType::i32, DType::i64})
    for (const Dims& shape : {Dims{3, 1, 5}, Dims{4}, Dims{0, 7}}) {
      CAPTURE(to_string(dtype));
      CAPTURE(shape.size());
      OwnedTensor tensor(dtype, shape);
      for (std::size_t i = 0; i < tensor.num_bytes(); ++i) tensor.data()[i] = static_cast<std::byte>(i * 7);
      write_npy(folder.path / "x.npy", tensor);
      const OwnedTensor again = read_npy(folder.path / "x.npy");
      CHECK(again.dtype() == dtype);
      CHECK(std::equal(again.shape().begin(), again.shape().end(), shape.begin(), shape.end()));
      CHECK(std::equal(again.data(), again.data() + again.num_bytes(), tensor.data(),
                       tensor.data() + tensor.num_bytes()));
    }
  // bf16 becomes float32 of the same values.
  OwnedTensor narrow(DType::bf16, {2});
  const std::uint16_t bits[] = {bf16_from_float(1.5f), bf16_from_float(-0.0078125f)};
  std::memcpy(narrow.data(), bits, sizeof(bits));
  write_npy(folder.path / "b.npy", narrow);
  const OwnedTensor wide = read_npy(folder.path / "b.npy");
  CHECK(wide.dtype() == DType::fp32);
  CHECK(norm(wide) == doctest::Approx(std::sqrt(1.5 * 1.5 + 0.0078125 * 0.0078125)));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 2);  // nothing left beside them
}

TEST_CASE("npy: the header is that of NumPy, byte for byte") {
  const Folder folder;
  write_npy(folder.path / "x.npy", OwnedTensor(DType::fp64, {5}));
  const std::string dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }";
  CHECK(bytes_of(folder.path / "x.npy") ==
        file_with(dict + std::string(128 - 11 - dict.size(), ' '), std::string(40, '\0')));
}

TEST_CASE("npy: other spellings of the same header are read") {
  const Folder folder;
  const std::string data(24, '\1');
  for (const std::string dict : {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   ",
                                 "{'shape':(2,3),'descr':'<f4','fortran_order':False}",
                                 "{ 'fortran_order': False , 'shape': (2 , 3,) , 'descr': '<f4' }"})
    for (const char major : {'\1', '\2'}) {
      CAPTURE(dict);
      std::ofstream(folder.path / "x.npy", std::ios::binary) << file_with(dict, data, major);
      const OwnedTensor tensor = read_npy(folder.path / "x.npy");
      CHECK(tensor.num_elems() == 6);
      CHECK(tensor.shape()[1] == 3);
    }
}

TEST_CASE("npy: a damaged file is refused with its reason") {
  const Folder folder;
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string dict = good;
    dict.replace(dict.find(from), from.size(), to);
    return file_with(dict, std::string(24, '\0'));
  };
  std::string other_version = file_with(good, std::string(24, '\0'));
  other_version[6] = '\3';
  std::string long_header = file_with(good, "", 2);
  long_header[10] = '\1';
  struct Row {
    std::string name, bytes, reason;
  };
  const Row rows[] = {
      {"empty", "", "is not a .npy file: it does not begin with \\x93NUMPY, a version and a length."},
      {"other", "PK\3\4 and more than ten bytes",
       "is not a .npy file: it does not begin with \\x93NUMPY, a version and a length."},
      {"version", other_version, "is of .npy version 3.0; read are 1.0 and 2.0."},
      {"header too long", long_header, "says that its header has 65596 bytes; at most 65536 are read."},
      {"header cut", file_with(good, "").substr(0, 30), "is truncated: its header has 60 bytes, the file 30."},
      {"data cut", file_with(good, std::string(23, '\0')),
       "is truncated: shape [2, 3] of fp32 takes 24 bytes, 23 follow the header."},
      {"data too long", file_with(good, std::string(25, '\0')),
       "has bytes too many: shape [2, 3] of fp32 takes 24 bytes, 25 follow the header."},
      {"big-endian", with("<f4", ">f4"), "dtype '>f4' is not one of '<f2', '<f4', '<f8', '<i4', '<i8'."},
      {"complex", with("<f4", "<c8"), "dtype '<c8' is not one of '<f2', '<f4', '<f8', '<i4', '<i8'."},
      {"Fortran", with("False", "True"), "the array is in Fortran order; save it with numpy.ascontiguousarray."},
      {"order", with("False", "Maybe"),
       "the header is not that of a .npy file: fortran_order is neither True nor False (at byte 34 of its text)."},
      {"key twice", with("'fortran_order': False", "'descr': '<f4'"),
       "the header is not that of a .npy file: key 'descr' is unknown or there twice (at byte 25 of its text)."},
      {"key missing", with("'fortran_order': False, ", ""),
       "the header is not that of a .npy file: it lacks one of descr, fortran_order, shape (at byte 35 of its text)."},
      {"negative", with("2, 3", "-2, 3"),
       "the header is not that of a .npy file: a size in shape is no whole number from 0 on (at byte 51 of its text)."},
      {"huge", with("2, 3", "4611686018427387904, 4"),
       "the header is not that of a .npy file: its size exceeds 2^63 bytes (at byte 70 of its text)."},
      {"nine dimensions", with("2, 3", "1, 1, 1, 1, 1, 1, 1, 1, 6"),
       "the header is not that of a .npy file: it has more than 8 dimensions (at byte 76 of its text)."},
      {"not closed", with(", }", ""), "the header is not that of a .npy file: expected '}' (at byte 56 of its text)."},
      {"text after", with(", }", "} x"),
       "the header is not that of a .npy file: it does not end with one newline (at byte 58 of its text)."},
  };
  const std::filesystem::path path = folder.path / "x.npy";
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::ofstream(path, std::ios::binary) << row.bytes;
    CHECK(read_error(path) == "GDR-R01 " + path.string() + ": " + row.reason);
  }
  CHECK(read_error(folder.path / "none.npy") ==
        "GDR-R01 " + (folder.path / "none.npy").string() + ": cannot be read (No such file or directory).");
}

TEST_CASE("npy: whatever the bytes, the outcome is a tensor or an Error") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "x.npy";
  const std::string good =
      file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", std::string(24, '\0'));
  for (std::size_t position = 0; position < good.size(); ++position)
    for (const char byte : {'\0', '9', '\'', '\xff'}) {
      std::string bad = good;
      bad[position] = byte;
      std::ofstream(path, std::ios::binary) << bad;
      try {
        const OwnedTensor tensor = read_npy(path);
        CHECK(tensor.num_bytes() == 24);
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::config);
      }
    }
}

}  // namespace gdr::test
