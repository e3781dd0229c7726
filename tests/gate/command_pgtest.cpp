// `hapax gate` as an operator starts it, with the example that also serves Kafka.
#include <fstream>
#include <sstream>

#include "gate/gate_case.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;

class GateCommand : public GateCase {
 protected:
  std::unique_ptr<sandbox::ChildProcess> start(const std::filesystem::path& file,
                                               const std::string& listen = "127.0.0.1:0",
                                               const std::string& open_files = "4096") {
    return std::make_unique<sandbox::ChildProcess>(
        sandbox::Program{.argv = {"sh", "-c", "ulimit -n " + open_files + " && exec \"$@\"", "sh",
                                  HAPAX_BINARY_DIR "/bin/hapax", "gate", "-c", file, "--plugin",
                                  HAPAX_BINARY_DIR "/lib/libpayments.so"},
                         .environment = {{"DATABASE_URL", database.worker().url},
                                         {"TOKENS", folder.path() / "tokens"},
                                         {"LISTEN", listen},
                                         {"ADMIN", "127.0.0.1:0"}},
                         .output = folder.path() / "log"});
  }

  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(folder.path() / "log").rdbuf();
    return text.str();
  }

  // As the log tells it.
  std::uint16_t port_of(sandbox::ChildProcess& process) const {
    if (!process.wait_for_line("the gate takes requests", 120s)) throw std::runtime_error(log());
    const std::string text = log();
    return static_cast<std::uint16_t>(
        std::stoi(text.substr(text.find("port=", text.find("the gate takes requests")) + 5)));
  }

  static std::filesystem::path example() {
    return test::source_folder() / "examples/payments/gate.json";
  }

  sandbox::TemporaryFolder folder{"gate"};
};

TEST_F(GateCommand, ServesTheExampleUntilItIsToldToStop) {
  std::ifstream schema(test::source_folder() / "examples/payments/schema.sql");
  database.run(std::string(std::istreambuf_iterator<char>(schema), {}));
  database.run("GRANT ALL ON payments TO hapax_worker");
  std::ofstream(folder.path() / "tokens")
      << "# tenants\nann " << key::hex(key::sha256("token-of-ann")) << "\n";
  const auto process = start(example());
  const std::uint16_t at = port_of(*process);
  const std::string payment = request("POST", "/payments", keyed("secret-key"),
                                      R"({"id": "p1", "account": "a", "amount_minor": 5})");
  for (int i = 0; i < 2; ++i) {
    const Reply reply = ask(payment, at);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, R"({"status":"booked"})");
    EXPECT_EQ(reply.header("idempotent-replayed"), i == 0 ? "" : "true");
  }
  EXPECT_EQ(
      ask(request("POST", "/payments", keyed("poison"), R"({"amount_minor": -1})"), at).status,
      422);
  EXPECT_EQ(ask(request("POST", "/payments", keyed("odd"), R"({"amount_minor": 1})"), at).status,
            500);
  EXPECT_EQ(ask(request("GET", "/healthz", {}), at).status, 200);
  EXPECT_EQ(ask(request("GET", "/readyz", {}), at).status, 200);
  EXPECT_EQ(database.value("SELECT id, account, amount_minor FROM payments"), "p1|a|5");
  process->signal(SIGTERM);
  const auto exit = process->wait(120s);
  EXPECT_TRUE(exit && exit->success()) << log();
  for (const char* secret : {"secret-key", "token-of-ann", "amount_minor", "poison"})
    EXPECT_EQ(log().find(secret), std::string::npos) << log();
}

TEST_F(GateCommand, NamesWhatIsWrong) {
  std::ofstream(folder.path() / "tokens") << "ann token-of-ann\n";
  auto process = start(example());
  auto exit = process->wait(120s);
  EXPECT_EQ(exit ? exit->code : -1, 3);
  EXPECT_NE(log().find("gate.callers.tokens: line 1 is wrong"), std::string::npos) << log();
  EXPECT_EQ(log().find("token-of-ann"), std::string::npos) << log();
  std::ofstream(folder.path() / "tokens") << "ann " << std::string(64, 'a') << "\n";
  process = start(example(), "192.0.2.1:1");
  exit = process->wait(120s);
  EXPECT_EQ(exit ? exit->code : -1, 3);
  EXPECT_NE(log().find("gate.listen: cannot listen on 192.0.2.1:1"), std::string::npos) << log();
}

TEST_F(GateCommand, LeavesFilesToOthersIfItMayOpenFew) {
  std::ofstream(folder.path() / "tokens") << "ann " << std::string(64, 'a') << "\n";
  const auto process = start(example(), "127.0.0.1:0", "300");
  const std::uint16_t at = port_of(*process);
  EXPECT_NE(log().find("few_open_files"), std::string::npos) << log();
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<HttpClient>(at));
  const auto began = Clock::now();
  EXPECT_EQ(ask(request("GET", "/healthz", {}), at).status, 200);
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_EQ(log().find("accept_failed"), std::string::npos) << log();
}

// As a COMMIT does without its synchronous standby.
TEST_F(GateCommand, LeavesThoughPostgresDoesNotAnswer) {
  database.run(
      "CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_sleep(120); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER sleep AFTER INSERT OR UPDATE ON hapax.leases DEFERRABLE "
      "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sleep()");
  std::ofstream(folder.path() / "tokens") << "ann " << std::string(64, 'a') << "\n";
  const auto process = start(example());
  (void)port_of(*process);
  database.wait_until("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
                      "t");
  process->signal(SIGTERM);
  const auto exit = process->wait(60s);
  EXPECT_TRUE(exit && exit->success()) << log();
  EXPECT_NE(log().find("gave_up_waiting"), std::string::npos) << log();
}

TEST_F(GateCommand, RunsNoHandlerThatCallsToTheOutside) {
  std::ofstream(folder.path() / "gate.json") << R"({"gate": {"callers": {"tokens": "ann )" +
                                                    std::string(64, 'a') +
                                                    R"("}}, "postgres": {"url": "${DATABASE_URL}"},
              "routes": [{"path": "/charges", "handler": "charges", "plugin": ")" +
                                                    HAPAX_BINARY_DIR + R"(/lib/libcharges.so"}]})";
  const auto process = start(folder.path() / "gate.json");
  const auto exit = process->wait(120s);
  EXPECT_EQ(exit ? exit->code : -1, 3) << log();
  EXPECT_NE(log().find("Write \"accept\" into the gate's route instead"), std::string::npos)
      << log();
}

TEST_F(GateCommand, AcceptsNothingWithoutAnOutbox) {
  database.run("DELETE FROM hapax.schema_migrations WHERE number > 8");
  std::ofstream(folder.path() / "gate.json")
      << R"({"gate": {"callers": {"tokens": "ann )" + std::string(64, 'a') +
             R"("}, "operations": {"key": ")" + std::string(128, 'a') +
             R"("}}, "kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
              "postgres": {"url": "${DATABASE_URL}", "wait_at_start": false},
              "admin": {"listen": "127.0.0.1:0"},
              "routes": [{"path": "/p", "accept": {"topic": "t", "scope": "s"}}]})";
  const auto process = start(folder.path() / "gate.json");
  const auto exit = process->wait(120s);
  EXPECT_EQ(exit ? exit->code : -1, 4) << log();
  EXPECT_NE(log().find("hapax migrate up"), std::string::npos) << log();
}

}  // namespace
}  // namespace hapax::gate
