// The names of the operation, as a handler asks its context for them.
#include "flow/position_case.hpp"
#include "flow/replay_case.hpp"

namespace hapax::flow {
namespace {

// "key of tenant", into the effects.
void note_operation(const Message&, Context& context) {
  context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", context.key(), context.tenant());
}

class Duplicates final : public Handler {
 public:
  void handle(const Message& message, Context& context) override {
    note_operation(message, context);
  }
  bool wants_duplicates() const override { return true; }
  void on_duplicate(const Message& message, const StoredResult& /*stored*/,
                    Context& context) override {
    note_operation(message, context);
  }
};

class OperationCase : public ReplayCase {
 protected:
  OperationCase() { route.key.tenant = key::Source{key::Source::Kind::header, {"tenant"}, false}; }

  std::string stored() {
    return database.value(
        "SELECT string_agg(key || '=' || tenant, ' ') FROM hapax.idempotency_keys");
  }

  const Sent sent{.headers = {{"tenant", "ann"}}};
};

TEST_F(OperationCase, IsNamedAsItIsStored) {
  for (const char* const key : {"k1", "a b", "a\nb"}) {
    database.run("TRUNCATE effects, hapax.idempotency_keys");
    EXPECT_EQ(process({.key = key, .headers = sent.headers}, note_operation).result,
              Result::completed);
    EXPECT_EQ(effects(), stored());
  }
  EXPECT_EQ(effects(), R"(:"a\x0ab"=ann)");
}

// A header is found in any case of its letters, and so is the key that is made of it.
TEST_F(OperationCase, IsNamedInAnyCaseOfItsHeader) {
  route.key.sources = {{key::Source::Kind::header, {"Idempotency-Key"}}};
  process({.headers = {{"tenant", "ann"}, {"IDEMPOTENCY-KEY", "k7"}}}, note_operation);
  EXPECT_EQ(effects(), "k7=ann");
}

TEST_F(OperationCase, IsNamedForADuplicate) {
  Duplicates handler;
  for (std::int64_t offset : {0, 1}) {
    const std::vector<Header> headers = {{"id", "k1"}, {"tenant", "ann"}};
    Message::Parts parts;
    parts.coordinates = {route.topic, 3, offset};
    parts.payload = "10";
    parts.headers = headers;
    const Message message(parts);
    const std::string group = "group";
    Processor processor = make_processor();
    processor.process(Task{.route = route, .message = message, .group = group}, handler);
  }
  EXPECT_EQ(effects(), "k1=ann k1=ann");
}

TEST_F(OperationCase, IsNamedInABatchAndInAReplay) {
  route.key.tenant.reset();
  const std::vector<Header> headers = {{"id", "k1"}, {"id", "k2"}};
  const auto messages = messages_of(headers);
  BodyHandler handler(note_operation);
  const std::string group = "group";
  make_processor().process(jobs_of(messages, group, handler));
  EXPECT_EQ(effects(), "k1= k2=");
  want(dead({.key = "k3"}));
  EXPECT_EQ(run_next(note_operation).result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1= k2= k3=");
}

class OperationByPosition : public PositionCase {};

TEST_F(OperationByPosition, HasNoName) {
  EXPECT_EQ(process({}, note_operation).result, Result::completed);
  const std::vector<Header> headers = {{"id", "k1"}, {"id", "k2"}};
  const auto messages = messages_of(headers);
  BodyHandler handler(note_operation);
  const std::string group = "group";
  make_processor().process(jobs_of(messages, group, handler));
  EXPECT_EQ(effects(), "= = =");
}

}  // namespace
}  // namespace hapax::flow
