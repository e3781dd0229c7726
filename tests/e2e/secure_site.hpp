// A Kafka and a PostgreSQL that refuse clients without TLS and a password, and a worker between
// them. Its passwords are in files of their own.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "store/operator/migrate.hpp"
#include "store/operator/roles.hpp"
#include "support/kafka_admin.hpp"
#include "support/producer.hpp"
#include "support/secure_kafka.hpp"
#include "support/secure_postgres.hpp"
#include "support/worker_process.hpp"

namespace hapax::support {

inline constexpr const char* kFirstPassword = "planted-secret-1";

class SecureSite {
 public:
  SecureSite() : kafka(kFirstPassword), postgres(kFirstPassword), folder_("secrets") {
    postgres.server().create_database("payments");
    store::ConnectOptions owner;
    owner.url = postgres.server().url("payments");
    store::Session session(owner);
    store::migrate_up(session);
    store::grant_worker(session, SecurePostgres::kPasswordUser);
    postgres.run(
        "CREATE TABLE payments (nr bigserial, id text, account text, amount_minor bigint);"
        "GRANT SELECT, INSERT ON payments TO hapax_scram; GRANT USAGE ON payments_nr_seq TO "
        "hapax_scram",
        "payments");
    create_topic(kafka.bootstrap(), "payments", 1);
    write_passwords(kFirstPassword);
  }

  std::filesystem::path url_file() const { return folder_.path() / "database_url"; }
  std::filesystem::path password_file() const { return folder_.path() / "kafka_password"; }

  std::string url(const std::string& password) const {
    return postgres.target("payments") + "user=" + SecurePostgres::kPasswordUser +
           " sslmode=verify-full password=" + password;
  }

  void write_passwords(const std::string& password) const {
    const mode_t before = umask(0077);
    std::ofstream(url_file()) << url(password) << '\n';
    std::ofstream(password_file()) << password << '\n';
    umask(before);
  }

  // `patch` (RFC 7386) changes it.
  nlohmann::json config(const nlohmann::json& patch = {}) const {
    nlohmann::json config = {
        {"kafka", kafka.properties()},
        {"postgres", {{"url", "@" + url_file().string()}}},
        {"worker", {{"name", "w"}, {"lanes", 2}, {"checkpoint_interval", "200ms"}}},
        {"admin", {{"listen", "127.0.0.1:0"}}},
        {"routes",
         {{{"topic", "payments"},
           {"handler", "scripted"},
           {"plugin", HAPAX_BINARY_DIR "/lib/libscripted.so"},
           {"key", {{"header", "idempotency-key"}}}}}}};
    config["kafka"].update({{"group.id", "payments"},
                            {"sasl.password", "@" + password_file().string()},
                            {"session.timeout.ms", 2000},
                            {"heartbeat.interval.ms", 400},
                            {"reconnect.backoff.max.ms", 500}});
    if (!patch.is_null()) config.merge_patch(patch);
    return config;
  }

  // Payments [first, first + count), sent by the plain door.
  void pay(int first, int count) const {
    Producer producer(kafka.bootstrap());
    for (int number = first; number < first + count; ++number) {
      const std::string id = "p" + std::to_string(number);
      producer.produce({"payments",
                        nlohmann::json{{"id", id}, {"account", "a"}, {"amount_minor", 1}}.dump(),
                        "a",
                        {{"idempotency-key", id}},
                        0,
                        0});
    }
    producer.flush();
  }

  SecureKafka kafka;
  mutable SecurePostgres postgres;

 private:
  sandbox::TemporaryFolder folder_;
};

}  // namespace hapax::support
