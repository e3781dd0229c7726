#include "support/gateway.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hapax::support {
namespace {

constexpr std::size_t kThreads = 64;

// The connection ends in the middle of the answer.
void cut(httplib::Response& response) {
  response.set_content_provider(100, "application/json",
                                [](std::size_t, std::size_t, httplib::DataSink&) { return false; });
}

}  // namespace

Gateway::Gateway(bool keeps_keys, int port) : keeps_keys_(keeps_keys) {
  server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server_.Post("/charges",
               [this](const auto& request, auto& response) { charge(request, response); });
  server_.Get(R"(/charges/([0-9a-f]+))",
              [this](const auto& request, auto& response) { tell(request, response); });
  port_ = port != 0 && server_.bind_to_port("127.0.0.1", port)
              ? port
              : server_.bind_to_any_port("127.0.0.1");
  thread_ = std::jthread([this] { server_.listen_after_bind(); });
  while (!server_.is_running()) std::this_thread::yield();
}

Gateway::~Gateway() {
  release();
  server_.stop();
}

void Gateway::charge(const httplib::Request& request, httplib::Response& response) {
  const nlohmann::json payment = nlohmann::json::parse(request.body);
  const std::string id = payment.at("id");
  const std::string key = request.get_header_value("Idempotency-Key");
  std::unique_lock lock(mutex_);
  const bool first = ++calls_[id] == 1;
  changed_.notify_all();
  const std::string told = first ? payment.value("gateway", "") : "";
  const auto watch = watch_;
  const auto watched = [&](bool charged) {
    if (!watch) return;
    lock.unlock();
    watch(id, charged);
    lock.lock();
  };
  std::int64_t& largest = tokens_[key];
  const std::int64_t token = std::stoll(request.get_header_value("Fencing-Token"));
  if (token < largest) {
    response.status = 409;
    return;
  }
  largest = token;
  if (keeps_keys_ && answers_.contains(key)) {
    response.set_content(answers_[key], "application/json");
    return;
  }
  watched(false);
  if (told == "cut_before") return cut(response);
  if (told == "decline") {
    response.status = 402;
    response.set_content("no funds", "text/plain");
    return;
  }
  if (told == "hang") {
    ++hanging_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return released_; });
    --hanging_;
    if (keeps_keys_ && answers_.contains(key)) {
      response.set_content(answers_[key], "application/json");
      return;
    }
  }
  const std::string answer =
      nlohmann::json{{"charge", "c-" + id + "-" + std::to_string(++charges_[id])}}.dump();
  answers_[key] = answer;
  watched(true);
  if (told == "cut_after") return cut(response);
  if (told == "error_after") {
    response.status = 500;
    return;
  }
  response.set_content(answer, "application/json");
}

void Gateway::tell(const httplib::Request& request, httplib::Response& response) {
  const std::lock_guard lock(mutex_);
  ++questions_;
  const auto found = answers_.find(request.matches[1]);
  response.status = found == answers_.end() ? 404 : 200;
  if (found != answers_.end()) response.set_content(found->second, "application/json");
}

std::map<std::string, int> Gateway::charges() const {
  const std::lock_guard lock(mutex_);
  return charges_;
}

int Gateway::calls() const {
  const std::lock_guard lock(mutex_);
  int calls = 0;
  for (const auto& [payment, count] : calls_) calls += count;
  return calls;
}

int Gateway::calls(const std::string& payment) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(payment);
  return found == calls_.end() ? 0 : found->second;
}

int Gateway::questions() const {
  const std::lock_guard lock(mutex_);
  return questions_;
}

void Gateway::set_watch(std::function<void(const std::string&, bool)> watch) {
  const std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
}

void Gateway::await_hanging(int count) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return hanging_ >= count; }))
    throw std::runtime_error("no call hangs in the gateway");
}

void Gateway::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

}  // namespace hapax::support
