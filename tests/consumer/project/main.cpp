// Uses the installed library through its public headers alone.
#include <gdr/error.hpp>
#include <gdr/version.hpp>

#include <cstdio>
#include <string>

int main() {
  try {
    throw gdr::Error(gdr::ErrorKind::unsupported, "GDR-C12", "consumer: an error crosses the library's border.");
  } catch (const gdr::Error& error) {
    std::printf("gdrjit %s: %s\n", GDRJIT_VERSION, error.what());
    return error.exit_code() == 3 ? 0 : 1;
  }
}
