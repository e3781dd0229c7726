#include "gate/tls.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "config/file_text.hpp"
#include "gate/problem.hpp"
#include "observe/log.hpp"

namespace hapax::gate {
namespace {

namespace ssl = boost::asio::ssl;

constexpr std::chrono::hours kSoon{14 * 24};

std::string text_of_file(const char* setting, const std::string& path) {
  auto file = config::read_file(path);
  if (const auto* error = std::get_if<config::NotRead>(&file))
    throw std::runtime_error(std::string(setting) + ": cannot read " + path + ": " + error->why);
  return std::get<config::FileText>(std::move(file)).text;
}

// Calls `use` with the text of the file.
template <class Use>
void take(const char* setting, const std::string& path, const Use& use) {
  const std::string text = text_of_file(setting, path);
  try {
    use(boost::asio::buffer(text));
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error(std::string(setting) + ": " + path +
                             " cannot be used: " + error.code().message());
  }
}

std::chrono::sys_seconds end_of(SSL_CTX* context) {
  std::tm parts{};
  ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context)), &parts);
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&parts)));
}

}  // namespace

struct Tls::Loaded {
  std::shared_ptr<Context> context;
  std::chrono::sys_seconds expires;
};

Tls::Loaded Tls::load(const config::GateTls& files) {
  auto context = std::make_shared<Context>(Context::tls_server);
  SSL_CTX* const raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);  // of idle connections
  // Else OpenSSL asks for the password of a key at the terminal.
  context->set_password_callback([](std::size_t, auto) { return std::string(); });
  take("gate.tls.certificate", files.certificate,
       [&](const auto& text) { context->use_certificate_chain(text); });
  take("gate.tls.key", files.key,
       [&](const auto& text) { context->use_private_key(text, Context::pem); });
  // OpenSSL accepts a key of another type than the certificate's, and then has no certificate for
  // it.
  if (SSL_CTX_check_private_key(raw) != 1)
    throw std::runtime_error("gate.tls.key: " + files.key +
                             " is not the key of the certificate in " + files.certificate +
                             "; put the files of one pair there");
  if (!files.client_ca.empty()) {
    take("gate.tls.client_ca", files.client_ca,
         [&](const auto& text) { context->add_certificate_authority(text); });
    // A client without a certificate gets an answer in words. Sessions are not resumed, because the
    // certificate would be as old as the first handshake.
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(raw, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(raw, 0);
  }
  return {context, end_of(raw)};
}

std::string Tls::texts(const config::GateTls& files) {
  std::string all;
  for (const auto& [setting, path] :
       {std::pair("gate.tls.certificate", &files.certificate),
        std::pair("gate.tls.key", &files.key), std::pair("gate.tls.client_ca", &files.client_ca)})
    if (!path->empty()) all += text_of_file(setting, *path) + '\0';
  return all;
}

Tls::Tls(config::GateTls files) : files_(std::move(files)), seen_(texts(files_)) {
  Loaded loaded = load(files_);
  context_ = std::move(loaded.context);
  expires_ = loaded.expires;
  warn_of_expiry();
}

Tls::~Tls() = default;

std::shared_ptr<Tls::Context> Tls::context() const {
  const sync::Lock lock(mutex_);
  return context_;
}

std::chrono::sys_seconds Tls::expires() const {
  const sync::Lock lock(mutex_);
  return expires_;
}

void Tls::look() {
  std::string now;
  try {
    now = texts(files_);
    if (now == std::exchange(seen_, now)) return;
    Loaded loaded = load(files_);
    const sync::Lock lock(mutex_);
    context_ = std::move(loaded.context);
    expires_ = loaded.expires;
  } catch (const std::runtime_error& error) {
    if (now.empty() && seen_.empty()) return;  // it was logged
    seen_ = now;
    observe::log::warning("certificate_not_taken", {{"error", error.what()}},
                          "the files of gate.tls have changed and cannot be used; new connections "
                          "get the last certificate that could");
    return;
  }
  observe::log::info("certificate_taken", {{"expires", http_date(expires())}},
                     "the files of gate.tls have changed; new connections get the new certificate");
  warn_of_expiry();
}

void Tls::warn_of_expiry() const {
  if (expires() > std::chrono::system_clock::now() + kSoon) return;
  observe::log::warning("certificate_expires", {{"expires", http_date(expires())}},
                        "the certificate of gate.tls expires soon, or has expired; put a new one "
                        "into its files");
}

}  // namespace hapax::gate
