// The promise under handlers that are drawn at random. An effect is visible if and only if its key
// is completed. Neighbours are unharmed. The one documented hole is met at most once.
//
//   HAPAX_HOSTILE_SEEDS=1000   so many instead of a few; HAPAX_HOSTILE_SEED=23: this one only
#include <algorithm>
#include <cstdlib>
#include <map>

#include "flow/flow_case.hpp"
#include "flow/hostile_grammar.hpp"

namespace hapax::flow {
namespace {

constexpr std::uint64_t kSeeds = 12;
constexpr int kMessages = 40;  // of a seed

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class HostileGrammar : public FlowCase {
 protected:
  HostileGrammar() {
    database.run(
        "CREATE TABLE strays (key text, run int);"
        "GRANT SELECT, INSERT ON strays TO hapax_worker;"
        "CREATE TABLE orders (id bigint PRIMARY KEY);"
        "CREATE TABLE items (key text, order_id bigint REFERENCES orders);"
        "INSERT INTO orders VALUES (0);"
        "GRANT SELECT, INSERT, UPDATE ON orders, items TO hapax_worker;"
        "CREATE TABLE late (n int); GRANT INSERT ON late TO hapax_worker;"
        "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.effects (key text, note text);"
        "GRANT USAGE ON SCHEMA elsewhere TO PUBLIC; GRANT ALL ON elsewhere.effects TO PUBLIC;"
        "CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools TO PUBLIC;"
        "CREATE FUNCTION tools.raise(state text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'raised' USING ERRCODE = state; END $$;"
        "CREATE FUNCTION tools.shadow() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
        "CREATE TEMP TABLE effects (key text, note text); END $$;"
        "CREATE FUNCTION tools.aside() RETURNS text LANGUAGE sql AS "
        "$$ SELECT set_config('search_path', 'elsewhere', false) $$;"
        "CREATE FUNCTION tools.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'late' USING ERRCODE = 'BK002'; END $$;"
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION tools.refuse();"
        "DO $$ BEGIN CREATE ROLE clerk; EXCEPTION WHEN duplicate_object THEN END $$;"
        "GRANT clerk TO hapax_worker; GRANT ALL ON effects TO clerk");
    route.retry.first = route.retry.max = std::chrono::milliseconds(0);
  }
  ~HostileGrammar() override {
    database.run("DROP OWNED BY clerk; REVOKE clerk FROM hapax_worker");
  }

  static std::string key_of(std::int64_t offset) { return "k" + std::to_string(offset); }

  // An innocent message writes orders, items and the effect, under the usual names. An item may
  // come only after its order.
  void book_innocently(const Message& message, Context& context, bool qualified) {
    const std::string key(*message.header("id"));
    const std::int64_t order = message.offset() + 1;
    grammar::Random random(static_cast<std::uint64_t>(message.offset()));
    const auto item = [&](std::int64_t of) {
      context.insert(qualified ? "public.items" : "items", {"key", "order_id"}, key, of);
    };
    for (std::size_t i = grammar::draw(random, 3); i > 0; --i) item(0);
    if (grammar::draw(random, 2) == 0) {
      context.insert(qualified ? "public.orders" : "orders", {"id"}, order);
      for (std::size_t i = grammar::draw(random, 3); i > 0; --i) item(order);
    }
    // A text of its own: what is prepared already keeps its table.
    context.write("INSERT INTO " + std::string(qualified ? "public." : "") +
                      "effects (key, note) VALUES ($1, '" + key + "')",
                  key);
  }

  // Checks the promise for one message that is settled or has halted.
  void expect_promise(const std::string& key, const Outcome& outcome, const std::string& what) {
    const bool completed = key_row(key).starts_with("completed");
    const int booked =
        database.count("SELECT count(*) FROM public.effects WHERE key = '" + key + "'");
    const int strays =
        database.count("SELECT count(DISTINCT run) FROM public.strays WHERE key = '" + key + "'");
    EXPECT_EQ(booked, completed ? 1 : 0) << key << outcome.reason << what;
    EXPECT_EQ(completed, outcome.result == Result::completed) << key << outcome.reason << what;
    EXPECT_TRUE(is_settled(outcome.result) || outcome.result == Result::halt_route)
        << key << " " << name_of(outcome.result) << " " << outcome.reason << ": " << outcome.detail
        << what;
    if (completed) return;  // a stray is then part of the effect
    EXPECT_LE(strays, 1) << key << outcome.reason << what;
    EXPECT_TRUE(strays == 0 || outcome.reason == "handler_ended_transaction")
        << key << outcome.reason << outcome.detail << what;
  }

  void play_one_by_one(std::uint64_t seed) {
    grammar::Random random(seed);
    Processor processor = make_processor(seed);
    for (int i = 0; i < kMessages && !HasFailure(); ++i) {
      const std::int64_t offset = 2 * i;
      const grammar::Program program = grammar::draw_program(random);
      const Outcome hostile = settle(processor, {.key = key_of(offset), .offset = offset},
                                     [&](const Message& message, Context& context) {
                                       book(message, context);
                                       grammar::play(program, context, key_of(offset), runs);
                                     });
      expect_promise(key_of(offset), hostile, program.describe());
      const std::string key = key_of(offset + 1);
      const Outcome innocent = settle(processor, {.key = key, .offset = offset + 1},
                                      [&](const Message& message, Context& context) {
                                        book_innocently(message, context, false);
                                      });
      EXPECT_EQ(innocent.result, Result::completed) << innocent.detail << program.describe();
      EXPECT_EQ(count("hapax.attempts WHERE kafka_offset = " + std::to_string(offset + 1)), 0)
          << program.describe();
      expect_promise(key, innocent, " behind" + program.describe());
    }
  }

  // Takes innocents with a hostile one among them, again and again, until all are settled. If a
  // message halts, it is left out from then on, as if an operator skips it. Neighbours of a batch
  // share its settings, so they name their schema.
  void play_in_batches(std::uint64_t seed) {
    grammar::Random random(seed);
    Processor processor = make_processor(seed);
    std::int64_t offset = 0;
    for (int i = 0; i < kMessages / 4 && !HasFailure(); ++i) {
      std::map<std::int64_t, Given> waiting;
      for (int n = 0; n < 4; ++n) waiting[offset++];
      const std::int64_t hostile = offset - 1 - static_cast<std::int64_t>(grammar::draw(random, 4));
      const grammar::Program program = grammar::draw_program(random);
      const std::string what = "\nbatch from " + key_of(offset - 4) + ", " + key_of(hostile) +
                               " plays" + program.describe();
      const Body body = [&](const Message& message, Context& context) {
        if (message.offset() != hostile) return book_innocently(message, context, true);
        context.insert("public.effects", {"key", "note"}, key_of(hostile), "hostile");
        grammar::play(program, context, key_of(hostile), runs);
      };
      for (int takes = 0; !waiting.empty() && takes < 100; ++takes)
        take(processor, waiting, body, hostile, what);
      EXPECT_TRUE(waiting.empty()) << "never settled" << what;
    }
  }

 private:
  void take(Processor& processor, std::map<std::int64_t, Given>& waiting, const Body& body,
            std::int64_t hostile, const std::string& what) {
    std::vector<std::string> keys;
    std::vector<Header> headers;
    std::vector<Message> messages;
    for (const auto& [offset, given] : waiting) keys.push_back(key_of(offset));
    for (const std::string& key : keys) headers.push_back({"id", key});
    const std::string group = "group";
    CountingHandler handler(body, runs);
    for (const auto& [offset, given] : waiting) {
      Message::Parts parts;
      parts.coordinates = {route.topic, 0, offset};
      parts.payload = "book";
      parts.headers = std::span(&headers[messages.size()], 1);
      messages.emplace_back(parts);
    }
    std::vector<Job> jobs;
    for (const Message& message : messages) {
      const Given& given = waiting[message.offset()];
      jobs.push_back({Task{.route = route,
                           .message = message,
                           .group = group,
                           .attempts = given.attempts,
                           .outages = given.outages,
                           .agains = given.agains},
                      &handler, jobs.size()});
    }
    const std::vector<Outcome> outcomes = processor.process(jobs);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const std::int64_t offset = messages[i].offset();
      const Outcome& outcome = outcomes[i];
      if (is_halt(outcome.result)) {
        // Of all of the batch, or of this one: the one that did it goes.
        EXPECT_TRUE(outcome.of_batch || offset == hostile)
            << outcome.reason << outcome.detail << what;
        expect_promise(key_of(hostile), outcome, what);
        waiting.erase(hostile);
        continue;  // others of the same call may have settled
      }
      if (!waiting.contains(offset)) continue;
      Given& given = waiting[offset];
      if (outcome.lost_in_handler) ++given.outages;
      given.agains = outcome.result == Result::again ? given.agains + 1 : 0;
      if (outcome.result == Result::retry) {
        given.attempts = outcome.attempts;
        EXPECT_EQ(offset, hostile) << outcome.detail << what;
      }
      if (!is_settled(outcome.result)) continue;
      EXPECT_TRUE(offset == hostile || outcome.result == Result::completed)
          << outcome.detail << what;
      expect_promise(key_of(offset), outcome, what);
      waiting.erase(offset);
    }
  }
};

TEST_F(HostileGrammar, BreaksNoPromise) {
  const std::uint64_t only = from_environment("HAPAX_HOSTILE_SEED", 0);
  const std::uint64_t first = only == 0 ? 1 : only;
  const std::uint64_t last = only == 0 ? from_environment("HAPAX_HOSTILE_SEEDS", kSeeds) : only;
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("HAPAX_HOSTILE_SEED=" + std::to_string(seed) + " plays it again");
    database.run(
        "TRUNCATE effects, strays, items, hapax.idempotency_keys, hapax.attempts, "
        "hapax.dead_letters CASCADE; DELETE FROM orders WHERE id > 0");
    seed % 2 == 0 ? play_in_batches(seed) : play_one_by_one(seed);
  }
}

// A handler's table under migrations that a session's statements, plans and caches do not survive.
class Migrations : public FlowCase {
 protected:
  // `value`: what a handler that was deployed with the column's type writes.
  struct Kind {
    const char* type;
    const char* value;
  };
  static constexpr Kind kKinds[] = {{"int", "7"},
                                    {"bigint", "7000000000"},
                                    {"text", "seven"},
                                    {"date", "2026-11-22"},
                                    {"numeric(20,4)", "7.5"},
                                    {"uuid", "00000000-0000-0000-0000-000000000007"},
                                    {"mood", "glad"}};

  void migrate(const Kind& kind) {
    if (std::string_view(kind.type) == "mood")
      database.run(
          "ALTER TABLE changing DROP COLUMN v; DROP TYPE IF EXISTS mood CASCADE;"
          "CREATE TYPE mood AS ENUM ('glad'); ALTER TABLE changing ADD COLUMN v mood");
    else
      database.run("ALTER TABLE changing ALTER COLUMN v TYPE " + std::string(kind.type) +
                   " USING NULL");
  }
};

TEST_F(Migrations, OfTheHandlersTablesCostNoMessageAnAttempt) {
  const std::uint64_t seeds = from_environment("HAPAX_HOSTILE_SEEDS", kSeeds);
  database.run(
      "CREATE TABLE changing (key text, v int);"
      "GRANT SELECT, INSERT, UPDATE ON changing TO hapax_worker");
  std::int64_t offset = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    grammar::Random random(seed);
    Processor one = make_processor(), other = make_processor();
    std::size_t kind = grammar::draw(random, std::size(kKinds));
    migrate(kKinds[kind]);
    std::string history;
    for (int i = 0; i < 30 && !HasFailure(); ++i) {
      if (grammar::draw(random, 4) == 0) {
        kind = grammar::draw(random, std::size(kKinds));
        migrate(kKinds[kind]);
        history += std::string("\nto ") + kKinds[kind].type;
      }
      if (grammar::draw(random, 6) == 0)
        database.run("ALTER TABLE changing ADD COLUMN c" + std::to_string(++offset) + " int");
      const std::size_t how = grammar::draw(random, 3);
      const Outcome outcome =
          settle(grammar::draw(random, 2) == 0 ? one : other,
                 {.key = std::to_string(++offset), .offset = offset},
                 [&](const Message& message, Context& context) {
                   const auto key = *message.header("id");
                   const char* const value = kKinds[kind].value;
                   if (how == 0) context.insert("changing", {"key", "v"}, key, value);
                   if (how == 1)
                     context.write("INSERT INTO changing (key, v) VALUES ($1, $2)", key, value);
                   if (how == 2) {
                     context.sql("SELECT * FROM changing LIMIT 1");
                     context.sql("INSERT INTO changing (key, v) VALUES ($1, $2)", key, value);
                     context.sql("UPDATE changing SET v = $2 WHERE key = $1", key, value);
                   }
                 });
      EXPECT_EQ(outcome.result, Result::completed)
          << "seed " << seed << " " << outcome.sqlstate << outcome.detail << history;
      EXPECT_EQ(
          database.value("SELECT v FROM changing WHERE key = '" + std::to_string(offset) + "'"),
          database.value("SELECT '" + std::string(kKinds[kind].value) + "'::" + kKinds[kind].type))
          << history;
    }
    EXPECT_EQ(count("hapax.attempts"), 0) << "seed " << seed << history;
  }
}

}  // namespace
}  // namespace hapax::flow
