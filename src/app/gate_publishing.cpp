#include "app/gate_publishing.hpp"

#include <chrono>
#include <utility>

#include "observe/log.hpp"
#include "observe/service_manager.hpp"
#include "store/worker/checkpoints.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {
namespace {

constexpr std::chrono::seconds kMoment{2};
constexpr std::chrono::milliseconds kAskAgain{500};

// Why the database is not the original; empty if it is. hapax sends no records from a copy. The
// decision `copy` removes the records that wait in it.
std::string why_not_original(const config::Config& config) {
  try {
    store::Session session(worker::connect_options(config));
    if (!store::read_store(session).copied) return "";
    return "the database is a copy (store_copied): decide with `hapax resume`";
  } catch (const store::DatabaseError& error) {
    return std::string("PostgreSQL does not answer: ") + error.what();
  }
}

}  // namespace

GatePublishing::GatePublishing(const config::Config& config, gate::Status& status,
                               observe::Metrics& metrics)
    : config_(config), status_(status), metrics_(metrics) {
  if (config.publish.topics.empty()) return;
  status.kafka_missing("Kafka has not answered yet");
  publishing_ = std::make_shared<flow::Publishing>();
  std::packaged_task<void()> look([this] { look_for_topics(); });
  std::packaged_task<void()> begin([this] { begin_once_original(); });
  looked_ = look.get_future();
  begun_ = begin.get_future();
  thread_ = std::jthread([look = std::move(look), begin = std::move(begin)]() mutable {
    look();
    begin();
  });
}

GatePublishing::~GatePublishing() { stop_ = 1; }

void GatePublishing::await_a_moment() {
  if (!looked_.valid()) return;
  if (!config_.kafka.wait_for_topics) looked_.wait();
  looked_.wait_for(kMoment);
  check();
}

void GatePublishing::check() {
  for (std::future<void>* const step : {&looked_, &begun_})
    if (step->valid() && step->wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      step->get();
}

void GatePublishing::missing(const std::string& why) {
  waited_ = true;
  status_.kafka_missing(why);
}

void GatePublishing::look_for_topics() {
  const auto found = look_up_publishing(
      config_, {.missing = [this](const std::string& why) { missing(why); }}, stop_);
  if (found) publishing_->topics = found->topics;
}

// Waits as long as it takes. A gate waits for PostgreSQL in any case, so this ends no gate, even if
// wait_for_topics is off.
void GatePublishing::begin_once_original() {
  if (publishing_->topics.empty()) return;
  std::string said;
  for (std::string why; stop_ == 0 && !(why = why_not_original(config_)).empty(); said = why) {
    if (why != said)
      observe::log::warning("waiting_for_original", {{"error", why}},
                            "what publishes is answered 503 until then");
    missing(why);
    std::this_thread::sleep_for(kAskAgain);
  }
  if (stop_ != 0) return;
  relay_.emplace(config_, publishing_.get(), metrics_);
  publishing_->committed = [this] { relay_->relay().nudge(); };
  status_.kafka_found();
  if (!waited_) return;
  observe::log::info("kafka_found", {}, "routes may publish; all of them take requests");
  observe::service_manager::ready("the gate takes requests");
}

}  // namespace hapax::app
