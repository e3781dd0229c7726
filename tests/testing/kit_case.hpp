// Handlers under the test kit, as their authors would test them: a body, a route, a ledger.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "hapax/testing.hpp"

namespace kit {

using hapax::Context;
using hapax::Message;
using hapax::testing::Harness;
using hapax::testing::Options;
using hapax::testing::Outcome;
using hapax::testing::Record;
using hapax::testing::Report;
using hapax::testing::Result;

using Body = std::function<void(const Message&, Context&)>;

// Each instance has its own copy of the body, and with it of what the body captured by value.
class BodyHandler final : public hapax::Handler {
 public:
  explicit BodyHandler(Body body) : body_(std::move(body)) {}
  void handle(const Message& message, Context& context) override { body_(message, context); }

 private:
  Body body_;
};

inline hapax::HandlerFactory factory(const Body& body) {
  return {"booker", [body] { return std::make_unique<BodyHandler>(body); }, "1"};
}

inline Options ledger() {
  return {.route = {{"key", {{"header", "id"}}},
                    {"retry", {{"max_attempts", 3}, {"first", "1h"}, {"max", "24h"}}}},
          .schema = {HAPAX_SOURCE_DIR "/tests/testing/ledger.sql"}};
}

inline Record payment(const std::string& id = "p1", const std::string& amount = "10") {
  return {.payload = amount, .headers = {{"id", id}}};
}

// As it should be: all through the context, by the message alone.
inline void book(const Message& message, Context& context) {
  context.sql("INSERT INTO payments VALUES ($1, $2)", *message.header("id"), *message.payload());
  context.write(
      "WITH e AS (INSERT INTO entries (id) VALUES ($1) RETURNING number) "
      "INSERT INTO notes SELECT number, 'booked' FROM e",
      *message.header("id"));
}

inline std::string payments(Harness& harness) {
  return harness
      .sql("SELECT coalesce(string_agg(id || '=' || amount, ' '), '') FROM payments")[0][0]
      .text();
}

}  // namespace kit
