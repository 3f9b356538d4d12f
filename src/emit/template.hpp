// A small strict renderer for the texts of templates/. `%{name}` stands for a value, `%{#name} ... %{/name}` for a
// stretch that is kept or left out. Nothing is escaped. An unknown, unused or doubly defined name is an error that
// names template and line; a template chooses nothing else.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gdr {

class TemplateValues {
 public:
  // Throw Error (internal, GDR-E01) if the name is defined already.
  TemplateValues& set(const std::string& name, std::string text);
  TemplateValues& keep(const std::string& name, bool is_kept);

 private:
  friend std::string render(std::string_view, std::string_view, const TemplateValues&);
  std::map<std::string, std::string> texts_;
  std::map<std::string, bool> sections_;
};

// Throws Error (internal, GDR-E02): `name` of the template, line, what is wrong.
std::string render(std::string_view name, std::string_view text, const TemplateValues& values);

}  // namespace gdr
