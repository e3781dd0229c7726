// A whole HTTP request whose caller is known.
//
// A value: nothing in it points to a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/context.hpp"
#include "observe/metrics.hpp"
#include "traces/trace.hpp"

namespace hapax::gate {

struct Request {
  std::string method;
  std::string path;                                          // as it was sent, without the query
  std::string query;                                         // as it was sent, without the '?'
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::size_t route = 0;                                        // its index
  std::vector<std::pair<std::string, std::string>> parameters;  // of the path, decoded
  std::string tenant;
  std::string key;                          // as the client means it; "" for a safe method
  std::optional<traces::Trace> trace = {};  // that it is part of; nothing: traces are off

  // The request has left a transaction that it shared with others. From now on it runs alone.
  bool runs_alone = false;
  struct Doubt {
    std::int64_t run;      // which may have been committed
    std::string sqlstate;  // of PostgreSQL's answer; "": there was none
  };
  std::optional<Doubt> doubt = {};

  bool is_guarded() const { return !key.empty(); }
};

// The identity that a client has proved in its TLS handshake.
struct ClientCertificate {
  std::string name;  // the only common name of its subject; "": it has none, or several
};

struct Answer {
  Response response;
  observe::Answered how = observe::Answered::refused;
  std::string expires = {};  // of a stored one: when its key may be forgotten; "": not known yet

  // Whether the answer is stored with the key, so that each retry gets it.
  bool is_stored() const {
    return how == observe::Answered::executed || how == observe::Answered::replayed ||
           how == observe::Answered::rejected;
  }
};

}  // namespace hapax::gate
