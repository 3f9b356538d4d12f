// Makes faulty configs out of good ones: one value of the JSON replaced or removed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gdr::test {

// `text` with the value at the JSON pointer `path` replaced by `value` (JSON text), or removed if `value` is "".
inline std::string edited(std::string_view text, const std::string& path, const std::string& value) {
  nlohmann::json json = nlohmann::json::parse(text);
  const nlohmann::json::json_pointer pointer(path);
  if (value.empty()) {
    json.at(pointer.parent_pointer()).erase(pointer.back());
  } else {
    json[pointer] = nlohmann::json::parse(value);
  }
  return json.dump(2);
}

// One faulty edit and the exact text of the error that it must cause, without code and file name in front.
struct EditRow {
  std::string path, value, error;
};

}  // namespace gdr::test
