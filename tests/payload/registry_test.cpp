#include "payload/registry.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace hapax::payload {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A registry in memory, and a clock that the test turns.
struct Double {
  std::map<std::string, HttpAnswer> answers = {{Registry::kProbe, {200, R"(["AVRO"])"}}};
  std::string away;  // why it does not answer
  int questions = 0;
  Registry::Clock::time_point now{};
  Registry registry{"double", [this](const std::string& path) { return answer(path); }, seconds(60),
                    [this] { return now; }};

  HttpAnswer answer(const std::string& path) {
    ++questions;
    if (!away.empty()) throw std::runtime_error(away);
    const auto found = answers.find(path);
    return found == answers.end() ? HttpAnswer{404, R"({"error_code": 40403})"} : found->second;
  }

  // "type:text" with its references, "wait MS", or "unknown".
  std::string find(const std::string& path) {
    const auto found = registry.find(path);
    if (const auto* const not_now = std::get_if<Registry::NotNow>(&found))
      return "wait " + std::to_string(not_now->wait.count());
    if (std::holds_alternative<Registry::Unknown>(found)) return "unknown";
    const auto& schema = std::get<SchemaText>(found);
    std::string text = schema.type + ":" + schema.text;
    for (const auto& [name, its, is_direct] : schema.references)
      text += " " + name + "=" + its + (is_direct ? "!" : "");
    return text;
  }
};

TEST(Registry, GivesASchemaAfterAllThatItRefersTo) {
  Double a;
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "S"})"};
  EXPECT_EQ(a.find("/schemas/ids/1"), "AVRO:S");
  a.answers["/schemas/ids/2"] = {200, R"({"schema": "T", "schemaType": "PROTOBUF", "references": [
      {"name": "b", "subject": "b/1", "version": 2}, {"name": "c", "subject": "c", "version": 1}]})"};
  a.answers["/subjects/b%2F1/versions/2?deleted=true"] = {200, R"({"schema": "B", "references": [
      {"name": "c", "subject": "c", "version": 1}]})"};
  a.answers["/subjects/c/versions/1?deleted=true"] = {200, R"({"schema": "C", "references": [
      {"name": "b", "subject": "b/1", "version": 2}]})"};  // in a circle
  EXPECT_EQ(a.find("/schemas/ids/2"), "PROTOBUF:T c=C! b=B!");
}

// A rule that decrypts, and that hapax does not know, would leave the handler with ciphertext.
TEST(Registry, RefusesASchemaWithARuleThatActsOnReading) {
  const auto find = [](const std::string& phase, const std::string& rule) -> std::string {
    Double a;
    a.answers["/schemas/ids/1"] = {200, R"({"schema": "S", "ruleSet": {")" + phase +
                                            R"(": [{"name": "pii", )" + rule + "}]}}"};
    try {
      return a.find("/schemas/ids/1");
    } catch (const NotDecodable& error) {
      return error.what();
    }
  };
  const std::string why =
      "the schema has the rule pii (ENCRYPT), which acts on what is read; hapax carries out no "
      "rules";
  const std::string encrypt = R"("kind": "TRANSFORM", "type": "ENCRYPT")";
  for (const std::string more : {"", R"(, "mode": "READ")", R"(, "mode": "WRITEREAD")"}) {
    EXPECT_EQ(find("domainRules", encrypt + more), why) << more;
    EXPECT_EQ(find("encodingRules", encrypt + more), why) << more;
  }
  EXPECT_EQ(find("domainRules", encrypt + R"(, "mode": "WRITE")"), "AVRO:S");
  EXPECT_EQ(find("domainRules", encrypt + R"(, "disabled": true)"), "AVRO:S");
  EXPECT_EQ(find("domainRules", R"("kind": "CONDITION", "type": "CEL")"), "AVRO:S");
  EXPECT_EQ(find("migrationRules", R"("kind": "TRANSFORM", "mode": "UPGRADE")"), "AVRO:S");
}

TEST(Registry, TellsWhatTheSchemaNamesItself) {
  Double a;
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "S", "schemaType": "PROTOBUF", "references": [
      {"name": "b", "subject": "b", "version": 1}, {"name": "c", "subject": "c", "version": 2}]})"};
  a.answers["/subjects/b/versions/1?deleted=true"] = {200, R"({"schema": "B", "references": [
      {"name": "c", "subject": "c", "version": 1}]})"};
  a.answers["/subjects/c/versions/1?deleted=true"] = {200, R"({"schema": "C1"})"};
  a.answers["/subjects/c/versions/2?deleted=true"] = {200, R"({"schema": "C2"})"};
  EXPECT_EQ(a.find("/schemas/ids/1"), "PROTOBUF:S c=C1 b=B! c=C2!");
}

// As Confluent's clients do. Two would declare one type twice.
TEST(Registry, GivesAvroTheFirstVersionOfEachName) {
  Double a;
  const std::string b = R"({"name": "b", "subject": "b", "version": 1})";
  const std::string c = R"({"name": "c", "subject": "c", "version": 2})";
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "S", "references": [)" + c + ", " + b + "]}"};
  a.answers["/schemas/ids/2"] = {200, R"({"schema": "S", "references": [)" + b + ", " + c + "]}"};
  a.answers["/subjects/b/versions/1?deleted=true"] = {200, R"({"schema": "B", "references": [
      {"name": "c", "subject": "c", "version": 1}]})"};
  a.answers["/subjects/c/versions/1?deleted=true"] = {200, R"({"schema": "C1"})"};
  a.answers["/subjects/c/versions/2?deleted=true"] = {200, R"({"schema": "C2"})"};
  EXPECT_EQ(a.find("/schemas/ids/1"), "AVRO:S c=C2! b=B!");
  EXPECT_EQ(a.find("/schemas/ids/2"), "AVRO:S c=C1! b=B!");
}

TEST(Registry, ThatIsAwayIsAskedAgainAfterAGrowingWaitAndNotMeanwhile) {
  Double a;
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "S"})"};
  a.away = "refused";
  EXPECT_EQ(a.find("/schemas/ids/1"), "wait 100");
  EXPECT_EQ(a.find("/schemas/ids/2"), "wait 100");
  EXPECT_EQ(a.questions, 2) << "the schema, and whether it answers at all";
  EXPECT_FALSE(a.registry.is_up());
  for (const int wait : {200, 400, 800, 1600, 2000, 2000}) {
    a.now += seconds(2);
    EXPECT_EQ(a.find("/schemas/ids/1"), "wait " + std::to_string(wait));
  }
  a.away.clear();
  a.now += seconds(2);
  EXPECT_EQ(a.find("/schemas/ids/1"), "AVRO:S");
  EXPECT_TRUE(a.registry.is_up());
}

// Anybody may write any id, such as one whose schema is too large.
TEST(Registry, ThatHasTroubleWithOneSchemaIsAskedForTheOthers) {
  Double a;
  a.answers["/schemas/ids/1"] = {500, ""};
  a.answers["/schemas/ids/2"] = {200, R"({"schema": "S"})"};
  EXPECT_EQ(a.find("/schemas/ids/1"), "wait 1000");
  EXPECT_TRUE(a.registry.is_up());
  EXPECT_EQ(a.find("/schemas/ids/2"), "AVRO:S");
  const int before = a.questions;
  EXPECT_EQ(a.find("/schemas/ids/1"), "wait 1000");
  EXPECT_EQ(a.questions, before) << "nobody asks meanwhile";
  for (const int wait : {2000, 4000, 8000, 16000, 30000, 30000}) {
    a.now += seconds(30);
    EXPECT_EQ(a.find("/schemas/ids/1"), "wait " + std::to_string(wait));
  }
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "T"})"};
  a.now += seconds(30);
  EXPECT_EQ(a.find("/schemas/ids/1"), "AVRO:T");
}

TEST(Registry, RemembersABoundedNumberOfSchemasWithTrouble) {
  Double a;
  for (std::size_t i = 0; i <= Registry::kMaxUnknown; ++i) {
    const std::string path = "/schemas/ids/" + std::to_string(i);
    a.answers[path] = {500, ""};
    EXPECT_EQ(a.find(path), "wait 1000");
  }
  const int before = a.questions;
  EXPECT_EQ(a.find("/schemas/ids/0"), "wait 1000");
  EXPECT_EQ(a.questions, before + 2) << "the first was forgotten";
}

TEST(Registry, ThatAnswersWhatIsNoSchemaIsAway) {
  for (const HttpAnswer& answer : {HttpAnswer{200, "<html>"},
                                   {302, ""},
                                   {404, "404 page not found"},  // of a proxy before it
                                   {407, "{}"},
                                   {401, ""},
                                   {403, ""},
                                   {429, ""},
                                   {500, ""},
                                   {503, ""}}) {
    Double a;
    a.answers[Registry::kProbe] = a.answers["/schemas/ids/1"] = answer;
    EXPECT_EQ(a.find("/schemas/ids/1"), "wait 100") << answer.status << answer.body;
  }
}

TEST(Registry, WaitsIfWhatItGivesOutIsNoSchema) {
  for (const char* const body : {"[]", "{}", R"({"schema": 7})", "<html>"}) {
    Double a;
    a.answers["/schemas/ids/1"] = {200, body};
    EXPECT_EQ(a.find("/schemas/ids/1"), "wait 1000") << body;
  }
}

TEST(Registry, MakesAnUnknownSchemaWaitAndThenRefusesIt) {
  Double a;
  EXPECT_EQ(a.find("/schemas/ids/7"), "wait 5000");
  a.now += seconds(1);
  EXPECT_EQ(a.find("/schemas/ids/7"), "wait 4000");
  EXPECT_EQ(a.questions, 1);
  a.now += seconds(56);
  EXPECT_EQ(a.find("/schemas/ids/7"), "wait 3000");  // to the end of the 60 s
  EXPECT_EQ(a.questions, 2);
  a.now += seconds(3);
  EXPECT_EQ(a.find("/schemas/ids/7"), "unknown");
  a.now += seconds(1);
  EXPECT_EQ(a.find("/schemas/ids/7"), "unknown");
  const int before = a.questions;
  a.answers["/schemas/ids/7"] = {200, R"({"schema": "S"})"};
  a.now += seconds(5);
  EXPECT_EQ(a.find("/schemas/ids/7"), "AVRO:S");
  EXPECT_EQ(a.questions, before + 1);
}

// Redpanda and Karapace have no such path. Anybody may write a byte 1 and 16 others.
TEST(Registry, ThatHasNoGuidsRefusesThem) {
  const std::string path = "/schemas/guids/00000000-0000-0000-0000-000000000000";
  for (const char* const body :
       {R"({"message": "Not found", "code": 404})", R"("Not Found")", "404 page not found"}) {
    Double a;
    a.answers[path] = a.answers["/schemas/ids/1"] = {404, body};
    EXPECT_EQ(a.find(path), "wait 5000") << body;
    EXPECT_EQ(a.find("/schemas/ids/1"), "wait 1000") << "each registry has this path " << body;
    a.now += seconds(61);
    EXPECT_EQ(a.find(path), "unknown") << body;
    a.answers[Registry::kProbe] = {404, body};
    a.now += seconds(6);
    EXPECT_EQ(a.find(path), "wait 100") << "it is away " << body;
  }
}

TEST(Registry, WaitsAgainForASchemaThatWasAskedForLongAgo) {
  Double a;
  EXPECT_EQ(a.find("/schemas/ids/7"), "wait 5000");  // one message named an id of the future
  a.now += std::chrono::minutes(5);
  EXPECT_EQ(a.find("/schemas/ids/7"), "wait 5000");
}

TEST(Registry, DoesNotLetOthersWaitWhileASchemaIsUnknown) {
  Double a;
  EXPECT_EQ(a.find("/schemas/ids/7"), "wait 5000");
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "S"})"};
  EXPECT_EQ(a.find("/schemas/ids/1"), "AVRO:S");
}

TEST(Registry, RemembersABoundedNumberOfUnknownSchemas) {
  Double a;
  for (std::size_t i = 0; i < Registry::kMaxUnknown; ++i)
    EXPECT_EQ(a.find("/schemas/ids/" + std::to_string(i)), "wait 5000");
  EXPECT_EQ(a.find("/schemas/ids/100000"), "wait 5000") << "it is no dead letter at once";
  a.now += seconds(5);
  EXPECT_EQ(a.find("/schemas/ids/1"), "wait 5000");
  a.answers["/schemas/ids/100000"] = {200, R"({"schema": "S"})"};
  EXPECT_EQ(a.find("/schemas/ids/100000"), "AVRO:S");
  a.now += seconds(55);
  EXPECT_EQ(a.find("/schemas/ids/1"), "unknown");
  EXPECT_EQ(a.find("/schemas/ids/100001"), "wait 5000");
  EXPECT_EQ(a.find("/schemas/ids/0"), "wait 5000") << "the oldest was forgotten";
  a.now += seconds(60);
  EXPECT_EQ(a.find("/schemas/ids/100001"), "unknown");
}

TEST(Registry, RefusesASchemaThatRefersToTooMuch) {
  Double a;
  a.answers["/schemas/ids/1"] = {200, R"({"schema": "S", "references": [
      {"name": "n", "subject": "s", "version": 0}]})"};
  for (int i = 0; i < 200; ++i)
    a.answers["/subjects/s/versions/" + std::to_string(i) + "?deleted=true"] = {
        200, R"({"schema": "S", "references": [{"name": "n)" + std::to_string(i) +
                 R"(", "subject": "s", "version": )" + std::to_string(i + 1) + "}]}"};
  EXPECT_THROW(a.find("/schemas/ids/1"), NotDecodable);
  EXPECT_LE(a.questions, 102);
}

}  // namespace
}  // namespace hapax::payload
