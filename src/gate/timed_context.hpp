// The Context that a handler of the gate gets: the lent one, whose statements do not count as the
// handler's own time. It publishes nothing before Kafka's topics are found.
//
// Thread safety: none; lives as long as one call of `handle`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "flow/lent_context.hpp"
#include "gate/handler_time.hpp"
#include "gate/status.hpp"
#include "hapax/errors.hpp"

namespace hapax::gate {

class TimedContext final : public Context {
 public:
  TimedContext(flow::LentContext& lent, HandlerTime& time, const Status& status)
      : lent_(lent), time_(time), status_(status) {}

 private:
  // While PostgreSQL may be asked.
  class Paused {
   public:
    explicit Paused(HandlerTime& time) : time_(time) { time_.pause(); }
    ~Paused() { time_.resume(); }
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

   private:
    HandlerTime& time_;
  };

  pqxx::dbtransaction& lend() override {
    const Paused paused(time_);
    return lent_.lend();
  }
  Rows run(std::string_view text, std::vector<Parameter> values) override {
    const Paused paused(time_);
    return lent_.run(text, std::move(values));
  }
  void defer(std::string_view text, std::vector<Parameter> values) override {
    const Paused paused(time_);
    lent_.defer(text, std::move(values));
  }
  void defer_row(std::string_view table, std::span<const std::string_view> columns,
                 std::span<Parameter> values) override {
    const Paused paused(time_);
    lent_.defer_row(table, columns, values);
  }
  void set_result(std::string json) override { lent_.set_result(std::move(json)); }
  void set_response(Response response) override { lent_.set_response(std::move(response)); }
  std::string current_traceparent() override { return lent_.current_traceparent(); }
  Operation current_operation() override { return lent_.current_operation(); }
  void publish_record(std::string_view topic, Outgoing record) override {
    if (status_.lacks_kafka()) throw Retry("publish: Kafka's topics are not found yet");
    lent_.publish_record(topic, std::move(record));
  }

  flow::LentContext& lent_;
  HandlerTime& time_;
  const Status& status_;
};

}  // namespace hapax::gate
