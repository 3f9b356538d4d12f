// gdr::Error (public, gdr/error.hpp) and short ways to throw it. `fail` formats; `internal_check` guards what only a
// fault of gdrjit itself can break, and stays on in every build.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "gdr/error.hpp"

namespace gdr {

// Throws Error(kind, code, formatted message). `code` must be a string literal.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, const char* code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, code, fmt::format(format, std::forward<Args>(args)...));
}

// Throws an internal Error (GDR-X01) that names file and line and asks for a report, unless `condition` holds.
// (The builtins stand for std::source_location, which clang 14 does not have.)
void internal_check(bool condition, std::string_view what, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());

}  // namespace gdr
