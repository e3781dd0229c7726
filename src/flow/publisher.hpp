// What one run of a handler publishes: checked against the configuration, named after the inbound
// operation, and kept in order until the completion.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/context.hpp"
#include "key/identity.hpp"
#include "store/message/outbox_insert.hpp"
#include "traces/carried.hpp"

namespace hapax::flow {

// What the handlers of a worker may publish. Immutable once the worker runs.
struct Publishing {
  std::map<std::string, std::size_t, std::less<>> topics;  // → the largest record it takes, bytes
  std::function<void()> committed = {};  // records were committed; any thread; may be empty

  void nudge() const {
    if (committed) committed();
  }
};

// `idempotency-key` of a record: the same for the same operation, in every run and on every
// database. `name`: of the publish within its operation; empty: `ordinal` counts, among
// those without a name. Hex SHA-256. Pure.
std::string published_key(const std::string& scope, const key::Identity& identity,
                          std::string_view name, std::size_t ordinal);

// The bytes that a topic counts for the record, with the headers that hapax adds. Never less than
// Kafka counts.
std::size_t published_size(const Outgoing& record);

// Thread safety: none; lives as long as one run of a handler.
class Publisher {
 public:
  // All outlive it. `publishing`: null if the configuration names no topics.
  Publisher(const Publishing* publishing, const std::string& scope, const key::Identity& identity,
            const traces::Carried& carried, const store::Source& source)
      : publishing_(publishing),
        scope_(scope),
        identity_(identity),
        carried_(carried),
        source_(source) {}

  // Before the handler runs.
  void prepare(store::Session& session) const {
    if (publishing_ != nullptr) store::prepare_published(session);
  }

  // As Context::publish.
  void publish(std::string_view topic, Outgoing record);

  const std::vector<store::Published>& records() const { return records_; }

  // Call it after the COMMIT.
  void committed() const {
    if (!records_.empty()) publishing_->nudge();
  }

 private:
  void hand_on(Outgoing& record) const;

  const Publishing* const publishing_;
  const std::string& scope_;
  const key::Identity& identity_;
  const traces::Carried& carried_;
  const store::Source& source_;
  std::vector<store::Published> records_;
  std::set<std::string, std::less<>> names_;
  std::size_t unnamed_ = 0;
};

}  // namespace hapax::flow
