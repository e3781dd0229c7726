#include "observe/request_size.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace hapax::observe {
namespace {

RequestSize refused(const char* status) {
  return {false,
          std::string("HTTP/1.1 ") + status + "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"};
}

bool is_header(std::string_view line, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;  // `name` is in lower case
  };
  return line.size() > name.size() && line[name.size()] == ':' &&
         std::equal(name.begin(), name.end(), line.begin(),
                    [&](char b, char a) { return same(a, b); });
}

std::optional<std::size_t> number_in(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

RequestSize size_of(std::string_view request, std::size_t most_head, std::size_t most_body) {
  const std::size_t end = request.find("\r\n\r\n");
  if (end == std::string_view::npos)
    return request.size() < most_head ? RequestSize{}
                                      : refused("431 Request Header Fields Too Large");
  if (most_body == 0) return {true};
  if (end + 4 > most_head) return refused("431 Request Header Fields Too Large");
  std::optional<std::size_t> body;
  std::string_view head = request.substr(0, end);
  while (!head.empty()) {
    const std::size_t line_end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, line_end);
    head.remove_prefix(std::min(head.size(), line_end + 2));
    if (is_header(line, "transfer-encoding")) return refused("411 Length Required");
    if (!is_header(line, "content-length")) continue;
    const auto number = number_in(line.substr(line.find(':') + 1));
    if (!number || body) return refused("400 Bad Request");
    body = number;
  }
  if (body.value_or(0) > most_body) return refused("413 Content Too Large");
  const std::size_t there = request.size() - end - 4;
  if (there > body.value_or(0)) return refused("400 Bad Request");
  return {there == body.value_or(0)};
}

}  // namespace hapax::observe
