// Addresses of the Internet, and networks of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace hapax::config {

// IPv6; an IPv4 address is the IPv6 address that is mapped to it.
using Address = std::array<std::uint8_t, 16>;

// "127.0.0.1" or "::1". Nothing if it is neither. Pure.
std::optional<Address> parse_address(const std::string& text);

struct Network {
  Address address{};
  int bits = 128;  // of the address that count

  bool contains(const Address& other) const;
  bool operator==(const Network&) const = default;
};

// An address, or a network such as "10.0.0.0/8" or "fd00::/8". Pure.
std::optional<Network> parse_network(const std::string& text);

}  // namespace hapax::config
