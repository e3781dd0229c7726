#include "traces/context.hpp"

#include <algorithm>
#include <span>

namespace hapax::traces {
namespace {

constexpr std::size_t kLength = 55;  // of version 00: 00-<32>-<16>-<2>
constexpr std::size_t kMostState = 512;
constexpr std::ptrdiff_t kMostMembers = 32;
constexpr std::size_t kMostOfAKey = 256;
constexpr std::size_t kMostOfAValue = 256;

// -1 if it is no lower-case hex digit.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

void append_hex(std::string& text, std::span<const std::uint8_t> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
}

template <std::size_t kSize>
bool is_zero(const std::array<std::uint8_t, kSize>& id) {
  return std::ranges::all_of(id, [](std::uint8_t byte) { return byte == 0; });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_key(std::string_view key) {
  const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !key.empty() && key.size() <= kMostOfAKey && is_lower(key.front()) &&
         std::ranges::count(key, '@') <= 1 && key.back() != '@' &&
         std::ranges::all_of(key, [&](char c) {
           return is_lower(c) || std::string_view("_-*/@").find(c) != std::string_view::npos;
         });
}

bool is_value(std::string_view value) {
  return !value.empty() && value.size() <= kMostOfAValue && std::ranges::all_of(value, [](char c) {
    return c >= ' ' && c <= '~' && c != ',' && c != '=';
  });
}

bool is_tracestate(std::string_view text) {
  if (text.size() > kMostState || std::ranges::count(text, ',') >= kMostMembers) return false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view member = trimmed(text.substr(begin, end - begin));
    const std::size_t equals = member.find('=');
    if (!member.empty() && (equals == std::string_view::npos || !is_key(member.substr(0, equals)) ||
                            !is_value(member.substr(equals + 1))))
      return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::optional<SpanContext> parse_traceparent(std::string_view text) {
  std::array<std::uint8_t, 1> version{}, flags{};
  SpanContext context;
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
      !read_hex(text, version) || version[0] == 0xFF)
    return std::nullopt;
  const bool is_later = version[0] != 0;
  if (text.size() > kLength && (!is_later || text[kLength] != '-')) return std::nullopt;
  if (!read_hex(text.substr(3), context.trace_id) || !read_hex(text.substr(36), context.span_id) ||
      !read_hex(text.substr(53), flags) || is_zero(context.trace_id) || is_zero(context.span_id))
    return std::nullopt;
  context.flags = is_later ? flags[0] & 1U : flags[0];
  return context;
}

std::optional<SpanContext> producer_of(std::span<const Header> headers) {
  const Header* found = nullptr;
  for (const Header& header : headers) {
    if (header.name != kTraceparent) continue;
    if (found != nullptr) return std::nullopt;
    found = &header;
  }
  if (found == nullptr || !found->value) return std::nullopt;
  return parse_traceparent(*found->value);
}

std::string tracestate_of(std::span<const Header> headers) {
  std::string state;
  for (const Header& header : headers) {
    if (header.name != kTracestate) continue;
    const std::string_view value = trimmed(header.value.value_or(""));
    if (value.size() > kMostState || state.size() > kMostState) return "";
    if (!state.empty() && !value.empty()) state += ',';
    state += value;
  }
  return is_tracestate(state) ? state : "";
}

std::string traceparent_text(const SpanContext& context) {
  std::string text = "00-";
  text.reserve(kLength);
  append_hex(text, context.trace_id);
  text += '-';
  append_hex(text, context.span_id);
  text += '-';
  append_hex(text, std::array{context.flags});
  return text;
}

std::string hex(const TraceId& id) {
  std::string text;
  append_hex(text, id);
  return text;
}

std::string hex(const SpanId& id) {
  std::string text;
  append_hex(text, id);
  return text;
}

}  // namespace hapax::traces
