#include "present/byte_axis.hpp"

#include <doctest/doctest.h>

using namespace gdr;

TEST_CASE("the axis is to scale where nothing is small") {
  const ByteAxis axis({4096, 8192}, 8192, 10000, {.height_px = 1000, .min_px = 5, .max_free_px = 500});
  CHECK_FALSE(axis.is_stretched());
  CHECK_FALSE(axis.is_cut());
  CHECK(axis.up(0) == doctest::Approx(0));
  CHECK(axis.up(4096) == doctest::Approx(409.6));
  CHECK(axis.up(6000) == doctest::Approx(600));
  CHECK(axis.height() == doctest::Approx(1000));
  CHECK(axis.up(20000) == doctest::Approx(1000));
}

TEST_CASE("small stretches are thickened, and much free memory is cut") {
  const ByteAxis axis({1000, 1010}, 1010, 10000, {.height_px = 1000, .min_px = 9, .max_free_px = 80});
  CHECK(axis.is_stretched());
  CHECK(axis.is_cut());
  CHECK(axis.up(1000) == doctest::Approx(100));
  CHECK(axis.up(1010) == doctest::Approx(109));
  CHECK(axis.up(10000) == doctest::Approx(189));
}

TEST_CASE("a plan above its limit keeps both in the picture") {
  const ByteAxis axis({0, 12000}, 12000, 10000, {.height_px = 1000, .min_px = 5, .max_free_px = 80});
  CHECK_FALSE(axis.is_cut());
  CHECK(axis.up(10000) == doctest::Approx(1000));
  CHECK(axis.up(12000) == doctest::Approx(1200));
}
