// A PostgreSQL that refuses connections without TLS. It has users with a password (SCRAM), users
// with a client certificate, and the test itself as the owner.
#pragma once

#include <string>

#include "sandbox/postgres_server.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/certificates.hpp"

namespace hapax::support {

class SecurePostgres {
 public:
  static constexpr const char* kPasswordUser = "hapax_scram";
  static constexpr const char* kCertificateUser = "hapax_cert";

  // `valid`: of the server's certificate. Blocks: seconds.
  explicit SecurePostgres(const std::string& password, Valid valid = Valid::now);

  Authority& authority() { return authority_; }
  sandbox::PostgresServer& server() { return *server_; }

  // Keywords for a connection by name and port, without a user.
  std::string target(const std::string& database = "postgres",
                     const std::string& host = "localhost") const;

  // As the owner, over the network as it is. One text; its first field.
  std::string run(const std::string& sql, const std::string& database = "postgres");

 private:
  sandbox::TemporaryFolder folder_;
  Authority authority_;
  std::unique_ptr<sandbox::PostgresServer> server_;
};

}  // namespace hapax::support
