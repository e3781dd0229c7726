"""The mutants: what is broken, and the faults and set-up under which it must show."""

import dataclasses

WORKERS = "worker-kill,worker-zombie,worker-restart,worker-storm"
NOBODY = "00000000-0000-0000-0000-000000000000"
# But for its closing bracket, and with its indentation.
INCARNATION = ("(SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM\n{0}"
               "pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid\n{0}FROM hapax.incarnation")
POSITIONS = "migrations/0014_add_positions.up.sql"
ZOMBIES = "worker-zombie,zombies-in-turn,backend-frozen"
PLAIN = {"batch": 1, "transactions": False}  # of the world publish
POSTGRES = "postgres-kill,backend-kill,backends-ended,connections-cut"


@dataclasses.dataclass(frozen=True)
class Mutant:
    edits: list  # (file, text that is there once, text instead)
    faults: str = WORKERS  # "": all of its world
    variant: dict = dataclasses.field(default_factory=lambda: {"batch": 1})
    soak: bool = False  # must be found by tests/chaos/soak
    world: str = "usual"


def of(world, edits, **variant):
    """One that its world must find, by the faults and messages that this world always has."""
    return Mutant(edits, "", variant, world=world)


def simulated(*edit):
    """One of the poll thread, which its simulation in hapax_tests must find."""
    return Mutant([edit], world="simulation")


MUTANTS = {
    "checkpoint-before-settled": Mutant([(
        "src/worker/watermark.hpp",
        "return waiting_.empty() ? next_ : waiting_.front().offset();", "return next_;")]),
    "checkpoint-one-too-far": Mutant([(
        "sql/worker/write_checkpoints.sql", "SET next_offset = d.next_offset,",
        "SET next_offset = d.next_offset + 1,")]),
    "offset-before-checkpoint": Mutant([(
        "src/worker/offset_commits.cpp",
        "const std::int64_t offset = partition->checkpointed();",
        "const std::int64_t offset = partition->progress().watermark;")]),
    "offset-one-too-far": Mutant([(
        "src/worker/offset_commits.cpp",
        "const std::int64_t offset = partition->checkpointed();",
        "const std::int64_t offset = partition->checkpointed() + 1;")]),
    "claim-without-guard": Mutant([(
        "sql/message/claim.sql", "DO NOTHING", "DO UPDATE SET updated_at = now()")]),
    "redelivery-runs-again": Mutant([(
        "src/flow/judge.cpp",
        'if (holder.status == "completed") return',
        'if (holder.status == "completed" && holder.is(request.source)) return std::nullopt;\n'
        '  if (holder.status == "completed") return')]),
    "forgotten-epoch": Mutant([(
        "sql/worker/write_checkpoints.sql",
        "  AND c.epoch = d.epoch AND c.next_offset = d.last\n", "  AND d.last IS NOT NULL\n")],
        "worker-zombie"),
    "give-up-without-claim": Mutant([(
        "src/flow/account.cpp",
        "  if (auto decided = judge(attempt, request, claim, transaction)) {",
        "  if (auto decided = std::optional<Outcome>()) {")]),
    "incarnation-never-changes": Mutant([
        ("sql/worker/read_store.sql", INCARNATION.format(8 * " "), "('" + NOBODY + "'::uuid"),
        ("sql/worker/read_held.sql", INCARNATION.format(8 * " "), "('" + NOBODY + "'::uuid"),
        ("sql/worker/write_checkpoints.sql", "AND d.incarnation = " + INCARNATION.format(23 * " "),
         "AND (d.incarnation IS NOT NULL")],
        POSTGRES, {"batch": 1, "lose_tail": True, "ordering": "none"}),
    "runs-behind-a-lost-tail": Mutant([(
        "src/flow/lane_session.cpp", "if (*incarnation_ == incarnation) return false;",
        "return false;")],
        POSTGRES, {"batch": 1, "lose_tail": True, "ordering": "key",
                   "checkpoint_interval": "1s"}),
    "no-seal": Mutant([
        ("src/store/message/claim.cpp",
         "  transaction.add(transaction.session().execute(text, {nonce}));\n",
         "  (void)transaction, (void)nonce, (void)text;\n"),
        ("sql/message/claim.sql", "set_config('hapax.gate', 'arm', true) = 'arm'",
         "set_config('hapax.gate', 'sealed', true) IS NOT NULL"),
        ("sql/message/arm.sql", "set_config('hapax.gate', 'arm', true)",
         "set_config('hapax.gate', 'sealed', true)")]),
    "attempts-not-kept": Mutant([(
        "sql/message/record_attempt.sql", "SET count = a.count + 1,", "SET count = 1,")]),
    "doubt-is-success": Mutant([(
        "src/flow/failure_policy.cpp",
        "return batch ? lost_connection_of_batch(failure) : commit_in_doubt(failure);",
        "return batch ? lost_connection_of_batch(failure) : Decision{.result = Result::completed};"
        )], POSTGRES),
    "doubt-of-a-joined-text-is-success": Mutant([(
        "src/store/message/claim.cpp", "    if (error.fault().kind != Fault::Kind::sql || !was_",
        "    if (error.fault().kind == Fault::Kind::sql && !was_")], POSTGRES),
    "drift-is-duplicate": Mutant([(
        "src/flow/judge.cpp", "  return holder.is(request.source) ||\n",
        "  return !holder.topic.empty() ||\n")]),
    "aborted-messages-are-read": Mutant([(
        "src/kafka/consumer.cpp", '{"isolation.level", "read_committed"}',
        '{"isolation.level", "read_uncommitted"}')]),
    "one-in-50-out-of-order": Mutant([(
        "src/worker/intake.cpp", "if (message.key()) return order_hash_",
        "if (message.key() && message.offset() % 50 != 0) return order_hash_")],
        variant={"batch": 1, "ordering": "key"}),
    "dead-letter-not-kept": Mutant([(
        "sql/message/insert_dead_letter.sql", "ON CONFLICT", "WHERE $15::int < 4 ON CONFLICT")]),
    "never-cautious": Mutant([(
        "sql/worker/take_partitions.sql", "started_runs + 1 AS started_runs",
        "0 AS started_runs")], "message-that-kills"),
    "failed-batch-is-done": Mutant([(
        "src/flow/segment.cpp", "if (tried.then != Then::done)",
        "if (tried.then == Then::halves)")], POSTGRES, {"batch": 20}),
    "memory-not-freed": Mutant([(
        "src/worker/lane.cpp", "  set_running(&jobs.front().task);\n",
        "  set_running(&jobs.front().task);\n  static thread_local std::vector<std::string> kept;\n"
        "  kept.emplace_back(8192, 'x');\n")], "worker-pause", soak=True),
    "session-not-closed": Mutant([(
        "src/worker/retention.cpp", "  store::Session session = setup_.connect();",
        "  static int round = 0;  // slow enough not to have all of them before it is judged\n"
        "  if (++round % 3 == 0) static_cast<void>(new store::Session(setup_.connect()));\n"
        "  store::Session session = setup_.connect();")], "worker-pause", soak=True),
    "keys-not-removed": Mutant([(
        "sql/worker/expire_keys.sql", "WHERE k.expires_at < (", "WHERE k.expires_at + '1 year' < (")],
        "worker-pause", soak=True),
    "keys-wait-for-their-own-partition-alone": of("retention", [
        ("sql/worker/read_held_scopes.sql", "least(until, $1::timestamptz)", "$1::timestamptz"),
        ("sql/worker/expire_keys.sql", "(SELECT min(since) FROM due))\n",
         "(SELECT min(since) FROM due))\n"
         "      AND NOT EXISTS (SELECT FROM hapax.checkpoints c WHERE c.group_id = k.group_id\n"
         "        AND c.topic = k.topic AND c.partition = k.partition\n"
         "        AND c.next_offset <= k.kafka_offset)\n")]),
    "session-not-cleaned": of("hostile", [(
        "src/store/session.cpp", "if (left == Leaves::nothing) return true;",
        "if (left != Leaves::prepared_statements) return true;")]),
    "stale-session-counts": of("migrations", [(
        "src/store/fault.cpp", '{"0A000", "22", "42", "XX000"}', '{"0A000", "42"}')]),
    "missing-right-counts": of("rights", [(
        "src/store/fault.cpp", '{"42", refused}, ', '{"42", attempt}, ')]),
    "unknown-runs-unasked": of("operators", [(
        "src/flow/judge.cpp",
        "if (unfinished || task.message.offset() >= task.guard_below) return std::nullopt;",
        "return std::nullopt;")]),
    "starts-beyond-a-hundred-forgotten": of("partitions", [(
        "src/worker/starts.cpp",
        "std::erase_if(wanted_, [&](const Wanted& wanted) { return taken.contains("
        "wanted.partition); });", "wanted_.clear();")], partitions=400),
    "relay-without-barrier": Mutant([(
        "src/store/worker/outbox_lease.cpp", 'transaction.add("SET LOCAL synchronous_commit = on");\n'
        '  transaction.add("SET LOCAL idle', 'transaction.add("SET LOCAL synchronous_commit = off");\n'
        '  transaction.add("SET LOCAL idle')],
        POSTGRES, PLAIN | {"lose_tail": True}, world="publish"),
    "relay-without-fence": Mutant([(
        "sql/worker/fence_outbox.sql", "WHERE name = $1 AND holder = $2 AND epoch = $3",
        "WHERE name = $1 AND $2 <> '' AND $3 > 0")], "relay-frozen", PLAIN, world="publish"),
    "outbox-ids-drawn-early": Mutant([
        ("sql/message/claim.sql", "AND set_config('lock_timeout', $13, true) IS NOT NULL",
         "AND set_config('lock_timeout', $13, true) IS NOT NULL AND nextval('hapax.outbox_id_seq') > 0"),
        ("sql/message/insert_outbox.sql", "INSERT INTO hapax.outbox (group_id,",
         "INSERT INTO hapax.outbox (id, group_id,"),
        ("sql/message/insert_outbox.sql", "SELECT $1,",
         "OVERRIDING SYSTEM VALUE SELECT currval('hapax.outbox_id_seq'), $1,")],
        "worker-pause", PLAIN | {"ordering": "none"}, world="publish"),
    "published-key-of-the-row": Mutant([(
        "sql/message/insert_outbox.sql", "r.headers::json, r.idempotency_key,",
        "r.headers::json, md5(r.n::text || clock_timestamp()),")], WORKERS, PLAIN, world="publish"),
    "outbox-mark-passes-writers": Mutant([(
        "src/outbox/low_water.cpp", "if (candidate_ && !candidate_->writers.empty()) {",
        "next_ = upto;\n  if (candidate_ && !candidate_->writers.empty()) {")],
        "worker-pause", PLAIN | {"lose_tail": False, "ordering": "none"}, world="publish"),
    "marker-ignored": Mutant([(
        "src/outbox/transaction.cpp", "if (held->token == open->token) return Verdict::sent;",
        "if (held->token == open->token) return Verdict::unsent;")],
        "worker-kill", {"transactions": True}, world="publish"),
    "write-with-an-older-token": Mutant([
        ("sql/outside/keep_answers.sql", "'answered') AND k.token = l.token",
         "'answered') AND k.token >= l.token"),
        ("sql/outside/claim_answered.sql", "token = $4", "token >= $4"),
        ("sql/outside/end_call.sql", "token = $4", "token >= $4")],
        "answers-late", {"repeat": "idempotent"}, world="calls"),
    "taken-over-under-a-lease": of("calls", [(
        "sql/outside/take_calls.sql", "WHERE h.id = k.holder AND h.until > clock_timestamp()",
        "WHERE h.id = k.holder AND h.until = 'infinity'")], repeat="idempotent"),
    "hung-call-is-left-alone": Mutant([(
        "src/worker/calls_in_flight.cpp", "hangs_.exchange(true)", "true")],
        "call-that-hangs", {"repeat": "never"}, world="calls"),
    "called-without-a-look-at-the-lease": Mutant([(
        "src/outside/callers.cpp", "holder_.may_call() == call.holder && ", "")],
        "freeze-in-take,answers-late", {"repeat": "queryable"}, world="calls"),
    "never-is-called-again": of("calls", [(
        "src/outside/policy.cpp", "case Repeat::never: break;",
        "case Repeat::never: return {Step::call};")], repeat="never"),
    "queryable-is-not-asked": of("calls", [(
        "src/outside/policy.cpp", "return {Step::reconcile};", "return {Step::call};")],
        repeat="queryable"),
    "take-not-flushed": Mutant([(
        "src/store/outside/calls.cpp", "  transaction.add(kSynchronously);\n  transaction.add(wait);",
        "  transaction.add(wait);")],
        "postgres-kill,backend-kill,gateway-holds", {"repeat": "never", "lose_tail": True},
        world="calls"),
    "answer-not-flushed": Mutant([(
        "src/store/outside/calls.cpp", "  transaction.add(kSynchronously);\n  std::vector<Kept> kept",
        "  std::vector<Kept> kept")],
        "postgres-kill,backend-kill", {"repeat": "idempotent", "lose_tail": True}, world="calls"),
    "call-forgotten-when-given-back": of("calls", [(
        "sql/outside/give_call_back.sql", "calls = calls - $5::boolean::int",
        "calls = $5::boolean::int * 0")], repeat="queryable"),
    "step-not-kept": Mutant([(
        "sql/outside/keep_steps.sql", "SET steps = l.steps::json, updated_at", "SET updated_at")],
        "worker-kill,worker-restart", {"repeat": "idempotent"}, world="calls"),
    "gate-claims-without-guard": of("gate", [(
        "sql/message/claim.sql", "DO NOTHING", "DO UPDATE SET updated_at = now()")]),
    "gate-key-without-tenant": of("gate", [(
        "src/gate/run.hpp", "                 key::encode_key(asked.tenant),\n",
        "                 key::encode_key(asked.route == 0 ? std::string(\"all\") : asked.tenant),\n")]),
    "gate-replays-unread": of("gate", [(
        "src/gate/executor.cpp",
        "  if (stored.holder.fingerprint != run.identity.fingerprint) return drifted();\n", "")]),
    "gate-waiters-unread": of("gate", [(
        "src/gate/desk.cpp", "  return (alike && a.headers == b.headers) || fingerprint_of(a) == of_b;",
        "  return alike || fingerprint_of(a) == of_b || !of_b.digest.empty();")]),
    "gate-waiters-are-not-told": of("gate", [(
        "src/gate/desk.cpp", "answer.is_stored() ? replayed(answer) : answer);",
        "answer.is_stored() ? answer : replayed(answer));")]),
    "gate-answers-before-commit": of("gate", [
        ("src/gate/executor.cpp", "  store::add_published(transaction, publisher.records());\n",
         "  store::add_published(transaction, publisher.records());\n"
         "  run.said = context.response();\n"),
        ("src/gate/executor.cpp", "  if (run.in_doubt && (answer->how ==",
         "  if (run.said && run.phase != Phase::claim && run.said->status < 300)\n"
         "    answer = Answer{*run.said, Answered::executed};\n"
         "  if (run.in_doubt && (answer->how ==")]),
    "gate-commit-not-flushed": Mutant([(
        "src/gate/executor.cpp", "  store::commit_synchronously(transaction);\n  store::add_published",
        "  store::add_published")], POSTGRES, {"lose_tail": True}, world="gate"),
    "gate-doubt-is-success": Mutant([(
        "src/gate/executor.cpp",
        "  complete(std::move(claimed), request, nonce, context.stored_result(), next);\n",
        "  try {\n    complete(std::move(claimed), request, nonce, context.stored_result(), next);\n"
        "  } catch (const store::DatabaseError& error) {\n"
        "    if (error.fault().kind != store::Fault::Kind::in_doubt) throw;\n  }\n")], POSTGRES, {}, world="gate"),
    "gate-batch-answers-without-commit": of("gate", [
        ("src/gate/executor_batch.cpp", "  switch (tried.then) {\n    case Then::done:\n",
         "  switch (tried.then == Then::some_alone ? Then::done : tried.then) {\n    case Then::done:\n"),
        ("src/gate/executor_batch.cpp", " && outcomes[job].result != flow::Result::completed)",
         " && member.response.headers.empty())")], shares=16),
    "gate-batch-answers-as-its-first": of("gate", [(
        "src/gate/executor_batch.cpp", "    Answer answer = member.stored ? ",
        "    member.response = members.front()->response;\n"
        "    Answer answer = member.stored ? "),
        ("src/gate/executor_batch.cpp", "Answer{std::move(member.response), ", "Answer{member.response, ")],
        shares=16),
    "gate-rejection-not-kept": of("gate", [(
        "src/gate/executor.cpp", "      if (run.request.is_guarded()) return std::nullopt;\n", "")]),
    "gate-hung-handler-commits": of("gate", [(
        "src/gate/executor.cpp", "  if (!time_.end()) throw std::runtime_error(",
        "  if (!time_.end() && run.in_doubt) throw std::runtime_error(")]),
    "positions-without-a-fence": Mutant([
        (POSITIONS, "WHERE in_epoch = 0 OR in_epoch = (", "WHERE in_epoch >= 0 OR in_epoch = ("),
        (POSITIONS, "WHERE d.epoch = 0 OR d.epoch = (", "WHERE d.epoch >= 0 OR d.epoch = (")],
        ZOMBIES, {}, world="positions"),
    "positions-start-does-not-wait": Mutant([(
        "sql/worker/find_settling.sql", "WHERE NOT pg_try", "WHERE false AND NOT pg_try")],
        ZOMBIES, {"idle": "8s"}, world="positions"),
    "positions-of-a-batch-without-the-lock": Mutant([(
        POSITIONS, "  PERFORM pg_advisory_xact_lock_shared(hapax.partition_lock(in_group, in_topic, p))\n"
        "  FROM unnest(partitions) AS p;\n", "")],
        ZOMBIES, {"idle": "8s", "batch": 20}, world="positions"),
    "positions-read-without-earlier-offsets": Mutant([(
        "sql/worker/read_positions.sql", " UNION ALL SELECT p.last - unnest(p.earlier)", "")],
        WORKERS, {"batch": 20}, world="positions"),
    "positions-removed-too-far": Mutant([(
        "sql/worker/delete_positions.sql", "AND p.last < d.next_offset", "AND p.last < d.next_offset + 200")],
        WORKERS, {"ordering": "none"}, world="positions"),
    "positions-doubt-is-forgotten": Mutant([
        ("src/flow/processor.cpp",
         "if (attempt.sent_commit && store::may_have_committed(thrown.fault)) attempt.in_doubt = true;",
         "static_cast<void>(store::may_have_committed(thrown.fault));"),
        ("src/flow/processor_batch.cpp", "if (tried.in_doubt)",
         "if (tried.in_doubt && at >= jobs.size())")],
        "connections-cut,backend-frozen", {}, world="positions"),
    "positions-without-a-seal": Mutant([
        ("src/store/message/claim.cpp",
         "  transaction.add(transaction.session().execute(text, {nonce}));\n",
         "  (void)transaction, (void)nonce, (void)text;\n"),
        (POSITIONS, "set_config('hapax.gate', 'arm', true);\n  IF",
         "set_config('hapax.gate', 'sealed', true);\n  IF"),
        (POSITIONS, "set_config('hapax.gate', 'arm', true);\n  PERFORM",
         "set_config('hapax.gate', 'sealed', true);\n  PERFORM")],
        variant={}, world="positions"),
    "log-numbers-by-group": Mutant([(
        "src/worker/start.cpp", "if (!facts.key_may_be_coordinates) return start;",
        "return start;")], "group-renamed,topic-made-again", {"logs": "renamed"}, world="logs"),
    "skip-is-forgotten": Mutant([(
        "sql/worker/read_skips.sql", "WHERE h.decision = 'skip'",
        "WHERE h.decision = 'skip' AND h.reason <> 'statement_refused'")],
        "table-missing", {}, world="decisions"),
    "accept-begins-again": Mutant([(
        "sql/operator/accept_key_spec.sql", "SET key_spec = 'accepted',",
        "SET key_spec = 'accepted', next_offset = 0, highest = 0,")],
        "key-spec-deployed", {"rescopes": True}, world="decisions"),
    "same-topic-believes-kafka": Mutant([(
        "sql/operator/start_at_checkpoint.sql", "SET start_as = 'checkpoint'", "SET start_as = 'kafka'")],
        "database-copied", {}, world="decisions"),
    "as-unknown-calls": Mutant([(
        "sql/operator/decide_doubt.sql", "SET decided = EXCLUDED.decided", "SET decided = 'call'")],
        "tail-lost", {"repeat": "never"}, world="calls"),
    "goes-on-in-a-topic-made-again": Mutant([(
        "src/worker/partition_errors.cpp", "if (error.kind == Kind::gone || error.kind == Kind::refused)",
        "if (error.kind == Kind::gone) return log_error(error);\n  if (error.kind == Kind::refused)")],
        "topic-made-again", {}, world="logs"),
    "resumed-and-not-fetched": simulated(
        "src/worker/fetches.cpp", "  consumer_.resume(partition.id());\n", ""),
    "resumed-before-its-start": simulated(
        "src/worker/fetches.cpp", "    if (to_start_.contains(id)) continue;\n", ""),
    "refused-is-never-asked-again": simulated(
        "src/worker/fetches.cpp", "  partition.polling.refused = why;\n"
        "  refused_again_at_ = now_() + kRefusedAgainAfter;\n",
        "  partition.polling.refused = why;\n"),
    "stopped-and-still-fetched": simulated(
        "src/worker/fetches.cpp", "  consumer_.pause({partition.id()});\n  forget_start",
        "  forget_start"),
    "all-paused-for-ever": simulated("src/worker/intake.cpp", "  fetches_.allow();\n", ""),
    "queue-without-a-bound": simulated(
        "src/worker/intake.cpp", "  if (fills(kFull)) return fetches_.pause_all();\n", ""),
    "paused-within-its-share": simulated(
        "src/worker/intake.cpp", "!is_over({progress.messages, progress.bytes}, shares) ||",
        "!is_over({progress.messages, progress.bytes}, 1000 * shares) ||"),
    "commits-without-a-look": simulated(
        "src/worker/offset_commits.cpp", "return have_ids || keeper_.logs_looked_at(due_since_);",
        "return have_ids || due_since_ > Clock::time_point{};"),
    "commits-what-is-lost": simulated(
        "src/worker/poll_thread.cpp", "  if (!lost) offset_commits_",
        "  if (!lost || drained.idle) offset_commits_"),
    "halt-of-a-route-stops-one": simulated(
        "src/worker/assignment.cpp", "(wanted.halt.whole_route && id.first == wanted.halt.topic))",
        "(wanted.halt.whole_route && id.first.empty()))"),
    "last-record-forgotten": simulated(
        "src/worker/assignment.cpp", "  remember_last(*partition);\n  partitions_.erase",
        "  partitions_.erase"),
    "reads-on-in-a-rewritten-log": simulated(
        "src/worker/partition_errors.cpp", "  if (changed == passed) {\n",
        "  if (changed == passed || !before.empty()) {\n"),
    "caution-ends-early": simulated(
        "src/worker/caution.cpp", "std::min(2 * at_once, kMostCautiousRuns)",
        "std::min(at_once, kMostCautiousRuns)"),
}
