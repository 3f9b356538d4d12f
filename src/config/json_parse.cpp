#include "config/json_parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"

namespace gdr {
namespace {

using nlohmann::json;

// "line 3, column 14" of the byte at `offset`; columns count bytes from 1.
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, before.size() - line_start + 1);
}

// Offset of the first byte that does not belong to a well-formed UTF-8 sequence (RFC 3629), or text.size().
std::size_t first_bad_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    std::size_t num_more = 0;
    unsigned low = 0x80, high = 0xbf;  // of the second byte: no overlong forms, surrogates or values past U+10FFFF
    if (lead >= 0xc2 && lead <= 0xdf) {
      num_more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      num_more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      num_more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else if (lead >= 0x80) {
      return i;
    }
    for (std::size_t k = 1; k <= num_more; ++k) {
      if (byte(i + k) < low || byte(i + k) > high) return i;
      low = 0x80;
      high = 0xbf;
    }
    i += num_more + 1;
  }
  return text.size();
}

// What is left of "[json.exception.parse_error.101] parse error at line 1, column 2: REASON; last read: 'TOKEN'; ...".
// The place is given by us, and the token by the place: the parser's idea of it can reach back over earlier tokens.
std::string reason_of(std::string text) {
  text.erase(0, text.find("] ") + 2);
  if (text.starts_with("parse error")) text.erase(0, text.find(": ") + 2);
  if (const std::size_t token = text.find("; last read: '"); token != std::string::npos) {
    const std::size_t after = text.rfind("'; expected ");
    text.erase(token, after == std::string::npos || after < token ? std::string::npos : after + 1 - token);
  }
  return text;
}

// Receives the parser's events and builds the tree; refuses what nlohmann's own builder would let pass: duplicate keys
// (the last would win) and any depth.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(std::string_view text, const std::string& source, const JsonLimits& limits)
      : text_(text), source_(source), limits_(limits) {}

  json take_root() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never sent for text
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto [slot, is_new] = open_.back()->get_ref<json::object_t&>().try_emplace(name);
    if (!is_new)
      fail(ErrorKind::config, "GDR-C04", "{}: {}: key is given twice.", source_, shortened(path_to(name), 200));
    slot_ = &slot->second;
    names_.back() = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string reason = shortened(reason_of(error.what()), 160);
    fail(ErrorKind::config, "GDR-C02", "{}: {}: {}.", source_, line_and_column(text_, position == 0 ? 0 : position - 1),
         reason);
  }

 private:
  template <typename T>
  bool add(T&& value) {
    place(json(std::forward<T>(value)));
    return true;
  }

  json& place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return open_.back()->back();
    }
    *slot_ = std::move(value);
    return *slot_;
  }

  bool open(json container) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth))
      fail(ErrorKind::config, "GDR-C03", "{}: arrays and objects are nested deeper than {} levels.", source_,
           limits_.max_depth);
    // A container grows only while none of its elements is open: the pointers stay valid.
    open_.push_back(&place(std::move(container)));
    names_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }

  std::string path_to(const std::string& last) const {
    json::json_pointer path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      if (open_[i]->is_array()) {
        path.push_back(std::to_string(open_[i]->size() - 1));
      } else {
        path.push_back(names_[i]);
      }
    }
    path.push_back(last);
    return path.to_string();
  }

  std::string_view text_;
  const std::string& source_;
  const JsonLimits& limits_;
  json root_;
  std::vector<json*> open_;
  std::vector<std::string> names_;  // of each open object: its latest key
  json* slot_ = nullptr;            // where the value of that key goes
};

}  // namespace

json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    fail(ErrorKind::config, "GDR-C01", "{}: more than the limit of {} bytes.", source, limits.max_bytes);
  if (const std::size_t bad = first_bad_utf8(text); bad != text.size())
    fail(ErrorKind::config, "GDR-C02", "{}: {}: byte 0x{:02x} is not UTF-8.", source, line_and_column(text, bad),
         static_cast<unsigned char>(text[bad]));
  Builder builder(text, source, limits);
  internal_check(json::sax_parse(text, &builder), "the JSON parser stopped without a reason");
  return builder.take_root();
}

}  // namespace gdr
