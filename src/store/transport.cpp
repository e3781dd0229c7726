#include "store/transport.hpp"

#include <libpq-fe.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace hapax::store {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_local(std::string_view host) {
  return host.empty() || host.starts_with('/') || host.starts_with('@') || host == "localhost" ||
         host == "::1" || host.starts_with("127.");
}

bool all_local(std::string_view hosts) {
  while (true) {
    const auto comma = hosts.find(',');
    if (!is_local(hosts.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    hosts.remove_prefix(comma + 1);
  }
}

}  // namespace

Transport transport_of(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  std::string host = environment("PGHOST"), address = environment("PGHOSTADDR");
  std::string service = environment("PGSERVICE");
  Transport transport{true, environment("PGSSLMODE")};
  const std::pair<std::string_view, std::string*> wanted[] = {{"host", &host},
                                                              {"hostaddr", &address},
                                                              {"service", &service},
                                                              {"sslmode", &transport.sslmode}};
  for (const PQconninfoOption* option = parsed.get();
       option != nullptr && option->keyword != nullptr; ++option)
    for (const auto& [keyword, value] : wanted)
      if (option->val != nullptr && keyword == option->keyword) *value = option->val;
  transport.local = all_local(address.empty() ? host : address);
  if (transport.sslmode.empty() && service.empty() && !transport.local)
    transport.sslmode = "require";
  return transport;
}

bool same_database(const std::string& url, const std::string& other) {
  const auto place_of = [](const std::string& text) {
    const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
        PQconninfoParse(text.c_str(), nullptr), PQconninfoFree);
    std::vector<std::string> place;
    for (const PQconninfoOption* option = parsed.get();
         option != nullptr && option->keyword != nullptr; ++option)
      for (const std::string_view keyword : {"host", "hostaddr", "port", "dbname", "service"})
        if (keyword == option->keyword) place.emplace_back(option->val ? option->val : "");
    return place;
  };
  const auto place = place_of(url);
  return !place.empty() && place == place_of(other);
}

}  // namespace hapax::store
