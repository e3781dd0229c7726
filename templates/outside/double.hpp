// A stand-in for the other side: it keeps idempotency keys, and counts what it has charged.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

// Thread safety: any thread may call it.
class Double {
 public:
  explicit Double(httplib::Server& server) {
    server.Post("/charges", [this](const httplib::Request& request, httplib::Response& response) {
      response.set_content(charge(request.get_header_value("Idempotency-Key")), "application/json");
    });
  }

  std::int64_t charges() {
    const std::lock_guard lock(mutex_);
    return charges_;
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    charges_ = 0;
    answers_.clear();
  }

 private:
  std::string charge(const std::string& key) {
    const std::lock_guard lock(mutex_);
    auto [answer, is_new] = answers_.try_emplace(key);
    if (is_new) answer->second = nlohmann::json{{"charge", "c" + std::to_string(++charges_)}}.dump();
    return answer->second;
  }

  std::mutex mutex_;
  std::int64_t charges_ = 0;
  std::map<std::string, std::string> answers_;
};
