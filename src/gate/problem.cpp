#include "gate/problem.hpp"

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "gate/request_message.hpp"

namespace hapax::gate {
namespace {

constexpr std::size_t kMaxDetail = 4096;  // of a Reject's words

}  // namespace

Answer problem(int status, const std::string& type, const std::string& title,
               const std::string& detail, observe::Answered how,
               std::optional<std::chrono::seconds> retry_after) {
  const nlohmann::ordered_json body{
      {"type", "urn:hapax:gate:" + type}, {"title", title}, {"status", status}, {"detail", detail}};
  Answer answer{{.status = status}, how};
  answer.response.headers = {{"Content-Type", "application/problem+json"}};
  if (retry_after)
    answer.response.headers.emplace_back("Retry-After", std::to_string(retry_after->count()));
  answer.response.body =
      body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return answer;
}

Answer refused(int status, const std::string& type, const std::string& title,
               const std::string& detail) {
  return problem(status, type, title, detail, observe::Answered::refused);
}

Answer unavailable(const std::string& detail, std::chrono::seconds retry_after) {
  return problem(503, "unavailable", "Not now", detail, observe::Answered::unavailable,
                 retry_after);
}

Answer rejected(const std::string& words) {
  return problem(422, "rejected", "The request was refused", words.substr(0, kMaxDetail),
                 observe::Answered::rejected);
}

Answer in_flight() {
  return problem(409, "in-flight", "The request is being executed",
                 "Another request with this key has not ended. Try again with the same key.",
                 observe::Answered::in_flight, std::chrono::seconds(1));
}

Answer drifted() {
  return problem(422, "key-reused", "The key belongs to another request",
                 std::string("This key was used before, and the request differs in its method, "
                             "path, query, content type or body (rule ") +
                     kFingerprintRule +
                     "; a JSON body may differ in blanks and in the order of members). Use a new "
                     "key for a new request.",
                 observe::Answered::drifted);
}

std::string http_date(std::chrono::sys_seconds when) {
  static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = when.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays.at(static_cast<std::size_t>(parts.tm_wday)), parts.tm_mday,
                kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_year + 1900,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text.data();
}

}  // namespace hapax::gate
