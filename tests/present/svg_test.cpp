#include "present/svg.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../schedule/sample_plan.hpp"
#include "present/svg_writer.hpp"
#include "sample_facts.hpp"

using namespace gdr;

namespace {

// Empty if every element is closed in order, attributes are quoted and '&' begins an entity; else what is wrong.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      const std::string entity = text.substr(i, text.find(';', i) - i + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#10;")
        return "entity " + entity;
    }
    if (text[i] == '>') return "a > outside a tag";
    if (text[i] != '<') continue;
    const std::size_t end = text.find('>', i);
    if (end == std::string::npos) return "a tag without an end";
    const std::string tag = text.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string::npos) return "a < inside the tag " + tag;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "</" + tag.substr(1) + "> closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    i = end;
  }
  return open.empty() ? "" : open.back() + " stays open";
}

}  // namespace

TEST_CASE("the picture is well-formed, stands alone and runs nothing") {
  const std::string text = plan_svg(test::sample_plan(), test::sample_facts());
  CHECK(xml_fault(text) == "");
  CHECK(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  for (const std::string word : {"<script", "href", "onload", "url(http", "nan", "inf\""}) {
    CAPTURE(word);
    CHECK(text.find(word) == std::string::npos);
  }
  CHECK(text == plan_svg(test::sample_plan(), test::sample_facts()));
}

TEST_CASE("every tile, role and op is named, the budget and what is left are said") {
  const std::string text = plan_svg(test::sample_plan(), test::sample_facts());
  const std::vector<std::string> kWords = {">k 4,096 B<",      ">h part 1 of 2<",
                                           ">ds 8,192 B<",     ">gam of another chunk",
                                           ">loader<",         ">state<",
                                           ">pairs<",          ">P.mma<",
                                           ">dv.out<",         "budget: 24,576 bytes a block",
                                           "2,248 bytes left", "15,424 too many"};
  for (const std::string& words : kWords) {
    CAPTURE(words);
    CHECK(text.find(words) != std::string::npos);
  }
}

TEST_CASE("names from a plan file cannot break the picture") {
  Plan plan = test::sample_plan();
  for (Op& op : plan.kernels[0].ops) {
    op.id += "<&\">";
    op.step += "</svg>";
  }
  plan.kernels[0].name = "<script>alert(1)</script>";
  const std::string text = plan_svg(plan, test::sample_facts());
  CHECK(xml_fault(text) == "");
  CHECK(text.find("<script") == std::string::npos);
}

TEST_CASE("a plan without room, places or ops is drawn too") {
  Plan plan = test::sample_plan();
  plan.smem_limit_bytes = 0;
  CHECK(xml_fault(plan_svg(plan, test::sample_facts())) == "");
  for (Tile& tile : plan.kernels[0].tiles) tile.offset_bytes = -1;
  plan.kernels[0].barrier_offset_bytes = -1;
  CHECK(xml_fault(plan_svg(plan, test::sample_facts())) == "");
  plan.kernels[0].ops.clear();
  for (Role& role : plan.kernels[0].roles) role.prologue = role.body = role.epilogue = {};
  CHECK(xml_fault(plan_svg(plan, test::sample_facts())) == "");
  plan.kernels[0].roles.clear();
  CHECK(xml_fault(plan_svg(plan, test::sample_facts())) == "");
}

TEST_CASE("numbers have one decimal at most") {
  CHECK(svg_number(12) == "12");
  CHECK(svg_number(12.34) == "12.3");
  CHECK(svg_number(12.96) == "13");
  CHECK(svg_number(-0.25) == "-0.3");
  CHECK(svg_number(-0.01) == "0");
}
