// Stands between the flow and the handler under test: counts its runs and statements, and makes
// PostgreSQL fail at a point that a test chooses.
//
// Thread safety: none; as a handler, it belongs to one lane.
#pragma once

#include <memory>
#include <optional>

#include "hapax/testing.hpp"

namespace hapax::testing {

class Probe final : public Handler {
 public:
  explicit Probe(std::unique_ptr<Handler> handler) : handler_(std::move(handler)) {}

  // From now on. Throws: std::invalid_argument if PostgreSQL knows no such SQLSTATE.
  void arm(const std::optional<Fault>& fault);

  int runs() const { return runs_; }
  int statements() const { return statements_; }  // of the last run

  void handle(const Message& message, Context& context) override;
  bool wants_duplicates() const override { return handler_->wants_duplicates(); }
  void on_duplicate(const Message& message, const StoredResult& stored, Context& context) override;

 private:
  std::unique_ptr<Handler> handler_;
  std::optional<Fault> fault_;  // for fault_->runs more runs
  int runs_ = 0;
  int statements_ = 0;
};

}  // namespace hapax::testing
