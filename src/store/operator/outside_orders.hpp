// What operators decide about calls to the outside whose outcome is unknown.
//
// Throws: DatabaseError, Refused. Blocks: at most lock_timeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/operator/inspect.hpp"
#include "store/operator/operator.hpp"

namespace hapax::store {

// Operations of these scopes that are not done: sql/operator/list_calls.sql.
struct CallFilter {
  std::vector<std::string> statuses;
  bool abandoned = false;  // also operations of other statuses that no worker has under a lease
};
Json list_calls(Session& session, const std::vector<std::string>& scopes, const CallFilter& filter,
                int limit);

struct CallDecision {
  enum class What {
    happened,        // book it, with `answer` or with the one that is kept
    did_not_happen,  // call again
    give_up,         // neither; the operation is closed
  };
  What what = What::give_up;
  OptionalText answer;                // JSON
  std::string group;                  // of the operator's configuration
  std::optional<std::int64_t> token;  // as the operator saw it; another one is refused
  std::string who, why;
  std::chrono::seconds retention{0};
  bool dry_run = false;
};

// Records the decision. Then orders the replay of the operation's dead letter, which carries the
// decision out, or discards the letter. Returns the operation as it was. Refused if the operation
// is done, or if its holder may still call. Also refused if there is no answer to book, or if an
// answer contradicts did_not_happen.
Json decide_call(Session& session, const KeyName& key, const CallDecision& decision);

}  // namespace hapax::store
