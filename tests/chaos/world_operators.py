"""Operators decide at random moments: every halt is ended by one of its decisions, keys are forgotten,
checkpoints are moved, dead letters replayed and discarded, and a deploy is broken for a while.

What each of these allows is written down when it is done, and the checker allows no more.
"""

import collections

import psycopg2

from faults import fault
from operators import Operator, fitting
from worlds import World, world

# Reason -> decisions that end it. `retry` where the cause is still there halts again.
DECISIONS = {
    "unknown_below_highest": ("run", "skip", "retry"),
    "handler_ended_transaction": ("skip", "retry"),
    "breaker": ("retry",),
    "offset_unproven": ("same_topic",),
}
COMPLETED = ("SELECT k.key, k.partition, k.kafka_offset FROM hapax.idempotency_keys k "
             "JOIN hapax.checkpoints c USING (group_id, topic, partition) "
             "WHERE k.status = 'completed' AND k.kafka_offset < c.next_offset "
             "AND k.kafka_offset > c.next_offset - 200 ORDER BY random() LIMIT {}")


@world
class Operators(World):
    name = "operators"
    variant = {"compacted": False, "lose_tail": False, "batch": 1}
    deeds = {"book": 910, "slow": 15, "flaky": 15, "reject": 10, "swallow": 5, "throw": 5,
             "until mended": 10, "no key": 5, "hostile ends": 4}
    scripts = {"hostile ends": ("book", "COMMIT")}
    fails = {"hostile ends": set()}  # but for the letter of the decision `skip`
    halts = set(DECISIONS)
    rate = 80
    audited = False
    drifts = False
    except_faults = ("point-in-time-restore", "replica-promoted", "message-that-kills")

    def __init__(self, site):
        super().__init__(site)
        self.again = collections.Counter()  # operation -> effects that it may have beside the one
        self.forgotten = collections.Counter()  # of them, those by `keys forget`
        # Whom a broken deploy gives up on is replayed at the end.
        self.either = {deed: {"attempts_exhausted"} for deed in ("book", "slow", "flaky", "swallow")}
        self.fails = {**self.fails, "reject": {"rejected", "attempts_exhausted"}}

    def configure(self, config):
        config["routes"][0]["breaker"] = 20

    def began(self):
        self.operator = Operator(self.site, self.decide, patience=(0, 3))
        self.site.operators.append(self.operator)

    def decide(self, halt):
        fits = fitting(DECISIONS, halt, self.site.healed)
        return self.chance.choice(fits) if fits else None

    def turn(self):
        self.operator.turn()

    def complaints(self, checker, cursor):
        """A key that is lost is no licence: what was settled runs again only by the decision `run`."""
        # Code 1 and 2: it was refused.
        decided = [(halt.partition, halt.offset) for halt, decision, code in self.operator.decided
                   if decision == "run" and code not in (1, 2)]
        times = collections.Counter((op, e.at) for op, es in checker.effects.items() for e in es)
        return [f"{at} of operation {op} took effect {count} times, and nobody decided `run` there"
                for (op, at), count in times.items() if count > 1 + self.forgotten[op] and not any(
                    at[0] == partition and at[1] >= offset for partition, offset in decided)]

    def healed(self):
        (self.site.folder / "broken-deploy").unlink(missing_ok=True)
        self.site.replay_all()


def some_keys(site, count):
    try:
        return site.postgres.server.ask(COMPLETED.format(count))
    except psycopg2.Error:
        return []


def rewind_to(site, partition, offset):
    site.operate("offsets", "rewind", partition, lambda at: min(at, offset))


@fault("operator", 4, rare=8, lasts=1, world="operators")
def keys_lost(site, chance):
    """As if retention had been too short: nobody knows these any more, and they come again."""
    keys = some_keys(site, chance.randrange(1, 4))
    for key, _, _ in keys:
        site.world.again[key] += 1  # as far as an operator decides so, or it is sent again
    try:
        site.postgres.server.ask("DELETE FROM hapax.idempotency_keys WHERE key = ANY(%s)",
                                 [key for key, _, _ in keys])
    except psycopg2.Error:
        return
    for _, partition, offset in keys:
        rewind_to(site, partition, offset)
        yield 0.1


@fault("operator", 4, rare=8, lasts=1, world="operators")
def key_forgotten(site, chance):
    """An operation took effect wrongly: it shall once more."""
    for key, partition, offset in some_keys(site, 1):
        for allowed in (site.world.again, site.world.forgotten):
            allowed[key] += 1
        if site.command("keys", "forget", key) in (1, 2):
            for allowed in (site.world.again, site.world.forgotten):
                allowed[key] -= 1
            return
        yield chance.uniform(0, 1)
        rewind_to(site, partition, offset)


@fault("operator", 4, rare=4, lasts=1, world="operators")
def letter_discarded(site, chance):
    try:
        letters = site.postgres.server.ask("SELECT id FROM hapax.dead_letters WHERE ended_at IS NULL "
                                           "AND reason = 'rejected' ORDER BY id")
    except psycopg2.Error:
        return
    if letters:
        code = site.command("dead", "discard", str(chance.choice(letters)[0]))
        site.say(f"  a dead letter is discarded: exit code {code}")
    yield 0.1


@fault("deploy", 2, rare=3, lasts=3, world="operators")
def deploy_broken(site, chance):
    """The handler fails for all messages, until somebody sees it."""
    (site.folder / "broken-deploy").touch()
    yield chance.uniform(0.3, 2)
    (site.folder / "broken-deploy").unlink(missing_ok=True)
    yield 1
    site.replay_all()
