#include "console/console.hpp"

#include <algorithm>
#include <string_view>

#include "cli/command.hpp"
#include "console/orders.hpp"
#include "console/views.hpp"
#include "console_page.hpp"
#include "observe/escape.hpp"
#include "store/operator/operator.hpp"

namespace hapax::console {
namespace {

using app::Json;
using observe::PageAnswer;
using observe::PageRequest;

struct Endpoint {
  const char* method;
  const char* path;
  Json (*answer)(Ground&, const PageRequest&);
};

constexpr Endpoint kEndpoints[] = {
    {"GET", "/api/overview", overview},
    {"GET", "/api/partition", partition},
    {"GET", "/api/letters", letters},
    {"GET", "/api/letter", letter},
    {"GET", "/api/replays", replays},
    {"GET", "/api/log", operator_log},
    {"GET", "/api/explain", explanation},
    {"GET", "/api/keys", keys},
    {"GET", "/api/outbox", outbox},
    {"GET", "/api/record", outbox_record},
    {"GET", "/api/outside", outside_calls},
    {"GET", "/api/audit", audit},
    {"GET", "/api/matching", matching},
    {"POST", "/api/resume", resume},
    {"POST", "/api/replay", replay},
    {"POST", "/api/cancel", cancel},
    {"POST", "/api/discard", discard},
    {"POST", "/api/outbox/retry", outbox_retry},
    {"POST", "/api/outbox/skip", outbox_skip},
    {"POST", "/api/decide", decide},
};

PageAnswer json_answer_of(int status, const Json& body) {
  return {status, "application/json",
          body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

PageAnswer failed(int status, const std::string& sentence) {
  return json_answer_of(status, {{"error", observe::to_valid_utf8(sentence)}});
}

int status_of(app::ExitCode code, bool post) {
  switch (code) {
    case app::kUsage: return 400;
    case app::kFailed: return post ? 409 : 404;
    case app::kUnreachable: return 503;
    default: return 500;
  }
}

PageAnswer file_answer(std::string_view path) {
  const std::string_view wanted = path == "/" ? "/index.html" : path;
  const auto* const file =
      std::ranges::find_if(kPage, [&](const PageFile& page) { return wanted == page.path; });
  if (file == std::end(kPage)) return failed(404, "there is no such page");
  const char* const type = wanted.ends_with(".css")  ? "text/css; charset=utf-8"
                           : wanted.ends_with(".js") ? "text/javascript; charset=utf-8"
                                                     : "text/html; charset=utf-8";
  return {200, type, file->text};
}

PageAnswer api_answer(Ground& ground, const PageRequest& request) {
  const bool post = request.method == "POST";
  if (request.path == "/api/payload" && !post) return payload(ground, request);
  const auto* const endpoint = std::ranges::find_if(kEndpoints, [&](const Endpoint& known) {
    return request.path == known.path && post == (std::string_view(known.method) == "POST");
  });
  if (endpoint == std::end(kEndpoints)) return failed(404, "there is no such answer");
  return json_answer_of(200, endpoint->answer(ground, request));
}

// In the sentences of the commands.
PageAnswer api_answer_or_error(Ground& ground, const PageRequest& request) {
  try {
    return api_answer(ground, request);
  } catch (const app::Stop& stop) {
    return failed(status_of(stop.code(), request.method == "POST"), stop.what());
  } catch (const store::Refused& refused) {
    return failed(409, refused.what());
  } catch (const store::DatabaseError& error) {
    if (error.fault().kind == store::Fault::Kind::in_doubt)
      return failed(503,
                    "The connection was lost at COMMIT, so the order may have been carried "
                    "out. Look again before you repeat it.");
    const bool answered = error.fault().kind == store::Fault::Kind::sql;
    return failed(answered ? 500 : 503, std::string("PostgreSQL: ") + error.what());
  } catch (const std::exception& error) {
    return failed(500, error.what());
  }
}

}  // namespace

Console::Console(ConsoleSetup setup)
    : host_(setup.host),
      token_(Access::random_token()),
      access_(token_),
      sessions_(setup.config, setup.url),
      kafka_(std::move(setup.ask_kafka)),
      ground_{std::move(setup.config_path), std::move(setup.who), sessions_, kafka_},
      server_(setup.host, setup.port,
              [this](const PageRequest& request) { return answer(request); }) {}

std::string Console::address() const {
  const bool ipv6 = host_.find(':') != std::string::npos;
  return (ipv6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(port());
}

std::string Console::url() const { return "http://" + address() + "/#token=" + token_; }

PageAnswer Console::answer(const PageRequest& request) {
  PageAnswer made;
  if (auto refused = access_.refusal(request))
    made = std::move(*refused);
  else if (request.path.starts_with("/api/"))
    made = api_answer_or_error(ground_, request);
  else
    made = request.method == "POST" ? failed(404, "there is no such order")
                                    : file_answer(request.path);
  Access::add_headers(made);
  return made;
}

}  // namespace hapax::console
