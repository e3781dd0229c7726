#include "gate/gate.hpp"

#include <unistd.h>

#include <random>

#include "gate/problem.hpp"

namespace hapax::gate {
namespace {

std::string outbox_group(const config::Config& config) {
  const auto group = config.kafka.properties.find("group.id");
  return group == config.kafka.properties.end() ? "" : group->second;
}

// A request is a child of its client's span in any case, so there is no choice of a parent.
std::optional<traces::Tracer> tracer_of(const config::GateConfig& config,
                                        observe::Metrics& metrics) {
  if (!config.base.traces.endpoint) return std::nullopt;
  return std::optional<traces::Tracer>(
      std::in_place,
      traces::Tracer::Setup{
          .target = *config.base.traces.endpoint,
          .resource = {.group = config.gate.name,
                       .instance = config.gate.name + " " + std::to_string(getpid())},
          .ratio = config.base.traces.ratio},
      metrics);
}

// With fewer lanes one of them would be too much to keep.
constexpr std::size_t kLanesToKeepOne = 4;

}  // namespace

Gate::Gate(const config::GateConfig& config, std::vector<flow::Route> routes,
           std::function<store::Session()> connect, Status& status, observe::Metrics& metrics,
           const Operations* operations, Tls* tls)
    : config_(config),
      routes_(std::move(routes)),
      connect_(std::move(connect)),
      status_(status),
      metrics_(metrics),
      tls_(tls),
      tracer_(tracer_of(config, metrics)),
      callers_(config.gate.callers, tls != nullptr && !config.gate.tls.client_ca.empty()),
      admission_(config.gate, callers_, status),
      executor_setup_{.connect = connect_,
                      .name = config.gate.name,
                      .routes = routes_,
                      .callers = callers_,
                      .status = status,
                      .wait = config.gate.wait,
                      .log_error_text = config.base.log.error_text,
                      .operations = operations,
                      .outbox_group = outbox_group(config.base),
                      .lanes = config.gate.lanes,
                      .batch_time = config.gate.batch_time},
      desk_(config.gate.queue, config.gate.wait, config.gate.lanes >= kLanesToKeepOne) {
  for (std::size_t lane = 0; lane < config.gate.lanes; ++lane) {
    Handlers& handlers = handlers_.emplace_back();
    for (std::size_t i = 0; i < routes_.size(); ++i)
      handlers.push_back(flow::start_handler(routes_[i], config.base.routes[i].options));
  }
}

Gate::~Gate() {
  desk_.stop();
  watch_.reset();
  lanes_.clear();
}

void Gate::start() {
  std::random_device random;
  for (Handlers& handlers : handlers_)
    lanes_.push_back(
        std::make_unique<Lane>(executor_setup_, desk_, metrics_, std::move(handlers),
                               (std::uint64_t{random()} << 32U) | std::uint64_t{random()}));
  metrics_.lanes(lanes_.size());
  std::vector<HandlerTime*> times;
  for (const auto& lane : lanes_) times.push_back(&lane->handler_time());
  probe_ = std::make_unique<PostgresProbe>(connect_);
  watch_ = std::make_unique<HandlerWatch>(HandlerWatchSetup{config_.gate, routes_, desk_, metrics_,
                                                            *probe_, status_, std::move(times)});
  const std::string holder = "gate " + config_.gate.name + " " + std::to_string(getpid());
  // No partition holds a gate's keys, so they are removed when they have expired.
  retention_ = std::make_unique<worker::Retention>(worker::RetentionSetup{
      connect_, config_.gate.name, holder, [] { return store::HeldLogs(); },
      [](const auto&) { return std::map<store::TopicPartition, std::int64_t>(); }, metrics_});
  if (executor_setup_.operations != nullptr)
    outcomes_ = std::make_unique<Outcomes>(
        OutcomesSetup{connect_, config_.gate.scope + "/" + config_.gate.name,
                      holder + " " + std::to_string(random()), *executor_setup_.operations});
  server_ = std::make_unique<Server>(ServerSetup{config_.gate, admission_, desk_, status_, metrics_,
                                                 tls_, tracer_ ? &*tracer_ : nullptr});
  reload_ = std::make_unique<Reload>(config_.gate.looks_at_files, [this] {
    callers_.look();
    if (tls_ != nullptr) tls_->look();
  });
  status_.started();
}

bool Gate::drain() {
  status_.drain();
  if (hangs()) {
    desk_.stop();
    desk_.give_up_all(unavailable("The gate ends. Try again with the same key."));
  }
  const bool answered = server_->drain(config_.gate.shutdown_timeout);
  return answered && watch_->lost() == 0;
}

}  // namespace hapax::gate
