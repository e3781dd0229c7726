// A payment gateway for tests, over HTTP: it counts what it really charged.
//
// A payment's "gateway" names what becomes of its first call. It does not count for later calls:
//
// - cut_before: the connection ends, nothing is charged
// - cut_after: it is charged, and the connection ends
// - error_after: it is charged, and the answer is 500
// - decline: the answer is 402
// - hang: it is charged and answered after release()
//
// Thread safety: all of it.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace hapax::support {

class Gateway {
 public:
  // `keeps_keys`: a call with a key that was charged is answered as then, and charges nothing.
  // `port`: 0 for any free one.
  explicit Gateway(bool keeps_keys = true, int port = 0);
  ~Gateway();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // How often a payment was charged, by its id.
  std::map<std::string, int> charges() const;
  // How many calls have come, and of one payment.
  int calls() const;
  int calls(const std::string& payment) const;
  // How many questions what became of a call.
  int questions() const;

  // Called with the payment's id, before and after a call is charged; may be empty.
  void set_watch(std::function<void(const std::string& payment, bool charged)> watch);

  // Returns once `count` calls hang.
  void await_hanging(int count);
  void release();

 private:
  void charge(const httplib::Request& request, httplib::Response& response);
  void tell(const httplib::Request& request, httplib::Response& response);

  const bool keeps_keys_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> charges_;
  std::map<std::string, int> calls_;
  std::map<std::string, std::string> answers_;  // by key
  std::map<std::string, std::int64_t> tokens_;  // the largest, by key
  int questions_ = 0;
  int hanging_ = 0;
  bool released_ = false;
  std::function<void(const std::string&, bool)> watch_;
  httplib::Server server_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace hapax::support
