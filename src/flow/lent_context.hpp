// The Context that a handler gets: a thin view of the open transaction.
//
// Thread safety: none; lives as long as one call of `handle`.
#pragma once

#include <optional>
#include <string>

#include "flow/publisher.hpp"
#include "flow/stored_response.hpp"
#include "hapax/context.hpp"
#include "key/identity.hpp"
#include "store/transaction.hpp"
#include "traces/carried.hpp"

namespace hapax::flow {

class LentContext final : public Context {
 public:
  // If deferred writes grow beyond this, they are sent before `handle` returns. So a handler that
  // writes in a loop does not keep all of it in memory.
  static constexpr std::size_t kMaxDeferredBytes = 1 << 20;

  // `publisher`: null for on_duplicate, which must neither publish nor store a result.
  // `identity`: null for a request of the gate that has no key.
  // `by_position`: there is no row that could hold a key or a result.
  LentContext(store::Transaction& transaction, const traces::Carried& carried,
              std::size_t max_result_bytes, Publisher* publisher, const key::Identity* identity,
              bool by_position = false)
      : transaction_(transaction),
        carried_(carried),
        max_result_bytes_(max_result_bytes),
        publisher_(publisher),
        identity_(identity),
        by_position_(by_position) {}

  const std::optional<std::string>& stored_result() const { return result_; }

  pqxx::dbtransaction& lend() override {
    lent_ = true;
    return transaction_.pqxx();
  }

  // Public, because the test kit puts a context of its own between the handler and this one.
  Rows run(std::string_view text, std::vector<Parameter> values) override {
    return transaction_.query(text, values);
  }

  void defer(std::string_view text, std::vector<Parameter> values) override {
    transaction_.defer(text, std::move(values));
    bound_deferred();
  }

  void defer_row(std::string_view table, std::span<const std::string_view> columns,
                 std::span<Parameter> values) override {
    transaction_.insert(table, columns, values);
    bound_deferred();
  }

  void set_result(std::string json) override {
    expect_results_are_kept();
    if (json.size() > max_result_bytes_)
      throw Reject("the result has " + std::to_string(json.size()) +
                   " bytes, max_result_bytes is " + std::to_string(max_result_bytes_));
    if (is_stored_response(json))
      throw Reject("the result has the member `hapax:response`, which is that of respond()");
    result_ = std::move(json);
    response_.reset();
  }

  void set_response(Response response) override {
    expect_results_are_kept();
    check(response);
    std::string stored = stored_text(response);
    if (stored.size() > max_result_bytes_)
      throw std::invalid_argument("respond: the answer has " + std::to_string(stored.size()) +
                                  " bytes as it is stored, max_result_bytes is " +
                                  std::to_string(max_result_bytes_));
    result_ = std::move(stored);
    response_ = std::move(response);
  }

  // The handler's response, with the headers that are not stored. Nothing: it gave none.
  const std::optional<Response>& response() const { return response_; }

  std::string current_traceparent() override { return carried_.traceparent(); }

  Operation current_operation() override {
    if (identity_ == nullptr || by_position_) return {};
    return {identity_->key, identity_->tenant};
  }

  void publish_record(std::string_view topic, Outgoing record) override {
    if (publisher_ == nullptr)
      throw std::logic_error(
          "publish: not in on_duplicate, which runs any number of times; publish in handle, whose "
          "records are sent with the first delivery");
    publisher_->publish(topic, std::move(record));
  }

 private:
  bool is_of_a_duplicate() const { return publisher_ == nullptr && identity_ != nullptr; }

  void expect_results_are_kept() const {
    if (by_position_)
      throw std::logic_error(
          "a route with key \"position\" keeps no results: remove result() or respond(), or use "
          "another key");
    if (is_of_a_duplicate())
      throw std::logic_error(
          "result, respond: not in on_duplicate, because the key keeps the result of the first "
          "delivery");
  }

  // If pqxx() was lent, a subtransaction may be open. Deferred statements would outlive its end.
  void bound_deferred() {
    if (lent_ || transaction_.pending_bytes() > kMaxDeferredBytes) transaction_.flush();
  }

  store::Transaction& transaction_;
  const traces::Carried& carried_;
  std::size_t max_result_bytes_;
  Publisher* publisher_;
  const key::Identity* identity_;
  bool by_position_;
  std::optional<std::string> result_;
  std::optional<Response> response_;
  bool lent_ = false;
};

}  // namespace hapax::flow
