#include "support/certificates.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <stdexcept>

namespace hapax::support {
// Outside of the nameless namespace, because Authority::Pair holds them.
template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* thing) const {
    Free(thing);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, Freed<X509_free>>;

namespace {

constexpr long kDay = 24 * 60 * 60;

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("OpenSSL: ") + what);
}

Key make_key(KeyType type) {
  Key key(type == KeyType::rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"));
  check(key != nullptr, "make a key");
  return key;
}

void add(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  check(extension && X509_add_ext(&certificate, extension.get(), -1) == 1, "extension");
}

X509Certificate make(const std::string& common_name, EVP_PKEY& key, long serial, Valid valid) {
  X509Certificate made(X509_new());
  check(made != nullptr, "X509_new");
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  const long end = valid == Valid::expired ? -kDay : kDay;
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), end);
  X509_set_pubkey(made.get(), &key);
  check(X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                   -1, 0) == 1,
        "name");
  return made;
}

void write(const std::filesystem::path& path, EVP_PKEY* key, X509* certificate,
           const std::string& password = {}) {
  std::filesystem::remove(path);  // its mode would stay
  const mode_t before = umask(key != nullptr ? 0077 : 0022);
  const std::unique_ptr<FILE, Freed<std::fclose>> file(std::fopen(path.c_str(), "w"));
  umask(before);
  check(file != nullptr, "fopen");
  if (key != nullptr)
    check(PEM_write_PKCS8PrivateKey(file.get(), key, password.empty() ? nullptr : EVP_aes_256_cbc(),
                                    password.data(), static_cast<int>(password.size()), nullptr,
                                    nullptr) == 1,
          "write key");
  if (certificate != nullptr)
    check(PEM_write_X509(file.get(), certificate) == 1, "write certificate");
}

}  // namespace

struct Authority::Pair {
  Key key;
  X509Certificate certificate;
};

Authority::Authority(std::filesystem::path folder, const std::string& name)
    : folder_(std::move(folder)), name_(name), pair_(std::make_unique<Pair>()) {
  pair_->key = make_key(KeyType::ecdsa);
  pair_->certificate = make(name, *pair_->key, serial_, Valid::now);
  X509& self = *pair_->certificate;
  X509_set_issuer_name(&self, X509_get_subject_name(&self));
  add(self, self, NID_basic_constraints, "critical,CA:TRUE");
  check(X509_sign(&self, pair_->key.get(), EVP_sha256()) > 0, "sign");
  write(certificate(), nullptr, &self);
}

Authority::~Authority() = default;

Certificate Authority::issue(const std::string& name, const std::string& host, Valid valid,
                             const std::string& password, KeyType type) {
  const Key key = make_key(type);
  const X509Certificate made = make(host.empty() ? name : host, *key, ++serial_, valid);
  X509_set_issuer_name(made.get(), X509_get_subject_name(pair_->certificate.get()));
  if (!host.empty()) add(*made, *pair_->certificate, NID_subject_alt_name, "DNS:" + host);
  check(X509_sign(made.get(), pair_->key.get(), EVP_sha256()) > 0, "sign");
  const Certificate files{folder_ / (name + ".pem"), folder_ / (name + ".key"),
                          folder_ / (name + ".bundle")};
  write(files.certificate, nullptr, made.get());
  write(files.key, key.get(), nullptr, password);
  write(files.bundle, key.get(), made.get(), password);
  return files;
}

}  // namespace hapax::support
