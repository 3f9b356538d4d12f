#include "emit/texts.hpp"

#include "core/error.hpp"

namespace gdr {

std::string_view template_text(std::string_view name) {
  for (const TemplateText& file : template_texts())
    if (file.name == name) return file.text;
  fail(ErrorKind::internal, "GDR-E03", "there is no template {}", name);
}

}  // namespace gdr
