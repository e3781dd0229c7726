// Judges that others wrote: schemathesis makes requests from openapi.json, wrk makes load. Each is
// skipped if it is not installed; CI installs both.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "gate/gate_case.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;

class Strangers : public GateCase {
 protected:
  // What the program printed. Fails the test if it fails.
  std::string run(const std::filesystem::path& program, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program);
    const auto log = folder.path() / "log";
    sandbox::ChildProcess process({.argv = std::move(arguments), .output = log});
    const auto exit = process.wait(300s);
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    EXPECT_TRUE(exit && exit->success()) << text.str();
    return text.str();
  }
  std::string url() { return "http://127.0.0.1:" + std::to_string(port()); }

  sandbox::TemporaryFolder folder{"strangers"};
};

// As get_from_pypi.sh has left it.
std::optional<std::filesystem::path> schemathesis() {
  if (!std::filesystem::exists(test::cache_folder())) return std::nullopt;
  for (const auto& entry : std::filesystem::directory_iterator(test::cache_folder()))
    if (entry.path().filename().string().starts_with("schemathesis-") &&
        std::filesystem::exists(entry.path() / "ready"))
      return entry.path() / "bin/schemathesis";
  return std::nullopt;
}

// As strict as openapi.json.
void book_strictly(const Message& message, Context& context) {
  const auto payment = message.json();
  const auto number = [](const nlohmann::json& value) {
    return value.is_number_integer() && value >= 1 && value <= 1'000'000'000;
  };
  if (!payment.is_object() || payment.size() != 2 || !payment.contains("account") ||
      !payment.contains("amount_minor") || !payment["account"].is_string() ||
      !number(payment["amount_minor"]))
    throw Reject("a payment has an account and an amount_minor");
  const auto account = payment["account"].get<std::string>();
  if (account.empty() || account.find('\0') != std::string::npos)
    throw Reject("the account has no name");
  context.sql("INSERT INTO effects (key, note) VALUES ($1, $2)",
              message.header("idempotency-key").value_or("none"), account);
  context.respond(201, {{"Content-Type", "application/json"}}, R"({"id":17})");
}

TEST_F(Strangers, SchemathesisFindsNoAnswerThatIsNotDescribed) {
  const auto program = schemathesis();
  if (!program)
    GTEST_SKIP() << "NOT TESTED by schemathesis: tests/support/get_from_pypi.sh schemathesis";
  add_route({"/accounts/{account}/payments", {"GET"}});
  config.base.log.error_text = true;
  body = [](const Message& message, Context& context) {
    if (message.header(":method") != "GET") return book_strictly(message, context);
    const auto found = context.sql("SELECT count(*) FROM effects WHERE note = $1",
                                   *message.header(":path.account"));
    context.respond(200, {{"Content-Type", "application/json"}},
                    "{\"payments\":" + std::string(found[0][0].text()) + "}");
  };
  run(*program,
      {"run", test::source_folder() / "tests/gate/openapi.json", "--url", url(), "--header",
       "Authorization: Bearer token-of-ann", "--checks", "all", "--exclude-checks",
       // A key that is used again is 422, and a header has no type.
       "positive_data_acceptance,negative_data_rejection", "--max-examples", "100", "--seed", "1",
       "--no-color", "--generation-database", "none"});
  EXPECT_EQ(ask(request("GET", "/readyz", {})).status, 200);
  EXPECT_EQ(database.count("SELECT count(*) - count(DISTINCT key) FROM effects"), 0);
  EXPECT_GT(runs, 100);
}

TEST_F(Strangers, UnderLoadByWrkEachKeyTakesEffectOnce) {
  const auto program = sandbox::find_in_path("wrk");
  if (!program) GTEST_SKIP() << "NOT TESTED by wrk: apt-get install wrk";
  // Each key four times, of both threads together or soon after.
  const auto script = folder.path() / "load.lua";
  std::ofstream(script) << R"(
local number = 0
wrk.headers["Authorization"] = "Bearer token-of-ann"
wrk.headers["Content-Type"] = "application/json"
request = function()
  number = number + 1
  wrk.headers["Idempotency-Key"] = "load-" .. math.floor(number / 2)
  return wrk.format("POST", "/payments", nil, '{"id": ' .. math.floor(number / 2) .. '}')
end
done = function(summary, latency, requests)
  local e = summary.errors
  print("requests " .. summary.requests .. " not2xx " .. e.status .. " socket " ..
        e.connect + e.read + e.write + e.timeout)
end
)";
  config.gate.wait = 10s;
  config.gate.shutdown_timeout = 60s;
  const std::string said =
      run(*program, {"-t", "2", "-c", "64", "-d", "3s", "--timeout", "30s", "-s", script, url()});
  EXPECT_NE(said.find(" not2xx 0 socket 0"), std::string::npos) << said;
  EXPECT_EQ(database.count("SELECT count(*) - count(DISTINCT key) FROM effects"), 0);
  // wrk does not wait for its last requests, and the gate still runs them.
  EXPECT_TRUE(gate().gate.drain());
  EXPECT_EQ(database.count("SELECT count(*) FROM effects"), keys());
  EXPECT_GE(runs, keys()) << "one that shared a transaction in vain runs again";
  EXPECT_GT(keys(), 0);
}

}  // namespace
}  // namespace hapax::gate
