#include "inspect/origin.hpp"

#include <charconv>

namespace hapax::app {
namespace {

// What is behind the last slash, which is taken off `text` with it.
std::optional<std::string_view> take_last(std::string_view& text) {
  const auto slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view last = text.substr(slash + 1);
  text = text.substr(0, slash);
  return last;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto digits = take_last(text);
  if (!digits) return false;
  const char* const end = digits->data() + digits->size();
  const auto [rest, error] = std::from_chars(digits->data(), end, number);
  return error == std::errc() && rest == end && number >= 0;
}

std::optional<std::string_view> last_header(const Message& message, std::string_view name) {
  std::optional<std::string_view> value;
  for (const Header& header : message.headers())
    if (header.name == name) value = header.value;
  return value;
}

}  // namespace

std::string origin_text(const store::Source& source) {
  return source.group + "/" + source.topic + "/" + std::to_string(source.generation) + "/" +
         std::to_string(source.partition) + "/" + std::to_string(source.offset);
}

std::optional<store::Source> parse_origin(std::string_view text) {
  store::Source source;
  if (!take_number(text, source.offset) || !take_number(text, source.partition) ||
      !take_number(text, source.generation))
    return std::nullopt;
  if (const auto path = text.rfind("//"); source.generation == 0 && path != text.npos && path > 0) {
    source.topic = text.substr(path + 1);  // of a gate's route
    source.group = text.substr(0, path);
    return source;
  }
  const auto topic = take_last(text);
  if (!topic || topic->empty() || text.empty()) return std::nullopt;
  source.topic = *topic;
  source.group = text;
  return source;
}

std::optional<Origin> origin_of(const Message& message) {
  const auto text = last_header(message, "hapax-origin");
  const auto source = text ? parse_origin(*text) : std::nullopt;
  if (!source) return std::nullopt;
  return Origin{*source, std::string(last_header(message, "idempotency-key").value_or(""))};
}

}  // namespace hapax::app
