#include "core/error.hpp"

namespace gdr {

Error::Error(ErrorKind kind, const char* code, const std::string& message)
    : std::runtime_error(std::string(code) + " " + message), kind_(kind), code_(code) {}

void internal_check(bool condition, std::string_view what, const char* file, int line) {
  if (condition) return;
  std::string_view name = file;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0: a bare name stays whole
  fail(ErrorKind::internal, "GDR-X01", "internal: {} ({}:{}). This is a fault of gdrjit; please report it.", what, name,
       line);
}

}  // namespace gdr
