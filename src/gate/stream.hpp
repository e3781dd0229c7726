// The bytes of one connection, plain or through TLS. Only for connection.*: it shows Boost.Beast.
//
// Thread safety: none; on the server's thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "gate/request.hpp"

namespace hapax::gate {

class Stream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  // `tls`: null for plain HTTP.
  Stream(boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls)
      : context_(std::move(tls)) {
    if (context_)
      secure_.emplace(std::move(socket), *context_);
    else
      plain_.emplace(std::move(socket));
  }

  bool is_tls() const { return secure_.has_value(); }

  // The TCP stream below TLS. Its time limit holds for TLS, too.
  boost::beast::tcp_stream& tcp() { return secure_ ? secure_->next_layer() : *plain_; }
  const boost::beast::tcp_stream& tcp() const { return secure_ ? secure_->next_layer() : *plain_; }

  // What Boost asks of a stream.
  executor_type get_executor() noexcept { return tcp().get_executor(); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (secure_)
      secure_->async_read_some(buffers, std::forward<Handler>(handler));
    else
      plain_->async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (secure_)
      secure_->async_write_some(buffers, std::forward<Handler>(handler));
    else
      plain_->async_write_some(buffers, std::forward<Handler>(handler));
  }

  // Precondition: is_tls().
  template <class Handler>
  void async_handshake(Handler&& handler) {
    secure_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  // Tells the client that nothing follows. Precondition: is_tls().
  template <class Handler>
  void async_farewell(Handler&& handler) {
    secure_->async_shutdown(std::forward<Handler>(handler));
  }

  // The certificate that the client has shown and gate.tls.client_ca has signed.
  std::optional<ClientCertificate> certificate();

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::optional<boost::beast::tcp_stream> plain_;
  std::optional<boost::beast::ssl_stream<boost::beast::tcp_stream>> secure_;
};

}  // namespace hapax::gate
