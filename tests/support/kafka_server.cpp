#include "support/kafka_server.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "sandbox/free_port.hpp"
#include "support/database.hpp"

namespace hapax::support {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kServerPatience = 180s;
constexpr const char* kFolderName = "kafka-4.3.0";  // as in get_kafka.sh

// The folder into which get_kafka.sh puts the jars, and the archive of their classes.
fs::path kafka_folder() { return test::cache_folder() / kFolderName; }
fs::path jars() { return kafka_folder() / "lib"; }

// Every server is a cluster of its own, as two environments are.
std::string random_cluster_id() {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr int kLength = 22;
  std::random_device random;
  std::uniform_int_distribution<std::size_t> letters(0, kAlphabet.size() - 1);
  std::string id;
  for (int i = 0; i < kLength; ++i) id += kAlphabet[letters(random)];
  return id;
}

}  // namespace

KafkaServer::KafkaServer(const std::map<std::string, std::string>& settings,
                         const std::vector<std::string>& format)
    : port_(sandbox::free_port()), controller_port_(sandbox::free_port()), folder_("kafka") {
  write_settings(settings);
  std::vector<std::string> arguments = {"format", "-t", random_cluster_id(), "-c",
                                        "server.properties"};
  arguments.insert(arguments.end(), format.begin(), format.end());
  sandbox::run_to_end(java("kafka.tools.StorageTool", arguments), kServerPatience);
  start();
}

std::optional<std::string> KafkaServer::missing() {
  if (!sandbox::find_in_path("java")) return "no java: apt-get install default-jre-headless";
  if (!fs::exists(jars()))
    return "no Kafka in " + jars().string() + ": run tests/support/get_kafka.sh";
  return std::nullopt;
}

void KafkaServer::lose_log(const std::string& topic, std::int32_t partition) const {
  const auto log = folder_.path() / "data" / (topic + "-" + std::to_string(partition));
  if (std::filesystem::remove_all(log) == 0)
    throw std::runtime_error("Kafka has no " + log.string());
}

void KafkaServer::write_settings(const std::map<std::string, std::string>& settings) const {
  const std::string controller = "127.0.0.1:" + std::to_string(controller_port_);
  std::map<std::string, std::string> all = settings;
  all.merge(std::map<std::string, std::string>{
      {"process.roles", "broker,controller"},
      {"node.id", "1"},
      {"controller.quorum.voters", "1@" + controller},
      {"inter.broker.listener.name", "BROKER"},
      {"controller.listener.names", "CONTROLLER"},
      {"log.dirs", folder_.path() / "data"},
      {"auto.create.topics.enable", "false"},
      {"group.initial.rebalance.delay.ms", "0"},
      // One broker, and little to load after a restart.
      {"offsets.topic.replication.factor", "1"},
      {"offsets.topic.num.partitions", "4"},
      {"transaction.state.log.replication.factor", "1"},
      {"transaction.state.log.min.isr", "1"},
      {"transaction.state.log.num.partitions", "2"},
      {"share.coordinator.state.topic.replication.factor", "1"},
      {"share.coordinator.state.topic.min.isr", "1"},
  });
  const std::map<std::string, std::string> ours = {
      {"listeners", "BROKER://" + bootstrap() + ",CONTROLLER://" + controller},
      {"listener.security.protocol.map", "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT"}};
  for (const auto& [name, value] : ours) {
    const auto more = settings.find(name);
    all[name] = value + (more == settings.end() ? "" : "," + more->second);
  }
  std::ofstream file(folder_.path() / "server.properties");
  for (const auto& [name, value] : all) file << name << '=' << value << '\n';
}

sandbox::Program KafkaServer::java(const std::string& main_class,
                                   std::vector<std::string> arguments) const {
  std::vector<std::string> argv = {
      // Made for a fast start, not for a long life.
      "java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
      "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
      // For the one line that tells that it has started.
      "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info", "-cp",
      (jars() / "*").string(), main_class};
  // A file that is not there would switch off Java's own archive, too.
  if (const auto classes = kafka_folder() / "classes.jsa"; fs::exists(classes))
    argv.insert(argv.begin() + 1, "-XX:SharedArchiveFile=" + classes.string());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return {std::move(argv), {}, folder_.path(), folder_.path() / "kafka.log"};
}

void KafkaServer::start() {
  process_ = std::make_unique<sandbox::ChildProcess>(java("kafka.Kafka", {"server.properties"}));
  if (!process_->wait_for_line("Kafka Server started", kServerPatience)) fail("did not start");
}

void KafkaServer::stop() {
  process_->signal(SIGTERM);
  if (!process_->wait(kServerPatience)) fail("did not stop");
}

void KafkaServer::kill() {
  process_->signal(SIGKILL);
  if (!process_->wait(kServerPatience)) fail("is still there after SIGKILL");
}

void KafkaServer::set_scram_password(const std::string& user, const std::string& password) const {
  sandbox::run_to_end(
      java("kafka.admin.ConfigCommand",
           {"--bootstrap-server", bootstrap(), "--alter", "--entity-type", "users", "--entity-name",
            user, "--add-config", "SCRAM-SHA-512=[password=" + password + "]"}),
      kServerPatience);
}

void KafkaServer::freeze() { process_->signal(SIGSTOP); }

void KafkaServer::thaw() { process_->signal(SIGCONT); }

void KafkaServer::fail(const std::string& what) const {
  std::ostringstream text;
  text << "Kafka " << what << ":\n" << std::ifstream(folder_.path() / "kafka.log").rdbuf();
  throw std::runtime_error(text.str());
}

bool kafka_is_required() {
  return std::getenv("CI") != nullptr || std::getenv("HAPAX_REQUIRE_KAFKA") != nullptr;
}

}  // namespace hapax::support
