// An OpenTelemetry collector for tests: an HTTP server that reads OTLP's JSON.
#pragma once

#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "observe/http_post.hpp"
#include "sync/mutex.hpp"

namespace hapax::support {

// The value of an attribute of a span, a link or a resource; null if it has none.
nlohmann::json attribute(const nlohmann::json& of, const std::string& key);

// Thread safety: all of it.
class Collector {
 public:
  Collector();
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  observe::HttpTarget target() const;
  std::string endpoint() const { return target().url(); }

  // Answers this from now on; spans count only if it is 200. `body`: of the answer.
  void answer(int status, const std::string& body = "{}");
  // Answers nothing from now on, until let_go().
  void hold();
  void let_go();

  // Returns when it has taken `count` spans that `fit`, at least; all that fit.
  // Throws: std::runtime_error with what it has, at the timeout.
  std::vector<nlohmann::json> await(std::size_t count,
                                    const std::function<bool(const nlohmann::json&)>& fit,
                                    std::chrono::milliseconds timeout = std::chrono::seconds(60));
  // Of this name.
  std::vector<nlohmann::json> await(std::size_t count, const std::string& name);
  // Returns when so many requests have come. Refused requests count, too.
  void await_requests(std::size_t count);
  // Of the last request.
  nlohmann::json resource();

 private:
  void take(const httplib::Request& request, httplib::Response& response);

  sync::Mutex mutex_;
  std::condition_variable changed_;
  std::vector<nlohmann::json> spans_ HAPAX_GUARDED_BY(mutex_);
  nlohmann::json resource_ HAPAX_GUARDED_BY(mutex_);
  std::size_t requests_ HAPAX_GUARDED_BY(mutex_) = 0;
  int status_ HAPAX_GUARDED_BY(mutex_) = 200;
  std::string body_ HAPAX_GUARDED_BY(mutex_) = "{}";
  bool holds_ HAPAX_GUARDED_BY(mutex_) = false;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace hapax::support
