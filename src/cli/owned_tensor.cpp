#include "cli/owned_tensor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "cpu/view.hpp"

namespace gdr {
namespace {

constexpr std::int64_t kPiece = 1024;  // elements converted at a time
using Piece = std::array<double, kPiece>;

// Elements [first, first + count) as float64.
void read(const OwnedTensor& tensor, std::int64_t first, std::int64_t count, Piece& out) {
  const cpu::View view{const_cast<std::byte*>(tensor.data()), tensor.dtype(), {0, 0, 0, 1}, true};
  cpu::read_block(view, {{0, 0, 0, first}, 2, 1, count}, out.data());
}

template <class Body>
void for_pieces(std::int64_t elems, Body&& body) {
  for (std::int64_t first = 0; first < elems; first += kPiece) body(first, std::min(kPiece, elems - first));
}

}  // namespace

OwnedTensor::OwnedTensor(DType dtype, const Dims& shape) : dtype_(dtype), shape_(shape), num_elems_(1) {
  for (const std::int64_t size : shape) num_elems_ *= size;
  bytes_.resize(static_cast<std::size_t>(num_elems_) * size_bytes(dtype));
}

OwnedTensor OwnedTensor::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  OwnedTensor result(dtype, shape_);
  const cpu::View view{result.data(), dtype, {0, 0, 0, 1}, true};
  Piece piece;
  for_pieces(num_elems_, [&](std::int64_t first, std::int64_t count) {
    read(*this, first, count, piece);
    cpu::write_block(view, {{0, 0, 0, first}, 2, 1, count}, piece.data());
  });
  return result;
}

void OwnedTensor::poison() { std::fill(bytes_.begin(), bytes_.end(), std::byte{0xff}); }

double norm(const OwnedTensor& a) {
  double sum = 0;
  Piece piece;
  for_pieces(a.num_elems(), [&](std::int64_t first, std::int64_t count) {
    read(a, first, count, piece);
    for (std::int64_t i = 0; i < count; ++i)
      sum += piece[static_cast<std::size_t>(i)] * piece[static_cast<std::size_t>(i)];
  });
  return std::sqrt(sum);
}

double relative_l2(const OwnedTensor& a, const OwnedTensor& b, double least_rms) {
  internal_check(a.num_elems() == b.num_elems(), "relative_l2 of tensors of different sizes");
  double difference = 0, squares = 0;
  bool is_finite = true;
  Piece x, y;
  for_pieces(a.num_elems(), [&](std::int64_t first, std::int64_t count) {
    read(a, first, count, x);
    read(b, first, count, y);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      is_finite = is_finite && std::isfinite(x[i]);
      difference += (x[i] - y[i]) * (x[i] - y[i]);
      squares += y[i] * y[i];
    }
  });
  if (!is_finite) return std::numeric_limits<double>::infinity();
  const double least = least_rms * std::sqrt(static_cast<double>(a.num_elems()));
  const double denominator = std::max(std::sqrt(squares), least);
  return denominator > 0 ? std::sqrt(difference) / denominator : std::sqrt(difference);
}

}  // namespace gdr
