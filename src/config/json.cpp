#include "config/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/json_parse.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace gdr {
namespace {

using nlohmann::json;

std::string place(const std::string& path) { return path.empty() ? "top level" : shortened(path, 200); }

// The value as it may stand in a message: short, and strings in quotes.
std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  return shortened(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
}

// One step of a JSON pointer: '~' and '/' are written ~0 and ~1.
std::string escaped(std::string_view key) {
  std::string out = "/";
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

JsonDocument::JsonDocument(std::string source, json root)
    : source_(std::make_unique<const std::string>(std::move(source))),
      root_(std::make_unique<const json>(std::move(root))) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::parse(std::string_view text, std::string source, const JsonLimits& limits) {
  json root = parse_json(text, source, limits);
  return JsonDocument(std::move(source), std::move(root));
}

JsonValue JsonDocument::root() const { return JsonValue(source_.get(), root_.get(), ""); }

void JsonValue::reject(std::string_view what) const {
  fail(ErrorKind::config, "GDR-C08", "{}: {}: {} {}", *source_, place(path_), shown(*value_), what);
}

void JsonValue::wrong_type(std::string_view expected) const {
  fail(ErrorKind::config, "GDR-C07", "{}: {}: {} is not {}.", *source_, place(path_), shown(*value_), expected);
}

std::int64_t JsonValue::int64(std::int64_t min, std::int64_t max) const {
  if (!value_->is_number_integer()) wrong_type(fmt::format("a whole number from {} to {}", min, max));
  const bool too_large = value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  const std::int64_t value = too_large ? max : value_->get<std::int64_t>();
  if (too_large || value < min || value > max)
    reject(fmt::format("is out of range; allowed are whole numbers from {} to {}.", min, max));
  return value;
}

double JsonValue::number(double min, double max) const {
  if (!value_->is_number()) wrong_type("a number");
  const double value = value_->get<double>();
  if (value < min || value > max) reject(fmt::format("is out of range; allowed are numbers from {} to {}.", min, max));
  return value;
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) wrong_type("true or false");
  return value_->get<bool>();
}

const std::string& JsonValue::string() const {
  if (!value_->is_string()) wrong_type("a string");
  return value_->get_ref<const std::string&>();
}

std::size_t JsonValue::choice_idx(std::span<const std::string_view> names) const {
  if (!value_->is_string()) wrong_type(fmt::format("one of {}", fmt::join(names, ", ")));
  const auto found = std::find(names.begin(), names.end(), string());
  if (found == names.end()) reject(fmt::format("is not known; allowed are {}.", fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

ObjectReader JsonValue::object() const {
  if (!value_->is_object()) wrong_type("an object");
  return ObjectReader(*this);
}

std::vector<JsonValue> JsonValue::array(std::size_t min_elems, std::size_t max_elems) const {
  if (!value_->is_array()) wrong_type("an array");
  if (value_->size() < min_elems) reject(fmt::format("is too short; at least {} elements are needed.", min_elems));
  if (value_->size() > max_elems) reject(fmt::format("is too long; at most {} elements are allowed.", max_elems));
  std::vector<JsonValue> result;
  result.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    result.push_back(JsonValue(source_, &(*value_)[i], fmt::format("{}/{}", path_, i)));
  return result;
}

bool JsonValue::is_string() const { return value_->is_string(); }
bool JsonValue::is_array() const { return value_->is_array(); }
bool JsonValue::is_null() const { return value_->is_null(); }

std::optional<JsonValue> ObjectReader::find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  const auto found = self_.value_->find(key);
  if (found == self_.value_->end()) return std::nullopt;
  return JsonValue(self_.source_, &*found, self_.path_ + escaped(key));
}

JsonValue ObjectReader::at(std::string_view key) {
  std::optional<JsonValue> value = find(key);
  if (!value)
    fail(ErrorKind::config, "GDR-C05", "{}: {}: key '{}' is missing.", *self_.source_, place(self_.path_), key);
  return *std::move(value);
}

std::vector<std::string> ObjectReader::keys() {
  asked_.clear();
  for (const auto& item : self_.value_->items()) asked_.push_back(item.key());
  return asked_;
}

bool ObjectReader::boolean_or(std::string_view key, bool otherwise) {
  const std::optional<JsonValue> value = find(key);
  return value ? value->boolean() : otherwise;
}

std::string ObjectReader::string_or(std::string_view key, std::string otherwise) {
  const std::optional<JsonValue> value = find(key);
  return value ? value->string() : std::move(otherwise);
}

void ObjectReader::finish() const {
  for (const auto& item : self_.value_->items()) {
    if (std::find(asked_.begin(), asked_.end(), item.key()) != asked_.end()) continue;
    std::vector<std::string> allowed = asked_;
    std::sort(allowed.begin(), allowed.end());
    fail(ErrorKind::config, "GDR-C06", "{}: {}: key {} is unknown; allowed are {}.", *self_.source_, place(self_.path_),
         shown(json(item.key())), fmt::join(allowed, ", "));
  }
}

}  // namespace gdr
