#include "core/error.hpp"

#include <doctest/doctest.h>

#include <string>

using gdr::Error;
using gdr::ErrorKind;

TEST_CASE("an error carries kind, code, text and exit code") {
  struct Row {
    ErrorKind kind;
    int exit_code;
  };
  const Row rows[] = {{ErrorKind::internal, 1},    {ErrorKind::config, 2}, {ErrorKind::unsupported, 3},
                      {ErrorKind::compilation, 4}, {ErrorKind::device, 5}, {ErrorKind::check_failed, 6}};
  for (const Row& row : rows) {
    CAPTURE(row.exit_code);
    try {
      gdr::fail(row.kind, "GDR-T01", "thing: {} is too large; the limit is {}.", 7, 5);
      FAIL("fail returned");
    } catch (const Error& error) {
      CHECK(error.kind() == row.kind);
      CHECK(error.exit_code() == row.exit_code);
      CHECK(std::string(error.code()) == "GDR-T01");
      CHECK(std::string(error.what()) == "GDR-T01 thing: 7 is too large; the limit is 5.");
    }
  }
}

TEST_CASE("internal_check names the place and asks for a report") {
  CHECK_NOTHROW(gdr::internal_check(true, "never"));
  const int line = __LINE__ + 2;
  try {
    gdr::internal_check(false, "two tiles overlap");
    FAIL("internal_check returned");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    CHECK(std::string(error.what()) ==
          fmt::format("GDR-X01 internal: two tiles overlap (error_test.cpp:{}). This is a fault of gdrjit; please "
                      "report it.",
                      line));
  }
}
