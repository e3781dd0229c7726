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

// Empty: it is the original. What a copy publishes is never sent, and the decision `copy` removes
// it.
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
  std::packaged_task<void()> task([this] { look(); });
  looked_ = task.get_future();
  thread_ = std::jthread(std::move(task));
}

GatePublishing::~GatePublishing() { stop_ = 1; }

void GatePublishing::await_a_moment() {
  if (!looked_.valid()) return;
  if (!config_.kafka.wait_for_topics) looked_.wait();
  looked_.wait_for(kMoment);
  check();
}

void GatePublishing::check() {
  using std::chrono::seconds;
  if (looked_.valid() && looked_.wait_for(seconds(0)) == std::future_status::ready) looked_.get();
}

void GatePublishing::look() {
  bool waited = false;
  const auto missing = [&](const std::string& why) {
    waited = true;
    status_.kafka_missing(why);
  };
  const auto found = look_up_publishing(config_, {.missing = missing}, stop_);
  if (!found) return;
  for (std::string why; !(why = why_not_original(config_)).empty();) {
    if (!config_.kafka.wait_for_topics) throw Stop(kUnreachable, why);
    missing(why);
    std::this_thread::sleep_for(kAskAgain);
    if (stop_ != 0) return;
  }
  publishing_->topics = found->topics;
  relay_.emplace(config_, publishing_.get(), metrics_);
  publishing_->committed = [this] { relay_->relay().nudge(); };
  status_.kafka_found();
  if (!waited) return;
  observe::log::info("kafka_found", {}, "routes may publish; all of them take requests");
  observe::service_manager::ready("the gate takes requests");
}

}  // namespace hapax::app
