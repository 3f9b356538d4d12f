#include "plan_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace gdr::test {
namespace {

using nlohmann::json;

class Changes {
 public:
  void compare(const std::string& path, const json& before, const json& after) {
    if (before == after) return;
    if (before.is_object() && after.is_object()) {
      compare_members(path, before, after);
    } else if (before.is_array() && after.is_array()) {
      compare_lists(path, before, after);
    } else {
      lines_.push_back(fmt::format("{}: {} -> {}", path, shown(before), shown(after)));
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  static std::string shown(const json& value) {
    constexpr std::size_t kMost = 80;
    if (value.is_discarded()) return "nothing";
    const std::string text = value.dump();
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
  }

  void compare_lists(const std::string& path, const json& before, const json& after) {
    const std::vector<std::string> from = keys(before), to = keys(after);
    compare_members(path, keyed(before, from), keyed(after, to));
    if (from == to || !std::is_permutation(from.begin(), from.end(), to.begin(), to.end())) return;
    const auto [old_key, new_key] = std::mismatch(from.begin(), from.end(), to.begin());
    lines_.push_back(fmt::format("{}: order from element {} on: {} -> {}", path.substr(0, path.size() - 2),
                                 old_key - from.begin(), *old_key, *new_key));
  }

  // An element put in front of others is one change if elements have names.
  static std::vector<std::string> keys(const json& list) {
    std::vector<std::string> result;
    std::map<std::string, int> times;
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string key = std::to_string(i);
      for (const char* member : {"id", "name", "op"})
        if (list[i].is_object() && list[i].contains(member) && list[i][member].is_string()) {
          key = list[i][member].get<std::string>();
          break;
        }
      if (list[i].is_string()) key = list[i].get<std::string>();
      if (const int time = ++times[key]; time > 1) key += fmt::format("#{}", time);
      result.push_back(key);
    }
    return result;
  }
  static json keyed(const json& list, const std::vector<std::string>& keys) {
    json result = json::object();
    for (std::size_t i = 0; i < list.size(); ++i) result[keys[i]] = list[i];
    return result;
  }

  void compare_members(const std::string& path, const json& before, const json& after) {
    const json nothing(json::value_t::discarded);
    const bool is_list = path.size() >= 2 && path.substr(path.size() - 2) == "[]";
    const std::string base = is_list ? path.substr(0, path.size() - 2) : path;
    const auto name = [&](const std::string& key) {
      return is_list ? fmt::format("{}[{}]", base, key) : base.empty() ? key : base + "." + key;
    };
    const auto visit = [&](const std::string& key, const json& x, const json& y) {
      compare(name(key) + (x.is_array() || y.is_array() ? "[]" : ""), x, y);
    };
    for (const auto& [key, value] : before.items()) visit(key, value, after.contains(key) ? after[key] : nothing);
    for (const auto& [key, value] : after.items())
      if (!before.contains(key)) visit(key, nothing, value);
  }

  std::vector<std::string> lines_;
};

}  // namespace

std::string plan_changes(const std::string& before, const std::string& after, int max_lines) {
  Changes changes;
  changes.compare("", json::parse(before), json::parse(after));
  std::string text;
  int count = 0;
  for (const std::string& line : changes.lines())
    if (++count <= max_lines) text += line + "\n";
  if (count > max_lines) text += fmt::format("and {} fields more\n", count - max_lines);
  return text;
}

std::string golden_text(const std::string& file) {
  std::ifstream stream(std::string(GDR_SOURCE_DIR) + "/tests/golden/" + file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace gdr::test
