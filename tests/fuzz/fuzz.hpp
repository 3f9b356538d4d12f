// What every fuzz target demands of a reader: it returns, or throws a gdr::Error of kind config with a text.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/error.hpp"

namespace gdr::fuzz {

[[noreturn]] inline void found(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

template <typename Read>
void must_read_or_refuse(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) found(error.what());
    if (std::string(error.what()).size() > 4000) found("an error text of more than 4000 bytes");
  }  // anything else leaves main: libFuzzer reports it
}

}  // namespace gdr::fuzz
