// What console.mask hides leaves the process in no answer, and what is left stays as it was.
#include "console/console_case.hpp"
#include "flow/publisher.hpp"
#include "flow/stored_response.hpp"

namespace hapax::console {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kCard = "4929000011112222";

class ConsoleMasking : public ConsoleCase {
 protected:
  ConsoleMasking() {
    setup.config.console.mask = {"/card/number", "/items/*/iban", "/secrets/*"};
    setup.config.routes[0].outside.emplace();
    as_operator();
  }

  Json shown(const std::string& payload) {
    database.run("DELETE FROM hapax.dead_letters");
    letters(1, "'" + payload + "'");
    return read("/api/letter?which=t/0/1").at("payload");
  }
  // What the page gets of a key's stored result, as JSON.
  Json shown_result(const std::string& result) {
    database.run(
        "DELETE FROM hapax.idempotency_keys; INSERT INTO hapax.idempotency_keys (key, scope, "
        "status, group_id, topic, generation, partition, kafka_offset, expires_at, result) VALUES "
        "('k', 's', 'completed', 'g', 't', 1, 0, 7, now() + interval '1 day', '" +
        result + "')");
    return read("/api/explain?key=k").at("keys").at(0);
  }
  // Key k1 of letter 1 was called for. What became of it is unknown, and this answer came too late.
  void unknown_call(const std::string& answer) {
    database.run(
        "UPDATE hapax.dead_letters SET reason = 'outcome_unknown' WHERE id = 1; "
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes, answer) "
        "VALUES ('k1', 's', 'unknown', 'g', 't', 1, 0, 1, 'infinity', 100, 1, now(), false, 0, '" +
        answer + "')");
  }
};

TEST_F(ConsoleMasking, HidesTheNamedValuesAndShowsTheRest) {
  const Json payload = shown(
      R"({"card": {"number": "4929000011112222", "month": 7}, "items": [{"iban": "DE1"}, 5, {"iban": null}],)"
      R"( "amount": 12345678901234567890.10, "secrets": {"a": [1], "b": {"c": 2}}})");
  EXPECT_EQ(payload.at("masked"), true);
  EXPECT_EQ(payload.at("text"),
            R"j({"amount":12345678901234567890.1,"card":{"month":7,"number":"(masked)"},)j"
            R"j("items":[{"iban":"(masked)"},5,{"iban":"(masked)"}],)j"
            R"j("secrets":{"a":"(masked)","b":"(masked)"}})j");
}

TEST_F(ConsoleMasking, LeavesAPayloadAloneThatHoldsNoneOfThem) {
  const Json payload = shown(R"({ "amount": 5, "card": {"month": 7} })");
  EXPECT_FALSE(payload.contains("masked"));
  EXPECT_EQ(payload.at("text"), R"({ "amount": 5, "card": {"month": 7} })");
  EXPECT_EQ(get("/api/payload?letter=1").status, 200);
}

TEST_F(ConsoleMasking, ShowsNothingOfWhatIsNoJsonOrTwoDocumentsInOne) {
  for (const std::string payload :
       {"card 4929000011112222", R"({"card": {"number": "4929000011112222"})",
        R"({"card": {"number": "4929000011112222"}, "card": 1})",
        R"({"n": 1e400, "card": {"number": "4929000011112222"}})", "\\x0000000001c3", ""}) {
    const Json told = shown(payload);
    EXPECT_EQ(told.at("masked"), true) << payload;
    EXPECT_FALSE(told.contains("text") || told.contains("hex")) << payload;
    EXPECT_EQ(get("/api/payload?letter=t/0/1").status, 404) << payload;
  }
}

TEST_F(ConsoleMasking, AnEscapedNameIsTheSameName) {
  const Json payload = shown(R"({"c\\u0061rd": {"numb\\u0065r": "4929000011112222"}})");
  EXPECT_THAT(payload.dump(), Not(HasSubstr(kCard)));
}

TEST_F(ConsoleMasking, RefusesTheFileAndTheEditOfAMaskedLetter) {
  letters(2,
          R"(CASE n WHEN 1 THEN '{"card": {"number": "4929000011112222"}}'::bytea ELSE '{}' END)");
  const Reply file = get("/api/payload?letter=1");
  EXPECT_EQ(file.status, 404);
  EXPECT_THAT(file.body, HasSubstr("console.mask"));
  EXPECT_THAT(file.body, Not(HasSubstr(kCard)));
  const Json refused = give("/api/replay", {{"ids", {1}}, {"payload", "{}"}}, 409);
  EXPECT_THAT(refused.at("error").get<std::string>(), HasSubstr("hapax dead replay --payload"));
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.replays"), 0);
  give("/api/replay", {{"ids", {1}}});  // as it is
  give("/api/replay", {{"ids", {2}}, {"payload", "{}"}});
  EXPECT_EQ(get("/api/payload?letter=2").body, "{}");
}

TEST_F(ConsoleMasking, ATombstoneStaysATombstone) {
  letters(1, "NULL");
  EXPECT_TRUE(read("/api/letter?which=1").at("payload").is_null());
}

// Each row whose JSON the console can show holds the card.
TEST_F(ConsoleMasking, LetsNoHiddenValueOutOfTheProcess) {
  const std::string json = R"({"card": {"number": "4929000011112222"}})", card = "'" + json + "'";
  letters(1, card);
  unknown_call(json);
  database.run(
      "INSERT INTO hapax.replays (dead_letter, who, why, edited, payload) VALUES (1, 'bob', 'x', "
      "true, " +
      card +
      "); "
      "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, idempotency_key, "
      "source_topic, source_generation, source_partition, source_offset) SELECT 'g', 'r', 'key', " +
      card +
      ", '[]', 'i', 't', 1, 0, n FROM generate_series(1, 2) n; "
      "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
      "halted_by) VALUES ('g', 'r', 2, 'key', 'record_refused', 'too large', 'w'); "
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, result) VALUES ('k2', 's', 'completed', 'g', 't', 1, "
      "0, 7, now() + interval '1 day', " +
      card + ")");
  // A request that a gate accepted, and its record.
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, fingerprint, fingerprint_rule, result) SELECT key, "
      "scope, 'completed', 'g', 't', generation, 0, 8, now() + interval '1 day', '\\x01', "
      "'payload', " +
      card + " FROM (VALUES ('k3', 'gate', 0), ('" +
      flow::published_key("gate", {"k3", "", {}}, "request 01", 0) +
      "', 's', 1)) AS of_request (key, scope, generation)");
  const Json skip = {{"ids", {2}},
                     {"seen", Json::parse(R"([{"id": 1, "reason": "record_refused"}])")}};
  EXPECT_THAT(give("/api/outbox/skip", skip).dump(), Not(HasSubstr(kCard)));
  EXPECT_THAT(database.value("SELECT convert_from(decode(facts->'records'->0->>'payload', 'hex'), "
                             "'UTF8') FROM hapax.operator_log"),
              HasSubstr(kCard));  // else nothing below would show that it is kept there
  Json order = {{"key", "k1"}, {"scope", "s"}, {"token", 100}, {"dry_run", true}};
  for (const char* decision : {"happened", "give_up"}) {
    order["decision"] = decision;
    const std::string told = give("/api/decide", order).dump();
    EXPECT_THAT(told, HasSubstr("(masked)")) << decision;
    EXPECT_THAT(told, Not(HasSubstr(kCard))) << decision;
  }
  for (const char* target :
       {"letter?which=1", "letters", "replays", "record?id=1", "payload?record=1",
        "payload?letter=1", "outbox", "outbox?topic=r", "explain?key=k2", "explain?key=k1",
        "explain?key=k3", "keys", "outside?status=all", "log", "overview",
        "partition?topic=t&partition=0"}) {
    const Reply reply = get(std::string("/api/") + target);
    EXPECT_THAT(reply.body, Not(HasSubstr(kCard))) << target;
    EXPECT_THAT(reply.body, Not(HasSubstr("34393239303030303131"))) << target;  // in hex
  }
  for (const char* target :
       {"letter?which=1", "record?id=1", "explain?key=k2", "outside?status=all"})
    EXPECT_THAT(get(std::string("/api/") + target).body, HasSubstr("(masked)")) << target;
  EXPECT_EQ(read("/api/explain?key=k3")["keys"][0]["record"]["keys"].size(), 1U);
}

TEST_F(ConsoleMasking, HidesTheNamedValuesInTheBodyOfAStoredAnswer) {
  const auto stored = [](const Response& response) { return flow::stored_text(response); };
  const Json card = shown_result(stored(
      {201, {{"Location", "/17"}}, R"({"month": 7, "card": {"number": "4929000011112222"}})"}));
  EXPECT_EQ(card.at("result_masked"), true);
  EXPECT_EQ(Json::parse(card.at("result").get<std::string>()),
            Json::parse(R"j({"hapax:response": {"status": 201, "headers": [["Location", "/17"]],)j"
                        R"j( "body": "{\"card\":{\"number\":\"(masked)\"},\"month\":7}"}})j"));
  for (const char* body : {"card 4929000011112222", "\xff 4929000011112222",
                           R"({"card": {"number": "4929000011112222"}, "card": 1})"}) {
    const std::string told = shown_result(stored({200, {}, body})).dump();
    EXPECT_THAT(told, HasSubstr("(masked)")) << body;
    EXPECT_THAT(told, Not(HasSubstr(kCard))) << body;
    EXPECT_THAT(told, Not(HasSubstr("34393239303030303131"))) << body;  // in hex
  }
  for (const char* body : {"", R"({ "month": 7 })"}) {
    const std::string kept = stored({200, {}, body});
    const Json told = shown_result(kept);
    EXPECT_EQ(told.at("result"), kept);
    EXPECT_FALSE(told.contains("result_masked"));
  }
}

// The page has no bytes of a masked answer to send back.
TEST_F(ConsoleMasking, AMaskedAnswerIsBookedAsItIsKept) {
  const std::string answer = R"({"card": {"number": "4929000011112222"}, "charge": 1})";
  letters(1);
  unknown_call(answer);
  EXPECT_EQ(read("/api/outside?status=all").at("calls")[0].at("answer_masked"), true);
  give("/api/decide", {{"key", "k1"}, {"scope", "s"}, {"token", 100}, {"decision", "happened"}});
  EXPECT_EQ(database.value("SELECT status, answer FROM hapax.idempotency_keys"),
            "answered|" + answer);
}

}  // namespace
}  // namespace hapax::console
