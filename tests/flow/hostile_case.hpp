// Handlers that do with their transaction and their session what they must not.
#pragma once

#include <gmock/gmock.h>

#include <pqxx/pqxx>

#include "flow/flow_case.hpp"

namespace hapax::flow {

class Hostile : public FlowCase {
 protected:
  static void swallow(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception&) {
    }
  }

  // An effect in a transaction of the handler's own, and another one left open.
  static void commit_an_effect(Context& context) {
    for (const char* text :
         {"ROLLBACK", "BEGIN READ WRITE", "INSERT INTO effects (key, note) VALUES ('stray', '1')",
          "COMMIT", "BEGIN"})
      context.pqxx().exec(text);
  }

  // As commit_an_effect, without libpqxx.
  static void commit_an_effect_by_sql(Context& context) {
    for (const char* text : {"ROLLBACK", "BEGIN READ WRITE",
                             "INSERT INTO effects (key, note) VALUES ('stray', '1')", "COMMIT"})
      context.sql(text);
  }

  // Runs it until it is settled or halts: one stray effect, one halt, no attempt.
  void expect_one_effect_and_a_halt(const Body& body) {
    const Outcome outcome = settle({}, body);
    EXPECT_EQ(outcome.result, Result::halt_route) << outcome.reason << ": " << outcome.detail;
    EXPECT_EQ(outcome.reason, "handler_ended_transaction");
    EXPECT_EQ(count("effects"), 1) << outcome.detail;
    EXPECT_EQ(count("hapax.attempts"), 0);
    EXPECT_EQ(count("hapax.dead_letters"), 0);
    EXPECT_EQ(process({.key = "next", .offset = 1}).result, Result::completed);
  }

  // A batch of these keys: the outcomes' names.
  std::string take(const std::vector<std::string>& keys, const Body& body) {
    std::vector<Header> headers;
    for (const std::string& key : keys) headers.push_back({"id", key});
    const std::vector<Message> messages = messages_of(headers);
    const std::string group = "group";
    CountingHandler handler(body, runs);
    if (!batch_processor_) batch_processor_.emplace(make_processor());
    std::string text;
    for (const Outcome& outcome : batch_processor_->process(jobs_of(messages, group, handler)))
      text += (text.empty() ? "" : ", ") + std::string(name_of(outcome.result));
    return text;
  }

 private:
  std::optional<Processor> batch_processor_;
};

}  // namespace hapax::flow
