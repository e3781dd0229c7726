// An HTTP server for the pages of a command: it knows nothing of what it serves. Answers may wait
// for PostgreSQL and Kafka, so a few threads make them.
//
// Hides httplib, and what bounded_http_server.hpp does about it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hapax::observe {

struct PageRequest {
  std::string method;  // GET, HEAD, POST
  std::string path;    // without the query
  std::map<std::string, std::string> query;
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;

  // The header, if there is exactly one of this name; else "".
  std::string header(const std::string& name) const;
};

struct PageAnswer {
  int status = 200;
  std::string type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

class PageServer {
 public:
  using Answer = std::function<PageAnswer(const PageRequest&)>;

  static constexpr std::size_t kMaxHeadBytes = 16'384;  // a browser sends all cookies of the host
  static constexpr std::size_t kMaxBodyBytes = 1 << 20;
  static constexpr std::size_t kThreads = 4;
  static constexpr std::chrono::milliseconds kAskTimeout{10'000};
  static constexpr std::chrono::milliseconds kAnswerTimeout{120'000};
  static constexpr std::chrono::milliseconds kTakeTimeout{60'000};

  // Listens at once; port 0: any free one. `answer`: called side by side on kThreads threads.
  // Throws: std::runtime_error with the system's cause.
  PageServer(const std::string& host, int port, Answer answer);
  // Blocks: until the answers that are being made are made.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

}  // namespace hapax::observe
