// httplib's parser and answers behind a loop of our own. httplib's own loop must not run inside a
// worker: its clients could slow the worker down, or keep a probe from its answer.
// - httplib gives each connection a thread, so a few slow clients hold all threads. Here one thread
//   polls all connections, and answers a request once all of it has come.
// - In httplib, connections pile up and use the file descriptors that Kafka and PostgreSQL need.
//   Here a new one beyond the bound ends the oldest, because a probe sends its request at once. But
//   it ends none whose answer is being made, because that may be an order. Then the new one waits.
// - Each connection has one deadline for everything, and unsent answers have a bound.
// - In httplib, headers are unlimited, and a Range header multiplies the answer. A compressed body
//   of a few KiB unpacks to gigabytes. Here a request has a size, ranges are ignored, and httplib
//   reads no body.
// - With SO_REUSEPORT two workers share a port silently. Here the second fails to bind.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "observe/answering_threads.hpp"

namespace hapax::observe {

inline constexpr std::size_t kMaxConnections = 64;
// Connections that the kernel holds unaccepted; these cost no descriptor.
inline constexpr int kBacklog = 128;
inline constexpr std::size_t kMaxRequestBytes = 4096;
inline constexpr std::size_t kMaxUnsentBytes = 16 << 20;  // bytes of all answers but the newest
inline constexpr std::chrono::milliseconds kConnectionDeadline{2000};

struct HttpLimits {
  std::size_t head_bytes = kMaxRequestBytes;
  std::size_t body_bytes = 0;  // 0: only GET and HEAD are answered
  // How long a connection may take to send its request, to wait for the answer, and to read it.
  std::chrono::milliseconds to_ask = kConnectionDeadline;
  std::chrono::milliseconds to_answer = kConnectionDeadline;
  std::chrono::milliseconds to_take = kConnectionDeadline;
  std::size_t threads = 0;  // that make answers; 0: run() makes them, within to_ask
};

// Answers GET and HEAD, and POST if bodies are allowed. Each connection has one request.
//
// Thread safety: run() on one thread, stop() on any.
class BoundedHttpServer final : private httplib::Server {
 public:
  // The request has its body. Called on the threads that make answers, side by side.
  using Answer = std::function<void(const httplib::Request&, httplib::Response&)>;

  // Throws: std::system_error if the process has no file descriptor left.
  explicit BoundedHttpServer(Answer answer, const HttpLimits& limits = {});
  ~BoundedHttpServer() override;

  // Returns the port (`port` 0: any free one), or -1 with the cause in errno, if the system gave
  // one.
  int bind(const std::string& host, int port);

  // Serves until stop(). Blocks: until stop().
  void run();

  // Ends run(), also one that has not begun. Connections are cut off. run() still waits for an
  // answer that is being made.
  void stop();

 private:
  enum class State { asking, answering, taking };
  struct Connection {
    std::uint64_t id;
    int socket;
    std::chrono::steady_clock::time_point deadline;
    State state = State::asking;
    std::string request = {};
    std::string answer = {};  // the part that is not sent yet
  };
  using Connections = std::list<Connection>;

  void turn();
  void accept_some();
  Connections::iterator oldest_to_end();
  bool has_room();
  void take_answers();
  bool serve(Connection& connection);
  bool receive(Connection& connection);
  bool send(Connection& connection);
  void begin_taking(Connection& connection, std::string answer);
  std::string answer(const std::string& request);
  void bound_unsent();
  Connections::iterator end(Connections::iterator connection);

  const HttpLimits limits_;
  std::atomic<bool> stopping_{false};
  int stop_event_;  // an eventfd, readable once stopping, or if an answer is made
  std::uint64_t last_id_ = 0;
  Connections connections_;  // oldest first
  std::chrono::steady_clock::time_point accept_not_before_{};
  std::unique_ptr<AnsweringThreads> threads_;  // during run(), if there are any
};

}  // namespace hapax::observe
