#include "config/header.hpp"

#include <fmt/format.h>

namespace gdr {

std::string read_config_header(ObjectReader& reader) {
  constexpr std::int64_t kSchemaVersion = 1;
  const JsonValue version = reader.at("schema_version");
  if (version.integer(std::int64_t{0}, std::int64_t{INT64_MAX}) != kSchemaVersion)
    version.reject(fmt::format("is a schema version that this gdrjit does not read; it reads {}.", kSchemaVersion));
  read_sentence(reader, "about");
  return read_config_name(reader);
}

std::string read_config_name(ObjectReader& reader) {
  constexpr std::size_t kMaxName = 64;
  const JsonValue value = reader.at("name");
  const std::string& name = value.string();
  if (name.empty() || name.size() > kMaxName ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    value.reject(fmt::format("is no name; allowed are 1 to {} lower-case letters, digits and underscores.", kMaxName));
  return name;
}

std::string read_sentence(ObjectReader& reader, std::string_view key) {
  const JsonValue value = reader.at(key);
  if (value.string().empty()) value.reject("is empty; a sentence is needed.");
  return value.string();
}

}  // namespace gdr
