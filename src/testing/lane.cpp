#include "testing/lane.hpp"

#include <algorithm>

#include "payload/reader.hpp"
#include "store/testing/test_database.hpp"

namespace hapax::testing {
namespace {

std::unique_ptr<Handler> make_handler(const TestedRoute& route, Probe& probe) {
  if (route.route.outside)
    return probed(flow::start_outside_handler(route.route, route.options), probe);
  return probed(flow::start_handler(route.route, route.options), probe);
}

store::ConnectOptions options_of(const TestedRoute& route, std::string url) {
  store::ConnectOptions options = route.connect;
  options.url = std::move(url);
  return options;
}

Result public_result(flow::Result result) {
  switch (result) {
    case flow::Result::completed: return Result::completed;
    case flow::Result::duplicate: return Result::duplicate;
    case flow::Result::failed: return Result::failed;
    case flow::Result::skipped: return Result::skipped;
    default: return flow::is_halt(result) ? Result::halted : Result::waiting;
  }
}

// In a test the role has the rights of routes[].tables, and PostgreSQL's words do not tell which
// right a statement lacked.
std::string with_rights(std::string detail, const store::TableRights& rights) {
  constexpr std::string_view kDenied = "permission denied for table ";
  const std::size_t at = detail.find(kDenied);
  if (at == std::string::npos || rights.empty()) return detail;
  const std::size_t begin = at + kDenied.size();
  const std::string name = detail.substr(begin, detail.find_first_of(" \n", begin) - begin);
  const auto declared = std::ranges::find_if(rights, [&](const auto& one) {
    return one.first == name || one.first.ends_with("." + name);
  });
  const std::string granted = declared == rights.end() ? "none" : joined(declared->second);
  detail.erase(detail.find_last_not_of(" \n") + 1);
  return detail + ". In this test the role has only the rights of routes[].tables, on " + name +
         " " + granted +
         ". A statement that reads its rows needs SELECT, too, such as ON CONFLICT … DO UPDATE or "
         "UPDATE … WHERE";
}

}  // namespace

Views::Views(const TestedRoute& route, const Delivery& delivery) {
  const Record& record = delivery.record;
  for (const auto& [name, value] : record.headers) headers.push_back({name, value});
  parts.coordinates = {route.route.topic, record.partition, delivery.offset};
  parts.timestamp_ms = record.timestamp_ms.value_or(-1);
  parts.timestamp_type = record.timestamp_ms ? record.timestamp_type : TimestampType::none;
  parts.key = record.key;
  parts.payload = record.payload;
  parts.headers = headers;
}

Lane::Lane(const TestedRoute& route, std::string url,
           std::function<void(std::chrono::milliseconds)> pass_time,
           std::function<void()> wait_for_others)
    : route_(route),
      pass_time_(std::move(pass_time)),
      wait_for_others_(std::move(wait_for_others)),
      handler_(make_handler(route, probe_)),
      processor_(
          [this, options = options_of(route, url)] {
            store::Session session(options);
            session.serve_handlers();
            new_session_ = store::session_state(session);
            return session;
          },
          1, {}, [this](store::Session& session) { look_for_leaks(session); }) {
  if (route.route.outside)
    caller_ = std::make_unique<Caller>(
        route, [options = options_of(route, std::move(url))] { return store::Session(options); });
}

void Lane::look_for_leaks(store::Session& session) {
  for (const std::string& line : store::session_state(session))
    if (!std::ranges::count(new_session_, line) && !std::ranges::count(leaks_, line))
      leaks_.push_back(line);
}

Outcome Lane::run(const Delivery& delivery, const std::optional<Fault>& fault, bool once) {
  probe_.arm(fault);
  const Views views(route_, delivery);
  const Message original(views.parts);
  const auto read = payload::read_message(route_.route.payload.get(), original);
  const Message& message = read ? read->message : original;
  const std::string group = kGroup;
  flow::Task task{.route = route_.route, .message = message, .group = group};
  task.reading = read ? &read->reading : nullptr;
  task.attempts = delivery.attempts;
  task.failing = delivery.failing;
  // No partition starts here that could tell what is settled: PostgreSQL is asked.
  task.in_doubt = key::is_by_position(route_.route.key);
  const int runs_before = probe_.runs();
  const int calls_before = caller_ ? caller_->calls() : 0;
  flow::Answered answered;
  Outcome outcome;
  for (int i = 0; i < kMaxRuns; ++i) {
    flow::Outcome one = processor_.process(task, *handler_);
    if (one.to_call) {
      task.answered = nullptr;
      auto ended = caller_->call(task, answered);
      if (!ended) {
        task.answered = &answered;
        continue;
      }
      one = std::move(*ended);
    }
    outcome.result = public_result(one.result);
    outcome.reason = std::move(one.reason);
    outcome.detail = std::move(one.detail);
    outcome.sqlstate = std::move(one.sqlstate);
    if (outcome.sqlstate == "42501")
      outcome.detail = with_rights(std::move(outcome.detail), route_.rights);
    outcome.attempts = task.attempts = std::max(task.attempts, one.attempts);
    if (outcome.result != Result::waiting) break;
    outcome.waited += one.wait;
    if (once) break;
    if (one.to_call) wait_for_others_();
    if (one.lost_in_handler) ++task.outages;
    task.agains = one.result == flow::Result::again ? task.agains + 1 : 0;
    if (one.result == flow::Result::retry) {
      task.outages = std::min(task.outages, flow::kMaxOutages - 1);
      pass_time_(one.wait);
    }
  }
  outcome.runs = probe_.runs() - runs_before;
  outcome.calls = caller_ ? caller_->calls() - calls_before : 0;
  return outcome;
}

}  // namespace hapax::testing
