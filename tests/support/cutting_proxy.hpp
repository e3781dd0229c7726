// A TCP proxy in front of PostgreSQL that cuts a connection at a chosen moment of the talk: the way
// to a COMMIT of which the client never learns the answer.
//
// Thread safety: all functions may be called from any thread; the forwarding is a thread of its
// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sandbox/descriptor.hpp"

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
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  std::uint16_t port() const { return port_; }

  // The next connection whose client sends `needle` is cut, once; other connections go on.
  // ";COMMIT" is the completion's; "COMMIT" alone is also in BEGIN … READ COMMITTED.
  void cut_next(std::string needle, Cut when);
  int cuts() const { return cuts_; }

 private:
  struct Plan {
    std::string needle;
    Cut when;
  };
  struct Pair {
    sandbox::Descriptor client;
    sandbox::Descriptor server;
    bool cut_at_answer = false;
    bool ended = false;
  };

  void run(const std::stop_token& stop);
  void accept_client();
  void from_client(Pair& pair);
  void from_server(Pair& pair);
  std::optional<Cut> planned_for(const std::string& text);
  void cut(Pair& pair);

  std::uint16_t target_;
  std::uint16_t port_ = 0;
  sandbox::Descriptor listener_;
  sandbox::Descriptor wake_;
  std::list<Pair> pairs_;  // the thread's own
  std::mutex mutex_;
  std::optional<Plan> plan_;  // guarded by mutex_
  std::atomic<int> cuts_ = 0;
  std::jthread thread_;
};

}  // namespace hapax::test
