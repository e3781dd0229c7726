#include "config/load.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "sample.hpp"

namespace hapax::config {
namespace {

using namespace std::chrono_literals;

TEST(Load, FillsInTheDefaults) {
  const Loaded loaded = load(minimal());
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  const Config& config = *loaded.config;
  EXPECT_EQ(config.kafka.properties.size(), 2u);
  EXPECT_EQ(config.kafka.properties.at("bootstrap.servers"), "kafka:9092");
  EXPECT_EQ(config.kafka.initial, Initial::earliest);
  EXPECT_EQ(config.postgres.lock_timeout, 3s);
  EXPECT_EQ(config.worker.lanes, 8u);
  EXPECT_TRUE(config.worker.name.ends_with(":" + std::to_string(getpid())));
  EXPECT_EQ(config.routes.at(0).plugin, "");
  EXPECT_EQ(config.routes.at(0).key.scope, "book");
  EXPECT_EQ(config.routes.at(0).retention, 168h);
  EXPECT_EQ(config.admin.listen, (Listen{"127.0.0.1", 9464}));
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(Load, ReportsEveryMistakeAtOnceWithItsPlace) {
  const Loaded loaded = load_text(R"({
    "kafka": {"bootstrap.servers": "", "enable.auto.commit": true},
    "postgres": {"url": 5, "lock_timeout": 3},
    "worker": {"lanes": 0, "ordering": "keys", "queue": {"byte": "1MiB"}},
    "routes": [{"topic": "^all", "key": [{"header": "a"}, {"json": "id"}], "retention": "3"}],
    "admin": [], "log": {"level": null}, "wroker": {}
  })",
                                  environment({}));
  EXPECT_FALSE(loaded.config);
  std::vector<std::string> paths;
  for (const Problem& problem : loaded.problems) paths.push_back(problem.path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{
                "kafka.bootstrap.servers", "kafka.group.id", "kafka.enable.auto.commit",
                "postgres.url", "postgres.lock_timeout", "worker.lanes", "worker.ordering",
                "worker.queue.byte", "routes[0].topic", "routes[0].handler",
                "routes[0].key[1].json", "routes[0].retention", "admin", "log.level", "wroker"}))
      << format(loaded.problems);
}

TEST(Load, TellsWhatWasFoundAndWhatIsAllowed) {
  const auto message = [](const std::string& pointer, const std::string& path, auto value) {
    return problem_at(load(with(pointer, value)), path);
  };
  EXPECT_EQ(message("/worker/lanes", "worker.lanes", 0),
            "found 0; allowed: a whole number from 1 to 256");
  EXPECT_EQ(message("/worker/lanes", "worker.lanes", "8"),
            "found \"8\"; allowed: a whole number from 1 to 256");
  EXPECT_EQ(message("/worker/lanes", "worker.lanes", -1),
            "found -1; allowed: a whole number from 1 to 256");
  EXPECT_EQ(message("/worker/ordering", "worker.ordering", "keys"),
            "found \"keys\"; allowed: \"partition\", \"key\", \"none\"; did you mean \"key\"?");
  EXPECT_EQ(message("/postgres/lock_timeout", "postgres.lock_timeout", "3"),
            "found \"3\"; allowed: a duration from \"10ms\" to \"10m\", with its unit: ms, s, m, h "
            "or d");
  EXPECT_EQ(message("/worker", "worker", 7), "found 7; allowed: an object");
  EXPECT_EQ(message("/kafka/wait_for_topics", "kafka.wait_for_topics", "yes"),
            "found \"yes\"; allowed: true, false");
  EXPECT_EQ(message("/routes", "routes", nlohmann::json::array()),
            "found an empty array; allowed: an array of routes, one for each topic");
}

TEST(Load, SuggestsTheNameThatWasMeant) {
  EXPECT_TRUE(has(problem_at(load(with("/worker/lane", 4)), "worker.lane"),
                  "did you mean lanes? Known here: name, lanes, "));
  EXPECT_TRUE(
      has(problem_at(load(with("/routes/0/sharding", 64)), "routes[0].sharding"), "is unknown"));
}

TEST(Load, TellsWhatIsMissing) {
  const Loaded loaded = load_text("{}", environment({}));
  for (const char* path : {"kafka.bootstrap.servers", "kafka.group.id", "postgres.url", "routes"})
    EXPECT_TRUE(problem_at(loaded, path).starts_with("is missing: ")) << path;
  auto document = minimal();
  document["routes"][0].erase("key");
  EXPECT_TRUE(has(problem_at(load(document), "routes[0].key"), "\"record_key\", \"coordinates\""));
}

TEST(Load, NamesLineAndColumnOfASyntaxError) {
  const auto loaded = load_text("{\n  \"kafka\": {},\n  \"worker\" {}\n}", environment({}));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_TRUE(has(loaded.problems[0].message, "line 3, column 12")) << loaded.problems[0].message;
  EXPECT_TRUE(has(loaded.problems[0].message, "expected ':'"));
  for (const char* text : {"", "[]", "null", "{", "{\"a\":1e999}", "\xff"})
    EXPECT_FALSE(load_text(text, environment({})).problems.empty()) << text;
}

TEST(Load, AsksForTheCommaThatASyntaxErrorIsOftenAbout) {
  const auto said = [](const std::string& text) {
    const auto loaded = load_text(text, environment({}));
    return loaded.problems.empty() ? "" : loaded.problems[0].message;
  };
  for (const char* text : {"{\"kafka\": {} \"postgres\": {}}", "{\"routes\": [{} {}]}"})
    EXPECT_TRUE(has(said(text), "Is a comma missing before it?")) << said(text);
  for (const char* text : {"{\"kafka\": {},}", "{\"routes\": [{},]}"})
    EXPECT_TRUE(has(said(text), "Is there a comma too many before it?")) << said(text);
  for (const char* text : {"{\"kafka\": {}", "{\"kafka\" {}}"})
    EXPECT_FALSE(has(said(text), "comma")) << said(text);
}

TEST(Load, ShowsNothingOfWhatASyntaxErrorCuts) {
  const auto loaded = load_text("{\"kafka\": {\"sasl.password\": \"hunter2\n\"}}", environment({}));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_FALSE(has(loaded.problems[0].message, "hunter2")) << loaded.problems[0].message;
}

TEST(Load, RefusesANameThatComesTwice) {
  const auto loaded = load_text(
      R"({"routes": [{}, {"retry": {"max": "1s", "first": "1s", "max": "2s"}}],
          "a": {"b": 1}, "a": 2})",
      environment({}));
  EXPECT_TRUE(has(problem_at(loaded, "routes[1].retry.max"), "comes twice"));
  EXPECT_TRUE(has(problem_at(loaded, "a"), "comes twice"));
  EXPECT_FALSE(has(problem_at(loaded, "routes[1].retry.first"), "comes twice"));
}

TEST(Load, AllowsCommentsAndExpandsEveryString) {
  const TemporaryFile secret("pw$\n", 0600);
  auto document = with("/kafka/sasl.password", "@" + secret.path());
  document["worker"] = {{"lanes", "${LANES}"}, {"checkpoint_interval", "${TIME:-2s}"}};
  document["kafka"]["wait_for_topics"] = "${WAIT}";
  document["routes"][0]["options"] = {{"list", {"${LANES}", 5}}, {"deep", {{"a", "$$"}}}};
  const std::string text = "// one\n/* two */" + document.dump();
  const auto loaded = load_text(text, environment({{"LANES", "3"}, {"WAIT", "false"}}));
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_EQ(loaded.config->kafka.properties.at("sasl.password"), "pw$");
  EXPECT_EQ(loaded.config->worker.lanes, 3u);
  EXPECT_EQ(loaded.config->worker.checkpoint_interval, 2s);
  EXPECT_FALSE(loaded.config->kafka.wait_for_topics);
  EXPECT_EQ(loaded.config->routes[0].options,
            nlohmann::json::parse(R"({"list": ["3", 5], "deep": {"a": "$"}})"));
}

TEST(Load, NamesTheMissingVariableAndItsPlace) {
  EXPECT_TRUE(has(problem_at(load(with("/worker/lanes", "${LANES}")), "worker.lanes"),
                  "the environment variable LANES is not set"));
  EXPECT_TRUE(has(
      problem_at(load(with("/routes/0/options", {{"a", {1, "${B}"}}})), "routes[0].options.a[1]"),
      "variable B"));
}

TEST(Load, NeverShowsTheValueOfASecret) {
  const TemporaryFile secret("hunter2", 0600);
  const Variables variables = {{"PW", "hunter2"}};
  for (const std::string& source : {"@" + secret.path(), std::string("${PW}")}) {
    for (const char* pointer :
         {"/worker/lanes", "/worker/ordering", "/postgres/lock_timeout", "/worker/queue/bytes",
          "/postgres/url", "/kafka/enable.auto.commit", "/admin/listen", "/routes/0/key",
          "/routes/0/tenant", "/kafka/max.poll.interval.ms", "/routes/0/key/json"}) {
      const Loaded loaded = load(with(pointer, source), variables);
      EXPECT_FALSE(loaded.problems.empty()) << pointer;
      EXPECT_FALSE(has(format(loaded.problems), "hunter2")) << format(loaded.problems);
    }
  }
  for (const char* url : {"hunter2", "host=x password='hunter2", "host=x password=hunter2$"}) {
    const Loaded loaded = load(with("/postgres/url", url));
    EXPECT_FALSE(problem_at(loaded, "postgres.url").empty()) << url;
    EXPECT_FALSE(has(format(loaded.problems), "hunter2")) << format(loaded.problems);
  }
}

TEST(Load, RefusesASecondRouteForATopic) {
  auto document = minimal();
  document["routes"].push_back(document["routes"][0]);
  EXPECT_TRUE(has(problem_at(load(document), "routes[1].topic"),
                  "routes[0] already has the topic payments"));
}

TEST(Load, RefusesADeadLetterTopicThatIsConsumed) {
  EXPECT_TRUE(has(problem_at(load(with("/routes/0/dead_letter_topic", "payments")),
                             "routes[0].dead_letter_topic"),
                  "its dead letters would come back as messages"));
  auto document = with("/routes/0/dead_letter_topic", "orders");
  document["routes"].push_back(document["routes"][0]);
  document["routes"][1]["topic"] = "orders";
  document["routes"][1].erase("dead_letter_topic");
  EXPECT_TRUE(has(problem_at(load(document), "routes[0].dead_letter_topic"), "the topic orders"));
  document["routes"][0]["dead_letter_topic"] = "payments.dead";
  ASSERT_TRUE(load(document).config);
  EXPECT_EQ(load(document).config->routes[0].dead_letter_topic, "payments.dead");
}

// Behind the shorter one, the other would run an operation again.
TEST(Load, RefusesTwoRetentionsForTheKeysOfOneScope) {
  auto document = with("/routes/0/retention", "1m");
  document["routes"].push_back(document["routes"][0]);
  document["routes"][1]["topic"] = "orders";
  EXPECT_TRUE(load(document).config);
  document["routes"][1]["retention"] = "7d";
  EXPECT_TRUE(has(problem_at(load(document), "routes[1].retention"), "that of routes[0]"));
  document["routes"][1]["scope"] = "another";
  EXPECT_TRUE(load(document).config);
}

TEST(Load, ChecksWhatBelongsTogether) {
  EXPECT_TRUE(has(problem_at(load(with("/postgres/lock_timeout", "30s")), "postgres"),
                  "lock_timeout is not shorter than statement_timeout"));
  EXPECT_TRUE(has(problem_at(load(with("/routes/0/retry/first", "31s")), "routes[0].retry"),
                  "first is longer than max"));
  auto document = with("/kafka/max.poll.interval.ms", 10'000);
  EXPECT_TRUE(load(document).config);
  document["worker"]["revoke_timeout"] = "5001ms";
  EXPECT_TRUE(has(problem_at(load(document), "worker.revoke_timeout"), "max.poll.interval.ms"));
}

TEST(Load, RefusesPatternsAndOtherNamesThatAreNoTopic) {
  for (const std::string topic : {"", ".", "..", "^payments", "a b", "a/b", "pay*"})
    EXPECT_FALSE(problem_at(load(with("/routes/0/topic", topic)), "routes[0].topic").empty())
        << topic;
  EXPECT_TRUE(load(with("/routes/0/topic", std::string(249, 'x'))).config);
  EXPECT_FALSE(load(with("/routes/0/topic", std::string(250, 'x'))).config);
}

TEST(Load, RefusesANulByteAnywhere) {
  const std::string nul("a\0b", 3);
  for (const auto& [pointer, path] : std::vector<std::pair<std::string, std::string>>{
           {"/kafka/group.id", "kafka.group.id"},
           {"/kafka/client.id", "kafka.client.id"},
           {"/routes/0/scope", "routes[0].scope"},
           {"/routes/0/key/header", "routes[0].key.header"}})
    EXPECT_TRUE(has(problem_at(load(with(pointer, nul)), path), "NUL")) << path;
}

TEST(Load, ReadsTheAddressToListenOn) {
  const auto listen = [](nlohmann::json value) {
    return load(with("/admin/listen", value)).config.value().admin.listen;
  };
  EXPECT_EQ(listen("0.0.0.0:0"), (Listen{"0.0.0.0", 0}));
  EXPECT_EQ(listen("[::1]:9464"), (Listen{"::1", 9464}));
  EXPECT_EQ(listen(""), std::nullopt);
  EXPECT_EQ(listen(false), std::nullopt);
  for (const nlohmann::json& value :
       {nlohmann::json(true), nlohmann::json("9464"), nlohmann::json(":9464"),
        nlohmann::json("::1:9464"), nlohmann::json("h:65536"), nlohmann::json("h:1x")})
    EXPECT_FALSE(problem_at(load(with("/admin/listen", value)), "admin.listen").empty()) << value;
}

TEST(LoadFile, TellsWhyAFileCannotBeRead) {
  const Loaded loaded = load_file("/no/such/worker.json", environment({}));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].message,
            "cannot read /no/such/worker.json: No such file or directory");
}

TEST(LoadFile, WarnsIfEveryUserCanReadAPassword) {
  const auto warnings = [](const nlohmann::json& document, mode_t mode) {
    const TemporaryFile file(document.dump(), mode);
    const Loaded loaded = load_file(file.path(), environment({{"PW", "pw"}}));
    EXPECT_TRUE(loaded.config) << format(loaded.problems);
    return loaded.warnings.size();
  };
  EXPECT_EQ(warnings(minimal(), 0644), 0u);
  EXPECT_EQ(warnings(with("/kafka/client.id", "worker-1"), 0644), 0u);
  EXPECT_EQ(warnings(with("/kafka/sasl.password", "pw"), 0644), 1u);
  EXPECT_EQ(warnings(with("/kafka/sasl.password", "pw"), 0640), 1u);
  EXPECT_EQ(warnings(with("/kafka/sasl.password", "pw"), 0600), 0u);
  EXPECT_EQ(warnings(with("/kafka/sasl.password", "${PW}"), 0644), 0u);
  EXPECT_EQ(warnings(with("/postgres/url", "postgres://u:pw@h/d"), 0644), 1u);
  EXPECT_EQ(warnings(with("/postgres/url", "postgres://u:${PW}@h/d"), 0644), 0u);
}

TEST(Load, KeepsTheFilesOfWhatMayChangeWhileAWorkerRuns) {
  const TemporaryFile url("postgresql://u:pw@h/d\n", 0600), password("pw", 0600);
  nlohmann::json document = with("/postgres/url", "@" + url.path());
  document["kafka"]["sasl.password"] = "@" + password.path();
  document["kafka"]["sasl.username"] = "u";
  const Loaded loaded = load(document);
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_EQ(loaded.config->postgres.url, "postgresql://u:pw@h/d");
  EXPECT_EQ(loaded.config->postgres.url_file, url.path());
  EXPECT_EQ(loaded.config->kafka.files,
            (std::map<std::string, std::string>{{"sasl.password", password.path()}}));
}

TEST(Load, WarnsOfAPrivateKeyThatIsOpenToOthers) {
  const TemporaryFile open_file("key", 0644), closed_file("key", 0600);
  EXPECT_EQ(load(with("/kafka/ssl.key.location", open_file.path())).warnings.size(), 1u);
  EXPECT_EQ(load(with("/kafka/ssl.key.location", closed_file.path())).warnings.size(), 0u);
}

TEST(Load, RefusesAUrlWhosePasswordLibpqWouldTakeApart) {
  const std::string problem =
      problem_at(load(with("/postgres/url", "postgres://u:p@secret@h/d")), "postgres.url");
  EXPECT_TRUE(has(problem, "%40")) << problem;
  EXPECT_FALSE(has(problem, "secret@")) << problem;
}

TEST(Load, ReadsTheUrlOfACollector) {
  const auto url = [](const std::string& text) {
    const Loaded loaded = load(with("/traces/endpoint", text));
    if (!loaded.config) return std::string("refused");
    return loaded.config->traces.endpoint ? loaded.config->traces.endpoint->url() : "off";
  };
  EXPECT_EQ(url(""), "off");
  EXPECT_EQ(url("http://collector:4318"), "http://collector:4318/v1/traces");
  EXPECT_EQ(url("http://collector:4318/"), "http://collector:4318/v1/traces");
  EXPECT_EQ(url("https://otlp.example.com/in/v1/traces"),
            "https://otlp.example.com:443/in/v1/traces");
  EXPECT_EQ(url("http://[fd00::a]:4318"), "http://[fd00::a]:4318/v1/traces");
  EXPECT_EQ(url("http://[::1]"), "http://[::1]:80/v1/traces");
  for (const char* wrong :
       {"collector:4318", "grpc://collector:4317", "http://", "http://:4318",
        "http://c:", "http://c:0", "http://c:65536", "http://c:43 18", "http://c:4318/?a=1",
        "http://c:4318/#a", "http://[::1", "http://[::1]x:1", "http://[]:1", "http://a:b:1"})
    EXPECT_EQ(url(wrong), "refused") << wrong;
  const std::string problem =
      problem_at(load(with("/traces/endpoint", "collector:4318")), "traces.endpoint");
  EXPECT_TRUE(has(problem, "\"http://collector:4318\"")) << problem;
  const std::string secret =
      problem_at(load(with("/traces/endpoint", "http://me:secret@c:4318")), "traces.endpoint");
  EXPECT_TRUE(has(secret, "names a user") && !has(secret, "secret@")) << secret;
}

TEST(Load, ReadsTheShareOfTracesFromOutsideToo) {
  const auto ratio = [](const nlohmann::json& value) {
    const Loaded loaded = load_text(with("/traces/ratio", value).dump(),
                                    environment({{"SHARE", "0.05"}, {"NO", "5 %"}}));
    return loaded.config ? loaded.config->traces.ratio : -1;
  };
  EXPECT_EQ(ratio(0.25), 0.25);
  EXPECT_EQ(ratio(0), 0);
  EXPECT_EQ(ratio("${SHARE}"), 0.05);
  for (const nlohmann::json& wrong :
       std::vector<nlohmann::json>{-0.1, 1.1, "0.5", "${NO}", nullptr, true})
    EXPECT_EQ(ratio(wrong), -1) << wrong;
}

TEST(Load, ReadsWhatTheConsoleHides) {
  const Loaded loaded =
      load(with("/console/mask", nlohmann::json::array({"/card/number", "/items/*/iban"})));
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_EQ(loaded.config->console.mask,
            (std::vector<std::string>{"/card/number", "/items/*/iban"}));
  for (const nlohmann::json& wrong : std::vector<nlohmann::json>{
           "card", "card.number", "#/card", "/card/~2", "/card/**", "/card*/number", 5, nullptr})
    EXPECT_TRUE(has(
        problem_at(load(with("/console/mask", nlohmann::json::array({wrong}))), "console.mask[0]"),
        "\"/items/*/iban\""))
        << wrong;
  EXPECT_NE(problem_at(load(with("/console/mask", "/card")), "console.mask"), "");
  EXPECT_NE(problem_at(load(with("/console/mask", nlohmann::json::array())), "console.mask"), "");
}

}  // namespace
}  // namespace hapax::config
