#include "flow/stored_response.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hapax::flow {
namespace {

TEST(StoredResponse, ComesBackWithTheHeadersThatARetryMayGet) {
  for (const std::string& body : {std::string(), std::string("{\"a\":1}"), std::string("\0\n", 2),
                                  std::string("\xC3\xA9"), std::string("\xFF\0\x80", 3)}) {
    const Response response{
        207,
        {{"Content-TYPE", "a/b"}, {"Set-Cookie", "s=1"}, {"Link", "<x>"}, {"Link", "<y>"}},
        body};
    const std::string stored = stored_text(response);
    EXPECT_TRUE(is_stored_response(stored));
    const auto again = response_of(stored);
    ASSERT_TRUE(again) << stored;
    EXPECT_EQ(again->status, 207);
    EXPECT_EQ(again->body, body);
    const decltype(response.headers) kept{
        {"Content-TYPE", "a/b"}, {"Link", "<x>"}, {"Link", "<y>"}};
    EXPECT_EQ(again->headers, kept);
  }
}

TEST(StoredResponse, OtherResultsAreNone) {
  for (const char* text : {"null", "17", "\"hapax:response\"", "[\"hapax:response\"]",
                           R"({"a":{"hapax:response":1}})"}) {
    EXPECT_FALSE(is_stored_response(text)) << text;
    EXPECT_FALSE(response_of(text)) << text;
  }
  EXPECT_TRUE(is_stored_response(R"({"hapax:response":1})"));
  EXPECT_FALSE(response_of(R"({"hapax:response":1})"));
}

TEST(StoredResponse, WhatCannotBeSentOrStoredIsRefused) {
  for (const Response& response :
       {Response{199}, Response{0}, Response{500}, Response{-200}, Response{204, {}, "x"},
        Response{304, {}, "x"}, Response{200, {{"", "x"}}}, Response{200, {{"a b", "x"}}},
        Response{200, {{"a:", "x"}}}, Response{200, {{"a", "x\r\ny: z"}}},
        Response{200, {{"a", std::string("\0", 1)}}}, Response{200, {{"a", "\xC3\xA9"}}},
        Response{200, {{"Content-length", "1"}}}, Response{200, {{"Transfer-Encoding", "x"}}},
        Response{200, {{"Idempotent-Replayed", "true"}}},
        Response{200, {{std::string(8193, 'a'), "x"}}},
        Response{200, {{"X-A", std::string(8193, 'a')}}}, Response{200, {101, {"X-A", "x"}}},
        Response{200, {5, {"X-A", std::string(8000, 'a')}}}})
    EXPECT_THROW(check(response), std::invalid_argument) << response.status;
  EXPECT_NO_THROW(check({499, {{"X-a", "b\tc"}}, "x"}));
  EXPECT_NO_THROW(check({204}));
  EXPECT_NO_THROW(check({200, {100, {"X-A", "x"}}}));
  EXPECT_NO_THROW(check({200, {4, {"Link", std::string(8000, 'a')}}}));
}

}  // namespace
}  // namespace hapax::flow
