#include "observe/deadline_stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace hapax::observe {

// True when the socket is ready; false at the deadline, on an error, or when told to stop.
bool DeadlineStream::wait_for(short events) const {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> waited{{{socket_, events, 0}, {stop_event_, POLLIN, 0}}};
    const int ready = ::poll(waited.data(), waited.size(), static_cast<int>(left.count()));
    if (ready > 0) return waited[0].revents != 0;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool DeadlineStream::is_readable() const { return begin_ < end_ || wait_for(POLLIN); }
bool DeadlineStream::is_writable() const { return wait_for(POLLOUT); }

ssize_t DeadlineStream::read(char* into, std::size_t size) {
  if (begin_ == end_) {
    const std::size_t wanted = std::min(buffer_.size(), bytes_left_);
    if (wanted == 0 || !wait_for(POLLIN)) return -1;
    const ssize_t got = ::recv(socket_, buffer_.data(), wanted, MSG_DONTWAIT);
    if (got <= 0) return got;
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    bytes_left_ -= end_;
  }
  const std::size_t size_given = std::min(size, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, size_given, into);
  begin_ += size_given;
  return static_cast<ssize_t>(size_given);
}

ssize_t DeadlineStream::write(const char* from, std::size_t size) {
  if (!wait_for(POLLOUT)) return -1;
  return ::send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Nothing here looks at addresses.
void DeadlineStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}
void DeadlineStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace hapax::observe
