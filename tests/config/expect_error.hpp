// For tables of errors: runs something that must throw gdr::Error and gives kind and full text.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/error.hpp"

namespace gdr::test {

template <typename Action>
std::string error_text(ErrorKind kind, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace gdr::test
