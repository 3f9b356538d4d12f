#include "config/budget.hpp"

#include <algorithm>
#include <charconv>

#include "config/header.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace gdr {
namespace {

constexpr std::int64_t kMinSmemBytes = 1;
constexpr std::int64_t kMaxSmemBytes = std::int64_t{1} << 24;
constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{1} << 50;

}  // namespace

Budget read_budget(const JsonDocument& document) {
  ObjectReader reader = document.root().object();
  Budget budget;
  budget.name = read_config_header(reader);
  const JsonValue smem = reader.at("smem_bytes_per_block");
  if (smem.is_string()) {
    if (smem.string() != "optin") smem.reject("is not known; allowed are \"optin\" and a number of bytes.");
  } else {
    budget.smem_bytes_per_block = smem.integer(kMinSmemBytes, kMaxSmemBytes);
  }
  budget.blocks_per_sm = reader.integer_or("blocks_per_sm", 1, 1, 32);
  if (const auto value = reader.find("max_workspace_bytes"))
    budget.max_workspace_bytes = value->integer(std::int64_t{0}, kMaxWorkspaceBytes);
  reader.finish();
  return budget;
}

Budget parse_budget(std::string_view bytes) {
  std::int64_t number = 0;
  const char* end = bytes.data() + bytes.size();
  const auto [stop, error] = std::from_chars(bytes.data(), end, number);
  if (error != std::errc() || stop != end || number < kMinSmemBytes || number > kMaxSmemBytes)
    fail(ErrorKind::config, "GDR-C08", "budget: '{}' is no number of bytes; allowed are whole numbers from {} to {}.",
         shortened(bytes, 60), kMinSmemBytes, kMaxSmemBytes);
  Budget budget;
  budget.name = fmt::format("{}_bytes", number);
  budget.smem_bytes_per_block = number;
  return budget;
}

std::int64_t smem_limit_bytes(const Budget& budget, const Arch& arch) {
  constexpr std::int64_t kStepBytes = 128;
  const std::int64_t share = arch.smem_per_sm_bytes / budget.blocks_per_sm - arch.smem_reserved_per_block_bytes;
  const std::int64_t granted =
      std::min(arch.smem_per_block_optin_bytes, std::max<std::int64_t>(share, 0) / kStepBytes * kStepBytes);
  const std::int64_t asked = budget.smem_bytes_per_block.value_or(granted);
  if (asked <= granted) return asked;
  const std::string sharing =
      budget.blocks_per_sm == 1 ? "" : fmt::format(" if {} blocks share an SM", budget.blocks_per_sm);
  fail(ErrorKind::unsupported, "GDR-C12",
       "budget {}: {} bytes of shared memory per block; {} grants {} bytes{}: {} bytes too many. Ask for at most {}.",
       budget.name, asked, arch.name, granted, sharing, asked - granted, granted);
}

}  // namespace gdr
