// Posts bodies to one address over HTTP or HTTPS; keeps its connection. Hides httplib's client.
//
// The connection is made as late as it is needed, and again if the other side has closed it.
// Certificates are verified against the system's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace httplib {
class ClientImpl;
}

namespace hapax::observe {

struct HttpTarget {
  bool tls = false;
  std::string host = {};  // without the brackets of an IPv6 address
  std::uint16_t port = 80;
  std::string path = "/";

  std::string url() const;
  bool operator==(const HttpTarget&) const = default;
};

// Thread safety: none.
class HttpPost {
 public:
  explicit HttpPost(HttpTarget target);
  ~HttpPost();

  struct Answer {
    int status = 0;          // 0: none came
    std::string body = {};   // its first 64 KiB
    std::string error = {};  // for people, if the status is none of 200 to 299

    bool is_good() const { return status >= 200 && status < 300; }
  };

  // Redirects are not followed.
  // Blocks: at most 2 s for each of: the connection, the sending, each part of the answer. Also for
  // the look-up of the host's name, which is the system's to bound.
  Answer post(const std::string& body, const std::string& content_type);

 private:
  const HttpTarget target_;
  std::unique_ptr<httplib::ClientImpl> client_;
};

}  // namespace hapax::observe
