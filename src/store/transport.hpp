// Where a url leads: to which database, and whether what goes there can be read or forged on its
// way.
//
// libpq's own default (sslmode=prefer) falls back to plain text in silence where the server, or
// somebody between, says that it has no TLS. So over a network hapax asks for TLS unless the url
// says otherwise; this is the one place that decides it.
#pragma once

#include <string>

namespace hapax::store {

struct Transport {
  bool local = true;    // all hosts are Unix sockets or loopback addresses
  std::string sslmode;  // what the url or PGSSLMODE says; else ours; "" where only libpq knows
};

// "" in `sslmode`: libpq's default is right, or a service file decides.
// Thread safety: safe as long as nobody changes the environment.
Transport transport_of(const std::string& url);

// Whether two urls name one database, whoever asks: a worker that moved to another one while it
// runs would write effects to one and checkpoints to the other. False where either cannot be read.
// Thread safety: pure.
bool same_database(const std::string& url, const std::string& other);

}  // namespace hapax::store
