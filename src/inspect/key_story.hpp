// What happened under an idempotency key: for `hapax explain --key`. PostgreSQL only.
#pragma once

#include <optional>
#include <string>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "hapax/context.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {

struct KeyWanted {
  std::string key;  // as stored, or as raw bytes
  store::OptionalText scope, tenant;
};

// As `hapax explain --key --json` prints it: the key as stored, its rows, its group's dead letters.
// A row's `story` tells in words what became of its operation.
// The row of a request that a gate accepted has a member `record`, with the same of its record.
// Throws: Stop(kFailed) if there are none, telling what that can mean; store::DatabaseError.
Json key_story(const config::Config& config, store::Session& session, const KeyWanted& wanted);

// What a gate has answered to the request of a row of store::read_keys. Nothing: the row is a
// message's, or no answer is stored.
std::optional<Response> answer_to_request(const Json& row);

// Prints the key's rows and its group's dead letters; prints a line if there are none.
// Throws: Stop, store::DatabaseError.
ExitCode explain_key(const config::Config& config, const KeyWanted& wanted, bool json);

// A page of keys in their order, as `hapax keys list --json` prints it. `next`: the key at which
// the next page begins; null if there is none. `after`: if this one is full, key, scope and tenant
// of its last row. Throws: store::DatabaseError.
Json key_page(store::Session& session, const store::KeyFilter& filter);

// "3 wanted by anna at …: why; completed at …", of a row of store::read_replays_of.
std::string replay_line(const Json& replay);

}  // namespace hapax::app
