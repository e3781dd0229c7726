#include "observe/page_server.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "observe/bounded_http_server.hpp"
#include "observe/without_signals.hpp"

namespace hapax::observe {
namespace {

constexpr HttpLimits kPageLimits{.head_bytes = PageServer::kMaxHeadBytes,
                                 .body_bytes = PageServer::kMaxBodyBytes,
                                 .to_ask = PageServer::kAskTimeout,
                                 .to_answer = PageServer::kAnswerTimeout,
                                 .to_take = PageServer::kTakeTimeout,
                                 .threads = PageServer::kThreads};

PageRequest page_request(const httplib::Request& request) {
  PageRequest page{request.method, request.path, {}, {}, request.body};
  for (const auto& [name, value] : request.params) page.query.try_emplace(name, value);
  for (const auto& [name, value] : request.headers) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    page.headers.emplace(std::move(lower), value);
  }
  return page;
}

void answer_page(const PageServer::Answer& answer, const httplib::Request& request,
                 httplib::Response& response) {
  const PageAnswer page = answer(page_request(request));
  response.status = page.status;
  for (const auto& [name, value] : page.headers) response.set_header(name.c_str(), value.c_str());
  response.set_content(page.body, page.type.c_str());
}

}  // namespace

std::string PageRequest::header(const std::string& name) const {
  const auto [first, last] = headers.equal_range(name);
  return first != last && std::next(first) == last ? first->second : std::string();
}

struct PageServer::Running {
  explicit Running(Answer answer)
      : server([answer = std::move(answer)](
                   const httplib::Request& request,
                   httplib::Response& response) { answer_page(answer, request, response); },
               kPageLimits) {}

  BoundedHttpServer server;
  int port = 0;
  std::thread thread;
};

PageServer::PageServer(const std::string& host, int port, Answer answer)
    : running_(std::make_unique<Running>(std::move(answer))) {
  running_->port = running_->server.bind(host, port);
  if (running_->port < 0)
    throw std::runtime_error("cannot listen on " + host + ":" + std::to_string(port) +
                             (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  running_->thread = without_signals([server = &running_->server] { server->run(); });
}

PageServer::~PageServer() {
  running_->server.stop();
  running_->thread.join();
}

int PageServer::port() const { return running_->port; }

}  // namespace hapax::observe
