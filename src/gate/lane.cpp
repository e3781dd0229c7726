#include "gate/lane.hpp"

#include <optional>
#include <utility>

#include "observe/log.hpp"

namespace hapax::gate {
namespace {

constexpr std::chrono::milliseconds kLook{500};  // while PostgreSQL is away

std::vector<BatchPace> paces_of(const std::vector<flow::Route>& routes) {
  std::vector<BatchPace> paces;
  for (const flow::Route& route : routes) paces.emplace_back(route.batch);
  return paces;
}

}  // namespace

Lane::Lane(const ExecutorSetup& setup, Desk& desk, observe::Metrics& metrics,
           std::vector<std::unique_ptr<Handler>> handlers, std::uint64_t seed)
    : status_(setup.status),
      desk_(desk),
      metrics_(metrics),
      handlers_(std::move(handlers)),
      paces_(paces_of(setup.routes)),
      batch_rule_{.lanes = setup.lanes,
                  .most =
                      [this, seen = setup.seen.get()](const Request& request) {
                        const bool shares = request.is_guarded() && !request.runs_alone &&
                                            !seen->has(SeenKeys::hash_of(request));
                        return shares ? paces_[request.route].value() : 1;
                      }},
      executor_(setup, seed),
      thread_([this] { run(); }) {}

void Lane::run() {
  executor_.look();
  for (;;) {
    const Tickets tickets =
        following_ ? Tickets{std::exchange(following_, nullptr)} : desk_.take(kLook, batch_rule_);
    if (tickets.empty()) {
      if (desk_.is_stopped()) return;
      if (status_.is_postgres_down()) executor_.look();
      continue;
    }
    metrics_.lane_became_busy();
    tickets.size() == 1 ? serve(tickets.front()) : serve_batch(tickets);
    metrics_.lane_became_free();
  }
}

void Lane::serve(const std::shared_ptr<Ticket>& ticket) {
  HandlerTime& time = executor_.handler_time();
  time.serve(ticket);
  const Next next{
      .take = [this]() -> std::optional<Following> {
        if (!following_) following_ = take_single();
        if (!following_) return std::nullopt;
        return Following{&following_->request, handlers_[following_->request.route].get()};
      },
      .put_back =
          [this] {
            if (following_) desk_.put_back(std::exchange(following_, nullptr));
          }};
  Executed executed = executor_.execute(ticket->request, *handlers_[ticket->request.route], next);
  const auto own = time.own();
  if (!time.done()) return came_back();
  paces_[ticket->request.route].passed(1, own);
  desk_.finish(ticket, std::move(executed));
}

// Nothing: no ticket waits, or a batch does, which is put back.
std::shared_ptr<Ticket> Lane::take_single() {
  Tickets tickets = desk_.take({}, batch_rule_);
  if (tickets.size() == 1) return tickets.front();
  for (; !tickets.empty(); tickets.pop_back()) desk_.put_back(tickets.back());
  return nullptr;
}

// Requests without an answer afterwards run alone, on any free lane.
void Lane::serve_batch(const Tickets& tickets) {
  HandlerTime& time = executor_.handler_time();
  const std::size_t route = tickets.front()->request.route;
  auto answers = executor_.execute_batch(tickets, *handlers_[route], paces_[route]);
  for (std::size_t i = tickets.size(); i-- > 0;) {
    if (answers[i].is_taken) continue;
    if (answers[i].executed) {
      desk_.finish(tickets[i], *std::move(answers[i].executed));
    } else {
      tickets[i]->request.runs_alone = true;
      desk_.put_back(tickets[i]);
    }
  }
  if (!time.done()) came_back();
}

void Lane::came_back() {
  observe::log::info("handler_came_back", {},
                     "a handler came back after gate.handler_timeout; what it did is rolled back, "
                     "and its lane takes requests again");
}

}  // namespace hapax::gate
