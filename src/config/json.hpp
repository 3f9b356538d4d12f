// Strict reading of JSON. Text becomes a JsonDocument or an Error with line and column; its values are read through
// JsonValue and ObjectReader, whose Errors name the source, the key path (a JSON pointer), the value and what is
// allowed. Whatever the bytes are, the outcome is a value or an Error of kind config, never a crash.
//
// Codes: C01 larger than the limit, C02 not JSON (truncated, trailing text, not UTF-8, a number that overflows),
// C03 nested too deep, C04 duplicate key, C05 missing key, C06 unknown key, C07 wrong type, C08 value not allowed.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdr {

class JsonValue;
class ObjectReader;

struct JsonLimits {
  std::size_t max_bytes = std::size_t{1} << 20;
  int max_depth = 64;  // of arrays and objects inside each other
};

// A parsed text. Values and readers taken from it point into it: it must outlive them.
class JsonDocument {
 public:
  // `source` (a file name) opens every message. Throws Error.
  static JsonDocument parse(std::string_view text, std::string source, const JsonLimits& limits = {});
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  const std::string& source() const { return *source_; }
  JsonValue root() const;

 private:
  JsonDocument(std::string source, nlohmann::json root);
  std::unique_ptr<const std::string> source_;
  std::unique_ptr<const nlohmann::json> root_;
};

// One name of a closed list and what it stands for.
template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

// One value with its place in the document. Each accessor throws Error (C07, C08) if the value is of another type or
// outside what is allowed.
class JsonValue {
 public:
  // A whole number, written without fraction or exponent, from `min` to `max`.
  template <std::integral T>
  T integer(T min, T max) const {
    static_assert(!std::same_as<T, std::uint64_t>, "sizes here fit std::int64_t");
    return static_cast<T>(int64(static_cast<std::int64_t>(min), static_cast<std::int64_t>(max)));
  }
  // Any number from `min` to `max`.
  double number(double min = -std::numeric_limits<double>::max(),
                double max = std::numeric_limits<double>::max()) const;
  bool boolean() const;
  const std::string& string() const;
  // A string of the list; the message gives the whole list.
  template <typename T>
  T choice(std::span<const Choice<T>> choices) const {
    std::vector<std::string_view> names;
    for (const Choice<T>& choice : choices) names.push_back(choice.name);
    return choices[choice_idx(names)].value;
  }
  template <typename T, std::size_t N>
  T choice(const std::array<Choice<T>, N>& choices) const {
    return choice(std::span<const Choice<T>>(choices));
  }
  ObjectReader object() const;
  std::vector<JsonValue> array(std::size_t min_elems = 0,
                               std::size_t max_elems = std::numeric_limits<std::size_t>::max()) const;
  bool is_string() const;
  bool is_array() const;
  bool is_null() const;

  // JSON pointer, for example "/roles/0/name"; empty for the top level.
  const std::string& path() const { return path_; }
  // Throws Error C08 at this place: "<source>: <path>: <value> <what>".
  [[noreturn]] void reject(std::string_view what) const;

 private:
  friend class JsonDocument;
  friend class ObjectReader;
  JsonValue(const std::string* source, const nlohmann::json* value, std::string path)
      : source_(source), value_(value), path_(std::move(path)) {}
  std::int64_t int64(std::int64_t min, std::int64_t max) const;
  std::size_t choice_idx(std::span<const std::string_view> names) const;
  [[noreturn]] void wrong_type(std::string_view expected) const;

  const std::string* source_;
  const nlohmann::json* value_;
  std::string path_;
};

// Reads an object key by key and remembers which keys were asked for; finish() refuses the others.
class ObjectReader {
 public:
  // The value of `key`; throws Error C05 if it is missing.
  JsonValue at(std::string_view key);
  // The value of `key`, or nothing.
  std::optional<JsonValue> find(std::string_view key);
  // All keys in alphabetical order, all of them counted as asked for: for objects that map free names to values.
  std::vector<std::string> keys();

  template <std::integral T>
  T integer(std::string_view key, T min, T max) {
    return at(key).integer(min, max);
  }
  template <std::integral T>
  T integer_or(std::string_view key, T otherwise, T min, T max) {
    const std::optional<JsonValue> value = find(key);
    return value ? value->integer(min, max) : otherwise;
  }
  double number(std::string_view key, double min = -std::numeric_limits<double>::max(),
                double max = std::numeric_limits<double>::max()) {
    return at(key).number(min, max);
  }
  bool boolean(std::string_view key) { return at(key).boolean(); }
  bool boolean_or(std::string_view key, bool otherwise);
  const std::string& string(std::string_view key) { return at(key).string(); }
  std::string string_or(std::string_view key, std::string otherwise);
  template <typename Choices>
  auto choice(std::string_view key, const Choices& choices) {
    return at(key).choice(choices);
  }
  ObjectReader object(std::string_view key) { return at(key).object(); }
  std::vector<JsonValue> array(std::string_view key, std::size_t min_elems = 0,
                               std::size_t max_elems = std::numeric_limits<std::size_t>::max()) {
    return at(key).array(min_elems, max_elems);
  }

  // Call when all known keys were asked for: throws Error C06 that names an unknown key and lists the known ones.
  void finish() const;
  const std::string& path() const { return self_.path(); }

 private:
  friend class JsonValue;
  explicit ObjectReader(JsonValue self) : self_(std::move(self)) {}
  JsonValue self_;
  std::vector<std::string> asked_;
};

}  // namespace gdr
