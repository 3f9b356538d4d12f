// The files of templates/, built into the library.
#pragma once

#include <span>
#include <string_view>

namespace gdr {

struct TemplateText {
  std::string_view name;  // relative to templates/, "ops/mma.cu"
  std::string_view text;
};

std::span<const TemplateText> template_texts();

// Throws Error (internal, GDR-E03) if there is none of this name.
std::string_view template_text(std::string_view name);

}  // namespace gdr
