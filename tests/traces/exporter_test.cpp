// A collector that is away, slow or refusing costs spans and never time.
#include "traces/exporter.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "support/collector.hpp"

namespace hapax::traces {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

Span a_span(const std::string& topic = "payments") {
  return {.context = {.trace_id = {1}, .span_id = {2}, .flags = 1}, .topic = topic};
}

// An address at which nothing listens, and nothing else can while this lives.
class DeadEnd {
 public:
  DeadEnd() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, plain, size) != 0 || ::getsockname(socket_, plain, &size) != 0)
      throw std::runtime_error("bind");
    port_ = ntohs(address.sin_port);
  }
  ~DeadEnd() { ::close(socket_); }
  DeadEnd(const DeadEnd&) = delete;
  DeadEnd& operator=(const DeadEnd&) = delete;

  observe::HttpTarget target() const {
    return {.host = "127.0.0.1", .port = port_, .path = "/v1/traces"};
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

bool is_any(const json&) { return true; }

class Export : public testing::Test {
 protected:
  double spans(const std::string& outcome) const {
    const std::string text = metrics.text();
    const std::string name = "hapax_spans_total{outcome=\"" + outcome + "\"} ";
    const auto at = text.find(name);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
  }
  void await(const std::string& outcome, double count) const {
    for (const auto until = std::chrono::steady_clock::now() + 60s; spans(outcome) < count;) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << metrics.text();
      std::this_thread::yield();
    }
  }

  observe::Metrics metrics{{}};
  const Resource resource{"group", "w", ""};
};

TEST_F(Export, SendsWhatWaitsAtItsEnd) {
  support::Collector collector;
  {
    Exporter exporter(collector.target(), resource, metrics);
    for (int i = 0; i < 50; ++i) exporter.send(a_span());
  }
  EXPECT_EQ(collector.await(50, is_any).size(), 50U);
  EXPECT_EQ(spans("sent"), 50);
  EXPECT_EQ(spans("dropped"), 0);
}

TEST_F(Export, IsBoundedAndCountsWhatItDropsIfTheCollectorHangs) {
  support::Collector collector;
  collector.hold();
  const Span large = a_span(std::string(100'000, 'x'));
  {
    Exporter exporter(collector.target(), resource, metrics);
    exporter.send(large);
    collector.await_requests(1);  // its thread is in the request, and takes no more
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) exporter.send(large);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 1s) << "whoever gives a span never waits";
    EXPECT_GE(spans("dropped"), 200 - kMaxQueuedBytes / 100'000.0);
    EXPECT_LT(spans("dropped"), 200);
  }
  EXPECT_EQ(spans("sent"), 0);
  EXPECT_EQ(spans("dropped"), 201);
}

TEST_F(Export, GoesOnOnceTheCollectorIsThereAndLogsTwoLines) {
  support::Collector collector;
  collector.answer(503);
  testing::internal::CaptureStderr();
  {
    Exporter exporter(collector.target(), resource, metrics);
    exporter.send(a_span());
    collector.await_requests(2);
    exporter.send(a_span());
    collector.answer(200);
    EXPECT_EQ(collector.await(2, is_any).size(), 2U) << "the first was kept";
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const auto count = [&](const std::string& event) {
    std::size_t found = 0;
    for (auto at = log.find(event); at != std::string::npos; at = log.find(event, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("traces_fail"), 1U) << log;
  EXPECT_EQ(count("traces_work"), 1U) << log;
  EXPECT_THAT(log, HasSubstr("answers with HTTP status 503"));
  EXPECT_EQ(spans("sent"), 2);
}

TEST_F(Export, DropsWhatTheCollectorRefuses) {
  support::Collector collector;
  collector.answer(400);
  Exporter exporter(collector.target(), resource, metrics);
  exporter.send(a_span());
  await("refused", 1);
  collector.answer(200, R"({"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}})");
  exporter.send(a_span());
  exporter.send(a_span());
  await("refused", 2);
  await("sent", 1);
}

TEST_F(Export, EndsWithoutACollectorAndCountsWhatIsLost) {
  const DeadEnd nobody;
  {
    Exporter exporter(nobody.target(), resource, metrics);
    for (int i = 0; i < 11; ++i) exporter.send(a_span());
  }
  EXPECT_EQ(spans("dropped"), 11);
  EXPECT_EQ(spans("sent") + spans("refused"), 0);
}

}  // namespace
}  // namespace hapax::traces
