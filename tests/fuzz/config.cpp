// Bytes as a config file, read as each of the three kinds.
#include <string_view>

#include "config/arch.hpp"
#include "config/budget.hpp"
#include "config/shape.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gdr::fuzz::must_read_or_refuse([&] {
    const gdr::JsonDocument document = gdr::JsonDocument::parse(text, "f.json");
    gdr::fuzz::must_read_or_refuse([&] { gdr::read_arch(document); });
    gdr::fuzz::must_read_or_refuse([&] { gdr::read_budget(document); });
    gdr::fuzz::must_read_or_refuse([&] { gdr::read_shape(document); });
  });
  gdr::fuzz::must_read_or_refuse([&] { gdr::parse_budget(text); });
  return 0;
}
