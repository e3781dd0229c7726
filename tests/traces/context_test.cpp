// What hostile headers may do: nothing.
#include "traces/context.hpp"

#include <gtest/gtest.h>

#include "traces/carried.hpp"
#include "traces/message_with.hpp"

namespace hapax::traces {
namespace {

const std::string kTrace = kProducerTrace;
const std::string kSpan = kProducerSpan;

std::string parsed(const std::string& text) {
  const auto context = parse_traceparent(text);
  return context ? traceparent_text(*context) : "none";
}

TEST(Traceparent, IsReadAndWrittenAgain) {
  EXPECT_EQ(parsed(kSampled), kSampled);
  EXPECT_EQ(parsed(kNotSampled), kNotSampled);
  EXPECT_TRUE(parse_traceparent(kSampled)->is_sampled());
  EXPECT_FALSE(parse_traceparent(kNotSampled)->is_sampled());
  EXPECT_EQ(hex(parse_traceparent(kSampled)->trace_id), kTrace);
}

TEST(Traceparent, IsIgnoredIfItIsMalformed) {
  const std::string zeros32(32, '0'), zeros16(16, '0');
  for (const std::string& text : std::vector<std::string>{
           "",
           "00",
           "00-1",
           std::string(55, '-'),
           std::string(10'000, 'a'),
           "00-" + kTrace + "-" + kSpan,            // no flags
           "00-" + kTrace + "-" + kSpan + "-1",     // short
           "00-" + kTrace + "-" + kSpan + "-01-",   // version 00 ends here
           "00-" + kTrace + "-" + kSpan + "-01-x",  // and has no more
           "ff-" + kTrace + "-" + kSpan + "-01",    // no version
           "FF-" + kTrace + "-" + kSpan + "-01",
           "0x-" + kTrace + "-" + kSpan + "-01",
           "00-" + zeros32 + "-" + kSpan + "-01",
           "00-" + kTrace + "-" + zeros16 + "-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kSpan + "-01",  // upper case
           "00-" + kTrace + "-00F067AA0BA902B7-01",
           "00-" + kTrace + "-" + kSpan + "-0A",
           "00-" + kTrace.substr(1) + "g-" + kSpan + "-01",
           "00_" + kTrace + "-" + kSpan + "-01",
           "00-" + kTrace + "_" + kSpan + "-01",
           "00-" + kTrace + "-" + kSpan + "_01",
           "01-" + kTrace + "-" + kSpan + "-01x",  // of a later version what follows has a dash
           " " + std::string(kSampled),
           std::string(kSampled) + " ",
           "00-" + kTrace + "-" + kSpan.substr(1) + std::string(1, '\0') + "-01"})
    EXPECT_EQ(parsed(text), "none") << text;
}

TEST(Traceparent, OfALaterVersionHasTheFieldsOfThisOne) {
  EXPECT_EQ(parsed("01-" + kTrace + "-" + kSpan + "-03"), kSampled) << "one flag is known";
  EXPECT_EQ(parsed("cc-" + kTrace + "-" + kSpan + "-00-what-the-future-holds"), kNotSampled);
}

TEST(Traceparent, CountsOnlyIfThereIsOne) {
  EXPECT_TRUE(producer_of(*MessageWith(7, {{"traceparent", kSampled}})));
  EXPECT_FALSE(
      producer_of(*MessageWith(7, {{"traceparent", kSampled}, {"traceparent", kSampled}})));
  EXPECT_FALSE(producer_of(*MessageWith(7, {{"traceparent", kSampled}, {"traceparent", "x"}})));
  EXPECT_FALSE(producer_of(*MessageWith(7, {{"traceparent", std::nullopt}})));
  EXPECT_FALSE(producer_of(*MessageWith(7, {{"Traceparent", kSampled}})));
  EXPECT_FALSE(producer_of(*MessageWith()));
}

TEST(Tracestate, IsOneListAndLeftOutIfItIsMalformed) {
  const auto state = [](std::vector<std::string> values) {
    MessageWith::Headers headers;
    for (std::string& value : values) headers.emplace_back("tracestate", std::move(value));
    return tracestate_of(*MessageWith(7, headers));
  };
  EXPECT_EQ(state({}), "");
  EXPECT_EQ(state({"rojo=00f067aa0ba902b7, congo=t61"}), "rojo=00f067aa0ba902b7, congo=t61");
  EXPECT_EQ(state({"a=1", "b@c=2"}), "a=1,b@c=2");
  std::string many = "k0=1";
  for (int i = 1; i < 32; ++i) many += ",k" + std::to_string(i) + "=1";
  EXPECT_EQ(state({many}), many);
  EXPECT_EQ(state({many, "k32=1"}), "");
  for (const char* text :
       {"nothing", "A=1", "=1", "a=", "a=b=c", "a=\x01", "a=\xff", "a@b@c=1", "a@=1", "@a=1"})
    EXPECT_EQ(state({text}), "") << text;
  EXPECT_EQ(state({std::string("a=1\0", 4)}), "");
  EXPECT_EQ(state({"a=" + std::string(600, 'x')}), "");
}

TEST(Carried, IsTheMessagesOwnIfTracesAreOff) {
  const MessageWith traced(7, {{"traceparent", kSampled}, {"tracestate", "a=1"}});
  EXPECT_FALSE(Carried(*traced).is_own());
  EXPECT_EQ(Carried(*traced).traceparent(), kSampled);
  EXPECT_EQ(Carried(*traced).tracestate(), "a=1");
  EXPECT_EQ(Carried(*traced).trace_id(), kProducerTrace);
  const MessageWith bare(7, {{"traceparent", "00-1"}});
  EXPECT_FALSE(Carried(*bare).is_own());
  EXPECT_EQ(Carried(*bare).traceparent() + Carried(*bare).trace_id(), "");
}

// A handler puts it into an HTTP request.
TEST(Carried, HandsOnNothingThatAStrangerAddedToATraceparent) {
  const MessageWith later(
      7, {{"traceparent", "01-" + kTrace + "-" + kSpan + "-01-\r\nAuthorization: x"}});
  EXPECT_EQ(Carried(*later).traceparent(), kSampled);
  const Trace not_sent{.context = {.trace_id = {1}, .span_id = {2}}};
  EXPECT_EQ(Carried(*later, &not_sent).traceparent(), kSampled);
}

TEST(Carried, IsTheSpansIfItIsSent) {
  const MessageWith traced(7, {{"traceparent", kSampled}, {"tracestate", "a=1"}});
  Trace trace{.context = {.trace_id = {1}, .span_id = {2}, .flags = 1}, .is_recorded = true};
  const Carried carried(*traced, &trace);
  EXPECT_TRUE(carried.is_own());
  EXPECT_EQ(carried.traceparent(), "00-01000000000000000000000000000000-0200000000000000-01");
  EXPECT_EQ(carried.trace_id(), "01000000000000000000000000000000");
  EXPECT_EQ(carried.tracestate(), "") << "the list belongs to the other trace";
  trace.continues = true;
  EXPECT_EQ(carried.tracestate(), "a=1");
}

TEST(Carried, IsNotSampledIfNoOtherSideHasDecided) {
  const Trace trace{.context = {.trace_id = {1}, .span_id = {2}}};
  const MessageWith bare, traced(7, {{"traceparent", kNotSampled}});
  EXPECT_EQ(Carried(*bare, &trace).traceparent(),
            "00-01000000000000000000000000000000-0200000000000000-00");
  EXPECT_EQ(Carried(*bare, &trace).trace_id(), "") << "no span has it";
  EXPECT_EQ(Carried(*traced, &trace).traceparent(), kNotSampled);
}

}  // namespace
}  // namespace hapax::traces
