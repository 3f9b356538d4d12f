// The one exception type that gdrjit throws. Its kind says who can act, and is the exit code of the program;
// its code (such as GDR-C03) never changes meaning; its text is complete: subject, value, limit, what to do.
#pragma once

#include <stdexcept>
#include <string>

#include "gdr/export.hpp"

namespace gdr {

enum class ErrorKind : int {
  internal = 1,      // a fault of gdrjit itself
  config = 2,        // wrong usage, argument or configuration
  unsupported = 3,   // does not fit, or is not supported
  compilation = 4,   // a generated kernel did not compile
  device = 5,        // device or run-time failure
  check_failed = 6,  // a check found a fault
};

class GDR_API Error : public std::runtime_error {
 public:
  // `code` must be a string literal: it is kept by pointer, so that copying an Error cannot throw.
  Error(ErrorKind kind, const char* code, const std::string& message);

  ErrorKind kind() const noexcept { return kind_; }
  const char* code() const noexcept { return code_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }
  // what() is "<code> <message>".

 private:
  ErrorKind kind_;
  const char* code_;
};

}  // namespace gdr
