#include "core/hash.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("hash_hex gives the published XXH3 values, most significant digit first") {
  // XXH3_128bits of the empty input with seed 0, from xxHash's own sanity checks.
  CHECK(gdr::hash_hex("") == "99aa06d3014798d86001c324468d497f");
  CHECK(gdr::hash_hex("a") != gdr::hash_hex("b"));
  const std::string with_zero("a\0b", 3);
  CHECK(gdr::hash_hex(with_zero) != gdr::hash_hex("a"));
  CHECK(gdr::hash_hex(std::string(1000, 'x')).size() == 32);
}
