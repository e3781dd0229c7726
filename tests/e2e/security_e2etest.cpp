// A worker whose Kafka and PostgreSQL refuse clients without TLS and a password. It works, and goes
// on if the passwords change. It reports a mistake in one sentence, and never shows a secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <future>
#include <thread>

#include "e2e/secure_site.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSecondPassword = "planted-secret-2";
constexpr const char* kSecret = "planted-secret";

SecureSite& site() {
  static SecureSite made;
  return made;
}

void await(const SecureSite& at, const std::string& sql, const std::string& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + 90s;
  std::string found;
  while ((found = at.postgres.run(sql, "payments")) != wanted) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw std::runtime_error(sql + " gave " + found + ", never " + wanted);
    std::this_thread::sleep_for(50ms);
  }
}

void await_booked(const SecureSite& at, int wanted) {
  await(at, "SELECT count(*) FROM payments", std::to_string(wanted));
}

// A configuration file for the commands.
class ConfigFile {
 public:
  explicit ConfigFile(const nlohmann::json& config) : folder_("config") {
    std::ofstream(path()) << config.dump(2);
    chmod(path().c_str(), 0600);
  }
  std::filesystem::path path() const { return folder_.path() / "worker.json"; }

 private:
  sandbox::TemporaryFolder folder_;
};

// The line of `hapax check` that begins so.
std::string line_of(const std::string& text, const std::string& beginning) {
  const auto at = text.find(beginning);
  return at == std::string::npos ? "no line '" + beginning + "' in:\n" + text
                                 : text.substr(at, text.find('\n', at) - at);
}

// With this change of the configuration, check and a worker report this sentence about Kafka.
void expect_said(const nlohmann::json& kafka, const std::string& sentence) {
  const nlohmann::json config = site().config({{"kafka", kafka}});
  WorkerProcess worker({config, {}});  // both wait for seconds
  const Said said = hapax({"check"}, ConfigFile(config).path());
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(line_of(said.text, "FAIL  Kafka:"), HasSubstr(sentence));
  EXPECT_THAT(said.text, Not(HasSubstr(kSecret)));
  EXPECT_THAT(worker.await("waiting_for_kafka").at("error").get<std::string>(),
              HasSubstr(sentence));
  worker.await_not_ready(sentence);
  EXPECT_THAT(worker.output(), Not(HasSubstr(kSecret)));
  expect_leaves(worker);
}

TEST(Security, CheckFindsNothingToFixInAWorkerOnTls) {
  HAPAX_NEEDS_KAFKA();
  const Said said = hapax({"check"}, ConfigFile(site().config()).path());
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("ok    Kafka's transport: sasl_ssl"),
                               HasSubstr("ok    PostgreSQL's transport: TLSv1")));
}

TEST(Security, NamesAFileThatIsNotThere) {
  HAPAX_NEEDS_KAFKA();
  const ConfigFile config(site().config({{"kafka", {{"ssl.ca.location", "/no/such/ca.pem"}}}}));
  for (const char* command : {"check", "run"})
    EXPECT_THAT(hapax({command}, config.path()).text,
                HasSubstr("kafka.ssl.ca.location: cannot read /no/such/ca.pem: No such file"));
}

constexpr const char* kNoTrust = "the broker demands a client certificate that it trusts";

// What a worker is told that proves itself by a certificate instead of a password.
nlohmann::json by_certificate(const Certificate& certificate) {
  return {{"bootstrap.servers", site().kafka.mutual_bootstrap()},
          {"security.protocol", "ssl"},
          {"sasl.mechanism", nullptr},
          {"sasl.username", nullptr},
          {"sasl.password", nullptr},
          {"ssl.certificate.location", certificate.certificate},
          {"ssl.key.location", certificate.key}};
}

TEST(Security, ProvesItselfByACertificateWithAnEncryptedKey) {
  HAPAX_NEEDS_KAFKA();
  SecureSite own;
  nlohmann::json kafka =
      by_certificate(own.kafka.clients().issue("client", {}, Valid::now, "planted-secret-of-key"));
  kafka["bootstrap.servers"] = own.kafka.mutual_bootstrap();
  kafka["ssl.key.password"] = "planted-secret-of-key";
  const nlohmann::json config = own.config({{"kafka", kafka}});
  const Said said = hapax({"check"}, ConfigFile(config).path());
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("ok    Kafka's transport: ssl"));
  WorkerProcess worker({config, {}});
  own.pay(0, 10);
  await_booked(own, 10);
  EXPECT_THAT(worker.output(), Not(HasSubstr(kSecret)));
  expect_leaves(worker);
}

TEST(Security, ProvesItselfByScramIfThisLibrdkafkaCan) {
  HAPAX_NEEDS_KAFKA();
  const ConfigFile config(site().config({{"kafka", {{"sasl.mechanism", "SCRAM-SHA-512"}}}}));
  if (!SecureKafka::can_scram()) GTEST_SKIP() << "librdkafka before 2.6.1 cannot";
  EXPECT_EQ(hapax({"check"}, config.path()).code, 0);
}

// A change of the configuration that Kafka refuses, and what hapax tells of it.
struct Mistake {
  const char* name;
  nlohmann::json kafka;
  std::string sentence;
};

std::vector<Mistake> mistakes() {
  SecureKafka& kafka = site().kafka;
  Authority& another_authority = site().postgres.authority();
  nlohmann::json without_certificate = by_certificate({});
  without_certificate.erase("ssl.certificate.location");
  without_certificate.erase("ssl.key.location");
  std::vector<Mistake> all = {
      {"wrong authority",
       {{"ssl.ca.location", another_authority.certificate()}},
       "no CA that we trust signed the broker's certificate"},
      {"wrong host",
       {{"bootstrap.servers", kafka.bootstrap_by_address()}},
       "the broker's certificate names another host"},
      {"expired certificate",
       {{"bootstrap.servers", kafka.expired_bootstrap()}},
       "the broker's certificate has expired"},
      {"wrong password",
       {{"sasl.password", "planted-secret-of-nobody"}},
       "fix kafka.sasl.username"},
      {"plain text to a TLS listener",
       {{"security.protocol", "sasl_plaintext"}},
       "kafka.security.protocol"},
      {"TLS to a plain text listener",
       {{"bootstrap.servers", kafka.bootstrap()}},
       "does this port speak TLS?"},
      {"SASL to a listener without it",
       {{"bootstrap.servers", kafka.bootstrap()}, {"security.protocol", "sasl_plaintext"}},
       "this listener has no SASL"},
      {"no client certificate", without_certificate, kNoTrust},
      {"expired client certificate",
       by_certificate(kafka.clients().issue("expired", {}, Valid::expired)), kNoTrust},
      {"client certificate of another authority", by_certificate(another_authority.issue("client")),
       kNoTrust}};
  // Debian 12's librdkafka 2.0.2 cannot; the sentence is all that its users have.
  if (!SecureKafka::can_scram())
    all.push_back({"SCRAM", {{"sasl.mechanism", "SCRAM-SHA-512"}}, "cannot do SCRAM with Kafka 4"});
  return all;
}

TEST(Security, NamesEachMistakeTowardsKafka) {
  HAPAX_NEEDS_KAFKA();
  const std::vector<Mistake> all = mistakes();
  std::vector<std::future<void>> asked;  // side by side: each waits for seconds
  for (const Mistake& mistake : all)
    asked.push_back(std::async(std::launch::async, [&mistake] {
      SCOPED_TRACE(mistake.name);
      expect_said(mistake.kafka, mistake.sentence);
    }));
  for (auto& each : asked) each.get();
}

TEST(Security, NamesAKeyThatIsNotTheCertificates) {
  HAPAX_NEEDS_KAFKA();
  Certificate mixed = site().kafka.clients().issue("client");
  mixed.key = site().kafka.clients().issue("another").key;
  const ConfigFile config(site().config({{"kafka", by_certificate(mixed)}}));
  for (const char* command : {"check", "run"})
    EXPECT_THAT(hapax({command}, config.path()).text,
                HasSubstr("kafka.ssl.key.location: this key does not belong to "
                          "kafka.ssl.certificate.location"));
}

TEST(Security, NamesAWrongPasswordOfAKey) {
  HAPAX_NEEDS_KAFKA();
  nlohmann::json kafka = by_certificate(
      site().kafka.clients().issue("encrypted", {}, Valid::now, "planted-secret-of-key"));
  for (const char* password : {"planted-secret-of-nobody", ""}) {
    kafka["ssl.key.password"] = password;
    const ConfigFile config(site().config({{"kafka", kafka}}));
    for (const char* command : {"check", "run"}) {
      const Said said = hapax({command}, config.path());
      EXPECT_THAT(said.text,
                  AllOf(HasSubstr("kafka.ssl.key.location: OpenSSL cannot read this key"),
                        Not(HasSubstr(kSecret))));
    }
  }
}

TEST(Security, PasswordsChangeWithoutARestart) {
  HAPAX_NEEDS_KAFKA();
  SecureSite own;
  create_topic(own.kafka.bootstrap(), "dead", 1);
  nlohmann::json config = own.config();
  config["routes"][0]["dead_letter_topic"] = "dead";
  WorkerProcess worker({config, {}});
  own.pay(0, 10);
  await_booked(own, 10);

  own.postgres.run("ALTER ROLE hapax_scram PASSWORD '" + std::string(kSecondPassword) + "'");
  own.kafka.change_password(kSecondPassword);
  own.write_passwords(kSecondPassword);
  own.postgres.run(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = "
      "'hapax_scram'");
  own.pay(10, 10);
  await_booked(own, 20);
  worker.await("kafka_credentials");
  Producer(own.kafka.bootstrap())
      .send({"payments", R"({"do": "reject"})", "a", {{"idempotency-key", "r"}}, 0, 0});
  await(own, "SELECT count(published_at) FROM hapax.dead_letters", "1");
  EXPECT_THAT(worker.output(), Not(HasSubstr(kSecret)));
  expect_leaves(worker);
}

// The password and the protocol were right before, so no answer may blame them.
TEST(Security, AKilledBrokerIsNotTakenForAMistakeInTheProtocol) {
  HAPAX_NEEDS_KAFKA();
  SecureSite own;
  WorkerProcess worker({own.config(), {}});
  own.pay(0, 10);
  await_booked(own, 10);
  own.kafka.kill();
  worker.await("kafka_down");
  worker.await_not_ready("kafka: no broker is reachable");
  EXPECT_THAT(worker.get("/readyz").body,
              Not(AnyOf(HasSubstr("speaks TLS"), HasSubstr("security.protocol"),
                        HasSubstr("PLAINTEXT"), HasSubstr("password"))));
  own.kafka.start();
  worker.await("kafka_up");
  own.pay(10, 10);
  await_booked(own, 20);
  EXPECT_THAT(worker.output(), Not(HasSubstr("security.protocol")));
  expect_leaves(worker);
}

TEST(Security, ACorrectedPasswordEndsTheWaitOfAWorker) {
  HAPAX_NEEDS_KAFKA();
  SecureSite own;
  own.write_passwords(kSecondPassword);
  own.pay(0, 1);
  WorkerProcess worker({own.config(), {}});
  EXPECT_THAT(worker.await("waiting_for_postgres").at("error").get<std::string>(),
              HasSubstr("password authentication failed"));
  std::ofstream(own.url_file()) << own.url(kFirstPassword);
  worker.await("waiting_for_kafka");
  own.write_passwords(kFirstPassword);
  await_booked(own, 1);
  expect_leaves(worker);
}

// Else effects would go to one database and checkpoints to the other.
TEST(Security, AnotherDatabaseInTheFileIsNotMovedToWhileAWorkerRuns) {
  HAPAX_NEEDS_KAFKA();
  SecureSite own;
  own.postgres.server().create_database("other");
  WorkerProcess worker({own.config(), {}});
  own.pay(0, 1);
  await_booked(own, 1);
  const std::string elsewhere = own.postgres.target("other") + "user=hapax_scram";
  std::ofstream(own.url_file()) << elsewhere;
  own.postgres.run(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = "
      "'hapax_scram'");
  worker.await_not_ready("names another database than at the start");
  own.write_passwords(kFirstPassword);
  own.pay(1, 1);
  await_booked(own, 2);
  expect_leaves(worker);
}

TEST(Security, NoCommandPrintsASecret) {
  HAPAX_NEEDS_KAFKA();
  setenv("HAPAX_TEST_SECRET", "planted-secret-of-environment", 1);
  const ConfigFile config(site().config(
      {{"kafka",
        {{"ssl.key.password", "${HAPAX_TEST_SECRET}"}, {"debug", "all"}, {"client.id", "w"}}},
       {"log", {{"level", "debug"}}}}));
  const std::string url = site().url(kFirstPassword);
  const std::vector<std::vector<std::string>> commands = {
      {"check"},
      {"check", "--json"},
      {"status"},
      {"status", "--json"},
      {"keys", "list"},
      {"keys", "show", "p0"},
      {"keys", "forget", "p0", "--why", "w", "--dry-run", "--url", url},
      {"keys", "forget", "p0", "--why", "w", "--dry-run", "--url", url + "-wrong"},
      {"dead", "list", "--json"},
      {"dead", "export"},
      {"explain", "payments/0/0"},
      {"explain", "--key", "p0"},
      {"audit", "--topic", "payments"},
      {"offsets", "show", "payments"},
      {"offsets", "rewind", "payments/0", "--to", "0", "--why", "w", "--dry-run", "--url", url},
      {"migrate", "status", "--url", url},
      {"migrate", "status", "--url", "postgres://u:planted-secret@planted-secret@localhost/d"},
      {"migrate", "status", "--url", "postgres://u:planted-secret/d"}};
  for (const auto& command : commands)
    EXPECT_THAT(hapax(command, config.path()).text, Not(HasSubstr(kSecret))) << command.front();
}

TEST(Security, NoWorkerLogsASecret) {
  HAPAX_NEEDS_KAFKA();
  setenv("HAPAX_TEST_SECRET", "planted-secret-of-environment", 1);
  site().pay(0, 3);
  WorkerProcess worker({site().config({{"kafka",
                                        {{"ssl.key.password", "${HAPAX_TEST_SECRET}"},
                                         {"group.id", "another"},
                                         {"debug", "all"}}},
                                       {"log", {{"level", "debug"}}}}),
                        {}});
  worker.await_ready();
  for (const char* path : {"/metrics", "/readyz", "/livez"})
    EXPECT_THAT(worker.get(path).body, Not(HasSubstr(kSecret))) << path;
  expect_leaves(worker);
  EXPECT_THAT(worker.output(), Not(HasSubstr(kSecret)));
  EXPECT_GT(worker.output().size(), 10'000U) << "librdkafka's debug lines are not in it";
}

TEST(Security, AMistakeInTheConfigurationPrintsNoSecret) {
  HAPAX_NEEDS_KAFKA();
  const std::vector<nlohmann::json> mistakes = {
      {{"postgres", {{"url", "postgres://u:planted-secret@planted-secret@h/d"}}}},
      {{"postgres", {{"url", "planted-secret"}}}},
      {{"kafka", {{"sasl.password", {"planted-secret"}}}}},
      {{"kafka", {{"ssl.key.pem", "planted-secret"}}}},
      {{"kafka",
        {{"ssl.key.password", "planted-secret"}, {"ssl.keystore.location", "/etc/passwd"}}}},
      {{"worker", {{"lanes", "planted-secret-is-not-shown-where-a-variable-held-it"}}}}};
  for (const nlohmann::json& mistake : mistakes) {
    nlohmann::json config = site().config(mistake);
    if (mistake.contains("worker")) {
      setenv("HAPAX_TEST_SECRET", "planted-secret", 1);
      config["worker"]["lanes"] = "${HAPAX_TEST_SECRET}";
    }
    const ConfigFile file(config);
    for (const char* command : {"check", "run"}) {
      const Said said = hapax({command}, file.path());
      EXPECT_NE(said.code, 0) << mistake;
      EXPECT_THAT(said.text, Not(HasSubstr(kSecret))) << mistake;
    }
  }
}

TEST(Security, SecretsThatOthersCanReadAreNamedByCheckAndAtStart) {
  HAPAX_NEEDS_KAFKA();
  const sandbox::TemporaryFolder folder("open");
  const std::filesystem::path open_file = folder.path() / "password";
  std::ofstream(open_file) << kFirstPassword;
  ASSERT_EQ(chmod(open_file.c_str(), 0644), 0);
  const nlohmann::json config =
      site().config({{"kafka", {{"sasl.password", "@" + open_file.string()}}}});
  const std::string open =
      "the secret " + open_file.string() + " is open to other users of this machine";
  const std::string mend = "`chmod go-rwx " + open_file.string() + "` would close it";
  EXPECT_THAT(hapax({"check"}, ConfigFile(config).path()).text,
              HasSubstr("warn  secrets: " + open + " → " + mend));
  WorkerProcess worker({config, {}});
  EXPECT_EQ(worker.await("open_secret").at("sentence"), open + "; " + mend);
  worker.await_ready();
  expect_leaves(worker);
}

}  // namespace
}  // namespace hapax::support
