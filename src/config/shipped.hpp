// The shipped configurations as the build embeds them (cmake/EmbedConfigs.cmake writes the definition).
#pragma once

#include <span>
#include <string_view>

namespace gdr {

struct ShippedConfig {
  std::string_view folder;  // "arch", "shape" or "budget"
  std::string_view name;
  std::string_view text;
};
std::span<const ShippedConfig> shipped_configs();

}  // namespace gdr
