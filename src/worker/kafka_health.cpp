#include "worker/kafka_health.hpp"

#include <exception>
#include <utility>

#include "config/file_text.hpp"
#include "observe/log.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

// The poll thread waits so long, while it has nothing else to do.
constexpr std::chrono::milliseconds kProbeTimeout{50};

void read_files(const config::Kafka& settings, std::map<std::string, std::string>& properties) {
  for (const auto& [name, path] : settings.files) {
    const auto file = config::read_value(path);
    if (const auto* text = std::get_if<config::FileText>(&file)) properties[name] = text->text;
  }
}

}  // namespace

kafka::Properties current_properties(const config::Kafka& settings) {
  kafka::Properties now = settings.properties;
  read_files(settings, now);
  return now;
}

KafkaHealth::KafkaHealth(const config::Kafka& settings, std::string topic,
                         kafka::ConsumerInterface& consumer, observe::Health& health)
    : settings_(settings), topic_(std::move(topic)), consumer_(consumer), health_(health) {}

void KafkaHealth::failed(const kafka::ClientError& error) {
  if (error.fatal) {
    log::error("kafka_fatal", {{"error", error.name}}, error.text);
    health_.fatal("Kafka: " + error.text);
    is_fatal_ = true;
    return;
  }
  in_doubt_ = true;
  if (error.may_pass) {
    last_error_ = error.text;
    unlogged_ = error;
    return;
  }
  // Each attempt to connect fails with the same text. "All brokers are down" follows from these.
  if (error.text == last_error_) return;
  log::warning("kafka_error", {{"error", error.name}}, error.text);
  if (error.name != "_ALL_BROKERS_DOWN" || last_error_.empty()) last_error_ = error.text;
}

void KafkaHealth::refused_by_group(const std::string& why) {
  if (refusals_.is_due(why, std::chrono::steady_clock::now()))
    log::warning(
        "group_refused", {{"error", why}},
        "Kafka does not let the user of kafka.* into the group (READ on it); it goes on by "
        "itself once it does");
  health_.refused_by_group(why);
}

void KafkaHealth::does_not_answer() { health_.kafka_reachable(false, last_error_); }

bool KafkaHealth::broker_answers() const {
  try {
    (void)consumer_.partition_count(topic_, kProbeTimeout);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// librdkafka does not report that a broker is back. Nor does it always report that all are down,
// because 2.0.2 does not count its GroupCoordinator. So after any error hapax asks it.
void KafkaHealth::turn() {
  if (!in_doubt_) return;
  renew_credentials();
  const bool answers = broker_answers();
  if (answers) {
    in_doubt_ = false;
    last_error_.clear();
  } else if (unlogged_) {
    log::warning("kafka_error", {{"error", unlogged_->name}}, unlogged_->text);
  }
  unlogged_.reset();
  if (answers != is_down_) return;
  is_down_ = !answers;
  health_.kafka_reachable(answers, last_error_);
  if (answers) {
    log::info("kafka_up", {}, "a broker answers again");
  } else {
    log::warning("kafka_down", {}, "no broker answers; it goes on by itself");
  }
}

// If a file cannot be read, it may be about to be replaced, so the last value stays.
void KafkaHealth::renew_credentials() {
  const auto& properties = settings_.properties;
  std::map<std::string, std::string> now = credentials_;
  for (const char* const name : {"sasl.username", "sasl.password"}) {
    const auto configured = properties.find(name);
    if (configured != properties.end()) now.try_emplace(name, configured->second);
  }
  if (credentials_.empty()) credentials_ = now;
  read_files(settings_, now);
  if (now == credentials_) return;
  try {
    consumer_.set_credentials(now["sasl.username"], now["sasl.password"]);
  } catch (const std::exception& error) {
    log::warning(
        "kafka_credentials", {{"error", error.what()}},
        "sasl.username or sasl.password has changed, and librdkafka refuses the new value; "
        "trying again after the next error of Kafka's");
    return;
  }
  credentials_ = now;
  log::info("kafka_credentials", {}, "sasl.username and sasl.password were read again");
}

}  // namespace hapax::worker
