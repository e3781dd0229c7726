// httplib's parser and answers behind a loop of our own, because it lives inside a worker that must
// not suffer, and a probe must be answered whoever else is connected:
// - httplib gives each connection a thread, so that a few slow clients hold all of them: here one
//   thread polls all connections, and a request is answered once all of it has come;
// - connections pile up without limit and eat the file descriptors that Kafka and PostgreSQL need:
//   here a new one beyond the bound ends the oldest, since a probe sends its request at once. But
//   it ends none whose answer is being made, as that may be an order: then the new one waits;
// - each connection has one deadline for everything, and what waits to be sent has a bound;
// - headers are unlimited, a Range header multiplies the answer, and a compressed body of a few KiB
//   unpacks to gigabytes: here a request has a size, ranges are ignored, and httplib reads no body;
// - SO_REUSEPORT lets two workers share a port in silence: here the second fails to bind.
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
inline constexpr int kBacklog = 128;  // in the kernel, not accepted yet: these cost no descriptor
inline constexpr std::size_t kMaxRequestBytes = 4096;
inline constexpr std::size_t kMaxUnsentBytes = 16 << 20;  // of all answers but the newest
inline constexpr std::chrono::milliseconds kConnectionDeadline{2000};

struct HttpLimits {
  std::size_t head_bytes = kMaxRequestBytes;
  std::size_t body_bytes = 0;  // 0: only GET and HEAD are answered
  // A connection's time for its request, for the making of the answer, and for taking it.
  std::chrono::milliseconds to_ask = kConnectionDeadline;
  std::chrono::milliseconds to_answer = kConnectionDeadline;
  std::chrono::milliseconds to_take = kConnectionDeadline;
  std::size_t threads = 0;  // that make answers; 0: the thread of run(), within to_ask
};

// Answers GET and HEAD, and POST if bodies are allowed; one request a connection.
//
// Thread safety: run() on one thread, stop() on any.
class BoundedHttpServer final : private httplib::Server {
 public:
  // The request has its body. Called on the threads that make answers, side by side.
  using Answer = std::function<void(const httplib::Request&, httplib::Response&)>;

  // Throws: std::system_error when the process is out of file descriptors.
  explicit BoundedHttpServer(Answer answer, const HttpLimits& limits = {});
  ~BoundedHttpServer() override;

  // The port bound (0: any), or -1, with the cause in errno where the system gave one.
  int bind(const std::string& host, int port);

  // Serves until stop(). Blocks: until stop().
  void run();

  // Ends run(), also one that has not begun. Connections are cut off; an answer being made is
  // waited for by run().
  void stop();

 private:
  enum class State { asking, answering, taking };
  struct Connection {
    std::uint64_t id;
    int socket;
    std::chrono::steady_clock::time_point deadline;
    State state = State::asking;
    std::string request = {};
    std::string answer = {};  // what of it is not sent yet
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
