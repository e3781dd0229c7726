#include "config/network.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

namespace hapax::config {
namespace {

constexpr int kMappedBits = 96;  // in front of an IPv4 address

bool is_ipv4(const std::string& text) { return text.find(':') == std::string::npos; }

}  // namespace

std::optional<Address> parse_address(const std::string& text) {
  Address address{};
  if (!is_ipv4(text))
    return inet_pton(AF_INET6, text.c_str(), address.data()) == 1 ? std::optional(address)
                                                                  : std::nullopt;
  address[10] = address[11] = 0xFF;
  return inet_pton(AF_INET, text.c_str(), address.data() + 12) == 1 ? std::optional(address)
                                                                    : std::nullopt;
}

bool Network::contains(const Address& other) const {
  const int whole = bits / 8;
  if (std::memcmp(address.data(), other.data(), static_cast<std::size_t>(whole)) != 0) return false;
  if (bits % 8 == 0) return true;
  const auto at = static_cast<std::size_t>(whole);
  const unsigned differ = static_cast<unsigned>(address.at(at) ^ other.at(at));
  return differ >> (8 - bits % 8) == 0;
}

std::optional<Network> parse_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  const auto address = parse_address(host);
  if (!address) return std::nullopt;
  Network network{*address};
  if (slash == std::string::npos) return network;
  const char* const end = text.data() + text.size();
  int bits = -1;
  const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, bits);
  const int first = is_ipv4(host) ? kMappedBits : 0;
  if (error != std::errc{} || rest != end || bits < 0 || bits > 128 - first) return std::nullopt;
  network.bits = first + bits;
  return network;
}

}  // namespace hapax::config
