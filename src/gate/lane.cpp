#include "gate/lane.hpp"

#include <optional>
#include <utility>

#include "observe/log.hpp"

namespace hapax::gate {
namespace {

constexpr std::chrono::milliseconds kLook{500};  // while PostgreSQL is away

}  // namespace

Lane::Lane(const ExecutorSetup& setup, Desk& desk, observe::Metrics& metrics,
           std::vector<std::unique_ptr<Handler>> handlers, std::uint64_t seed)
    : status_(setup.status),
      desk_(desk),
      metrics_(metrics),
      handlers_(std::move(handlers)),
      executor_(setup, seed),
      thread_([this] { run(); }) {}

void Lane::run() {
  executor_.look();
  for (;;) {
    const auto ticket = following_ ? std::exchange(following_, nullptr) : desk_.take(kLook);
    if (!ticket) {
      if (desk_.is_stopped()) return;
      if (status_.is_postgres_down()) executor_.look();
      continue;
    }
    metrics_.lane_became_busy();
    serve(ticket);
    metrics_.lane_became_free();
  }
}

void Lane::serve(const std::shared_ptr<Ticket>& ticket) {
  HandlerTime& time = executor_.handler_time();
  time.serve(ticket);
  const Next next{
      .take = [this]() -> std::optional<Following> {
        if (!following_) following_ = desk_.take({});
        if (!following_) return std::nullopt;
        return Following{&following_->request, handlers_[following_->request.route].get()};
      },
      .put_back =
          [this] {
            if (following_) desk_.put_back(std::exchange(following_, nullptr));
          }};
  Executed executed = executor_.execute(ticket->request, *handlers_[ticket->request.route], next);
  if (time.done()) return desk_.finish(ticket, std::move(executed));
  observe::log::info("handler_came_back", {},
                     "a handler came back after gate.handler_timeout; what it did is rolled back, "
                     "and its lane takes requests again");
}

}  // namespace hapax::gate
