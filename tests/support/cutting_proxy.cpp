#include "support/cutting_proxy.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <vector>

namespace hapax::test {
namespace {

using sandbox::checked;
using sandbox::Descriptor;

sockaddr_in local(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Descriptor tcp_socket() { return Descriptor(checked(socket(AF_INET, SOCK_STREAM, 0), "socket")); }

std::string receive(const Descriptor& from) {
  std::array<char, 65536> buffer;
  const ssize_t size = recv(from.get(), buffer.data(), buffer.size(), 0);
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

bool send_all(const Descriptor& to, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t size = send(to.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (size < 0) return false;
    sent += static_cast<std::size_t>(size);
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(std::uint16_t target)
    : target_(target), listener_(tcp_socket()), wake_(checked(eventfd(0, 0), "eventfd")) {
  sockaddr_in address = local(0);
  checked(bind(listener_.get(), generic(address), sizeof address), "bind");
  checked(listen(listener_.get(), 64), "listen");
  socklen_t size = sizeof address;
  checked(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size),
          "getsockname");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

CuttingProxy::~CuttingProxy() {
  thread_.request_stop();
  eventfd_write(wake_.get(), 1);
}

void CuttingProxy::cut_next(std::string needle, Cut when) {
  const std::lock_guard lock(mutex_);
  plan_ = Plan{std::move(needle), when};
}

void CuttingProxy::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> wanted = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      wanted.push_back({pair.client.get(), POLLIN, 0});
      wanted.push_back({pair.server.get(), POLLIN, 0});
    }
    if (poll(wanted.data(), wanted.size(), -1) < 0) continue;
    std::size_t at = 2;
    for (Pair& pair : pairs_) {
      if (wanted[at].revents != 0) from_client(pair);
      if (!pair.ended && wanted[at + 1].revents != 0) from_server(pair);
      at += 2;
    }
    pairs_.remove_if([](const Pair& pair) { return pair.ended; });
    if (wanted[1].revents != 0) accept_client();
  }
}

void CuttingProxy::accept_client() {
  Pair pair;
  pair.client = Descriptor(accept(listener_.get(), nullptr, nullptr));
  pair.server = tcp_socket();
  const sockaddr_in address = local(target_);
  // A server that is down looks to the client as it would without us: closed at once.
  if (connect(pair.server.get(), generic(address), sizeof address) == 0)
    pairs_.push_back(std::move(pair));
}

// A text of ours fits into one segment of the loopback, so the needle is not looked for across two.
void CuttingProxy::from_client(Pair& pair) {
  const std::string text = receive(pair.client);
  const auto planned = planned_for(text);
  if (planned == Cut::before_forwarding) return cut(pair);
  if (text.empty() || !send_all(pair.server, text)) {
    pair.ended = true;
    return;
  }
  if (planned == Cut::after_forwarding) return cut(pair);
  pair.cut_at_answer = planned == Cut::after_answer;
}

void CuttingProxy::from_server(Pair& pair) {
  const std::string text = receive(pair.server);
  if (pair.cut_at_answer) return cut(pair);
  if (text.empty() || !send_all(pair.client, text)) pair.ended = true;
}

std::optional<CuttingProxy::Cut> CuttingProxy::planned_for(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!plan_ || text.find(plan_->needle) == std::string::npos) return std::nullopt;
  const Cut when = plan_->when;
  plan_.reset();
  return when;
}

void CuttingProxy::cut(Pair& pair) {
  pair.ended = true;
  ++cuts_;
}

}  // namespace hapax::test
