// A client that speaks TLS.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <csignal>
#include <functional>
#include <memory>

#include "gate/http_client.hpp"
#include "support/certificates.hpp"

namespace hapax::gate {

class TlsClient final : public HttpClient {
 public:
  struct Options {
    std::filesystem::path trusts;  // the authority of the gate's certificate
    const support::Certificate* shows = nullptr;
    int version = 0;  // the highest; 0: any
    std::function<void()> before_handshake = {};
  };

  TlsClient(std::uint16_t port, const Options& options) : HttpClient(port) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_load_verify_locations(context_.get(), options.trusts.c_str(), nullptr);
    SSL_CTX_set_security_level(context_.get(), 0);  // the gate is to refuse what is too old
    if (options.version != 0) SSL_CTX_set_max_proto_version(context_.get(), options.version);
    if (options.shows != nullptr) {
      SSL_CTX_use_certificate_chain_file(context_.get(), options.shows->certificate.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), options.shows->key.c_str(), SSL_FILETYPE_PEM);
    }
    tls_.reset(SSL_new(context_.get()));
    SSL_set_fd(tls_.get(), socket());
    if (options.before_handshake) options.before_handshake();
    is_up_ = SSL_connect(tls_.get()) == 1;
  }

  // Whether the handshake came to an end. In TLS 1.3 the gate may refuse the client after that.
  bool is_up() const { return is_up_; }

  // The certificate that the gate has shown: its number.
  long serial() const {
    const std::unique_ptr<X509, Free> shown(SSL_get1_peer_certificate(tls_.get()));
    return shown ? ASN1_INTEGER_get(X509_get0_serialNumber(shown.get())) : 0;
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* tls) const { SSL_free(tls); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };

  ssize_t put(const char* bytes, std::size_t size) override {
    return is_up_ ? SSL_write(tls_.get(), bytes, static_cast<int>(size)) : -1;
  }
  // 0: the gate told that nothing follows.
  ssize_t get(char* bytes, std::size_t size) override {
    if (!is_up_) return -1;
    const int now = SSL_read(tls_.get(), bytes, static_cast<int>(size));
    if (now > 0) return now;
    return SSL_get_error(tls_.get(), now) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
  }

  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> tls_;
  bool is_up_ = false;
};

}  // namespace hapax::gate
