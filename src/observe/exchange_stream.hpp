// One request and its answer as httplib reads and writes them. Both are in memory, so no read or
// write blocks.
#pragma once

#include <httplib.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace hapax::observe {

class ExchangeStream final : public httplib::Stream {
 public:
  // `request` outlives it.
  explicit ExchangeStream(std::string_view request) : rest_(request) {}

  std::string take_answer() { return std::move(answer_); }

  bool is_readable() const override { return !rest_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* into, std::size_t size) override {
    const std::size_t given = std::min(size, rest_.size());
    if (given == 0) return -1;
    std::copy_n(rest_.data(), given, into);
    rest_.remove_prefix(given);
    return static_cast<ssize_t>(given);
  }
  ssize_t write(const char* from, std::size_t size) override {
    answer_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  // No code here reads addresses.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  std::string_view rest_;
  std::string answer_;
};

}  // namespace hapax::observe
