// The base of the tests of replays: a message given up on, wanted again, run by a Replayer.
#pragma once

#include <gtest/gtest.h>

#include "flow/flow_case.hpp"
#include "flow/replay.hpp"
#include "store/operator/dead_letter_orders.hpp"

namespace hapax::flow {

using ReplayResult = Replayed::Result;

inline constexpr const char* kReplayedByAnn = "replayed by ann: mended";

inline void reject_it(const Message&, Context&) { throw Reject("no"); }

class BodyHandler final : public Handler {
 public:
  explicit BodyHandler(Body body) : body_(std::move(body)) {}
  void handle(const Message& message, Context& context) override { body_(message, context); }

 private:
  Body body_;
};

class ReplayCase : public FlowCase {
 protected:
  // A message given up on; its dead letter's id.
  std::int64_t dead(const Sent& sent = {}, const Body& body = reject_it) {
    EXPECT_EQ(process(sent, body).result, Result::failed);
    return std::stoll(database.value("SELECT max(id) FROM hapax.dead_letters"));
  }

  // One whose key could not be derived then.
  std::int64_t dead_without_key(const Sent& sent = {}) {
    const auto sources =
        std::exchange(route.key.sources, {{key::Source::Kind::header, {"absent"}}});
    const std::int64_t letter = dead(sent);
    route.key.sources = sources;
    return letter;
  }

  // One whose bytes are more than PostgreSQL takes.
  std::int64_t dead_without_bytes(const Sent& sent = {}) {
    database.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.payload IS NOT NULL THEN RAISE 'row is too big' USING ERRCODE = '54000'; END IF; "
        "RETURN NEW; END $$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON hapax.dead_letters "
        "FOR EACH ROW EXECUTE FUNCTION refuse()");
    const std::int64_t letter = dead(sent);
    database.run("DROP TRIGGER refuse ON hapax.dead_letters");
    return letter;
  }

  // As a binary orders it that does not look at the letter.
  void order(std::int64_t letter, bool edited = false) {
    database.run("INSERT INTO hapax.replays (dead_letter, who, why, edited, payload) VALUES (" +
                 std::to_string(letter) + ", 'ann', 'mended', " +
                 (edited ? "true, '{\"id\": \"k1\"}')" : "false, NULL)"));
  }

  store::Wanted want(std::int64_t letter, const std::optional<std::string>& payload = {}) {
    store::Session owner(database.owner());
    std::optional<store::Replacement> instead;
    if (payload) instead = store::Replacement{*payload};
    runs = 0;
    return store::want_replays(owner, {"group", "ann", "mended"}, {letter}, instead);
  }

  Replayer make_replayer(BodyHandler& handler, const std::string& worker = "w") {
    return Replayer({[connect = options] { return store::Session(connect); },
                     "group",
                     worker,
                     {{&route, &handler}},
                     1,
                     {},
                     lease});
  }

  // On a fresh session each time; `runs` counts how often the body began.
  Replayed run_next(const Body& body = book) {
    BodyHandler handler([&](const Message& message, Context& context) {
      ++runs;
      body(message, context);
    });
    return make_replayer(handler).run_next();
  }

  // outcome|detail of the newest replay.
  std::string replay_row() {
    return database.value(
        "SELECT coalesce(outcome, 'open'), detail FROM hapax.replays ORDER BY id DESC LIMIT 1");
  }
  std::string state_of(std::int64_t letter) {
    return database.value(
        "SELECT coalesce(ended_as || ' by ' || ended_by || ': ' || ended_why, "
        "'open') FROM hapax.dead_letters WHERE id = " +
        std::to_string(letter));
  }
  void expect_refused(std::int64_t letter, const std::string& because) {
    runs = 0;
    const Replayed replayed = run_next();
    EXPECT_EQ(replayed.result, Replayed::Result::refused) << replayed.detail;
    EXPECT_NE(replayed.detail.find(because), std::string::npos) << replayed.detail;
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(effects(), "");
    EXPECT_EQ(state_of(letter), "open");
    EXPECT_EQ(replay_row(), "refused|" + replayed.detail);
  }

  std::chrono::seconds lease{10};
};

// So that a failed comparison prints words.
inline void PrintTo(Replayed::Result result, std::ostream* out) { *out << name_of(result); }

}  // namespace hapax::flow
