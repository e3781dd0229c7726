// Between the messages of Boost.Beast and those of the gate: a header as it came, an answer as it
// is sent. Only for connection.*: it shows Boost.Beast.
//
// Thread safety: all of it.
#pragma once

#include <boost/beast/http.hpp>
#include <variant>

#include "config/gate.hpp"
#include "gate/admission.hpp"
#include "gate/request.hpp"

namespace hapax::gate {

// The second one is for HEAD.
using HttpAnswer = std::variant<boost::beast::http::response<boost::beast::http::string_body>,
                                boost::beast::http::response<boost::beast::http::empty_body>>;

// Without peer and certificate, which are the connection's.
Head head_of(const boost::beast::http::request<boost::beast::http::string_body>& message);

// `head_only`: it has the body's length without the body.
HttpAnswer http_of(const Answer& answer, const config::Gate& gate, bool head_only);

}  // namespace hapax::gate
