#include "sandbox/proxy.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace hapax::sandbox {
namespace {

using std::chrono::nanoseconds;

template <class Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Small packets at once: the delay is ours to add.
void send_at_once(const Descriptor& socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::optional<Descriptor> connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::ranges::copy(path, address.sun_path);
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(made.get(), generic(address), sizeof address) != 0) return std::nullopt;
  return made;
}

std::optional<Descriptor> connect_to(const Proxy::Target& target) {
  if (target.host.starts_with('/')) return connect_unix(target.host + "/.s.PGSQL." + target.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found) != 0)
    return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Descriptor made(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(made.get(), each->ai_addr, each->ai_addrlen) != 0) continue;
    send_at_once(made);
    return made;
  }
  return std::nullopt;
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

Proxy::Proxy(Target target, nanoseconds delay, Watch watch)
    : target_(std::move(target)),
      delay_(delay),
      watch_(std::move(watch)),
      listener_(checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")),
      wake_(checked(eventfd(0, EFD_CLOEXEC), "eventfd")) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  checked(bind(listener_.get(), generic(address), sizeof address), "bind");
  checked(listen(listener_.get(), 256), "listen");
  socklen_t size = sizeof address;
  checked(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size),
          "getsockname");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Proxy::~Proxy() {
  thread_.request_stop();
  eventfd_write(wake_.get(), 1);
}

void Proxy::run(const std::stop_token& stop) {
  prctl(PR_SET_TIMERSLACK, 1);  // this thread's: else a short delay is 50 us longer
  while (!stop.stop_requested()) {
    std::vector<pollfd> wanted = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      wanted.push_back({pair.client.get(), POLLIN, 0});
      wanted.push_back({pair.server.get(), POLLIN, 0});
    }
    wait(wanted);
    std::size_t at = 2;
    for (Pair& pair : pairs_) {
      if (wanted[at].revents != 0) receive(pair, From::client);
      if (wanted[at + 1].revents != 0) receive(pair, From::server);
      pass_due(pair);
      at += 2;
    }
    std::erase_if(pairs_, [](const Pair& pair) { return pair.ended; });
    if (wanted[1].revents != 0) accept_client();
  }
}

// Until something comes, or the first of what is held back is due.
void Proxy::wait(std::vector<pollfd>& wanted) const {
  std::optional<Clock::time_point> due;
  for (const Pair& pair : pairs_)
    for (const std::deque<Chunk>* chunks : {&pair.to_client, &pair.to_server})
      if (!chunks->empty()) due = std::min(due.value_or(chunks->front().due), chunks->front().due);
  timespec left{};
  if (due) {
    const auto rest = std::max(nanoseconds(0), nanoseconds(*due - Clock::now()));
    left.tv_sec = static_cast<time_t>(rest / std::chrono::seconds(1));
    left.tv_nsec = static_cast<long>((rest % std::chrono::seconds(1)).count());
  }
  if (ppoll(wanted.data(), wanted.size(), due ? &left : nullptr, nullptr) < 0)
    for (pollfd& each : wanted) each.revents = 0;  // a signal
}

void Proxy::accept_client() {
  Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (client.get() < 0) return;
  std::optional<Descriptor> server = connect_to(target_);
  if (!server) return;
  send_at_once(client);
  pairs_.push_back({++connections_, std::move(client), std::move(*server)});
}

void Proxy::receive(Pair& pair, From from) {
  const bool by_client = from == From::client;
  std::deque<Chunk>& chunks = by_client ? pair.to_server : pair.to_client;
  if (pair.ended || (!chunks.empty() && chunks.back().last)) return;
  std::array<char, 65536> buffer;
  const int source = by_client ? pair.client.get() : pair.server.get();
  const ssize_t size = recv(source, buffer.data(), buffer.size(), 0);
  std::string text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const Then then = watch_ && !text.empty() ? watch_(pair.number, from, text) : Then::forward;
  if (then == Then::cut) {
    pair.ended = true;
    return;
  }
  const bool last = text.empty() || then == Then::forward_and_cut;
  chunks.push_back({Clock::now() + delay_, std::move(text), last});
}

void Proxy::pass_due(Pair& pair) {
  const auto now = Clock::now();
  const auto pass = [&](std::deque<Chunk>& chunks, const Descriptor& to) {
    for (; !pair.ended && !chunks.empty() && chunks.front().due <= now; chunks.pop_front())
      pair.ended = !send_all(to, chunks.front().text) || chunks.front().last;
  };
  pass(pair.to_server, pair.server);
  pass(pair.to_client, pair.client);
}

}  // namespace hapax::sandbox
