// Which database a url names, and whether its traffic can be read or forged on the way.
//
// libpq's own default (sslmode=prefer) falls back to plain text in silence, if the server or an
// attacker in between answers that it has no TLS. So over a network hapax asks for TLS unless the
// url asks for something else. Only this file decides that.
#pragma once

#include <string>

namespace hapax::store {

struct Transport {
  bool local = true;    // all hosts are Unix sockets or loopback addresses
  std::string sslmode;  // of the url or PGSSLMODE; else ours; "" if only libpq knows
};

// "" in `sslmode`: libpq's default is right, or a service file decides.
// Thread safety: safe as long as no thread changes the environment.
Transport transport_of(const std::string& url);

// Whether two urls name one database. If a running worker moved to another one, it would write
// effects to one and checkpoints to the other. False if a url cannot be read.
// Thread safety: pure.
bool same_database(const std::string& url, const std::string& other);

}  // namespace hapax::store
