// Who may talk to the console, decided before a request reaches PostgreSQL or Kafka.
//
// A: an operator has the console open; another page in the same browser sends a POST to
// 127.0.0.1 that replays all dead letters. Or its host name resolves to 127.0.0.1 after a minute,
// so that the browser lets it read the answers. So the console wants three things: a
// loopback name as Host, a cookie that only its own URL sets, and a POST of its own page.
//
// Thread safety: immutable.
#pragma once

#include <optional>
#include <string>

#include "observe/page_server.hpp"

namespace hapax::console {

class Access {
 public:
  // `token`: a secret of this process, in hex.
  explicit Access(std::string token);

  // One that cannot be guessed. Throws: std::system_error if the system gives no random bytes.
  static std::string random_token();

  // The answer to a request that may not pass. Nothing: it may.
  std::optional<observe::PageAnswer> refusal(const observe::PageRequest& request) const;

  // Whether it is the URL that the command printed. Its answer sets the cookie.
  bool is_entrance(const observe::PageRequest& request) const;
  std::string cookie() const;

  // For every answer: what the browser may do with it.
  static void add_headers(observe::PageAnswer& answer);

 private:
  bool has_cookie(const observe::PageRequest& request) const;

  const std::string token_;
  const std::string digest_;  // of the token: compared in a time that tells nothing
  // Cookies know no port: another console on the same name must not push this one's out.
  const std::string cookie_name_;
};

}  // namespace hapax::console
