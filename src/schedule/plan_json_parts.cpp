#include "schedule/plan_json_parts.hpp"

#include "core/error.hpp"

namespace gdr::plan_file {
namespace {

std::string checked_text(const JsonValue& value, std::size_t max_chars, bool may_be_empty) {
  const std::string& text = value.string();
  if (text.empty() && !may_be_empty) value.reject("is empty; a name is needed.");
  if (text.size() > max_chars)
    value.reject(fmt::format("has {} characters; at most {} are allowed.", text.size(), max_chars));
  for (const char c : text)
    if (c < ' ' || c > '~') value.reject("holds a character that is not printable ASCII.");
  return text;
}

std::string quoted_or_null(const std::string& id) { return id.empty() ? "null" : '"' + id + '"'; }

}  // namespace

std::string name_at(ObjectReader& reader, std::string_view key) {
  constexpr std::size_t kMaxName = 128;
  return checked_text(reader.at(key), kMaxName, false);
}
std::string text_or_empty(ObjectReader& reader, std::string_view key) {
  constexpr std::size_t kMaxText = 1000;
  const std::optional<JsonValue> value = reader.find(key);
  return value ? checked_text(*value, kMaxText, true) : std::string();
}

DType dtype_at(ObjectReader& reader, std::string_view key, const std::string& source) {
  const JsonValue value = reader.at(key);
  return parse_dtype(value.string(), fmt::format("{}: {}", source, value.path()));
}

Range range_of(const JsonValue& value, int max) {
  const std::vector<JsonValue> pair = value.array(2, 2);
  const Range range{pair[0].integer(0, max), pair[1].integer(0, max)};
  if (range.begin >= range.end)
    pair[1].reject(fmt::format("is not above the beginning of the range, {}.", range.begin));
  return range;
}

void DerivedCheck::integer(ObjectReader& reader, std::string_view key, std::int64_t expected) const {
  const std::optional<JsonValue> value = reader.find(key);
  if (!value) return;
  const auto given = value->integer<std::int64_t>(INT64_MIN, INT64_MAX);
  if (given != expected) disagree(*value, std::to_string(given), std::to_string(expected));
}

void DerivedCheck::op_id(ObjectReader& reader, std::string_view key, const std::string& expected) const {
  const std::optional<JsonValue> value = reader.find(key);
  if (!value) return;
  const std::string given = value->is_null() ? std::string() : value->string();
  if (given != expected) disagree(*value, quoted_or_null(given), quoted_or_null(expected));
}

void DerivedCheck::names(ObjectReader& reader, std::string_view key, const std::vector<std::string>& expected) const {
  const std::optional<JsonValue> value = reader.find(key);
  if (!value) return;
  std::vector<std::string> given;
  for (const JsonValue& name : value->array(0, kMaxListed)) given.push_back(name.string());
  if (given != expected)
    disagree(*value, fmt::format("[{}]", fmt::join(given, ", ")), fmt::format("[{}]", fmt::join(expected, ", ")));
}

void DerivedCheck::disagree(const JsonValue& value, const std::string& given, const std::string& expected) const {
  fail(ErrorKind::config, "GDR-S10",
       "{}: {}: the file says {}, but its tiles, roles and operations make it {}. Correct this key or leave it out.",
       source_, value.path(), given, expected);
}

}  // namespace gdr::plan_file
