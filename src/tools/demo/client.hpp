// A client of `hapax demo gate`: one request, one connection, as simple as HTTP gets.
#pragma once

#include <cstdint>
#include <string>

namespace hapax::app {

struct DemoReply {
  int status = 0;  // 0: the connection broke before there was a whole answer
  std::string location;
  bool replayed = false;
  std::string body;
};

// `head`: the headers, each with its line's end. Throws: nothing. Blocks: at most 10 s.
DemoReply demo_request(std::uint16_t port, const std::string& method, const std::string& path,
                       const std::string& head, const std::string& body);

}  // namespace hapax::app
