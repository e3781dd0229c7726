// A proxy in front of PostgreSQL that cuts a connection at a chosen moment. So a test can make a
// COMMIT whose answer the client never gets.
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "sandbox/proxy.hpp"

namespace hapax::test {

class CuttingProxy {
 public:
  enum class Cut {
    before_forwarding,  // the server never sees the text
    after_forwarding,   // it does, and may or may not have run it when the client is cut off
    after_answer,       // it has run it; the answer is thrown away
  };

  // Listens on a free port of 127.0.0.1 and forwards to `target` there. Throws: std::system_error.
  explicit CuttingProxy(std::uint16_t target);

  std::uint16_t port() const { return proxy_.port(); }

  // The next connection whose client sends `needle` is cut, once; other connections go on.
  // ";COMMIT" is the completion's; "COMMIT" alone is also in BEGIN … READ COMMITTED.
  void cut_next(std::string needle, Cut when);
  int cuts() const { return cuts_; }

 private:
  struct Plan {
    std::string needle;
    Cut when;
  };

  sandbox::Proxy::Then watch(int connection, sandbox::Proxy::From from, const std::string& text);
  std::optional<Cut> planned_for(const std::string& text);

  std::mutex mutex_;
  std::optional<Plan> plan_;     // guarded by mutex_
  std::set<int> cut_at_answer_;  // connections; the proxy's thread's own
  std::atomic<int> cuts_ = 0;
  sandbox::Proxy proxy_;  // last: its thread calls watch()
};

}  // namespace hapax::test
