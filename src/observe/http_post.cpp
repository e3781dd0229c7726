#include "observe/http_post.hpp"

#include <httplib.h>

#include <chrono>
#include <utility>

namespace hapax::observe {
namespace {

constexpr std::chrono::seconds kTimeout{2};
constexpr std::size_t kMostOfAnAnswer = std::size_t{64} << 10;

std::unique_ptr<httplib::ClientImpl> client_of(const HttpTarget& target) {
  auto client = target.tls ? std::make_unique<httplib::SSLClient>(target.host, target.port)
                           : std::make_unique<httplib::ClientImpl>(target.host, target.port);
  client->set_connection_timeout(kTimeout);
  client->set_read_timeout(kTimeout);
  client->set_write_timeout(kTimeout);
  client->set_keep_alive(true);
  return client;
}

}  // namespace

std::string HttpTarget::url() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (tls ? "https://" : "http://") + (ipv6 ? "[" + host + "]" : host) + ":" +
         std::to_string(port) + path;
}

HttpPost::HttpPost(HttpTarget target) : target_(std::move(target)), client_(client_of(target_)) {}

HttpPost::~HttpPost() = default;

HttpPost::Answer HttpPost::post(const std::string& body, const std::string& content_type) {
  Answer answer;
  httplib::Request request;
  request.method = "POST";
  request.path = target_.path;
  request.headers = {{"Content-Type", content_type}};
  request.body = body;
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    if (answer.body.size() + size > kMostOfAnAnswer) return false;
    answer.body.append(data, size);
    return true;
  };
  // Of an answer that is longer than what is kept, the status still counts.
  request.response_handler = [&](const httplib::Response& head) {
    answer.status = head.status;
    return true;
  };
  const httplib::Result result = client_->send(request);
  if (!result && result.error() != httplib::Error::Canceled) {
    answer.status = 0;
    answer.error = target_.url() + " does not answer: " + httplib::to_string(result.error());
    return answer;
  }
  if (!answer.is_good())
    answer.error = target_.url() + " answers with HTTP status " + std::to_string(answer.status);
  return answer;
}

}  // namespace hapax::observe
