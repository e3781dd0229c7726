// What PostgreSQL holds during and after `hapax demo`: the facts that the story and the proof
// quote.
//
// Thread safety: none. Throws: store::DatabaseError, from every function.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/session.hpp"
#include "tools/demo/messages.hpp"

namespace hapax::app {

inline constexpr const char* kDemoTopic = "payments";
inline constexpr const char* kDemoGroup = "demo";

struct DemoOwner {
  std::string worker;
  std::int64_t partitions = 0;
};

// What a worker leaves open when it dies.
struct DemoUnfinished {
  std::int64_t open_transactions = 0;  // to be rolled back
  std::int64_t uncheckpointed = 0;     // payments committed whose offsets may not have moved
};

class DemoLedger {
 public:
  // Migrates, makes the ledger's table and the worker role with its rights.
  // `url`: a superuser's, of an empty database.
  DemoLedger(const std::string& url, const std::string& worker_role);

  std::string server_version();

  std::int64_t payments();
  std::map<std::string, std::vector<std::int64_t>> amounts();  // payment → each booked amount
  std::int64_t keys(const std::string& status);
  std::map<std::string, std::int64_t> dead_letters();  // by reason
  std::map<std::int32_t, std::int64_t> checkpoints();  // by partition
  std::int64_t halts();                                // open ones
  DemoOwner owner_of_most();                           // partitions; worker "" if no worker has any
  DemoUnfinished unfinished(const std::string& worker);

 private:
  Rows read(const std::string& text, const std::vector<Parameter>& values = {});
  std::int64_t number(const std::string& text, const std::vector<Parameter>& values = {});

  store::Session session_;
};

}  // namespace hapax::app
