// JSON text that a decoder writes, up to a bound.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace hapax::payload {

// Each function throws NotDecodable if the text would have more than `max` bytes.
class JsonText {
 public:
  // `refusal`: begins the text of NotDecodable, such as "the payload does not fit: ".
  JsonText(std::size_t max, std::string_view refusal) : max_(max), refusal_(refusal) {}

  // Precondition: it is JSON, or a part of it.
  void add(std::string_view text) {
    if (text.size() > max_ - text_.size()) too_long();
    text_ += text;
  }
  template <std::integral Integer>
  void number(Integer value) {
    add(std::to_string(value));
  }
  // The shortest text that is read as the same value; NaN and infinities are strings.
  template <std::floating_point Float>
  void number(Float value) {
    if (std::isnan(value)) return add("\"NaN\"");
    if (std::isinf(value)) return add(value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    std::array<char, 64> buffer;
    add({buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr});
  }
  // Throws: NotDecodable also if it is not UTF-8.
  void string(std::string_view text);
  void base64(std::string_view bytes);

  std::string take() { return std::move(text_); }

 private:
  [[noreturn]] void too_long() const;

  const std::size_t max_;
  const std::string refusal_;
  std::string text_;
};

}  // namespace hapax::payload
