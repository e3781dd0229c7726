#include "payload/http.hpp"

#include <curl/curl.h>

#include <array>
#include <memory>
#include <stdexcept>

namespace hapax::payload {
namespace {

constexpr long kConnectTimeoutMs = 1'000;
constexpr long kTimeoutMs = 3'000;
constexpr std::size_t kMaxBody = std::size_t{4} << 20;  // bytes; a schema has at most 1 MiB

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// Without an exception, which must not leave a callback of libcurl.
std::size_t append(char* data, std::size_t size, std::size_t count, void* into) noexcept {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > kMaxBody) return 0;
  try {
    body.append(data, size * count);
  } catch (...) {
    return 0;
  }
  return size * count;
}

HttpAnswer get(const config::Registry& registry, const std::string& path) {
  const std::unique_ptr<CURL, Cleanup> handle(curl_easy_init());
  if (!handle) throw std::runtime_error("libcurl cannot start");
  HttpAnswer answer;
  std::array<char, CURL_ERROR_SIZE> error{};
  const std::unique_ptr<curl_slist, Cleanup> headers(curl_slist_append(
      nullptr, "Accept: application/vnd.schemaregistry.v1+json, application/json"));
  const auto set = [&](CURLoption option, auto value) {
    if (curl_easy_setopt(handle.get(), option, value) != CURLE_OK)
      throw std::runtime_error("libcurl does not take a setting");
  };
  const std::string url = registry.url + path;
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_ERRORBUFFER, error.data());
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_USERAGENT, "hapax");
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // or a name server that does not answer would be waited for
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  set(CURLOPT_TIMEOUT_MS, kTimeoutMs);
  set(CURLOPT_WRITEFUNCTION, &append);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&answer.body));
  if (!registry.ca_file.empty()) set(CURLOPT_CAINFO, registry.ca_file.c_str());
  if (!registry.user.empty()) {
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    set(CURLOPT_USERNAME, registry.user.c_str());
    set(CURLOPT_PASSWORD, registry.password.c_str());
  }
  const CURLcode code = curl_easy_perform(handle.get());
  if (code != CURLE_OK)
    throw std::runtime_error(error[0] != '\0' ? error.data() : curl_easy_strerror(code));
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace

HttpGet http_get(const config::Registry& registry) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw std::runtime_error("libcurl cannot start");
  return [registry](const std::string& path) { return get(registry, path); };
}

std::string url_escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    constexpr const char* kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    escaped += plain ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return escaped;
}

}  // namespace hapax::payload
