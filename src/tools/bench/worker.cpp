#include "tools/bench/worker.hpp"

#include <cstdlib>

#include "cli/version.hpp"
#include "tools/bench/messages.hpp"

namespace hapax::app {
namespace {

config::Config config_of(const BenchWork& work) {
  config::Config config = work.config;
  config::Route route;
  route.topic = work.topic;
  route.handler = work.handler.name;
  config.routes = {route};
  return config;
}

flow::Route route_of(const BenchWork& work) {
  flow::Route route;
  route.topic = work.topic;
  route.key.scope = work.scope;
  route.key.sources = {{key::Source::Kind::header, {kBenchHeader}, false}};
  if (work.by_position) route.key.sources = {{key::Source::Kind::position, {}, false}};
  route.handler = work.handler;
  route.retention = std::chrono::hours(168);
  route.max_result_bytes = config::Route{}.max_result_bytes;
  route.batch = work.batch;
  return route;
}

}  // namespace

BenchWorker::BenchWorker(BenchWork work, std::function<void(const Message&)> settled)
    : config_(config_of(work)), metrics_(versions()) {
  try {
    worker_ = std::make_unique<worker::Worker>(config_, std::vector<flow::Route>{route_of(work)},
                                               health_, metrics_, std::move(settled));
  } catch (const std::exception& error) {
    throw Stop(kConfigWrong, error.what());
  }
  thread_ = std::thread([this] { run(); });
}

void BenchWorker::run() {
  try {
    switch (worker_->run(stop_)) {
      case worker::Ended::stopped: break;
      case worker::Ended::handlers_run:
      case worker::Ended::gave_up_waiting: why_ = "it could not leave in time"; break;
      case worker::Ended::handler_hangs: why_ = "PostgreSQL did not answer for too long"; break;
      case worker::Ended::fatal: why_ = "the consumer cannot go on; see the log above"; break;
    }
  } catch (const std::exception& error) {
    why_ = error.what();
  }
  ended_ = true;
}

BenchWorker::~BenchWorker() {
  stop_ = 1;
  thread_.join();
}

void BenchWorker::expect_running() const {
  if (ended_) throw Stop(kFailed, "the worker has ended by itself: " + why_);
}

}  // namespace hapax::app
