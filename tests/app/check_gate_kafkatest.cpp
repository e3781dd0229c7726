// What `hapax check` tells of a gate's configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/certificates.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A gate that accepts for `topic`, and has a handler of `plugin`.
std::string gate_config(const Site& site, const std::string& topic, const std::string& plugin) {
  return R"({"gate": {"callers": {"tokens": "ann )" + std::string(64, 'a') +
         R"("}, "operations": {"key": ")" + std::string(128, 'a') +
         R"("}}, "kafka": {"bootstrap.servers": ")" + site.bootstrap() +
         R"(", "group.id": "g"}, "postgres": {"url": ")" + site.database().worker().url +
         R"("}, "routes": [{"path": "/later", "accept": {"topic": ")" + topic +
         R"(", "scope": "s"}}, {"path": "/now", "handler": "scripted", "plugin": ")" + plugin +
         R"("}]})";
}

class CheckOfAGate : public testing::Test {
 protected:
  Said check(const std::string& text) {
    std::ofstream(file()) << text;
    return hapax({"check"}, file());
  }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path file() const { return folder_.path() / "any.json"; }

  const std::string plugin = HAPAX_BINARY_DIR "/lib/libscripted.so";
  Site site = Site::on_mock_cluster(1);

 private:
  sandbox::TemporaryFolder folder_{"check"};
};

TEST_F(CheckOfAGate, LooksAtAllThatItNeeds) {
  const Said said = check(gate_config(site, site.topic(), plugin));
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text,
              AllOf(HasSubstr("gate gate, 1 routes with a handler, 1 that accept, 8"),
                    HasSubstr("ok    the gate's transport: plain HTTP, on this machine"),
                    HasSubstr("ok    handler scripted: version"), HasSubstr("for path /now"),
                    HasSubstr("ok    rights: all"), HasSubstr("ok    seal: "),
                    HasSubstr("ok    schema: "), HasSubstr("a gate takes 12 (lanes + 4)")));
  EXPECT_THAT(said.text, HasSubstr("ok    topic " + site.topic() +
                                   ", which the gate publishes to: 1 partitions"));
  EXPECT_THAT(said.text, Not(HasSubstr("topic /now"))) << "a path is no topic";
}

TEST_F(CheckOfAGate, NamesWhatIsMissing) {
  site.database().run("DELETE FROM hapax.schema_migrations WHERE number > 8");
  const Said said = check(gate_config(site, site.topic(), plugin));
  EXPECT_EQ(said.code, 1) << said.text;
  EXPECT_THAT(said.text,
              HasSubstr("FAIL  schema: the schema is at 8, this needs at least 9 → run `hapax"));
  const Said missing = check(gate_config(site, site.topic(), "./libnone.so"));
  EXPECT_EQ(missing.code, 3) << missing.text;
  EXPECT_THAT(missing.text, HasSubstr("FAIL  handler scripted: "));
}

TEST_F(CheckOfAGate, NamesATableThatARouteDeclaresAndIsNotThere) {
  std::string text = gate_config(site, site.topic(), plugin);
  text.replace(text.find("\"path\": \"/now\""), 0, R"("tables": {"bookings": ["INSERT"]}, )");
  EXPECT_THAT(check(text).text, HasSubstr("FAIL  table bookings: there is none of this name"));
}

TEST_F(CheckOfAGate, TellsWhyNoRequestsShareATransaction) {
  const auto told = HasSubstr("ok    batches: no requests share a transaction");
  EXPECT_THAT(check(gate_config(site, site.topic(), plugin)).text, Not(told));
  site.database().run("CREATE TABLE slots (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
  EXPECT_THAT(check(gate_config(site, site.topic(), plugin)).text, told);
}

TEST_F(CheckOfAGate, LooksAtTheFilesOfTls) {
  Authority authority(folder(), "authority");
  authority.issue("gate", "localhost");
  std::string text = gate_config(site, site.topic(), plugin);
  text.replace(text.find("\"callers\""), 0,
               R"("tls": {"certificate": "gate.pem", "key": "gate.key"}, )");
  const Said said = check(text);
  EXPECT_THAT(said.text, HasSubstr("warn  the gate's transport: TLS, with a certificate for 0 d"));
  std::filesystem::remove(folder() / "gate.key");
  const Said missing = check(text);
  EXPECT_EQ(missing.code, 3) << missing.text;
  EXPECT_THAT(missing.text, HasSubstr("FAIL  configuration: gate.tls.key: cannot read " +
                                      (folder() / "gate.key").string() + ": No such file"));
}

TEST_F(CheckOfAGate, NamesEachMistakeAsTheGateDoes) {
  const std::string wrong = R"({"gate": {"lane": 3, "callers": {}}, "postgres": {"url": "db"},
                               "routes": [{"path": "a", "handler": "h"}]})";
  const Said said = check(wrong);
  EXPECT_EQ(said.code, 3) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("FAIL  configuration: gate.lane: is unknown"),
                               HasSubstr("FAIL  configuration: gate.callers: is missing"),
                               HasSubstr("FAIL  configuration: routes[0].path: found"),
                               HasSubstr(" → see docs/gate.md, in /usr/share/doc/hapax if")));
}

}  // namespace
}  // namespace hapax::support
