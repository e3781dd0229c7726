// Who the console talks to: only pages that it served itself, on this machine, in a browser that
// was given the printed URL.
#include <fstream>

#include "console/console_case.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"

namespace hapax::console {
namespace {

using testing::HasSubstr;
using testing::Not;

class ConsoleAccess : public ConsoleCase {
 protected:
  // What an order is answered that comes with these headers beside the token.
  int status_of_order(const Headers& headers) {
    return ask("POST", "/api/discard", own(headers), R"({"ids": [1], "who": "eve", "why": "none"})")
        .status;
  }
};

TEST_F(ConsoleAccess, TellsNoDataAndTakesNoOrderWithoutTheTokenAsAHeader) {
  std::string wrong = token();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const Headers none = {{"Host", host()}};
  const auto with = [&](const std::string& name, const std::string& value) {
    return Headers{{"Host", host()}, {name, value}};
  };
  for (const Headers& headers :
       {none, with("X-Hapax-Token", wrong), with("X-Hapax-Token", ""), with("Cookie", token()),
        with("Cookie", "hapax-token=" + token()), with("Cookie", "X-Hapax-Token=" + token()),
        with("Authorization", token())}) {
    for (const std::string target :
         {"/api/overview?token=", "/api/payload?letter=1&token=", "/api/nothing?", "/api/?"}) {
      const Reply reply = ask("GET", target + token(), headers);
      EXPECT_EQ(reply.status, 401) << target << headers.back().first;
      EXPECT_THAT(reply.body, HasSubstr("Open the URL")) << target;
    }
    Headers order = headers;
    order.insert(order.end(),
                 {{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "application/json"}});
    EXPECT_EQ(ask("POST", "/api/discard", order, "{}").status, 401) << headers.back().first;
  }
  EXPECT_EQ(get("/api/overview").status, 200);
}

// B: a browser sends a cookie to every port of 127.0.0.1, and the query of an address to the
// server. What is behind # it keeps.
TEST_F(ConsoleAccess, ThePrintedUrlTellsItsTokenToThePageOnly) {
  EXPECT_THAT(console().url(),
              testing::MatchesRegex("http://127.0.0.1:[0-9]+/#token=[0-9a-f]{64}"));
  for (const std::string target : {"/", "/index.html", "/app.js", "/style.css"}) {
    const Reply reply = ask("GET", target, {{"Host", host()}});
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_EQ(reply.header("set-cookie"), "") << target;
    EXPECT_THAT(reply.body, Not(HasSubstr(token()))) << target;
  }
}

// A: another page's host name resolves to 127.0.0.1 after a minute, so its script is of the same
// origin for the browser.
TEST_F(ConsoleAccess, RefusesAHostThatIsNoLoopbackName) {
  const std::string port = std::to_string(console().port());
  for (const std::string& wrong :
       std::vector<std::string>{"evil.example", "127.0.0.1.evil.example:" + port,
                                "localhost.evil.example", "", "10.0.0.1:" + port, "[::2]"})
    EXPECT_EQ(ask("GET", "/api/overview", {{"Host", wrong}, {"X-Hapax-Token", token()}}).status,
              403)
        << wrong;
  EXPECT_EQ(ask("GET", "/api/overview",
                {{"Host", host()}, {"Host", "evil.example"}, {"X-Hapax-Token", token()}})
                .status,
            403);
  for (const std::string& right :
       std::vector<std::string>{"localhost:9000", "127.0.0.1", "[::1]:" + port})
    EXPECT_EQ(ask("GET", "/api/overview", {{"Host", right}, {"X-Hapax-Token", token()}}).status,
              200)
        << right;
}

TEST_F(ConsoleAccess, LetsNoOtherSiteReadAnAnswer) {
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_EQ(ask("GET", "/api/overview", own({{"Sec-Fetch-Site", site}})).status, 403) << site;
  EXPECT_EQ(ask("GET", "/api/overview", own({{"Sec-Fetch-Site", "none"}})).status, 200);
  EXPECT_EQ(ask("GET", "/", own({{"Sec-Fetch-Site", "cross-site"}})).status, 200);
}

TEST_F(ConsoleAccess, TakesNoOrderFromAnotherSite) {
  as_operator();
  letters(1);
  const std::pair<std::string, std::string> json{"Content-Type", "application/json"};
  for (const char* site : {"cross-site", "same-site", "none"})
    EXPECT_EQ(status_of_order({json, {"Sec-Fetch-Site", site}}), 403) << site;
  EXPECT_EQ(
      status_of_order({json, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://" + host()}}),
      403);
  EXPECT_EQ(status_of_order({json}), 403);
  EXPECT_EQ(status_of_order({json, {"Origin", "null"}}), 403);
  EXPECT_EQ(status_of_order({json, {"Origin", "http://127.0.0.1:1"}}), 403);
  EXPECT_EQ(status_of_order({{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "text/plain"}}),
            415);
  EXPECT_EQ(status_of_order({{"Sec-Fetch-Site", "same-origin"}}), 415);
  EXPECT_EQ(ask("GET", "/api/discard?ids=1", own()).status, 404);
  EXPECT_EQ(ask("PUT", "/api/discard", own({json, {"Sec-Fetch-Site", "same-origin"}}), "{}").status,
            405);
  EXPECT_EQ(log(), "");
  EXPECT_EQ(status_of_order({json, {"Origin", "http://" + host()}}), 200);
  EXPECT_EQ(log(), "eve|dead discard|none");
}

TEST_F(ConsoleAccess, TellsTheBrowserToRunNothingButItsOwnFiles) {
  for (const Reply& reply : {get("/"), get("/app.js"), get("/api/overview"), get("/api/letter"),
                             get("/nothing"), ask("GET", "/", {{"Host", "evil.example"}})}) {
    const std::string policy = reply.header("content-security-policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'self'; style-src 'self'; "
                                  "connect-src 'self'; "));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(reply.header("x-content-type-options"), "nosniff");
    EXPECT_EQ(reply.header("cache-control"), "no-store");
    EXPECT_EQ(reply.header("referrer-policy"), "no-referrer");
  }
  EXPECT_THAT(get("/app.js").header("content-type"), HasSubstr("text/javascript"));
  EXPECT_THAT(get("/").body, Not(HasSubstr("<script>")));
}

TEST_F(ConsoleAccess, BoundsWhatARequestMayHold) {
  const std::string begin = "POST /api/discard HTTP/1.1\r\nHost: " + host() + "\r\n";
  EXPECT_EQ(send(begin + "Content-Length: 1048577\r\n\r\n").status, 413);
  EXPECT_EQ(send(begin + "Transfer-Encoding: chunked\r\n\r\n").status, 411);
  EXPECT_EQ(send(begin + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n").status, 400);
  EXPECT_EQ(send(begin + "Content-Length: 1x\r\n\r\n").status, 400);
  EXPECT_EQ(send(begin + "A: " + std::string(20'000, 'a')).status, 431);
  for (const std::string body : {"", "[]", "{", "{\"ids\": 1}", "{\"ids\": [\"1\"]}", "\xff"})
    EXPECT_EQ(
        ask("POST", "/api/discard",
            own({{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "application/json"}}), body)
            .status,
        400)
        << body;
}

// A hundred clients that send no request must not keep an operator out.
TEST_F(ConsoleAccess, AnswersThoughManyClientsAreSilent) {
  std::vector<std::unique_ptr<gate::HttpClient>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(
        std::make_unique<gate::HttpClient>(static_cast<std::uint16_t>(console().port())));
    silent.back()->send("GET / HTTP/1.1\r\n");
  }
  EXPECT_EQ(get("/api/overview").status, 200);
}

TEST_F(ConsoleAccess, ListensOnThisMachineOnly) {
  const sandbox::TemporaryFolder folder("console");
  const auto file = folder.path() / "worker.json";
  std::ofstream(file) << R"({"kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
      "postgres": {"url": "postgresql://127.0.0.1:1/x"},
      "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}}]})";
  for (const std::string listen : {"0.0.0.0:9470", "[::]:9470", "192.0.2.1:9470", "127.0.0.2:9470",
                                   "example.org:9470", ":9470"}) {
    const support::Said said = support::hapax({"console", "--listen", listen}, file);
    EXPECT_EQ(said.code, 2) << listen << said.text;
    EXPECT_THAT(said.text, HasSubstr("use ssh -L")) << listen;
  }
  for (const std::string listen : {"127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"})
    EXPECT_EQ(support::hapax({"console", "--listen", listen}, file).code, 2) << listen;
  const support::Said taken = support::hapax({"console", "--listen", host()}, file);
  EXPECT_EQ(taken.code, 1);
  EXPECT_THAT(taken.text, HasSubstr("--listen names another port"));
}

}  // namespace
}  // namespace hapax::console
