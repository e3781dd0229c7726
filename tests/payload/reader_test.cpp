#include "payload/reader.hpp"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <thread>

#include "key/sample_message.hpp"

namespace hapax::payload {
namespace {

using namespace std::string_literals;
using key::SampleMessage;
using Format = config::Payload::Format;

constexpr const char* kFirst = R"({"type": "record", "name": "Payment", "fields": [
    {"name": "id", "type": "string"}, {"name": "amount", "type": "long"}]})";
constexpr const char* kSecond = R"({"type": "record", "name": "Payment", "fields": [
    {"name": "amount", "type": "long"}, {"name": "id", "type": "string"}]})";

HttpAnswer answer(const std::string& path) {
  const auto schema = [](const char* text) {
    return HttpAnswer{200, nlohmann::json{{"schema", text}}.dump()};
  };
  if (path == "/schemas/ids/1") return schema(kFirst);
  if (path == "/schemas/ids/2") return schema(kSecond);
  if (path == "/schemas/ids/3") return schema("{}");
  if (path == "/schemas/ids/4") return {200, R"({"schema": "syntax", "schemaType": "PROTOBUF"})"};
  if (path == "/schemas/ids/5") throw std::runtime_error("refused");
  return {404, R"({"error_code": 40403})"};
}

config::Payload payload(Format format) {
  config::Payload payload;
  payload.format = format;
  payload.registry.unknown_timeout = std::chrono::milliseconds(0);
  return payload;
}

// The decoded JSON, or "reason: detail".
std::string told(const Reading& reading) {
  return reading.is_readable() ? reading.json : reading.reason + ": " + reading.detail;
}

std::string read(const Reader& reader, const SampleMessage& sample) {
  return sample.with([&](const Message& message) { return told(reader.read(message)); });
}

TEST(PayloadReader, DecodesEachPayloadByTheSchemaThatItNames) {
  const Reader reader(payload(Format::avro), answer);
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\4p1\x0e"s}), R"({"id":"p1","amount":7})");
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\2\x0e\4p1"s}), R"({"amount":7,"id":"p1"})");
  EXPECT_EQ(read(reader, {.headers = {{"__value_schema_id", "\0\0\0\0\1"s}}, .payload = "\2x\2"}),
            R"({"id":"x","amount":1})");
  EXPECT_EQ(read(reader, {.payload = std::nullopt}), "");  // a tombstone
}

TEST(PayloadReader, DecodesAvroThatRefersToTwoVersionsOfOneType) {
  const auto schema = [](const std::string& name, const std::string& fields,
                         const std::string& references) {
    const std::string text = R"({"type": "record", "name": "a.)" + name +
                             R"(", "fields": [{"name": "id", "type": "string"})" + fields + "]}";
    return HttpAnswer{
        200,
        nlohmann::json{{"schema", text}, {"references", nlohmann::json::parse(references)}}.dump()};
  };
  const Reader reader(payload(Format::avro), [&](const std::string& path) {
    if (path.starts_with("/subjects/C/versions/1")) return schema("C", "", "[]");
    if (path.starts_with("/subjects/C/versions/2"))
      return schema("C", R"(, {"name": "vip", "type": "boolean"})", "[]");
    if (path.starts_with("/subjects/P/"))
      return schema("P", R"(, {"name": "payer", "type": "C"})",
                    R"([{"name": "a.C", "subject": "C", "version": 1}])");
    return schema("O", R"(, {"name": "buyer", "type": "C"}, {"name": "pays", "type": "P"})",
                  R"([{"name": "a.C", "subject": "C", "version": 2},
                      {"name": "a.P", "subject": "P", "version": 1}])");
  });
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\2o\2b\1\2p\2c\0"s}),
            R"({"id":"o","buyer":{"id":"b","vip":true},"pays":{"id":"p","payer":)"
            R"({"id":"c","vip":false}}})");
}

TEST(PayloadReader, DecodesProtobufByTheMessageThatTheIndexesName) {
  const Reader reader(payload(Format::protobuf), [](const std::string& path) {
    if (path != "/schemas/ids/1" && path != "/schemas/guids/01000000-0000-0000-0000-000000000002")
      return answer(path);
    return HttpAnswer{200, nlohmann::json{{"schemaType", "PROTOBUF"},
                                          {"schema",
                                           "syntax = 'proto3'; message A { string id = 1; }"
                                           " message B { int64 amount = 1; }"}}
                               .dump()};
  });
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\0\x0a\2p1"s}), R"({"id":"p1"})");
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\2\2\x08\7"s}), R"({"amount":7})");
  const std::string guid = "\1\1"s + std::string(14, '\0') + "\2"s;
  EXPECT_EQ(read(reader, {.payload = guid + "\2\2\x08\7"s}), R"({"amount":7})");
  EXPECT_EQ(read(reader, {.headers = {{"__value_schema_id", guid + "\2\2"}}, .payload = "\x08\7"}),
            R"({"amount":7})");
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\2\6\x08\7"s}),
            "not_decodable: /schemas/ids/1: the schema has no message with the index 3");
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\2\0"s}),
            "not_decodable: /schemas/ids/2: the schema is of type AVRO, and payload.format wants "
            "PROTOBUF");
}

TEST(PayloadReader, TellsWhyAPayloadCannotBeDecoded) {
  const Reader reader(payload(Format::avro), answer);
  for (const auto& [bytes, why] : std::vector<std::pair<std::string, std::string>>{
           {"{}", "not_decodable: the payload does not begin"},
           {"\0\0\0\0\1\4p"s, "not_decodable: /schemas/ids/1: the payload does not fit"},
           {"\0\0\0\0\3"s, "not_decodable: /schemas/ids/3: the schema is no Avro schema"},
           {"\0\0\0\0\4"s, "not_decodable: /schemas/ids/4: the schema is of type PROTOBUF"},
           {"\0\0\0\0\x09"s, "unknown_schema: the registry does not know /schemas/ids/9"}})
    EXPECT_EQ(read(reader, {.payload = bytes}).substr(0, why.size()), why);
}

TEST(PayloadReader, WaitsForARegistryThatIsAwayAndGoesOnWithSchemasThatItKnows) {
  const Reader reader(payload(Format::avro), answer);
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\4p1\x0e"s}), R"({"id":"p1","amount":7})");
  const SampleMessage away{.payload = "\0\0\0\0\5x"s};
  EXPECT_EQ(away.with([&](const Message& m) { return reader.read(m).state; }),
            Reading::State::away);
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\4p1\x0e"s}), R"({"id":"p1","amount":7})");
}

TEST(PayloadReader, ReadsAtOnceWhatNeedsNoQuestion) {
  const Reader reader(payload(Format::avro), answer);
  const SampleMessage sample{.payload = "\0\0\0\0\1\4p1\x0e"s};
  sample.with([&](const Message& message) {
    EXPECT_FALSE(reader.read_at_once(message));
    reader.read(message);
    EXPECT_EQ(reader.read_at_once(message)->json, R"({"id":"p1","amount":7})");
    return 0;
  });
}

TEST(PayloadReader, LeavesAMessageUnreadIfItMayNotAsk) {
  int questions = 0;
  const Reader reader(payload(Format::avro), [&](const std::string& path) {
    ++questions;
    return answer(path);
  });
  const SampleMessage sample{.payload = "\0\0\0\0\1\4p1\x0e"s};
  sample.with([&](const Message& message) {
    const auto unread = read_message(&reader, message, false);
    EXPECT_EQ(unread->reading.state, Reading::State::away);
    EXPECT_EQ(unread->reading.wait, std::chrono::milliseconds(0));
    EXPECT_EQ(questions, 0);
    reader.read(message);
    EXPECT_TRUE(read_message(&reader, message, false)->reading.is_readable());
    return 0;
  });
}

TEST(PayloadReader, TakesTheFramingOffJsonWithoutARegistry) {
  const Reader reader(payload(Format::json));
  EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1{\"id\": 1}"s}), "{\"id\": 1}");
  EXPECT_TRUE(read(reader, {.payload = "{\"id\": 1}"}).starts_with("not_decodable: "));
}

// One operation that two versions of a producer send is one operation, not a drift.
TEST(PayloadReader, GivesOneKeyAndFingerprintUnderTwoSchemas) {
  const Reader reader(payload(Format::avro), answer);
  key::KeySpec spec;
  spec.sources = {{key::Source::Kind::json, {"/id"}}};
  spec.fingerprint.kind = key::FingerprintRule::Kind::json;
  const auto identity = [&](const SampleMessage& sample) {
    return sample.with([&](const Message& message) {
      const auto read = read_message(&reader, message);
      return std::get<key::Identity>(key::identify(spec, read->message, 1));
    });
  };
  const auto first = identity({.payload = "\0\0\0\0\1\4p1\x0e"s});
  const auto second = identity({.payload = "\0\0\0\0\2\x0e\4p1"s});
  EXPECT_EQ(first.key, "p1");
  EXPECT_EQ(second.key, "p1");
  EXPECT_EQ(first.fingerprint, second.fingerprint);
  EXPECT_NE(first.fingerprint, identity({.payload = "\0\0\0\0\1\4p1\x10"s}).fingerprint);
}

// A message of another type is another operation, though its fields are the same.
TEST(PayloadReader, GivesEachTypeOfProtobufItsOwnFingerprint) {
  const Reader reader(payload(Format::protobuf), [](const std::string& path) {
    const std::string more = path == "/schemas/ids/1" ? "" : " message More { string id = 1; }";
    return HttpAnswer{200, nlohmann::json{{"schemaType", "PROTOBUF"},
                                          {"schema",
                                           "syntax = 'proto3'; message Placed { string id = 1; }"
                                           " message Cancelled { string id = 1; }" +
                                               more}}
                               .dump()};
  });
  for (const key::FingerprintRule& rule :
       {key::FingerprintRule{key::FingerprintRule::Kind::json, {}},
        key::FingerprintRule{key::FingerprintRule::Kind::json_without, {"/at"}}}) {
    key::KeySpec spec;
    spec.sources = {{key::Source::Kind::header, {"key"}}};
    spec.fingerprint = rule;
    const auto print = [&](const std::string& id_and_type, const std::string& body) {
      const SampleMessage sample{
          .headers = {{"key", "k"}, {"__value_schema_id", "\0\0\0\0"s + id_and_type}},
          .payload = body};
      return sample.with([&](const Message& message) {
        const auto read = read_message(&reader, message);
        return std::get<key::Identity>(key::identify(spec, read->message, 1)).fingerprint;
      });
    };
    const std::string placed = "\1\0"s, later_placed = "\2\0"s, cancelled = "\1\2\2"s;
    for (const std::string body : {"\x0a\2p1", ""}) {
      EXPECT_EQ(print(placed, body), print(later_placed, body));
      EXPECT_NE(print(placed, body).digest, print(cancelled, body).digest) << body;
      EXPECT_EQ(print(placed, body).rule, print(cancelled, body).rule);
    }
  }
}

TEST(PayloadReader, ShowsAHandlerTheDecodedPayloadAndTheBytes) {
  const Reader reader(payload(Format::avro), answer);
  const SampleMessage sample{.payload = "\0\0\0\0\1\4p1\x0e"s};
  sample.with([&](const Message& message) {
    const auto read = read_message(&reader, message);
    EXPECT_EQ(read->message.json(), (nlohmann::json{{"id", "p1"}, {"amount", 7}}));
    EXPECT_EQ(read->message.payload(), sample.payload);
    return 0;
  });
}

TEST(PayloadReader, AsksOnceForWhatSeveralLanesMiss) {
  std::atomic<int> questions = 0, begun = 0;
  const Reader reader(payload(Format::avro), [&](const std::string& path) {
    ++questions;
    while (begun < 8) std::this_thread::yield();
    return answer(path);
  });
  std::vector<std::jthread> lanes;
  for (int i = 0; i < 8; ++i)
    lanes.emplace_back([&] {
      ++begun;
      EXPECT_EQ(read(reader, {.payload = "\0\0\0\0\1\4p1\x0e"s}), R"({"id":"p1","amount":7})");
    });
  lanes.clear();
  EXPECT_EQ(questions, 1);
}

// Schemas in use stay, though hostile ids without end were looked up meanwhile.
TEST(PayloadReader, ForgetsTheSchemaThatWasUsedLeastRecently) {
  std::map<std::string, int> questions;
  const Reader reader(payload(Format::avro), [&](const std::string& path) {
    ++questions[path];
    return HttpAnswer{200, nlohmann::json{{"schema", "\"long\""}}.dump()};
  });
  const auto use = [&](std::size_t id) {
    const std::string bytes{'\0', '\0', '\0', static_cast<char>(id >> 8), static_cast<char>(id), 2};
    EXPECT_EQ(read(reader, {.payload = bytes}), "1");
  };
  for (std::size_t id = 1; id <= 3 * Reader::kMaxDecoders; ++id) {
    use(id);
    use(1);
  }
  EXPECT_EQ(questions["/schemas/ids/1"], 1);
  use(3 * Reader::kMaxDecoders);
  EXPECT_EQ(questions["/schemas/ids/600"], 1);
  use(2);
  EXPECT_EQ(questions["/schemas/ids/2"], 2);
}

// The client that is not in memory: user and password, a status, a body that is too large.
TEST(PayloadReader, AsksARegistryByHttp) {
  httplib::Server server;
  std::string authorization;
  server.Get("/base/schemas/ids/1", [&](const httplib::Request& request, httplib::Response& to) {
    authorization = request.get_header_value("Authorization");
    to.set_content(nlohmann::json{{"schema", kFirst}}.dump(), "application/json");
  });
  server.Get("/base/schemas/ids/2", [](const httplib::Request&, httplib::Response& to) {
    to.set_content(std::string(5 << 20, ' '), "application/json");
  });
  server.Get("/base/schemas/ids/3", [](const httplib::Request&, httplib::Response& to) {
    to.set_redirect("/base/schemas/ids/1");
  });
  server.Get("/base/schemas/ids/4", [](const httplib::Request&, httplib::Response& to) {
    to.status = 404;
    to.set_content(R"({"error_code": 40403, "message": "Schema not found"})", "application/json");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::jthread thread([&] { server.listen_after_bind(); });
  config::Payload asks = payload(Format::avro);
  asks.registry.url = "http://127.0.0.1:" + std::to_string(port) + "/base";
  asks.registry.user = "ann";
  asks.registry.password = "secret";
  EXPECT_EQ(read(Reader(asks), {.payload = "\0\0\0\0\1\4p1\x0e"s}), R"({"id":"p1","amount":7})");
  EXPECT_EQ(authorization, "Basic YW5uOnNlY3JldA==");
  EXPECT_TRUE(read(Reader(asks), {.payload = "\0\0\0\0\2x"s}).starts_with("registry: "));
  EXPECT_TRUE(read(Reader(asks), {.payload = "\0\0\0\0\3x"s}).starts_with("registry: "));
  EXPECT_TRUE(read(Reader(asks), {.payload = "\0\0\0\0\4x"s}).starts_with("unknown_schema: "));
  EXPECT_TRUE(read(Reader(asks), {.payload = "\0\0\0\0\5x"s}).starts_with("registry: "));
  server.stop();
  thread.join();
  EXPECT_TRUE(read(Reader(asks), {.payload = "\0\0\0\0\1x"s}).starts_with("registry: "));
}

}  // namespace
}  // namespace hapax::payload
