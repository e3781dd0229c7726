// TLS to a PostgreSQL that accepts nothing else, by password and by client certificate. For each
// mistake there is one sentence that names it and tells how to fix it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "config/redact.hpp"
#include "store/operator/inspect.hpp"
#include "store/session.hpp"
#include "store/transport.hpp"
#include "support/secure_postgres.hpp"

namespace hapax::store {
namespace {

using support::Certificate;
using support::SecurePostgres;
using support::Valid;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPassword = "planted-password";
constexpr const char* kVerify = "sslmode=verify-full ";

SecurePostgres& server() {
  static SecurePostgres made(kPassword);
  return made;
}

std::string by_password(const std::string& password = kPassword) {
  return std::string("user=") + SecurePostgres::kPasswordUser + " password=" + password + " ";
}

std::string by_certificate(const Certificate& certificate) {
  return std::string("user=") + SecurePostgres::kCertificateUser +
         " sslcert=" + certificate.certificate.string() + " sslkey=" + certificate.key.string() +
         " ";
}

// Why no session could be made; "" if one was made, and its transport is encrypted.
std::string refusal(const std::string& url) {
  ConnectOptions options;
  options.url = url;
  try {
    Session session(options);
    return read_server(session).at("tls").is_null() ? "in plain text" : "";
  } catch (const DatabaseError& error) {
    EXPECT_EQ(error.fault().kind, Fault::Kind::connection);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(text.find("planted"), std::string::npos) << text;
    return text;
  }
}

TEST(PostgresTransport, TakesAPasswordOverVerifiedTls) {
  EXPECT_EQ(refusal(server().target() + kVerify + by_password()), "");
}

TEST(PostgresTransport, TakesAClientCertificate) {
  const Certificate mine = server().authority().issue(SecurePostgres::kCertificateUser);
  EXPECT_EQ(refusal(server().target() + kVerify + by_certificate(mine)), "");
}

TEST(PostgresTransport, NamesAWrongPassword) {
  EXPECT_THAT(refusal(server().target() + kVerify + by_password("planted-other")),
              AllOf(HasSubstr("password authentication failed"), HasSubstr("fix postgres.url")));
  EXPECT_THAT(refusal(server().target() + kVerify + "user=" + SecurePostgres::kPasswordUser),
              HasSubstr("the server wants a password"));
}

TEST(PostgresTransport, NamesAWrongAuthority) {
  const sandbox::TemporaryFolder folder("other-ca");
  const support::Authority other(folder.path(), "other-ca");
  EXPECT_THAT(refusal(server().target() + "sslrootcert=" + other.certificate().string() + " " +
                      kVerify + by_password()),
              AllOf(HasSubstr("certificate verify failed"), HasSubstr("name the right CA")));
}

TEST(PostgresTransport, NamesAWrongHost) {
  EXPECT_THAT(refusal(server().target("postgres", "other.example") + kVerify + by_password()),
              AllOf(HasSubstr("other.example"), HasSubstr("names another host")));
}

TEST(PostgresTransport, NamesAnExpiredCertificateOfTheServer) {
  SecurePostgres expired(kPassword, Valid::expired);
  EXPECT_THAT(refusal(expired.target() + kVerify + by_password()),
              HasSubstr("the server's certificate has expired"));
}

TEST(PostgresTransport, NamesAnExpiredCertificateOfOurs) {
  const Certificate mine =
      server().authority().issue(SecurePostgres::kCertificateUser, {}, Valid::expired);
  EXPECT_THAT(refusal(server().target() + kVerify + by_certificate(mine)),
              HasSubstr("our client certificate has expired"));
}

TEST(PostgresTransport, NamesAMissingClientCertificate) {
  EXPECT_THAT(refusal(server().target() + kVerify + "user=" + SecurePostgres::kCertificateUser),
              HasSubstr("the server wants a client certificate"));
}

TEST(PostgresTransport, NamesACertificateOfAnotherUser) {
  const Certificate other = server().authority().issue("somebody");
  EXPECT_THAT(refusal(server().target() + kVerify + by_certificate(other)),
              HasSubstr("the client certificate names another user"));
}

TEST(PostgresTransport, NamesAKeyThatOthersCanRead) {
  const Certificate mine = server().authority().issue(SecurePostgres::kCertificateUser);
  ASSERT_EQ(chmod(mine.key.c_str(), 0644), 0);
  EXPECT_THAT(refusal(server().target() + kVerify + by_certificate(mine)), HasSubstr("chmod 600"));
}

TEST(PostgresTransport, TellsThatTheServerWantsTls) {
  EXPECT_THAT(refusal(server().target() + "sslmode=disable " + by_password()),
              HasSubstr("the server wants TLS"));
}

// Linux takes 0.0.0.0 for this machine, and hapax for a host on the network.
TEST(PostgresTransport, NeverFallsBackToPlainTextOverANetwork) {
  sandbox::PostgresServer plain;
  const auto at = [&](const std::string& host) {
    return "user=postgres dbname=postgres port=" + std::to_string(plain.port()) + " host=" + host;
  };
  EXPECT_THAT(refusal(at("0.0.0.0")),
              AllOf(HasSubstr("sends nothing in plain text"), HasSubstr("sslmode=disable")));
  EXPECT_EQ(refusal(at("0.0.0.0") + " sslmode=disable"), "in plain text");
  EXPECT_EQ(refusal(at("127.0.0.1")), "in plain text");
}

TEST(PostgresTransport, IsDecidedByTheHosts) {
  for (const char* url : {"postgresql://u@db/d", "postgresql://u@localhost,db/d", "host=10.0.0.1",
                          "host=localhost hostaddr=10.0.0.1"}) {
    EXPECT_FALSE(transport_of(url).local) << url;
    EXPECT_EQ(transport_of(url).sslmode, "require") << url;
  }
  for (const char* url : {"postgresql:///d", "postgresql://u@localhost/d", "host=/run/postgresql",
                          "postgresql://[::1]/d", "host=127.0.0.1,::1"}) {
    EXPECT_TRUE(transport_of(url).local) << url;
    EXPECT_EQ(transport_of(url).sslmode, "") << url;
  }
  EXPECT_EQ(transport_of("postgresql://db/d?sslmode=disable").sslmode, "disable");
  EXPECT_EQ(transport_of("postgresql://db/d?sslmode=verify-full").sslmode, "verify-full");
  EXPECT_EQ(transport_of("service=payments host=db").sslmode, "") << "its file decides";
}

TEST(PostgresTransport, KnowsOneDatabaseByOtherUsersAndPasswords) {
  const std::string url = "postgresql://u:p@h:5432/d?sslmode=require";
  for (const char* same : {"postgresql://u:other@h:5432/d", "host=h port=5432 dbname=d user=v"})
    EXPECT_TRUE(same_database(url, same)) << same;
  for (const char* other : {"postgresql://u:p@h2:5432/d", "postgresql://u:p@h:5433/d", "", "host=h",
                            "postgresql://u:p@h:5432/e", "postgresql://u:p@h/d", "not a url"})
    EXPECT_FALSE(same_database(url, other)) << other;
}

// libpq would take a part of these for a host, a port or a database, and name it.
TEST(PostgresTransport, KeepsAPasswordThatWasNotEscapedOutOfItsMessages) {
  for (const char* url : {"postgres://u:planted@planted@localhost/d",
                          "postgres://u:planted/rest@localhost/d", "postgres://u:planted/d",
                          "postgres://u:1234/planted@localhost/d", "postgres://u:p@h:planted/d"})
    EXPECT_THAT(refusal(url), AllOf(HasSubstr("postgres.url"), HasSubstr("not shown"))) << url;
}

}  // namespace
}  // namespace hapax::store
