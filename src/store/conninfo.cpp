#include "store/conninfo.hpp"

#include <libpq-fe.h>

#include <memory>
#include <string_view>
#include <vector>

#include "config/redact.hpp"
#include "config/suggest.hpp"
#include "store/fault.hpp"

namespace hapax::store {
namespace {

void append_option(std::string& conninfo, const std::string& keyword, std::string_view value) {
  conninfo += keyword + "='";
  for (const char c : value) {
    if (c == '\'' || c == '\\') conninfo += '\\';
    conninfo += c;
  }
  conninfo += "' ";
}

// Which keyword was meant, if libpq names one that it does not know; else "". libpq's own words
// may quote any part of the url, password included, so they are not shown.
std::string meant_keyword(const char* message) {
  const std::string_view said = message == nullptr ? "" : message;
  const auto begin = said.find('"');
  const auto end = said.rfind('"');
  if (!said.starts_with("invalid") || begin == end) return "";
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> known(PQconndefaults(),
                                                                             PQconninfoFree);
  std::vector<std::string> names;
  for (const auto* option = known.get(); option != nullptr && option->keyword; ++option)
    names.emplace_back(option->keyword);
  return config::closest(said.substr(begin + 1, end - begin - 1), names);
}

}  // namespace

std::string conninfo_of(const std::string& url, const ConnectKeywords& defaults,
                        const ConnectKeywords& instead) {
  if (const auto mistake = config::url_mistake(url))
    throw DatabaseError({Fault::Kind::connection, "", "postgres.url " + *mistake});
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(url.c_str(), &message), PQconninfoFree);
  if (!parsed) {
    const std::string near = meant_keyword(message);
    PQfreemem(message);
    throw DatabaseError(
        {Fault::Kind::connection, "",
         near.empty() ? "postgres.url is neither a URI (postgresql://user@host:5432/database) nor "
                        "keywords that libpq knows (host=… dbname=…)"
                      : "postgres.url holds a keyword that libpq does not know; did you mean " +
                            near + "?"});
  }
  std::string conninfo;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    const auto other = instead.find(option->keyword);
    const auto found = defaults.find(option->keyword);
    if (other != instead.end()) {
      append_option(conninfo, option->keyword, other->second);
    } else if (option->val != nullptr) {
      append_option(conninfo, option->keyword, option->val);
    } else if (found != defaults.end()) {
      append_option(conninfo, option->keyword, found->second);
    }
  }
  return conninfo;
}

Endpoint endpoint_of(const std::string& url) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> connection(PQconnectdb(url.c_str()), PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw DatabaseError({Fault::Kind::connection, "", PQerrorMessage(connection.get())});
  return {PQhost(connection.get()), PQport(connection.get())};
}

std::string url_through(const std::string& url, const Endpoint& real, int port) {
  return conninfo_of(
      url, {}, {{"host", real.host}, {"hostaddr", "127.0.0.1"}, {"port", std::to_string(port)}});
}

}  // namespace hapax::store
