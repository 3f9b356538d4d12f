// Bytes as a plan file. A plan that is accepted must survive being written and read again.
#include <string_view>

#include "fuzz.hpp"
#include "schedule/plan_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gdr::fuzz::must_read_or_refuse([&] {
    const gdr::Plan plan = gdr::plan_from_json(text, "p.json");
    const std::string written = gdr::plan_to_json(plan);
    if (gdr::plan_to_json(gdr::plan_from_json(written, "again.json")) != written)
      gdr::fuzz::found("a plan changed when it was written and read");
  });
  return 0;
}
