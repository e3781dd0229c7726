// What the commands print.
#include "cli/output.hpp"

#include <gtest/gtest.h>

#include "cli/coordinates.hpp"
#include "cli/resumption.hpp"
#include "store/operator/decisions.hpp"

namespace hapax::app {
namespace {

TEST(Table, AlignsByCharactersNotByBytes) {
  Table table({"A", "B"});
  table.add({"zoë", "1"});
  table.add({"four", "2"});
  EXPECT_EQ(table.text(), "A     B\nzoë   1\nfour  2\n");
}

TEST(Table, EscapesWhatSteersTheTerminal) {
  Table table({"KEY"});
  table.add({"\x1b[2J\nforged"});
  EXPECT_EQ(table.text(), "KEY\n\\x1b[2J\\x0aforged\n");
}

TEST(Cut, KeepsWholeCharactersOfTheFirstLine) {
  EXPECT_EQ(cut("zoë", 3), "zoë");
  EXPECT_EQ(cut("zoëë", 3), "zo…");
  EXPECT_EQ(cut("one\ntwo", 10), "one…");
}

TEST(TimeCell, DropsFractionsAndUtc) {
  EXPECT_EQ(time_cell("2026-11-21T09:55:33.123456+00:00"), "2026-11-21 09:55:33");
  EXPECT_EQ(time_cell("2026-11-21T09:55:33+01:00"), "2026-11-21 09:55:33+01:00");
  EXPECT_EQ(time_cell(nullptr), "-");
}

TEST(ShellWord, RunsNothingThatAProducerWrote) {
  EXPECT_EQ(shell_word("p1"), "'p1'");
  EXPECT_EQ(shell_word("p'; touch /tmp/x; '"), R"('p'\''; touch /tmp/x; '\''')");
}

TEST(PathWord, IsQuotedIfAShellWouldChangeIt) {
  EXPECT_EQ(path_word("./conf.d/worker-1.json"), "./conf.d/worker-1.json");
  EXPECT_EQ(path_word("my worker.json"), "'my worker.json'");
  EXPECT_EQ(path_word("$HOME/bob's.json"), R"('$HOME/bob'\''s.json')");
  EXPECT_EQ(path_word("zoë.json"), "'zoë.json'");
}

TEST(BytesJson, TellsNullEmptyTextAndBytesApart) {
  EXPECT_EQ(bytes_json(bytes_of_hex(nullptr)), Json(nullptr));
  EXPECT_EQ(bytes_json(bytes_of_hex("")), Json({{"text", ""}}));
  EXPECT_EQ(bytes_json(bytes_of_hex("7a6fc3ab")), Json({{"text", "zoë"}}));
  EXPECT_EQ(bytes_json(bytes_of_hex("ff")), Json({{"base64", "/w=="}}));
  EXPECT_EQ(bytes_json(bytes_of_hex("ff00")), Json({{"base64", "/wA="}}));
  EXPECT_EQ(bytes_json(bytes_of_hex("ff0001")), Json({{"base64", "/wAB"}}));
}

TEST(Place, IsATopicAPartitionOrAMessage) {
  EXPECT_EQ(parse_place("payments"), (Place{"payments", {}, {}}));
  EXPECT_EQ(parse_place("payments/3"), (Place{"payments", 3, {}}));
  EXPECT_EQ(parse_place("payments/3/42"), (Place{"payments", 3, 42}));
}

TEST(Place, IsNothingElse) {
  for (const char* const text : {"", "/3", "t/", "t/x", "t/-1", "t/3/", "t/3/4/5", "t/3 "})
    EXPECT_FALSE(parse_place(text)) << text;
}

// Every reason that a worker halts for (start.cpp, starts.cpp, processor.cpp,
// partition_errors.cpp).
TEST(Decisions, FitTheirReasons) {
  const std::pair<const char*, const char*> table[] = {
      {"checkpoint_missing", "earliest, accept_kafka, retry"},
      {"other_store", "same_topic, retry"},
      {"offset_unproven", "same_topic, recreated, retry"},
      {"topic_recreated", "same_topic, recreated, retry"},
      {"other_cluster", "same_topic, recreated, retry"},
      {"offset_above_end", "same_topic, recreated, retry"},
      {"offset_out_of_range", "earliest, recreated, retry"},
      {"key_spec_changed", "retry, accept"},
      {"tail_in_doubt", "call, as_unknown, retry"},
      {"unknown_below_highest", "run, skip, retry"},
      {"handler_ended_transaction", "retry, skip"},
      {"statement_refused", "retry, skip"},
      {"unexpected_error", "retry, skip"},
      {"cannot_account", "retry, skip"},
      {"unreadable", "retry, skip"},
      {"breaker", "retry"},
      {"open_call", "retry"},
      {"store_copied", "moved, copy, retry"},
      {"a reason of a newer hapax", "retry"}};
  for (const auto& [reason, decisions] : table)
    EXPECT_EQ(store::decisions_for(reason, true), decisions) << reason;
  // Of a replay: no message of the partition is in the way.
  EXPECT_EQ(store::decisions_for("handler_ended_transaction", false), "retry");
}

// A part of the effect may stand, so the message may take effect twice.
// It may repeat or leave out effects, and shows only afterwards what it did.
TEST(Decisions, AllButRetryAskFirst) {
  for (const store::Decision& decision : store::all_decisions())
    EXPECT_EQ(decision.destructive, decision.name != "retry") << decision.name;
}

TEST(Decisions, RetryAsksAboutAHandlerThatEndedItsTransactionAndAboutNoOtherHalt) {
  const store::Decision& retry = *store::decision_named("retry");
  EXPECT_TRUE(retry.about("handler_ended_transaction").destructive);
  EXPECT_FALSE(retry.about("statement_refused").destructive);
  const store::Halt ended{.reason = "handler_ended_transaction"}, refused{.reason = "breaker"};
  EXPECT_TRUE(about(retry, {refused, ended}).destructive);
  EXPECT_FALSE(about(retry, {refused}).destructive);
  EXPECT_TRUE(about(*store::decision_named("skip"), {refused}).destructive);
}

}  // namespace
}  // namespace hapax::app
