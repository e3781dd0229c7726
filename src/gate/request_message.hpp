// Shows a request to a handler as a message. Also makes the fingerprint that tells a retry from a
// reused key.
#pragma once

#include <string>
#include <vector>

#include "gate/callers.hpp"
#include "gate/request.hpp"
#include "hapax/message.hpp"
#include "key/identity.hpp"

namespace hapax::gate {

// Stored with each fingerprint, and named to a client whose request differs.
inline constexpr const char* kFingerprintRule = "http-1";

// Whether a Content-Type declares the body as JSON. Pure.
bool is_json_type(const std::string& content_type);

// SHA-256 of method, path, query, content type and body. A JSON body counts as its canonical text,
// so that blanks and the order of members do not matter. Pure.
key::Fingerprint fingerprint_of(const Request& request);

// Holds the headers of the request in lower case, without those that identify the caller.
// `idempotency-key` is the key that the client means. The gate adds headers that no client can
// name: `:method`, `:path`, `:query`, `:tenant`, `:fingerprint` (in hex), and for each parameter of
// the path `:path.<name>`.
class RequestMessage {
 public:
  // All outlive this. `topic`: the route's path. `offset`: names this run. `fingerprint`: of the
  // request, if it is guarded.
  RequestMessage(const Request& request, const Callers& callers, const std::string& topic,
                 std::int64_t offset, const key::Fingerprint& fingerprint);
  RequestMessage(const RequestMessage&) = delete;
  RequestMessage& operator=(const RequestMessage&) = delete;

  const Message& message() const { return *message_; }

 private:
  const std::string fingerprint_;
  std::vector<std::string> names_;  // of the parameters
  std::vector<Header> headers_;
  std::optional<Message> message_;
};

}  // namespace hapax::gate
