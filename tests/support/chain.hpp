// Two groups in a row: one books payments and publishes a receipt for each. The other books the
// receipts into a ledger of its own database.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "support/site.hpp"

namespace hapax::support {

class Chain {
 public:
  // Makes the topics, and sends nothing yet.
  Chain();

  Site& site() { return site_; }
  test::Database& ledger() { return ledger_; }
  const std::string& receipts() const { return receipts_; }

  // Of the first group; its relay publishes. `patch` (RFC 7386) changes its configuration.
  std::unique_ptr<WorkerProcess> payer(const std::string& name, const std::string& crash_at = {},
                                       const nlohmann::json& patch = {}) const;
  // Of the second group.
  std::unique_ptr<WorkerProcess> receiver(const std::string& name = "receiver") const;

  // Sends payments [first, first + count). They are several for each account, which come by all
  // partitions.
  void pay(int first, int count);

  // Return once that many receipts are booked, or once the outbox is empty.
  void await_receipts(int at_least);
  void await_sent();

  // Fails the test unless both ledgers hold payments [0, payments) once each, in one order per
  // account. The topic must hold them in that order, and beside them only equal repeats.
  // Returns how many repeats there are. Precondition: the outbox is empty.
  int expect_exact(int payments);
  // The same of the topic only; and `hapax audit` must find each record accounted for.
  int expect_topic_exact(int payments);

 private:
  Site site_{3};
  const std::string receipts_;
  test::Database ledger_;
  Producer producer_;
  mutable std::filesystem::path payers_config_;
};

}  // namespace hapax::support
