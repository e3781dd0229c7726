#include "store/connect_error.hpp"

#include <string_view>
#include <utility>

namespace hapax::store {
namespace {

// Words of libpq's or the server's error, and what to do about it. The first row that fits wins.
constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
    {"password authentication failed",
     "the password (or the user) is wrong: fix postgres.url, or the @file or passfile that it "
     "comes "
     "from; a worker reads those again by itself"},
    {"no password supplied",
     "the server wants a password: put it into postgres.url by @/path/to/secret, or name a "
     "passfile "
     "there"},
    {"alert certificate expired",
     "our client certificate has expired: renew the file of sslcert; a worker "
     "reads it again by itself"},
    {"alert unknown ca",
     "the server does not know the CA of our client certificate: name one in sslcert that the "
     "server's ssl_ca_file signed"},
    {"requires a valid client certificate",
     "the server wants a client certificate: name it and its key with sslcert and sslkey in "
     "postgres.url"},
    {"certificate authentication failed",
     "the client certificate names another user: its CN must be the user of postgres.url"},
    {"certificate verify failed",
     "the server's certificate has expired, or no CA in sslrootcert signed it. Renew it, or name "
     "the right CA (`openssl s_client -starttls postgres -connect HOST:PORT` shows which)"},
    {"does not match host name",
     "the server's certificate names another host: use a name in postgres.url that stands in it"},
    {"root certificate file",
     "name the file of the CA with sslrootcert in postgres.url: without it the server's "
     "certificate "
     "cannot be verified"},
    {"has group or world access", "chmod 600 would close the key"},
    {"not private key file", "name the file of the client's key with sslkey in postgres.url"},
    {"server does not support SSL",
     "hapax sends nothing in plain text over a network: set ssl = on at the server. If the network "
     "itself is trusted, write sslmode=disable into postgres.url instead"},
    {"no encryption",
     "the server wants TLS (or knows no such user or database): write sslmode=verify-full into "
     "postgres.url, or fix the server's pg_hba.conf"},
    {"no pg_hba.conf entry",
     "the server refuses this user from this host: fix its pg_hba.conf, or the user and "
     "database in postgres.url"},
};

std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

// libpq's lines as one line. Repeated lines are dropped, because libpq reports each address of a
// host.
std::string one_line(std::string_view text) {
  std::string joined;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && joined.find(line) == std::string::npos)
      joined.append(joined.empty() ? "" : "; ").append(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return joined;
}

}  // namespace

std::string explain_connect_error(const std::string& libpq) {
  const std::string line = one_line(libpq);
  for (const auto& [words, advice] : kAdvice)
    if (line.find(words) != std::string::npos) return line + " (" + std::string(advice) + ")";
  return line;
}

namespace {

// Outages that PostgreSQL reports itself: what each is, and what to do.
constexpr std::pair<std::string_view, std::string_view> kStates[] = {
    {"53100", "the disk of PostgreSQL is full: make room on it"},
    {"53200", "PostgreSQL has no memory left: give it more, or lower its work_mem"},
    {"53300",
     "PostgreSQL has no connection left: raise its max_connections, or lower worker.lanes"},
    {"53400", "a limit of PostgreSQL's configuration is reached: see its log"},
    {"25006",
     "the server or the session is read-only: is it a standby, or did another than roles.sql "
     "set default_transaction_read_only?"},
    {"57P03", "PostgreSQL starts up, shuts down or recovers"},
    {"57P", "PostgreSQL was shut down or restarted"},
    {"58", "PostgreSQL cannot read or write its files: see its log and its disk"},
    {"XX001", "PostgreSQL found damaged data: see its log; restore or repair it"},
    {"XX002", "PostgreSQL found a damaged index: see its log; REINDEX it"},
    {"26000", "is there a pooler in transaction mode between? hapax needs its session mode"},
    {"42P05", "is there a pooler in transaction mode between? hapax needs its session mode"},
};

// libpqxx's words for a connection that is gone.
constexpr std::string_view kBroken[] = {"not connected", "Lost connection", "client encoding"};

}  // namespace

Outage explain_outage(std::string_view sqlstate, const std::string& text) {
  // Only the first line, because PostgreSQL adds hints and repeats itself on the next ones.
  const std::string line = text.substr(0, text.find('\n'));
  if (sqlstate.empty()) {
    for (const std::string_view words : kBroken)
      if (line.find(words) != std::string::npos)
        return {"the connection to PostgreSQL broke", "the connection to PostgreSQL broke"};
    return {line, line};
  }
  const std::string state = "SQLSTATE " + std::string(sqlstate);
  for (const auto& [which, advice] : kStates)
    if (sqlstate.starts_with(which))
      return {line + " (" + std::string(advice) + ")", std::string(advice) + " (" + state + ")"};
  return {line, state};
}

}  // namespace hapax::store
