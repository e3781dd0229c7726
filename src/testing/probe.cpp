#include "testing/probe.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "flow/booking.hpp"
#include "flow/lent_context.hpp"

namespace hapax::testing {
namespace {

constexpr std::string_view kEndsTheSession = "57P01";

std::string raising(const std::string& sqlstate) {
  if (sqlstate == kEndsTheSession)
    return "DO $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END "
           "$$";
  return "DO $$ BEGIN RAISE EXCEPTION 'injected by the test' USING ERRCODE = '" + sqlstate +
         "'; END $$";
}

// Counts statements. The chosen one is replaced by one that PostgreSQL refuses: the error is a real
// one, with all that it does to the transaction.
class ProbedContext final : public Context {
 public:
  ProbedContext(flow::LentContext& lent, const Fault* fault, int& statements)
      : lent_(lent), fault_(fault), statements_(statements) {}

  pqxx::dbtransaction& lend() override {
    if (is_chosen()) lent_.run(raising(fault_->sqlstate), {});
    return lent_.lend();
  }

 private:
  Rows run(std::string_view text, std::vector<Parameter> values) override {
    if (is_chosen()) return lent_.run(raising(fault_->sqlstate), {});
    return lent_.run(text, std::move(values));
  }

  void defer(std::string_view text, std::vector<Parameter> values) override {
    if (is_chosen()) return lent_.defer(raising(fault_->sqlstate), {});
    lent_.defer(text, std::move(values));
  }

  void defer_row(std::string_view table, std::span<const std::string_view> columns,
                 std::span<Parameter> values) override {
    if (is_chosen()) return lent_.defer(raising(fault_->sqlstate), {});
    lent_.defer_row(table, columns, values);
  }

  void set_result(std::string json) override { lent_.set_result(std::move(json)); }

  void publish_record(std::string_view topic, Outgoing record) override {
    lent_.publish_record(topic, std::move(record));
  }

  std::string current_traceparent() override { return lent_.current_traceparent(); }

  Operation current_operation() override { return lent_.current_operation(); }

  void set_response(Response response) override { lent_.set_response(std::move(response)); }

  bool is_chosen() { return ++statements_ > 0 && fault_ && fault_->statement == statements_; }

  flow::LentContext& lent_;
  const Fault* fault_;
  int& statements_;
};

class ProbedHandler final : public Handler {
 public:
  ProbedHandler(std::unique_ptr<Handler> handler, Probe& probe)
      : handler_(std::move(handler)), probe_(probe) {}

  void handle(const Message& message, Context& context) override {
    probe_.run(context, [&](Context& probed) { handler_->handle(message, probed); });
  }
  bool wants_duplicates() const override { return handler_->wants_duplicates(); }
  void on_duplicate(const Message& message, const StoredResult& stored, Context& context) override {
    handler_->on_duplicate(message, stored, context);
  }

 private:
  std::unique_ptr<Handler> handler_;
  Probe& probe_;
};

class ProbedBooking final : public flow::Booker {
 public:
  ProbedBooking(std::unique_ptr<OutsideHandler> handler, Probe& probe)
      : handler_(std::move(handler)), probe_(probe) {}

  void book(const Message& message, const std::string& answer, Context& context) override {
    probe_.run(context, [&](Context& probed) { handler_->book_text(message, answer, probed); });
  }

 private:
  std::unique_ptr<OutsideHandler> handler_;
  Probe& probe_;
};

}  // namespace

void Probe::arm(const std::optional<Fault>& fault) {
  if (fault) {
    const bool characters = std::ranges::all_of(
        fault->sqlstate, [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
    if (fault->sqlstate.size() != 5 || !characters || fault->sqlstate.starts_with("00"))
      throw std::invalid_argument("\"" + fault->sqlstate +
                                  "\" is no SQLSTATE of an error, such as 40001");
    if (fault->statement < 0 || fault->runs < 1)
      throw std::invalid_argument("a fault has a statement from 1, or kAtCommit, and runs from 1");
  }
  fault_ = fault;
}

void Probe::run(Context& context, const std::function<void(Context&)>& handler) {
  ++runs_;
  statements_ = 0;
  const bool faulty = fault_ && fault_->runs-- > 0;
  auto& lent = dynamic_cast<flow::LentContext&>(context);
  ProbedContext probed(lent, faulty ? &*fault_ : nullptr, statements_);
  handler(probed);
  if (const auto while_open = std::exchange(while_open_, nullptr)) while_open();
  if (faulty && fault_->statement == Fault::kAtCommit)
    lent.run("INSERT INTO hapax_testing.commit_faults (sqlstate) VALUES ($1)", {fault_->sqlstate});
}

std::unique_ptr<Handler> probed(std::unique_ptr<Handler> handler, Probe& probe) {
  return std::make_unique<ProbedHandler>(std::move(handler), probe);
}

std::unique_ptr<Handler> probed(std::unique_ptr<OutsideHandler> handler, Probe& probe) {
  return std::make_unique<ProbedBooking>(std::move(handler), probe);
}

}  // namespace hapax::testing
