#include "support/secure_postgres.hpp"

#include <pwd.h>
#include <unistd.h>

#include <fstream>
#include <pqxx/pqxx>

namespace hapax::support {
namespace {

// If we are root, the server runs as postgres. It refuses a key file of another owner.
void give_to_server(const std::filesystem::path& path) {
  const passwd* const user = geteuid() == 0 ? getpwnam("postgres") : nullptr;
  if (user != nullptr && chown(path.c_str(), user->pw_uid, user->pw_gid) != 0)
    throw std::runtime_error("chown " + path.string());
}

}  // namespace

SecurePostgres::SecurePostgres(const std::string& password, Valid valid)
    : folder_("secure-postgres"), authority_(folder_.path(), "postgres-ca") {
  const Certificate certificate = authority_.issue("postgres", "localhost", valid);
  give_to_server(certificate.key);
  const std::filesystem::path rules = folder_.path() / "pg_hba.conf";
  std::ofstream(rules) << "hostssl all " << kCertificateUser << " all cert\n"
                       << "hostssl all " << kPasswordUser << " all scram-sha-256\n"
                       << "host all postgres 127.0.0.1/32 trust\n";
  server_ = std::make_unique<sandbox::PostgresServer>(
      sandbox::PostgresOptions{folder_.path(),
                               {{"ssl", "on"},
                                {"ssl_cert_file", certificate.certificate},
                                {"ssl_key_file", certificate.key},
                                {"ssl_ca_file", authority_.certificate()},
                                {"hba_file", rules}}});
  run("CREATE ROLE " + std::string(kPasswordUser) + " LOGIN PASSWORD '" + password + "'");
  run("CREATE ROLE " + std::string(kCertificateUser) + " LOGIN");
}

std::string SecurePostgres::target(const std::string& database, const std::string& host) const {
  return "host=" + host + " hostaddr=127.0.0.1 port=" + std::to_string(server_->port()) +
         " dbname=" + database + " sslrootcert=" + authority_.certificate().string() + " ";
}

std::string SecurePostgres::run(const std::string& sql, const std::string& database) {
  pqxx::connection connection(server_->url(database));
  const auto rows = pqxx::nontransaction(connection).exec(sql);
  return rows.empty() ? "" : rows[0][0].c_str();
}

}  // namespace hapax::support
