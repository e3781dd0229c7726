#include "gate/stream.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace hapax::gate {
namespace {

constexpr int kMaxName = 200;  // bytes, as of the tenants of tokens

struct FreeText {
  void operator()(unsigned char* text) const { OPENSSL_free(text); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// The common name, if the subject has exactly one. With several, the client could choose which one
// counts.
std::string common_name(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return {};
  unsigned char* made = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&made, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  const std::unique_ptr<unsigned char, FreeText> text(made);
  if (size <= 0 || size > kMaxName) return {};
  std::string name(reinterpret_cast<const char*>(text.get()), static_cast<std::size_t>(size));
  return name.find('\0') == std::string::npos ? name : std::string();
}

}  // namespace

std::optional<ClientCertificate> Stream::certificate() {
  if (!secure_) return std::nullopt;
  SSL* const raw = secure_->native_handle();
  const std::unique_ptr<X509, FreeCertificate> shown(SSL_get1_peer_certificate(raw));
  if (!shown || SSL_get_verify_result(raw) != X509_V_OK) return std::nullopt;
  return ClientCertificate{common_name(shown.get())};
}

}  // namespace hapax::gate
