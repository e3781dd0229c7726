"""Decides, operation by operation, whether all is as promised. Shares no code with the worker.

It holds four records against each other: what Kafka has (a plain reader), what PostgreSQL has
(ledger, balances, keys, dead letters, checkpoints), what the producers noted, and what the handler
noted of its runs. Each complaint names coordinates, key, what was expected and what was found.
"""

import collections
import json
import subprocess

import evidence
from worlds import AFTER_A_RESTORE

# Deeds whose operation must take effect, once.
WORKS = {"book", "slow", "flaky", "swallow", "fails elsewhere", "kill once"}
# Deeds that never work -> the reasons that a dead letter of theirs may have.
FAILS = {"reject": {"rejected"}, "throw": {"attempts_exhausted"}, "no key": {"missing_key"},
         "kill": {"crashed"}}
AUDIT_TIMEOUT_S = 120


def without_keys(counts):
    names = {"completed": "taken", "duplicate": "taken", "expired": "taken"}
    found = collections.Counter()
    for name, n in counts.items():
        found[names.get(name, name)] += n
    return dict(found)


class Checker:
    shown = 0  # aborted messages that Kafka shows

    def __init__(self, site):
        self.site = site
        self.compacted = site.variant["compacted"]
        self.fails = FAILS | site.world.fails
        self.either = {"until mended": {"attempts_exhausted"}} | site.world.either
        self.complaints = []

    def complain(self, text):
        self.complaints.append(text)

    def check(self):
        """All complaints; also fills `counts`."""
        site = self.site
        reader = site.reader()
        reader.extend()
        self.ends = {p: reader.end_of(p) for p in reader.partitions()}
        if not reader.read_to(self.ends, 60):
            self.complain("Kafka could not be read to its end")
        self.committed = reader.committed()
        reader.close()
        messages = [m for of in reader.messages.values() for m in of.values()]
        self.messages = [*{m.at: m for m in [*site.world.gone, *messages]}.values()]
        self.present = {m.at for m in self.messages}
        connection = site.postgres.server.connect()
        with connection.cursor() as cursor:
            self.effects = evidence.effects(cursor)
            self.letters = evidence.letters(cursor, site.topic)
            self.settled = set(site.world.closed) | (
                evidence.keys_of(self.letters) if site.world.letters_settle_all else set())
            self.checkpoints = evidence.checkpoints(cursor, site.topic)
            cursor.execute("SELECT key, status FROM hapax.idempotency_keys")
            self.keys = dict(cursor.fetchall())
            cursor.execute("SELECT account, amount FROM balances")
            self.balances = dict(cursor.fetchall())
            cursor.execute("SELECT topic, partition, kafka_offset, reason, detail FROM hapax.halts "
                           "WHERE ended_at IS NULL")
            for halt in cursor.fetchall():
                self.complain(f"halted: {halt}")
            self.check_halts(cursor)
            self.complaints += site.world.complaints(self, cursor)
        connection.close()
        self.runs = evidence.runs(site.folder)
        self.check_journal()
        self.check_operations()
        self.check_order()
        self.check_balances()
        self.check_positions()
        self.check_audit()
        return self.complaints

    def check_halts(self, cursor):
        """In worlds where it is known what may halt."""
        world = self.site.world
        cursor.execute("SELECT topic, partition, kafka_offset, reason, detail FROM hapax.halts")
        for halt in cursor.fetchall():
            if world.halts is not None and halt[3] not in world.halts | AFTER_A_RESTORE:
                self.complain(f"was halted for a reason that was not there: {halt}")

    def check_journal(self):
        """What was answered is in Kafka: else the ground is at fault.

        What was aborted should not be. If the broker is fenced at that moment, Kafka 4.3 writes the
        abort into none of the partitions, and the producer's next commit shows those records, too
        (KAFKA-20734). To workers they are messages as all others, and are judged so."""
        sends = self.site.journal.sends
        there, last = {}, set()
        self.replaced = self.shown = 0
        for message in self.messages:
            there.setdefault(message.mid, []).append(message)
            last.add((message.op, message.partition))
            if message.mid not in sends:
                self.complain(f"{message.at}: Kafka has {message.mid}, which nobody sent")
        for send in sends.values():
            found = there.get(send.mid, [])
            if send.fate == "aborted" and found:
                self.site.say(f"  {found[0].at}: {send.mid} was aborted, and Kafka shows it")
                self.shown += 1
            if (isinstance(send.fate, int) or send.fate == "committed") and not found:
                if self.compacted and (send.operation.op, send.partition) in last:
                    self.replaced += 1  # another of its key came after it
                    continue
                self.complain(f"{send.mid} of operation {send.operation.op} was answered by Kafka "
                              f"({send.fate}), and Kafka does not have it")
        self.aborted = sum(send.fate == "aborted" for send in sends.values())

    def gone(self, effect):
        """It is of a message that compaction has removed since."""
        return (self.compacted and effect.at not in self.present
                and any(s.operation.op == effect.op and s.partition == effect.at[0]
                        and json.loads(s.payload)["payload"] == effect.payload
                        for s in self.site.journal.sends.values()))

    def check_operations(self):
        of = collections.defaultdict(list)
        for message in self.messages:
            of[message.op].append(message)
        for op in self.effects.keys() - of.keys():
            self.complain(f"operation {op}: has an effect {self.effects[op]}, and Kafka has no "
                          "committed message of it: aborted, or never sent")
        for op, messages in of.items():
            self.check_operation(op, messages, self.effects.get(op, []))
        self.operations = len(of)

    def check_operation(self, op, messages, effects):
        deed = messages[0].deed
        where = f"operation {op} ({deed}) at {sorted(m.at for m in messages)}"
        letters = {m.at: self.letters[m.at] for m in messages if m.at in self.letters}
        found = f"effects {effects}, dead letters {letters}"
        skipped = any(self.site.skipped(m.at) for m in messages)
        sent = {m.at: self.there_since(m) for m in messages}
        again = self.site.world.again.get(op, 0)
        if sum(self.is_second(one, other, sent) for one, other in zip(effects, effects[1:])) > again:
            self.complain(f"{where}: expected one effect, took {len(effects)}: {found}")
        if deed in self.fails:
            if effects:
                self.complain(f"{where}: can never work, and took effect: {found}")
        elif not effects and not skipped and op not in self.site.world.closed and not (
                deed in self.either and letters):
            self.complain(f"{where}: LOST: expected one effect, found none; {found}")
        for effect in effects:
            if (effect.at, effect.payload) not in [(m.at, m.payload) for m in messages] and \
                    not self.gone(effect):
                self.complain(f"{where}: the effect names a message that is none of these: {found}")
        status = self.keys.get(op)
        wanted = self.statuses(effects, letters)
        if deed.startswith("hostile") and not effects:
            return self.check_messages(messages, effects, where)  # halts leave no key
        expired = (status is None and self.site.forgets()) or again
        if status not in wanted and not expired and not (skipped and not effects):
            self.complain(f"{where}: expected the key to be of {wanted}, found {status}; {found}")
        self.check_messages(messages, effects, where)

    def statuses(self, effects, letters):
        """That the key of an operation may have."""
        failed = any(letter.key for letter in letters.values())  # "no key", "crashed": none
        return {"completed" if effects else "failed" if failed else None}

    def check_messages(self, messages, effects, where):
        for message in messages:
            self.check_message(message, effects, where)

    def there_since(self, message):
        """When Kafka's log showed it, at the latest: one of a transaction, when that had committed."""
        send = self.site.journal.sends.get(message.mid)
        return max(message.sent_s, send.ended_s if send and send.fate == "committed" else 0)

    def is_second(self, one, other, sent):
        """False where Kafka had the other when the key's retention was over: that is allowed."""
        return (not self.site.forgets() or
                sent.get(other.at, other.booked_s) - one.booked_s < self.site.retention_s)

    def check_message(self, message, effects, where):
        letter = self.letters.get(message.at)
        same = [e for e in effects if e.payload == message.payload]
        allowed = self.reasons(message, effects, same)
        if letter is None:
            if not same and not self.site.skipped(message.at) and message.op not in self.settled:
                self.complain(f"{message.at}: LOST: neither effect nor dead letter; {where}")
            return
        self.check_letter(message, letter, allowed, where)

    def check_letter(self, message, letter, allowed, where):
        ran = self.runs.get(message.at, {})
        if letter.reason == "crashed" and ran.get("began", 0) - ran.get("threw", 0) - ran.get(
                "ended", 0) >= self.site.max_crashes:
            return  # the schedule killed its process that often
        if letter.reason == "skipped_by_operator" and self.site.skipped(message.at):
            return
        if letter.reason not in allowed:
            self.complain(f"{message.at}: expected no dead letter but of {sorted(allowed)}, found "
                          f"{letter}; it ran {ran}; {where}")
        if letter.reason == "attempts_exhausted" and not message.deed.startswith("hostile"):
            # Who swallows an error ends, and its transaction is aborted: it failed once more.
            failed = ran.get("threw", 0) + (message.deed == "swallow")
            # One more where PostgreSQL went away between the last count and the dead letter.
            if not self.site.max_attempts <= letter.attempts <= failed:
                self.complain(f"{message.at}: given up after {self.site.max_attempts} attempts, "
                              f"says {letter}, but it failed {failed} times; {where}")

    def reasons(self, message, effects, same):
        """That a dead letter of this message may have."""
        if effects and not same:
            return {"payload_drift"}
        if message.deed == "fails elsewhere":
            return {"attempts_exhausted"}
        return self.fails.get(message.deed, set()) | self.either.get(message.deed, set())

    def check_order(self):
        """Messages of one record key in one partition take effect in their order."""
        if self.site.variant["ordering"] == "none" or self.compacted:
            return
        late, last = self.late(), {}
        for effect in sorted((e for es in self.effects.values() for e in es), key=lambda e: e.nr):
            if effect.at in late or effect.op in self.site.world.again:
                continue
            partition, offset = effect.at
            before = last.get((partition, effect.account), -1)
            if offset < before:
                self.complain(f"{effect.at} of key {effect.account} took effect after offset "
                              f"{before} of that key: out of order ({effect})")
            last[partition, effect.account] = max(before, offset)

    def late(self):
        """Messages that may take effect after later ones of their key."""
        return {at for at, letter in self.letters.items() if letter.ended_as == "replayed"}

    def check_balances(self):
        booked = collections.Counter()
        for effects in self.effects.values():
            for effect in effects:
                booked[effect.account] += effect.amount
        for account, amount in self.balances.items():
            if amount != booked[account]:
                self.complain(f"account {account}: the ledger says {booked[account]}, the balance "
                              f"{amount}: half an effect")

    def check_positions(self):
        for partition, end in self.ends.items():
            checkpoint = self.checkpoints.get(partition, (None, None))[0]
            committed = self.committed.get(partition)
            if end == 0 and checkpoint is None:
                continue
            if checkpoint != end or committed != end:
                self.complain(f"partition {partition}: ends at {end}, but the checkpoint is "
                              f"{checkpoint} and Kafka's offset {committed}")

    def check_audit(self):
        """`hapax audit` must come to the same counts."""
        site = self.site
        if not site.world.audited:
            return
        try:
            said = subprocess.run(
                [site.hapax, "audit", "-c", site.fleet.all[0].config, "--topic", site.topic,
                 "--json"], capture_output=True, text=True, timeout=AUDIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.complain(f"hapax audit took more than {AUDIT_TIMEOUT_S} s")
            return
        if said.returncode != 0:
            self.complain(f"hapax audit: exit code {said.returncode}: {said.stderr} {said.stdout}")
            return
        places = {e.at for es in self.effects.values() for e in es}
        for account in json.loads(said.stdout)["partitions"]:
            ours = collections.Counter()
            for message in self.messages:
                if message.partition == account["partition"]:
                    ours[self.verdict(message, places)] += 1
            partition = account["partition"]
            ours["dead_letter"] += len([at for at in self.letters if at[0] == partition
                                        and at not in self.present])
            ours["not_a_message"] = self.ends[partition] - sum(ours.values())
            theirs = {name: n for name, n in account["counts"].items() if n}
            ours = {name: n for name, n in ours.items() if n}
            ours, theirs = self.comparable(ours), self.comparable(theirs)
            if theirs != ours:
                self.complain(f"partition {partition}: hapax audit says {theirs}, the checker "
                              f"finds {ours}")

    def comparable(self, counts):
        """The audit cannot tell all apart once the key is gone."""
        return without_keys(counts) if self.site.forgets() else counts

    def verdict(self, message, places):
        if message.at in places:
            return "completed"
        if message.at in self.letters or message.at == self.site.world.closed.get(message.op):
            return "dead_letter"
        if message.op in self.settled or \
                any(e.payload == message.payload for e in self.effects.get(message.op, [])):
            return "duplicate"
        return "skipped" if self.site.skipped(message.at) else "unaccounted"

    def summary(self):
        reasons = collections.Counter(letter.reason for letter in self.letters.values())
        effects = sum(map(len, self.effects.values()))
        return {"operations": self.operations, "messages": len(self.messages), "effects": effects,
                "dead_letters": dict(reasons), "aborted": self.aborted,
                **({"shown though aborted": self.shown} if self.shown else {}),
                **({"compacted away": self.replaced} if self.compacted else {})}
