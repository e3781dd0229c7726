#include "key/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace hapax::key {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

void require(int ok) {
  if (ok != 1) throw std::runtime_error("OpenSSL refused to compute SHA-256");
}

// A context that has been given the algorithm once. OpenSSL 3 looks an algorithm up by name each
// time it is named, which costs more than hashing a small payload.
EVP_MD_CTX* fresh_context() {
  thread_local std::unique_ptr<EVP_MD_CTX, FreeContext> context;
  if (context) {
    require(EVP_DigestInit_ex(context.get(), nullptr, nullptr));
    return context.get();
  }
  std::unique_ptr<EVP_MD_CTX, FreeContext> made(EVP_MD_CTX_new());
  if (!made) throw std::bad_alloc();
  require(EVP_DigestInit_ex(made.get(), EVP_sha256(), nullptr));
  context = std::move(made);
  return context.get();
}

}  // namespace

std::string sha256(std::string_view bytes) {
  EVP_MD_CTX* context = fresh_context();
  std::string digest(32, '\0');
  require(EVP_DigestUpdate(context, bytes.data(), bytes.size()));
  require(EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  return digest;
}

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

bool same_digest(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hapax::key
