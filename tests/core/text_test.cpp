#include "core/text.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("shortened keeps what fits and cuts between characters") {
  CHECK(gdr::shortened("", 3) == "");
  CHECK(gdr::shortened("abc", 3) == "abc");
  CHECK(gdr::shortened("abcd", 3) == "abc...");
  CHECK(gdr::shortened("ab\xe2\x82\xac", 5) == "ab\xe2\x82\xac");
  CHECK(gdr::shortened("ab\xe2\x82\xac!", 4) == "ab...");
  CHECK(gdr::shortened("ab\xe2\x82\xac!", 5) == "ab\xe2\x82\xac...");
  CHECK(gdr::shortened("\x80\x80\x80", 2) == "...");
}
