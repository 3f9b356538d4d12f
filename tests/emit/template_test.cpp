#include "emit/template.hpp"

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "emit/texts.hpp"

namespace gdr {

TEST_CASE("a template takes values and sections, and escapes nothing") {
  TemplateValues values;
  values.set("x", "a < b && {c}").keep("more", true).keep("less", false);
  CHECK(render("t", "[%{x}]%{#more} more%{/more}%{#less} %{x} less%{/less} {{x}} $x", values) ==
        "[a < b && {c}] more {{x}} $x");
}

TEST_CASE("whatever a template and its values do not agree on is an error with template and line") {
  const auto message = [](const char* text, TemplateValues values) {
    try {
      render("t.cu", text, values);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const TemplateValues none;
  CHECK(message("one\n%{two}", none) == "GDR-E02 template t.cu, line 2: unknown name two");
  CHECK(message("%{#s}x%{/s}", none) == "GDR-E02 template t.cu, line 1: unknown section s");
  CHECK(message("x\ny %{z", none) == "GDR-E02 template t.cu, line 2: %{ without }");
  CHECK(message("x", TemplateValues().set("y", "")) == "GDR-E02 template t.cu: name y is not used");
  CHECK(message("x", TemplateValues().keep("y", true)) == "GDR-E02 template t.cu: section y is not used");
  CHECK(message("%{#s}x", TemplateValues().keep("s", true)) ==
        "GDR-E02 template t.cu, line 1: section s is never closed");
  CHECK(message("x%{/s}", TemplateValues().keep("s", true)) ==
        "GDR-E02 template t.cu, line 1: section s is not open here");
  CHECK_THROWS_WITH(TemplateValues().set("y", "").set("y", ""), "GDR-E01 template value y: defined twice");
  CHECK_THROWS_WITH(template_text("nothing.cu"), "GDR-E03 there is no template nothing.cu");
}

}  // namespace gdr
