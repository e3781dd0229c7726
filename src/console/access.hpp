// Who may talk to the console, decided before a request reaches PostgreSQL or Kafka.
//
// A: an operator has the console open; another page in the same browser sends a POST to
// 127.0.0.1 that replays all dead letters. Or its host name resolves to 127.0.0.1 after a minute,
// so that the browser lets it read the answers. So the console wants three things: a
// loopback name as Host, a token as a header, and a POST of its own page.
// B: the operator also opens another service on 127.0.0.1. A cookie would go to every port, and
// that service would have the token. So it is a header: the browser sends that to no one by itself.
// The files of the page need no token, as they hold no data.
//
// Thread safety: immutable.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "observe/page_server.hpp"

namespace hapax::console {

class Access {
 public:
  // `token`: a secret of this process, in hex.
  explicit Access(std::string_view token);

  // One that cannot be guessed. Throws: std::system_error if the system gives no random bytes.
  static std::string random_token();

  // The answer to a request that may not pass. Nothing: it may.
  std::optional<observe::PageAnswer> refusal(const observe::PageRequest& request) const;

  // For every answer: what the browser may do with it.
  static void add_headers(observe::PageAnswer& answer);

 private:
  bool has_token(const observe::PageRequest& request) const;

  const std::string digest_;  // of the token: compared in a time that tells nothing
};

}  // namespace hapax::console
