// A client's connection as httplib reads and writes it, with one deadline for the whole of it.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace hapax::observe {

// Owner: the thread that answers the request. Borrows both file descriptors.
//
// Reads and writes fail after the deadline, after `max_bytes` read, and, where they would have to
// wait, once `stop_event` is readable.
class DeadlineStream final : public httplib::Stream {
 public:
  DeadlineStream(socket_t socket, int stop_event, std::chrono::steady_clock::time_point deadline,
                 std::size_t max_bytes)
      : socket_(socket), stop_event_(stop_event), deadline_(deadline), bytes_left_(max_bytes) {}

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  bool wait_for(short events) const;

  const socket_t socket_;
  const int stop_event_;
  const std::chrono::steady_clock::time_point deadline_;
  std::size_t bytes_left_;
  std::array<char, 1024> buffer_{};  // httplib reads headers byte by byte
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace hapax::observe
