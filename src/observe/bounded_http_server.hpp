// httplib's server with the bounds it lacks, because it lives inside a worker that must not suffer:
// - a client that sends a byte now and then holds a thread for ever (httplib bounds each read, not
//   the request): here a connection has one deadline for everything;
// - waiting connections pile up without limit and eat the file descriptors that Kafka and
// PostgreSQL
//   need: here a connection too many is closed at once;
// - headers are unlimited, a Range header multiplies the answer, and a compressed body of a few KiB
//   unpacks to gigabytes: here a request has a size, ranges are ignored, bodies are never read;
// - SO_REUSEPORT lets two workers share a port in silence: here the second fails to bind.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

namespace hapax::observe {

inline constexpr std::size_t kAdminThreads = 4;
inline constexpr int kMaxWaitingConnections = 32;
inline constexpr int kBacklog = 128;  // in the kernel, not accepted yet: these cost no descriptor
inline constexpr std::size_t kMaxRequestBytes = 4096;
inline constexpr std::chrono::milliseconds kConnectionDeadline{2000};

// Answers GET and HEAD, one request a connection.
//
// Thread safety: run() on one thread, stop() on any. Threads: kAdminThreads of its own, while
// running.
class BoundedHttpServer final : public httplib::Server {
 public:
  using Answer = std::function<void(const std::string& path, httplib::Response&)>;

  // Throws: std::system_error when the process is out of file descriptors.
  explicit BoundedHttpServer(Answer answer);
  ~BoundedHttpServer() override;

  // The port bound (0: any), or -1, with the cause in errno where the system gave one.
  int bind(const std::string& host, int port);

  // Serves until stop(), and binds again if accepting fails for another reason. Blocks: until
  // stop().
  void run();

  // Ends run(), also one that has not begun. Requests that wait for their client are cut off; an
  // answer being made is waited for by run().
  void stop();

 private:
  class BoundedQueue;

  bool process_and_close_socket(socket_t socket) override;
  void close_listener();

  std::string host_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  int stop_event_;  // an eventfd, readable once stopping
  std::mutex listener_mutex_;
};

}  // namespace hapax::observe
