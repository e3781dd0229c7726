"""What the world `gate` demands: docs/gate.md, operation by operation. Shares no code with hapax.

It holds three records against each other: every answer that a client got, the ledger, and what the
handler noted of its runs. A handler's answer names its run and the attempt that it ran for. So an answer
shows whether it is a replay, and whose.
"""

import collections
import json

from gate_requests import BREAKS_OFF, REJECTED, WORKS

# What docs/gate.md answers to requests such as these -> its statuses.
REFUSALS = {"key-reused": 422, "rejected": 422, "in-flight": 409, "failed": 500, "unavailable": 503,
            "in-part": 500}
IN_DOUBT = "It is not known"  # the only 503 whose request may have taken effect
RETRY_AFTER = {"in-flight", "failed", "unavailable"}
TOLD = 8


def run_of(answer):
    """What the handler wrote into its answer, be it a rejection. None: it is not the handler's."""
    text = answer.body.decode()
    if answer.problem == "rejected":
        text = json.loads(text)["detail"].split("told to reject ")[-1]
    elif answer.status not in (201, 402):
        return None
    return json.loads(text)


class GateChecker:
    def __init__(self, site):
        self.site = site
        self.complaints = []
        self.others = []  # of no operation alone; told last
        self.answers = collections.Counter()
        self.replays = 0
        self.shared = 0  # effects of gates in transactions with others
        self.effects = collections.defaultdict(list)

    def complain(self, text):
        self.complaints.append(text)

    def check(self):
        self.clients = collections.defaultdict(list)
        for client in self.site.world.clients.all:
            self.clients[client.operation].append(client)
        self.read_runs()
        with self.site.postgres.server.connect() as connection, connection.cursor() as cursor:
            self.read(cursor)
        names = {operation.name for operation in self.clients}
        for name in self.effects.keys() - names:
            self.complain(f"{name}: has effects {self.effects[name]}, and no client sent it")
        for operation, clients in self.clients.items():
            Verdict(self, operation, clients).judge()
        self.complaints += self.others
        return self.complaints

    def read_runs(self):
        self.began = collections.defaultdict(list)  # operation -> (when, attempt)
        for file in (self.site.folder / "runs").iterdir():
            for line in file.read_text().splitlines():
                note = json.loads(line)
                if note["what"] == "began":
                    self.began[note["op"]].append((note["at"], note["attempt"]))

    def read(self, cursor):
        cursor.execute("SELECT op, account, amount, payload, run, attempt FROM ledger ORDER BY nr")
        booked = collections.Counter()
        for op, account, amount, payload, run, attempt in cursor.fetchall():
            self.effects[op].append({"payload": payload, "run": run, "attempt": attempt,
                                     "amount": amount, "account": account})
            booked[account] += amount
        cursor.execute("SELECT coalesce(sum(n), 0)::int FROM (SELECT count(*) AS n FROM ledger WHERE topic = "
                       "'/payments' GROUP BY xmin::text) AS t WHERE n > 1")
        self.shared = cursor.fetchone()[0]
        cursor.execute("SELECT account, amount FROM balances")
        for account, amount in cursor.fetchall():
            if amount != booked[account] and not self.is_broken_off(account):
                self.others.append(f"account {account}: the ledger holds {booked[account]}, the "
                                   f"balance {amount}: half an effect")
        cursor.execute("SELECT topic, partition, kafka_offset, reason, detail FROM hapax.halts "
                       "WHERE ended_at IS NULL")
        self.others += [f"halted: {halt}" for halt in cursor.fetchall()]
        cursor.execute("SELECT topic, row_id, reason, detail FROM hapax.outbox_halts")
        self.others += [f"publishing was halted: {halt}" for halt in cursor.fetchall()]

    def is_broken_off(self, account):
        """A handler ended its transaction, so that a part of it may stand alone."""
        return any(of.account == account and of.deed in BREAKS_OFF for of in self.clients)

    def summary(self):
        attempts = [a for clients in self.clients.values() for c in clients for a in c.attempts]
        return {"operations": len(self.clients), "messages": len(attempts),
                "clients": sum(map(len, self.clients.values())),
                "effects": sum(map(len, self.effects.values())), "replays": self.replays,
                "shared": self.shared,
                "no answer": sum(a.answer is None for a in attempts),
                "answers": dict(sorted(self.answers.items()))}


class Verdict:
    """On one operation of one tenant."""

    def __init__(self, checker, operation, clients):
        self.checker = checker
        self.of = operation
        self.clients = clients
        self.effects = checker.effects.get(operation.name, [])
        self.began = checker.began.get(operation.name, [])
        self.attempts = sorted((a for c in clients for a in c.attempts), key=lambda a: a.began)
        self.answered = [(c, a) for c in clients for a in c.attempts if a.answer]
        self.stored = [(c, a) for c, a in self.answered
                       if a.answer.status < 300 or a.answer.status == 402 or
                       a.answer.problem == "rejected"]

    def complain(self, text):
        told = "; ".join(map(str, self.attempts[:TOLD]))
        looks = "; ".join(str(a) for c in self.clients for a in c.looks[-2:])
        self.checker.complain(f"{self.of.path} {self.of.name} ({self.of.deed}): {text}. Effects "
                              f"{self.effects}, {len(self.began)} runs, attempts {told}; {looks}")

    def judge(self):
        for client, attempt in self.answered:
            self.check_answer(client, attempt)
        if self.of.deed in BREAKS_OFF:
            return self.check_broken_off()
        if len(self.effects) > 1:
            self.complain(f"took effect {len(self.effects)} times")
        for effect in self.effects:
            if effect["amount"] != self.of.amount + effect["payload"] or \
                    effect["account"] != self.of.account:
                self.complain("the effect is not that of its body")
        self.check_stored()
        self.check_reused()
        self.check_refused()
        self.check_end()
        if self.of.is_accepted:
            self.check_acceptances()
            self.check_outcome()

    def check_answer(self, client, attempt):
        """What holds for any answer."""
        answer = attempt.answer
        word = answer.problem or str(answer.status)
        self.checker.answers[word] += 1
        self.checker.replays += answer.is_replayed
        wanted = {"402", "202" if self.of.is_accepted else "201"} | REFUSALS.keys()
        if word not in wanted or answer.status != REFUSALS.get(word, int(answer.status)):
            self.complain(f"an answer that docs/gate.md does not have: {attempt}")
        if word in RETRY_AFTER and "retry-after" not in answer.headers:
            self.complain(f"no Retry-After: {attempt}")
        if answer.is_replayed and ("set-cookie" in answer.headers or
                                   answer.problem in REFUSALS.keys() - {"rejected"}):
            self.complain(f"a replay of what is not stored: {attempt}")

    def check_broken_off(self):
        """A part of it may stand alone, for each run; nothing is stored."""
        if len(self.effects) > len(self.began):
            self.complain("has more effects than runs")
        if self.stored:
            self.complain("was answered as if it had taken effect")

    def check_stored(self):
        """One answer for all, byte for byte, and the ledger has what it tells."""
        seen = {(a.answer.status, a.answer.body, a.answer.headers.get("location"),
                 a.answer.headers.get("content-type")) for _, a in self.stored}
        if len(seen) > 1:
            self.complain(f"clients got different answers: {seen}")
        for client, attempt in self.stored:
            if self.of.is_accepted:
                continue
            run = run_of(attempt.answer)
            if run is None:
                self.complain(f"no handler answers so: {attempt}")
                continue
            if (run["op"], run["payload"]) != (self.of.name, client.number):
                self.complain(f"{attempt} is the answer to another request")
            if attempt.answer.is_replayed == (run["attempt"] == attempt.name):
                self.complain(f"Idempotent-Replayed is not true: {attempt}")
            took = [(run["run"], run["payload"])] if attempt.answer.status == 201 else []
            if took != [(e["run"], e["payload"]) for e in self.effects]:
                self.complain(f"the ledger does not have what was answered: {attempt}")
            if (attempt.answer.status == 201) == (self.of.deed in REJECTED):
                self.complain(f"the handler does not answer so: {attempt}")
            late = [run for run in self.began if run[0] > attempt.ended]
            if late:
                self.complain(f"ran again after {attempt}: {late}")

    def check_reused(self):
        """`key-reused` only for a body whose key another body took."""
        winners = {c.number for c, _ in self.stored} | {e["payload"] for e in self.effects}
        for client, attempt in self.answered:
            if attempt.answer.problem == "key-reused" and (client.number in winners or not winners):
                self.complain(f"no other request has this key: {attempt}")

    def check_refused(self):
        """An attempt that was refused took no effect, and its run's answer is nobody's."""
        owners = {e["attempt"] for e in self.effects}
        if not self.of.is_accepted:
            owners |= {run["attempt"] for _, a in self.stored if (run := run_of(a.answer))}
        for _, attempt in self.answered:
            word = attempt.answer.problem
            in_doubt = word == "unavailable" and IN_DOUBT.encode() in attempt.answer.body
            if word in REFUSALS.keys() - {"rejected"} and not in_doubt and attempt.name in owners:
                self.complain(f"took effect, though this was answered: {attempt}")

    def check_end(self):
        """In the calm each client got an answer. A route that a handler closed need not give one."""
        for client in self.clients:
            last = client.attempts[-1].answer if client.attempts else None
            definite = last and not last.retries
            if not definite and self.of.path != "/own" and \
                    not (self.of.deed == "throw" and last and last.problem == "failed"):
                self.complain(f"client {client.name} got no answer in the calm")
        if self.of.deed == "throw" and (self.effects or self.stored and not self.of.is_accepted):
            self.complain("can never work, and took effect")
        if self.of.deed in WORKS and self.stored and not self.effects:
            self.complain("LOST: it was answered, and has no effect")

    def check_acceptances(self):
        """The first 202 is the only one that is not a replay."""
        first = [a for _, a in self.stored if not a.answer.is_replayed]
        if len(first) > 1:
            self.complain("accepted more than once")
        for one in first:
            if any(other.ended < one.began for _, other in self.stored):
                self.complain(f"accepted again: {one}")

    def check_outcome(self):
        """What the operation became is in the ledger, and never changes."""
        looks = sorted((a for c in self.clients for a in c.looks if a.answer), key=lambda a: a.ended)
        ends = [a for a in looks if a.answer.status == 200]
        self.checker.answers.update(f"GET {a.answer.problem or a.answer.status}" for a in looks)
        for look in looks:
            if look.answer.status not in (200, 202, 503):
                self.complain(f"an operation that was accepted: {look}")
        if len({a.answer.body for a in ends}) > 1:
            self.complain(f"its outcome changed: {[str(a) for a in ends]}")
        for end in ends:
            if any(a.answer.status == 202 and a.began > end.ended for a in looks):
                self.complain(f"is pending again after {end}")
        if self.stored and not ends:
            return self.complain("was accepted, and has not ended in the calm")
        if ends:
            self.check_ended(json.loads(ends[0].answer.body))

    def check_ended(self, outcome):
        if outcome["status"] == "completed":
            answer = outcome["response"]["body"]
            if [(answer["run"], answer["payload"])] != [(e["run"], e["payload"]) for e in self.effects]:
                self.complain(f"the ledger does not have what {outcome} tells")
            if {c.number for c, _ in self.stored} != {answer["payload"]}:
                self.complain(f"the outcome is that of another body: {outcome}")
            return
        why = outcome["problem"]["type"].rsplit(":", 1)[1] if outcome["status"] == "failed" else ""
        wanted = {"reject": "rejected", "throw": "failed", "until mended": "failed"}.get(self.of.deed)
        if self.effects or why != wanted:
            self.complain(f"must not have ended so: {outcome}")
