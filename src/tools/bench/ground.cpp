#include "tools/bench/ground.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "cli/kafka_reader.hpp"
#include "cli/store_access.hpp"
#include "cli/version.hpp"
#include "config/redact.hpp"
#include "kafka/topic_admin.hpp"
#include "observe/escape.hpp"
#include "store/conninfo.hpp"
#include "store/operator/migrate.hpp"
#include "store/operator/roles.hpp"
#include "store/transaction.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {
namespace {

constexpr const char* kDatabase = "bench";
constexpr const char* kWorkerRole = "hapax_worker";
constexpr std::chrono::milliseconds kAnswer{30'000};

std::string random_name() {
  std::random_device random;
  char name[32];
  std::snprintf(name, sizeof name, "hapax-bench-%08x", static_cast<unsigned>(random()));
  return name;
}

}  // namespace

BenchGround::BenchGround(const BenchPlace& place) : name_(random_name()) {
  if (place.config) {
    config_ = *place.config;
  } else {
    make_sandbox();
  }
  open(postgres_ ? postgres_->url(kDatabase) : place.owner_url);
  url_ = config_.postgres.url;
  if (place.delay.count() > 0) put_away(place.delay);
}

void BenchGround::put_away(std::chrono::nanoseconds delay) {
  try {
    const store::Endpoint real = store::endpoint_of(url_);
    proxy_ =
        std::make_unique<sandbox::Proxy>(sandbox::Proxy::Target{real.host, real.port}, delay / 2);
    url_ = store::url_through(url_, real, proxy_->port());
  } catch (const std::exception& error) {
    throw Stop(kUnreachable, std::string("cannot put a delay before PostgreSQL: ") + error.what());
  }
}

void BenchGround::make_sandbox() {
  try {
    postgres_ = std::make_unique<sandbox::PostgresServer>();
    postgres_->create_database(kDatabase);
  } catch (const std::exception& error) {
    throw Stop(
        kUnreachable,
        std::string("without -c the bench needs a PostgreSQL server of its own: ") + error.what());
  }
  cluster_ = std::make_unique<kafka::MockCluster>();
  config_.kafka.properties = {{"bootstrap.servers", cluster_->bootstrap()},
                              {"group.id", name_},
                              {"fetch.wait.max.ms", "5"}};
  config_.postgres.url = postgres_->url(kDatabase, kWorkerRole);
  store::Session owner({.url = postgres_->url(kDatabase), .application_name = "hapax bench"});
  store::migrate_up(owner);
  store::Transaction transaction(owner);
  transaction.run(std::string("CREATE ROLE ") + kWorkerRole + " LOGIN");
  transaction.commit();
  store::grant_worker(owner, kWorkerRole);
}

void BenchGround::open(const std::string& owner_url) {
  config_.worker.name = name_;
  owner_ = open_store(config_, owner_url);
  std::string schema = name_;
  std::ranges::replace(schema, '-', '_');
  store::Session worker = connect(config_);
  try {
    tables_.emplace(*owner_, schema, store::role_of(worker));
    store::Transaction transaction(*owner_);
    server_version_ = transaction.run("SHOW server_version")[0][0].text();
  } catch (const store::DatabaseError& error) {
    throw Stop(kFailed, std::string("cannot make a schema for the bench: ") + error.what() +
                            "; name a role that may with --url (its owner's)");
  }
}

BenchGround::~BenchGround() {
  // Each by itself: what can be removed is.
  const auto remove = [](const std::string& what, const std::function<void()>& how) {
    try {
      how();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "hapax: could not remove %s: %s\n", what.c_str(),
                   observe::escape_for_terminal(error.what()).c_str());
    }
  };
  if (tables_ && !postgres_)
    remove("the schema of " + tables_->payments() + ", and the rows of groups and scopes " + name_ +
               "-* in schema hapax (name its owner with --url)",
           [&] { tables_->remove(name_); });
  if (cluster_) return;
  for (const std::string& topic : topics_)
    remove("topic " + topic,
           [&] { kafka::delete_topic(config_.kafka.properties, topic, kAnswer); });
  remove("groups " + name_ + "-*",
         [&] { kafka::delete_groups(config_.kafka.properties, groups_, kAnswer); });
}

config::Config BenchGround::worker() {
  config::Config config = config_;
  config.routes.clear();
  config.postgres.url = url_;
  groups_.push_back(name_ + "-" + std::to_string(groups_.size() + 1));
  config.kafka.properties["group.id"] = groups_.back();
  config.kafka.initial = config::Initial::earliest;
  return config;
}

std::string BenchGround::make_topic(const std::string& suffix, int partitions) {
  const std::string topic = name_ + "-" + suffix;
  try {
    if (cluster_) {
      cluster_->create_topic(topic, partitions);
    } else {
      kafka::create_topic(config_.kafka.properties, topic, partitions, kAnswer);
    }
  } catch (const std::exception& error) {
    throw Stop(kUnreachable, "cannot make topic " + topic + ": " + error.what());
  }
  topics_.push_back(topic);
  return topic;
}

void BenchGround::expect_all_kept(const std::string& topic, int partitions, std::size_t messages) {
  KafkaReader reader(config_);
  std::int64_t kept = 0;
  for (std::int32_t partition = 0; partition < partitions; ++partition) {
    const kafka::OffsetRange range = reader.consumer().range({topic, partition}, kAnswer);
    kept += range.high - range.low;
  }
  if (kept == static_cast<std::int64_t>(messages)) return;
  throw Stop(kUsage,
             "of " + std::to_string(messages) + " messages the broker has kept " +
                 std::to_string(kept) +
                 (cluster_ ? ": the built-in one keeps 5 MiB a partition. Ask for fewer or "
                             "smaller messages or more partitions, or use a real Kafka with -c"
                           : ""));
}

Json BenchGround::facts() const {
  return {{"hapax", versions().hapax},
          {"libpqxx", versions().libpqxx},
          {"librdkafka", versions().librdkafka},
          {"kafka", cluster_ ? "built-in broker of librdkafka" : "real"},
          {"postgres", server_version_},
          {"postgres_at", config::redact_url(config_.postgres.url)}};
}

}  // namespace hapax::app
