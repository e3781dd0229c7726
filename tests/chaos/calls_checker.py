"""What the world `calls` demands beside the usual: docs/outside.md, operation by operation.

A double is excused only where that page predicts it: PostgreSQL lost a tail by a failover or a restore
(not with `idempotent`), or the process stood still between its last look at the lease and the sending.
"""

import collections
import json
import subprocess
import time

from checker import Checker

# Deeds that never work -> the reasons that a dead letter of theirs may have.
FAILS = {"decline": {"rejected"}, "throw": set(), "reject booking": {"rejected"}}
OTHERS = ("kill", "kill once", "hang once")  # that faults send
DOUBTS = {"outcome_unknown", "attempts_exhausted"}
BEFORE_A_LOSS_S = 30   # a tail is shorter
SUPERSEDED_S = 0.5     # between a take-over and a call that had looked before
AGE_SLACK_S = 12       # between the look at the age of a call, and its arrival
LIST_TIMEOUT_S = 30
TOLD = 12


class CallsChecker(Checker):
    def __init__(self, site):
        super().__init__(site)
        self.fails = {deed: reasons | DOUBTS for deed, reasons in FAILS.items()}
        self.fails["no key"] = {"missing_key"}
        self.either = {deed: DOUBTS for deed in (*site.world.deeds, *OTHERS) if deed not in self.fails}

    def reasons(self, message, effects, same):
        drifted = {m.payload for m in self.messages if m.op == message.op} != {message.payload}
        if message.deed == "no key":
            return self.fails["no key"]
        return (self.fails.get(message.deed) or DOUBTS) | ({"payload_drift"} if drifted else set())

    def statuses(self, effects, letters):
        return {"completed"} if effects else {"completed", "unknown", "failed", "started", None}

    def check(self):
        world = self.site.world
        self.of = collections.defaultdict(list)     # operation -> what the gateway noted
        events = world.gateway.events()
        # A question names the key only, and after a lost tail it comes before the first call.
        by_key = {event["key"]: event["op"] for event in events if event.get("op")}
        for event in events:
            self.of[by_key.get(event["key"])].append(event)
        self.notes = collections.defaultdict(list)  # operation -> what the handlers noted
        for file in (self.site.folder / "calls").iterdir():
            for line in file.read_text().splitlines():
                self.notes[json.loads(line)["op"]].append({**json.loads(line), "pid": int(file.name)})
        for notes in self.notes.values():
            notes.sort(key=lambda note: note["at"])
        self.frozen = collections.defaultdict(list)
        for worker in self.site.fleet.all:
            for pid, since, until in worker.frozen:
                self.frozen[pid].append((since, until or time.monotonic()))
        self.predicted = collections.Counter()
        self.resting = 0  # given up behind a step that is done
        complaints = super().check()
        with self.site.postgres.server.connect() as connection, connection.cursor() as cursor:
            self.check_calls(cursor)
        return complaints

    def check_calls(self, cursor):
        cursor.execute("SELECT op, what, at FROM wrongs")
        for op, what, at in cursor.fetchall():
            self.complain(f"operation {op}: {what}, at {at}")
        cursor.execute("SELECT op, token, extract(epoch FROM at)::float FROM takes WHERE token IS NOT NULL")
        wall = time.time() - time.monotonic()
        self.takes = collections.defaultdict(list)
        for op, token, at in cursor.fetchall():
            self.takes[op].append((token, at - wall))
        cursor.execute("SELECT op, charge FROM booked")
        booked = collections.defaultdict(list)
        for op, charge in cursor.fetchall():
            booked[op].append(charge)
        deeds = {message.op: message.deed for message in self.messages}
        for op in deeds:
            if deeds[op] == "no key":
                if self.of[op]:
                    self.complain(f"operation {op} has no key, and was called: {self.of[op]}")
                continue
            self.check_charges(op)
            self.check_repeats(op)
            self.check_turns(op)
            self.check_steps(op)
            self.check_end(op, deeds[op], booked[op])
        self.check_answers(cursor, deeds)
        self.check_list(cursor)

    def told(self, op):
        events = [e for e in self.of[op] if e["what"] != "asked"]
        return (f"gateway {events[-TOLD:]}, handlers {self.notes[op][-TOLD:]}, "
                f"decided {self.site.world.decided.get(op)}")

    def events(self, op, what):
        return [e for e in self.of[op] if e["what"] == what]

    def is_lost(self, op):
        """Whether PostgreSQL lost that it was called: it does not know the call's token any more."""
        known = {token for token, _ in self.takes[op]}
        return self.site.world.repeat != "idempotent" and bool(self.site.world.losses) and any(
            note["token"] not in known for note in self.notes[op] if note["part"] == "call")

    def stood_still(self, op):
        """Whether a process did, between the beginning of a call and its arrival."""
        arrived = {(e["pid"], e["token"]): e["at"] for e in self.events(op, "call")}
        for note in self.notes[op]:
            if note["part"] in ("call", "ask") and note["what"] == "began":
                at = arrived.get((note["pid"], note["token"]), note["at"])
                if any(note["at"] <= until and since <= at for since, until in self.frozen[note["pid"]]):
                    return True
        return False

    def check_charges(self, op):
        charges = self.events(op, "charge")
        if len(charges) <= 1:
            return
        decided = "--did-not-happen" in self.site.world.decided.get(op, ())
        repeat = self.site.world.repeat
        # `queryable` asks first after a loss, unless PostgreSQL lost a decision, too.
        if self.is_lost(op) and (self.may_call(op) if repeat == "never" else
                                 self.site.world.decided.get(op) or self.is_unseen(op)):
            self.predicted["lost tail"] += 1
        elif self.stood_still(op) and (repeat == "queryable" or (repeat == "never" and decided)):
            self.predicted["stood still"] += 1
        else:
            self.complain(f"operation {op}: CHARGED {len(charges)} TIMES, {repeat}: {self.told(op)}")

    def places(self, op):
        return [m.at for m in self.messages if m.op == op]

    def is_unseen(self, op):
        """Whether the docs name its lost tail as one that hapax does not see: it came again elsewhere, or was
        replayed."""
        at = self.places(op)
        return len({partition for partition, _ in at}) > 1 or any(
            self.letters[place].ended_as == "replayed" for place in at if place in self.letters)

    def may_call(self, op):
        """Whether it may be called again after a lost tail, though no call may be repeated: somebody decided so,
        or hapax does not see the loss."""
        partitions = {partition for partition, _ in self.places(op)}
        return self.is_unseen(op) or "--did-not-happen" in self.site.world.decided.get(op, ()) or any(
            decision == "call" and code not in (1, 2) and halt.partition in partitions
            for halt, decision, code in self.site.world.operator.decided)

    def check_repeats(self, op):
        """A call is repeated only as its route declares."""
        calls = self.events(op, "call")
        if len({e["token"] for e in calls}) != len(calls):
            self.complain(f"operation {op}: one take called twice: {self.told(op)}")
        if self.is_lost(op) or self.stood_still(op):
            return
        again = self.site.world.decided.get(op, ()).count("--did-not-happen")
        repeat = self.site.world.repeat
        if repeat == "never" and len(calls) > 1 + again:
            self.complain(f"operation {op}: `never`, and called {len(calls)} times: {self.told(op)}")
        elif repeat == "queryable":
            told = [e["what"] if e["what"] == "call" else e["status"] for e in self.of[op]
                    if e["what"] == "call" or e.get("status") == 404]
            unasked = sum(one == other == "call" for one, other in zip(told, told[1:]))
            if unasked > again:
                self.complain(f"operation {op}: called again and not asked before: {self.told(op)}")
        elif repeat == "idempotent" and not again and calls and calls[-1]["at"] > calls[0]["at"] + \
                self.site.world.remembers_s + AGE_SLACK_S:
            self.complain(f"operation {op}: called again after the gateway may forget: {self.told(op)}")

    def check_steps(self, op):
        """A step that is kept is not repeated: each call goes on with the same quote."""
        quotes = {note["what"] for note in self.notes[op] if note["part"] == "quote"}
        if len(quotes) > 1 and not self.site.world.losses:
            self.complain(f"operation {op}: a step that was kept ran again, {quotes}: {self.told(op)}")

    def check_turns(self, op):
        """Who was superseded does not call; what is booked is not called for any more."""
        lost = self.is_lost(op) or any(loss - BEFORE_A_LOSS_S <= note["at"] <= loss + 1
                                       for loss in self.site.world.losses for note in self.notes[op])
        booking, takes = None, self.takes[op]
        for note in self.notes[op]:
            if note["what"] != "began":
                continue
            if note["part"] == "book":
                booking = booking or note
            elif booking and not lost and not self.stood_still(op):
                self.complain(f"operation {op}: {note['part']} after it was answered and booking had "
                              f"begun: {self.told(op)}")
                break
            if note["part"] == "call" and any(token > note["token"] and at < note["at"] - SUPERSEDED_S
                                              for token, at in takes):
                self.complain(f"operation {op}: called with token {note['token']} after another had "
                              f"taken it over, takes {takes}: {self.told(op)}")
                break

    def check_end(self, op, deed, booked):
        charges = [e["charge"] for e in self.events(op, "charge")]
        status = self.keys.get(op)
        decided = self.site.world.decided.get(op, ())
        effects = self.effects.get(op, [])
        if len(booked) != len(effects) or any(charge not in charges for charge in booked):
            self.complain(f"operation {op}: booked {booked}, charged {charges}: {self.told(op)}")
        if effects:
            return
        skipped = any(self.site.skipped(m.at) for m in self.messages if m.op == op)
        if status == "completed":
            if not self.events(op, "declined") and "--give-up" not in decided:
                self.complain(f"operation {op}: completed, and neither booked nor declined nor "
                              f"given up: {self.told(op)}")
        elif status == "unknown":
            if op not in self.settled:
                self.complain(f"operation {op}: unknown without a dead letter: {self.told(op)}")
        elif skipped and status in ("started", "answered"):
            return  # listed
        elif status == "started" and op in self.settled and not charges:
            if not any(note["part"] == "quote" for note in self.notes[op]):
                self.complain(f"operation {op}: given up and left `started`, though no step is done: "
                              f"{self.told(op)}")
            self.resting += 1
        elif charges or not (status == "failed" or skipped):
            self.complain(f"operation {op}: charged {charges}, its key is {status}, not booked and "
                          f"not listed: {self.told(op)}")

    def check_answers(self, cursor, deeds):
        """Whoever has an answer does not give up."""
        cursor.execute("SELECT key, token, error FROM hapax.idempotency_keys "
                       "WHERE status = 'unknown' AND answer IS NULL")
        for op, token, error in cursor.fetchall():
            if not self.site.world.losses and any(n["part"] == "book" for n in self.notes[op]):
                self.complain(f"operation {op}: it was being booked, and nobody has the answer any "
                              f"more, {error}: {self.told(op)}")
            elif deeds.get(op) != "deep answer" and any(
                    (note["part"], note["what"], note["token"]) == ("call", "ended", token)
                    for note in self.notes[op]):
                self.complain(f"operation {op}: its call was answered, and given up by the same take, "
                              f"{error}: {self.told(op)}")

    def check_list(self, cursor):
        """`hapax outside list` names each operation whose outcome is unknown."""
        site = self.site
        said = subprocess.run(
            [site.hapax, "outside", "list", "-c", site.fleet.all[0].config, "--status", "all",
             "--limit", "10000", "--json"], capture_output=True, text=True, timeout=LIST_TIMEOUT_S)
        cursor.execute("SELECT key FROM hapax.idempotency_keys WHERE status IN "
                       "('started', 'answered', 'unknown')")
        ours = sorted(row[0] for row in cursor.fetchall())
        if said.returncode != 0:
            self.complain(f"hapax outside list: exit code {said.returncode}: {said.stderr}")
        elif (theirs := sorted(call["key"] for call in json.loads(said.stdout))) != ours:
            self.complain(f"hapax outside list says {theirs}, the checker finds {ours}")

    def summary(self):
        count = collections.Counter(e["what"] for events in self.of.values() for e in events)
        keys = collections.Counter(self.keys.values())
        return {**super().summary(), "repeat": self.site.world.repeat, "calls": count["call"],
                "questions": count["asked"], "charges": count["charge"],
                "charged_operations": sum(bool(self.events(op, "charge")) for op in list(self.of)),
                "predicted_doubles": dict(self.predicted), "unknown": keys["unknown"],
                "resting": self.resting,
                "decided": dict(self.site.world.decisions)}
