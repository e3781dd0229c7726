#include "support/collector.hpp"

#include <algorithm>
#include <stdexcept>

namespace hapax::support {

using nlohmann::json;

json attribute(const json& of, const std::string& key) {
  for (const json& each : of.value("attributes", json::array()))
    if (each.at("key") == key) return each.at("value").begin().value();
  return nullptr;
}

Collector::Collector() {
  // Not the exporter's interval: or it writes as the connection is closed, and logs a failure more.
  server_.set_keep_alive_timeout(3);
  server_.Post("/v1/traces", [this](const httplib::Request& request, httplib::Response& response) {
    take(request, response);
  });
  port_ = server_.bind_to_any_port("127.0.0.1");
  if (port_ <= 0) throw std::runtime_error("no port for a collector");
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  while (!server_.is_running()) std::this_thread::yield();  // before that, stop() does nothing
}

Collector::~Collector() {
  let_go();
  server_.stop();
  thread_.join();
}

observe::HttpTarget Collector::target() const {
  return {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port_), .path = "/v1/traces"};
}

void Collector::take(const httplib::Request& request, httplib::Response& response) {
  const json body = json::parse(request.body);
  sync::Lock lock(mutex_);
  ++requests_;
  changed_.notify_all();
  changed_.wait(lock.waitable(), [this]() HAPAX_REQUIRES(mutex_) { return !holds_; });
  response.status = status_;
  response.set_content(body_, "application/json");
  if (status_ != 200) return;
  for (const json& of_resource : body.at("resourceSpans")) {
    resource_ = of_resource.at("resource");
    for (const json& of_scope : of_resource.at("scopeSpans"))
      for (const json& span : of_scope.at("spans")) spans_.push_back(span);
  }
  changed_.notify_all();
}

void Collector::answer(int status, const std::string& body) {
  const sync::Lock lock(mutex_);
  status_ = status;
  body_ = body;
}

void Collector::hold() {
  const sync::Lock lock(mutex_);
  holds_ = true;
}

void Collector::let_go() {
  const sync::Lock lock(mutex_);
  holds_ = false;
  changed_.notify_all();
}

std::vector<json> Collector::await(std::size_t count, const std::function<bool(const json&)>& fit,
                                   std::chrono::milliseconds timeout) {
  std::vector<json> fitting;
  const auto look = [&]() HAPAX_REQUIRES(mutex_) {
    fitting.clear();
    std::ranges::copy_if(spans_, std::back_inserter(fitting), fit);
    return fitting.size() >= count;
  };
  sync::Lock lock(mutex_);
  if (!changed_.wait_for(lock.waitable(), timeout, look))
    throw std::runtime_error("the collector has " + std::to_string(fitting.size()) + " of " +
                             std::to_string(count) + " spans; all: " + json(spans_).dump(1));
  return fitting;
}

std::vector<json> Collector::await(std::size_t count, const std::string& name) {
  return await(count, [&](const json& span) { return span.at("name") == name; });
}

void Collector::await_requests(std::size_t count) {
  sync::Lock lock(mutex_);
  if (!changed_.wait_for(lock.waitable(), std::chrono::seconds(60),
                         [&]() HAPAX_REQUIRES(mutex_) { return requests_ >= count; }))
    throw std::runtime_error("the collector was asked " + std::to_string(requests_) + " times");
}

json Collector::resource() {
  const sync::Lock lock(mutex_);
  return resource_;
}

}  // namespace hapax::support
