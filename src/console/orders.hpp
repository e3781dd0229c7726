// What the console changes: each function carries out one POST, by the same functions as the
// command of its name. An order names who and why. With {"dry_run": true} nothing is changed.
//
// Throws: app::Stop, store::Refused, store::DatabaseError. Thread safety: may be called from any
// thread.
#pragma once

#include "cli/output.hpp"
#include "console/ground.hpp"
#include "observe/page_server.hpp"

namespace hapax::console {

// Letters that one order may be about.
inline constexpr std::size_t kMaxMatching = 20'000;

// `hapax resume`: {place, decision, seen: [ids of halts]}. `seen` comes from the dry run: a halt
// that came since is refused.
app::Json resume(Ground& ground, const observe::PageRequest& request);

// The ids of all open letters that fit the filter of the query: what an order is then fixed to.
app::Json matching(Ground& ground, const observe::PageRequest& request);
// `hapax dead replay`, `replay --cancel`, `discard`: {ids}; of a replay of one letter also
// {payload}.
app::Json replay(Ground& ground, const observe::PageRequest& request);
app::Json cancel(Ground& ground, const observe::PageRequest& request);
app::Json discard(Ground& ground, const observe::PageRequest& request);

// `hapax outbox retry`: {which, seen}; `skip`: {ids, seen}. `seen`: the `halts` of the dry run. If
// one of them has ended, has another reason now, or another one would end, too: refused.
app::Json outbox_retry(Ground& ground, const observe::PageRequest& request);
app::Json outbox_skip(Ground& ground, const observe::PageRequest& request);

// `hapax outside decide`: {key, scope, tenant, decision, answer, token}. Tells the `answer` that it
// books: without one in the order, the one that is kept.
app::Json decide(Ground& ground, const observe::PageRequest& request);

}  // namespace hapax::console
