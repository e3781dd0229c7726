// What libpq is told to connect to.
#pragma once

#include <string>
#include <unordered_map>

namespace hapax::store {

using ConnectKeywords = std::unordered_map<std::string, std::string>;

// The user's url, a URI or keywords, as keywords and values: with `defaults` if it sets none,
// and `instead` over what it sets. Throws: DatabaseError if it is neither.
std::string conninfo_of(const std::string& url, const ConnectKeywords& defaults,
                        const ConnectKeywords& instead = {});

// A host's name or address, or the folder of a Unix socket, and a port.
struct Endpoint {
  std::string host;
  std::string port;
};

// The server that a connection to `url` reaches, of all the hosts that it and the environment may
// name. Throws: DatabaseError if it does not connect. Blocks: until it does.
Endpoint endpoint_of(const std::string& url);

// The same url, through port `port` of 127.0.0.1. TLS still verifies the real host's name.
std::string url_through(const std::string& url, const Endpoint& real, int port);

}  // namespace hapax::store
