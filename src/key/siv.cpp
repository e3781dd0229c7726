#include "key/siv.hpp"

#include <openssl/evp.h>

#include <new>
#include <stdexcept>
#include <utility>

namespace hapax::key {
namespace {

constexpr int kTagBytes = 16;
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext>;

CipherContext new_context() {
  CipherContext context(EVP_CIPHER_CTX_new());
  if (!context) throw std::bad_alloc();
  return context;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::shared_ptr<evp_cipher_st> fetch_cipher() {
  EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-SIV", nullptr);
  if (cipher == nullptr) throw std::runtime_error("this OpenSSL has no AES-256-SIV");
  return {cipher, EVP_CIPHER_free};
}

void require_cipher(int ok) {
  if (ok != 1) throw std::runtime_error("OpenSSL refused to encrypt with AES-256-SIV");
}

}  // namespace

Siv::Siv(std::string key) : key_(std::move(key)), cipher_(fetch_cipher()) {}

std::string Siv::seal(std::string_view text, std::string_view context) const {
  const CipherContext cipher = new_context();
  std::string sealed(text.size(), '\0');
  std::string tag(kTagBytes, '\0');
  int length = 0;
  require_cipher(
      EVP_EncryptInit_ex2(cipher.get(), cipher_.get(), bytes_of(key_), nullptr, nullptr));
  require_cipher(EVP_EncryptUpdate(cipher.get(), nullptr, &length, bytes_of(context),
                                   static_cast<int>(context.size())));
  require_cipher(EVP_EncryptUpdate(cipher.get(), bytes_of(sealed), &length, bytes_of(text),
                                   static_cast<int>(text.size())));
  require_cipher(EVP_EncryptFinal_ex(cipher.get(), bytes_of(sealed) + length, &length));
  require_cipher(
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, bytes_of(tag)));
  return tag + sealed;
}

std::optional<std::string> Siv::open(std::string_view sealed, std::string_view context) const {
  if (sealed.size() <= kTagBytes) return std::nullopt;
  const CipherContext cipher = new_context();
  std::string tag(sealed.substr(0, kTagBytes));
  sealed.remove_prefix(kTagBytes);
  std::string text(sealed.size(), '\0');
  int length = 0;
  require_cipher(
      EVP_DecryptInit_ex2(cipher.get(), cipher_.get(), bytes_of(key_), nullptr, nullptr));
  require_cipher(
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, bytes_of(tag)));
  require_cipher(EVP_DecryptUpdate(cipher.get(), nullptr, &length, bytes_of(context),
                                   static_cast<int>(context.size())));
  if (EVP_DecryptUpdate(cipher.get(), bytes_of(text), &length, bytes_of(sealed),
                        static_cast<int>(sealed.size())) != 1)
    return std::nullopt;
  if (EVP_DecryptFinal_ex(cipher.get(), bytes_of(text) + length, &length) != 1) return std::nullopt;
  return text;
}

std::string base64url(std::string_view bytes) {
  std::string text;
  unsigned bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) text += kDigits[(bits >> (count - 6)) & 63U];
  }
  if (count > 0) text += kDigits[(bits << (6 - count)) & 63U];
  return text;
}

std::optional<std::string> bytes_of_base64url(std::string_view text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char digit : text) {
    const auto value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<unsigned>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xFFU);
  }
  // One text for each value: what is left over must be nothing.
  return base64url(bytes) == text ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace hapax::key
