// A TCP proxy on 127.0.0.1, in front of a server: puts it further away, or cuts connections at
// the point that a test chooses.
//
// Thread safety: all functions may be called from any thread; the forwarding is a thread of its
// own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/descriptor.hpp"

struct pollfd;

namespace hapax::sandbox {

class Proxy {
 public:
  // A host's name or address, or the folder of a Unix socket (as libpq names it), and a port.
  struct Target {
    std::string host;
    std::string port;
  };

  enum class From { client, server };
  enum class Then { forward, cut, forward_and_cut };
  // Sees what is received, before it goes on; `connection` counts from 1. Called by the proxy's
  // thread.
  using Watch = std::function<Then(int connection, From from, const std::string& text)>;

  // Listens on a free port and holds back what is sent for `delay` in each direction, at full
  // throughput. A target that cannot be reached looks as it would without a proxy: closed at once.
  // Throws: std::system_error.
  explicit Proxy(Target target, std::chrono::nanoseconds delay = {}, Watch watch = {});
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Chunk {
    Clock::time_point due;
    std::string text;
    bool last;  // the connection ends behind it
  };
  struct Pair {
    int number;
    Descriptor client;
    Descriptor server;
    std::deque<Chunk> to_client = {};
    std::deque<Chunk> to_server = {};
    bool ended = false;
  };

  void run(const std::stop_token& stop);
  void wait(std::vector<pollfd>& wanted) const;
  void accept_client();
  void receive(Pair& pair, From from);
  void pass_due(Pair& pair);

  const Target target_;
  const std::chrono::nanoseconds delay_;
  const Watch watch_;
  std::uint16_t port_ = 0;
  Descriptor listener_;
  Descriptor wake_;
  std::list<Pair> pairs_;  // the thread's own, as all below
  int connections_ = 0;
  std::jthread thread_;
};

}  // namespace hapax::sandbox
