// Deterministic authenticated encryption: AES-256-SIV (RFC 5297). Equal texts give equal results.
// Only results that were made with the key can be opened.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_cipher_st;

namespace hapax::key {

// Thread safety: all of it, once it is made.
class Siv {
 public:
  static constexpr std::size_t kKeyBytes = 64;

  // Precondition: `key` has kKeyBytes.
  // Throws: std::runtime_error if OpenSSL has no AES-256-SIV.
  explicit Siv(std::string key);

  // `context`: what the text is for; not empty. open() needs the same context.
  std::string seal(std::string_view text, std::string_view context) const;

  // Returns the text. Nothing: it was not sealed with this key and context.
  std::optional<std::string> open(std::string_view sealed, std::string_view context) const;

 private:
  const std::string key_;
  const std::shared_ptr<evp_cipher_st> cipher_;
};

// URL-safe, without padding (RFC 4648). Pure.
std::string base64url(std::string_view bytes);
// Nothing if base64url() does not make such a text.
std::optional<std::string> bytes_of_base64url(std::string_view text);

}  // namespace hapax::key
