#include "flow/stored_response.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "key/key_source.hpp"
#include "key/sha256.hpp"
#include "store/quote.hpp"

namespace hapax::flow {
namespace {

using nlohmann::json;

constexpr const char* kMember = "hapax:response";

constexpr std::array<std::string_view, 6> kReplayed{
    "content-type", "location", "content-location", "etag", "last-modified", "link"};

// Only the gate sets these headers. They tell how the answer is sent, or that it is a replay.
constexpr std::array<std::string_view, 13> kGates{"connection",
                                                  "content-length",
                                                  "date",
                                                  "idempotency-key-expires",
                                                  "idempotency-key-lifetime",
                                                  "idempotent-replayed",
                                                  "keep-alive",
                                                  "proxy-connection",
                                                  "server",
                                                  "te",
                                                  "trailer",
                                                  "transfer-encoding",
                                                  "upgrade"};

// Clients and proxies refuse more than that.
constexpr std::size_t kMaxHeaders = 100;
constexpr std::size_t kMaxHeaderBytes = 8 << 10;       // of one name or value
constexpr std::size_t kMaxHeadersBytes = 32UL << 10U;  // of all

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), key::lower_case);
  return text;
}

bool is_token(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_value(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c == '\t' || (c >= 0x20 && c <= 0x7E); });
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument("respond: " + why); }

// An error does not quote the whole value, because the handler may have taken it from the message.
void check_header(const std::string& name, const std::string& value) {
  if (name.size() > kMaxHeaderBytes || value.size() > kMaxHeaderBytes)
    refuse("a header has more than " + std::to_string(kMaxHeaderBytes) + " bytes");
  if (!is_token(name)) refuse("a header's name is empty or cannot be sent");
  if (!is_value(value)) refuse("the value of header " + name + " cannot be sent");
  if (std::ranges::find(kGates, lower(name)) != kGates.end())
    refuse("the header " + name + " is the gate's own");
}

}  // namespace

void check(const Response& response) {
  if (response.status < 200 || response.status > 499)
    refuse("the status is " + std::to_string(response.status) +
           ", and only 200 to 499 are stored; throw an exception for what shall be tried again");
  const bool bare = response.status == 204 || response.status == 205 || response.status == 304;
  if (bare && !response.body.empty())
    refuse("an answer of status " + std::to_string(response.status) + " has no body");
  if (response.headers.size() > kMaxHeaders)
    refuse("there are more than " + std::to_string(kMaxHeaders) + " headers");
  std::size_t bytes = 0;
  for (const auto& [name, value] : response.headers) {
    check_header(name, value);
    bytes += name.size() + value.size();
  }
  if (bytes > kMaxHeadersBytes)
    refuse("the headers have more than " + std::to_string(kMaxHeadersBytes) + " bytes");
}

bool is_replayed(std::string_view header) {
  return std::ranges::find(kReplayed, lower(header)) != kReplayed.end();
}

std::string stored_text(const Response& response) {
  json headers = json::array();
  for (const auto& [name, value] : response.headers)
    if (is_replayed(name)) headers.push_back({name, value});
  json answer{{"status", response.status}, {"headers", std::move(headers)}};
  try {
    answer["body"] = response.body;
    return json{{kMember, answer}}.dump();
  } catch (const json::type_error&) {  // not UTF-8
    answer.erase("body");
    answer["body_hex"] = key::hex(response.body);
    return json{{kMember, std::move(answer)}}.dump();
  }
}

bool is_stored_response(const std::string& json_text) {
  if (json_text.find(kMember) == std::string::npos) return false;
  const json parsed = json::parse(json_text, nullptr, false);
  return parsed.is_object() && parsed.contains(kMember);
}

std::optional<Response> response_of(const std::string& json_text) {
  if (!is_stored_response(json_text)) return std::nullopt;
  try {
    const json answer = json::parse(json_text).at(kMember);
    Response response{.status = answer.at("status").get<int>()};
    response.headers = answer.at("headers").get<decltype(response.headers)>();
    response.body = answer.contains("body")
                        ? answer.at("body").get<std::string>()
                        : store::bytes_of_hex(answer.at("body_hex").get<std::string>());
    return response;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool is_acceptance(const Response& response) {
  return response.status == 202 && std::ranges::any_of(response.headers, [](const auto& header) {
           return header.first == "Location" && header.second.starts_with(kOperations);
         });
}

Response answer_of(const std::optional<std::string>& result) {
  if (!result) return {.status = 204};
  if (auto response = response_of(*result)) return *std::move(response);
  return {200, {{"Content-Type", "application/json"}}, *result};
}

}  // namespace hapax::flow
