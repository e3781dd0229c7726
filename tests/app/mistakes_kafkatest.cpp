// What an operator reads who has mistyped something: a line each, and how to fix it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Mistakes, OfAConfigurationAreALineEachInCheck) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "b:9092", "group.id": "g"},
    "postgres": {"url": "postgresql://db/payments"},
    "worker": {"lane": 8, "queue": {"bytes": "64 potatoes"}},
    "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}, "batch": 0}]})";
  const Said said = hapax({"check"}, config);
  EXPECT_EQ(said.code, 3) << "as `run` ends";
  EXPECT_EQ(hapax({"run"}, config).code, 3);
  EXPECT_THAT(said.text,
              HasSubstr("FAIL  configuration: worker.lane: is unknown; did you mean lanes?"));
  EXPECT_THAT(said.text,
              HasSubstr("FAIL  configuration: worker.queue.bytes: found \"64 potatoes\""));
  EXPECT_THAT(said.text, HasSubstr("\nFAIL  configuration: routes[0].batch: found 0; allowed"));
  EXPECT_THAT(said.text, HasSubstr(" → see docs/configuration.md, in /usr/share/doc/hapax if"));
  for (const char* const command : {"check", "run"})
    EXPECT_THAT(hapax({command}, config).text,
                HasSubstr("route of topic \"t\": no handler \"h\"; there is: "))
        << "a handler that is missing shows with the rest";
  EXPECT_THAT(said.text, Not(HasSubstr("\\x0a")));
}

// PostgreSQL is away, too, and a worker would wait for it.
TEST(Mistakes, InKafkasPropertiesEndAWorkerBeforeItWaitsForPostgreSQL) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g",
      "security.protocol": "tls", "compression.typ": "lz4"},
    "postgres": {"url": "postgresql://127.0.0.1:1/x"}, "admin": {"listen": "127.0.0.1:0"},
    "routes": [{"topic": "t", "handler": "scripted", "key": {"header": "k"},
      "plugin": ")" HAPAX_BINARY_DIR R"(/lib/libscripted.so"}]})";
  const Said said = hapax({"run"}, config);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.text, HasSubstr("kafka.compression.typ: librdkafka"));
  EXPECT_THAT(said.text, HasSubstr("\nkafka.security.protocol: librdkafka"));
}

TEST(Mistakes, InTheAddressOfTheProbesNameItOnce) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << site.options("w", {{"admin", {{"listen", "192.0.2.1:1"}}}}).config;
  const Said said = hapax({"run"}, config);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.text, HasSubstr("hapax: admin.listen: cannot listen on"));
}

TEST(Mistakes, InACommandNameTheNearestOne) {
  const Said said = hapax({"statsu"}, "worker.json");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.text,
              HasSubstr("there is no command \"statsu\"; did you mean status? There are run"));
  const Said deeper = hapax({"dead", "lst"}, "worker.json");
  EXPECT_EQ(deeper.code, 2);
  EXPECT_THAT(deeper.text,
              HasSubstr("there is no command \"lst\"; did you mean list? There are list"));
}

TEST(Mistakes, OfTwoHandlersOfANameNoneIsTaken) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  const std::string plugin = HAPAX_BINARY_DIR "/lib/libscripted.so";
  const auto write = [&](const std::string& more) {
    std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
      "postgres": {"url": "postgresql://127.0.0.1:1/x", "wait_at_start": false},
      "admin": {"listen": "127.0.0.1:0"},
      "routes": [{"topic": "t", "handler": "scripted", "key": {"header": "k"})"
                          << more << "}]}";
  };
  write("");
  const Said twice = hapax({"run", "--plugin", plugin, "--plugin", plugin}, config);
  EXPECT_EQ(twice.code, 3);
  EXPECT_THAT(twice.text, HasSubstr("there are two handlers \"scripted\""));
  write(R"(, "plugin": ")" + plugin + '"');
  const Said own = hapax({"run", "--plugin", plugin}, config);
  EXPECT_EQ(own.code, 4) << "the route's own is meant: " << own.text;
}

TEST(Mistakes, InAHandlersOptionsAreFoundByCheck) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": ")" +
                               Site::mock_cluster().bootstrap() +
                               R"(", "group.id": "g"},
    "postgres": {"url": "postgresql://127.0.0.1:1/x"},
    "routes": [{"topic": "t", "handler": "scripted", "key": {"header": "k"},
                "options": {"journal": 3}, "plugin": ")" HAPAX_BINARY_DIR
                               "/lib/libscripted.so\"}]}";
  const Said said = hapax({"check"}, config);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.text, HasSubstr("ok    handler scripted: "));
  EXPECT_THAT(said.text, HasSubstr("FAIL  on_start of scripted: "));
  EXPECT_THAT(said.text, HasSubstr("type must be string, but is number"));
}

TEST(Mistakes, OfOnStartNameTheHandlerInRun) {
  Site site = Site::on_mock_cluster(1);
  WorkerOptions options = site.options("w", {{"route", {{"options", {{"journal", 3}}}}}});
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  options.config["admin"] = {{"listen", "127.0.0.1:0"}};
  std::ofstream(config) << options.config;
  const Said said = hapax({"run"}, config);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.text,
              HasSubstr("on_start of handler \"scripted\", for topic \"" + site.topic()));
}

TEST(Mistakes, OfSeveralHandlersAreAllNamed) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
    "postgres": {"url": "postgresql://127.0.0.1:1/x"},
    "routes": [{"topic": "t", "handler": "one", "key": {"header": "k"}},
               {"topic": "u", "handler": "two", "key": {"header": "k"}}]})";
  const Said said = hapax({"run"}, config);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.text, HasSubstr("no handler \"one\""));
  EXPECT_THAT(said.text, HasSubstr("no handler \"two\""));
}

TEST(Mistakes, OfKafkasPropertiesAreAllNamed) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g",
      "socket.timeout.ms": "soon", "no.such.property": 1, "ssl.ca.location": "/no/such/file"},
    "postgres": {"url": "postgresql://127.0.0.1:1/x"},
    "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}}]})";
  const Said said = hapax({"check"}, config);
  EXPECT_EQ(said.code, 3);
  for (const char* const name : {"socket.timeout.ms", "no.such.property", "ssl.ca.location"})
    EXPECT_THAT(said.text, HasSubstr(std::string("FAIL  Kafka: kafka.") + name));
}

TEST(Mistakes, InAllOfKafkasAddressesAreAllNamed) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
      "group.id": "g"},
    "postgres": {"url": "postgresql://127.0.0.1:1/x"},
    "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}}]})";
  const Said said = hapax({"check"}, config);
  EXPECT_THAT(said.text, HasSubstr("127.0.0.1:1/"));
  EXPECT_THAT(said.text, HasSubstr("127.0.0.1:2/"));
}

TEST(Mistakes, AreNoneInAPluginBesideTheConfiguration) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::filesystem::create_symlink(HAPAX_BINARY_DIR "/lib/libscripted.so",
                                  folder.path() / "libmine.so");
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": ")" +
                               Site::mock_cluster().bootstrap() + R"(", "group.id": "g"},
    "postgres": {"url": "postgresql://127.0.0.1:1/x"},
    "routes": [{"topic": "t", "handler": "scripted", "plugin": "./libmine.so",
                "key": {"header": "k"}}]})";
  EXPECT_THAT(hapax({"check"}, config).text, HasSubstr("ok    handler scripted: version 1"));
}

TEST(Mistakes, InAUrlOfPostgresAreOfTheConfiguration) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  const auto said = [&](const std::string& url) {
    std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
      "postgres": {"url": ")" + url +
                                 R"("}, "admin": {"listen": "127.0.0.1:0"},
      "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}}]})";
    return hapax({"run"}, config);
  };
  const Said uri = said("postgresql://u:secret@db/payments?sslmod=require");
  EXPECT_EQ(uri.code, 3);
  EXPECT_THAT(uri.text, HasSubstr("did you mean sslmode?"));
  EXPECT_THAT(said("host=db dbnam=payments").text, HasSubstr("did you mean dbname?"));
  const Said torn = said("host=db password=se cret=word");
  EXPECT_EQ(torn.code, 3);
  EXPECT_THAT(torn.text, Not(HasSubstr("cret")));
}

TEST(Mistakes, InKafkasCredentialsThatDoNothingAreFoundByCheck) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  const auto said = [&](const std::string& kafka) {
    std::ofstream(config) << R"({"kafka": {"bootstrap.servers": ")" +
                                 Site::mock_cluster().bootstrap() + R"(", "group.id": "g", )" +
                                 kafka +
                                 R"(}, "postgres": {"url": "postgresql://127.0.0.1:1/x"},
      "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}}]})";
    return hapax({"check"}, config).text;
  };
  EXPECT_THAT(said(R"("sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p")"),
              HasSubstr("warn  Kafka's user: sasl.username has no effect"));
  EXPECT_THAT(
      said(R"("security.protocol": "sasl_ssl", "sasl.username": "u", "sasl.password": "p")"),
      HasSubstr("kafka.sasl.mechanism: name it"));
  EXPECT_THAT(said(R"("security.protocol": "ssl", "ssl.certificate.location": "/etc/passwd")"),
              HasSubstr("FAIL  Kafka's certificates: ssl.certificate.location has no key"));
}

std::string complaint_about(const std::vector<std::string>& words) {
  const sandbox::TemporaryFolder folder("words");
  sandbox::Program program;
  program.argv = {HAPAX_BINARY_DIR "/bin/hapax"};
  program.argv.insert(program.argv.end(), words.begin(), words.end());
  program.output = folder.path() / "output";
  sandbox::ChildProcess process(program);
  const auto exit = process.wait(std::chrono::seconds(20));
  EXPECT_TRUE(exit && exit->code == 2);
  std::ifstream output(program.output);
  return {std::istreambuf_iterator<char>(output), {}};
}

TEST(Mistakes, OfAMissingConfigurationTellBothWaysToNameIt) {
  EXPECT_THAT(
      complaint_about({"status"}),
      HasSubstr("Name it with -c, such as -c worker.json, or in the variable HAPAX_CONFIG"));
}

// Such as an option that the command does not have.
TEST(Mistakes, OnTheCommandLineShowNoPassword) {
  const std::string url = "postgresql://ann:secret@db/payments";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status", "-c", "w.json", "--url", url},
        {"status", "-c", "w.json", "--url=" + url},
        {"check", "-c", "w.json", "host=db password=secret"},
        {"migrate", url, "up"},
        {"explain", "-c", "w.json", url},
        {url}}) {
    const std::string said = complaint_about(words);
    EXPECT_THAT(said, Not(HasSubstr("secret"))) << words.back();
    EXPECT_THAT(said, HasSubstr("db")) << words.back();
  }
}

TEST(Mistakes, AFullDiskIsNoSuccess) {
  const sandbox::TemporaryFolder folder("full");
  sandbox::Program program;
  program.argv = {"/bin/sh", "-c", HAPAX_BINARY_DIR "/bin/hapax migrate print >/dev/full"};
  program.output = folder.path() / "output";
  sandbox::ChildProcess process(program);
  const auto exit = process.wait(std::chrono::seconds(20));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
}

}  // namespace
}  // namespace hapax::support
