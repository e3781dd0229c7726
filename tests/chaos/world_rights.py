"""Rights of the worker are taken away for a while, in PostgreSQL and in Kafka, and given back.

What a missing right stops must be told by a halt or by readiness, and nobody may pay for it with a
dead letter: once the right is back, all messages take effect.
"""

import time
import urllib.error
import urllib.request

import psycopg2

import acls
from faults import fault, until
from operators import Operator
from worlds import World, world

# Of PostgreSQL: (taken, given back).
HANDLERS = (
    ("REVOKE INSERT ON ledger FROM hapax_worker", "GRANT INSERT ON ledger TO hapax_worker"),
    ("REVOKE UPDATE ON balances FROM hapax_worker", "GRANT UPDATE ON balances TO hapax_worker"),
    ("REVOKE USAGE ON ledger_nr_seq FROM hapax_worker",
     "GRANT USAGE ON ledger_nr_seq TO hapax_worker"),
)
OWN = (
    ("REVOKE USAGE ON SCHEMA hapax FROM hapax_worker", "GRANT USAGE ON SCHEMA hapax TO hapax_worker"),
    ("REVOKE INSERT ON hapax.idempotency_keys FROM hapax_worker",
     "GRANT INSERT ON hapax.idempotency_keys TO hapax_worker"),
    ("REVOKE SELECT ON hapax.idempotency_keys FROM hapax_worker",
     "GRANT SELECT ON hapax.idempotency_keys TO hapax_worker"),
    ("REVOKE UPDATE ON hapax.checkpoints FROM hapax_worker",
     "GRANT UPDATE ON hapax.checkpoints TO hapax_worker"),
    ("REVOKE INSERT ON hapax.dead_letters FROM hapax_worker",
     "GRANT INSERT ON hapax.dead_letters TO hapax_worker"),
    ("REVOKE INSERT ON hapax.attempts FROM hapax_worker",
     "GRANT INSERT ON hapax.attempts TO hapax_worker"),
    ("ALTER ROLE hapax_worker NOLOGIN", "ALTER ROLE hapax_worker LOGIN"),
)
# Of Kafka: (kind of resource, name's attribute of the site, operation).
KAFKA = (("topic", "topic", "read"), ("topic", "topic", "describe"), ("group", "group", "read"))
TOLD_WITHIN_S = 25  # readiness says so, or says that it does not get on


@world
class Rights(World):
    name = "rights"
    variant = {"compacted": False}
    deeds = {"book": 930, "slow": 20, "flaky": 20, "reject": 10, "swallow": 10, "no key": 10}
    rate = 80
    sasl = True
    # Reasons of a statement of PostgreSQL that hapax may not run, or a handler.
    halts = {"statement_refused", "unexpected_error", "cannot_account"}
    # What takes PostgreSQL back may take a right back.
    except_faults = ("point-in-time-restore", "replica-promoted", "operator-rewinds",
                     "operator-skips", "operator-replays", "message-that-kills")

    def __init__(self, site):
        super().__init__(site)
        self.taken = 0
        self.untold = []

    def ended(self):
        return self.untold

    def configure(self, config):
        config["routes"][0]["breaker"] = 100

    def began(self):
        for what in KAFKA:
            self.acl(what, acls.create)
        self.operator = Operator(self.site, lambda halt: None if self.taken else "retry")
        self.site.operators.append(self.operator)

    def acl(self, what, act):
        kind, attribute, operation = what
        return act(self.site.kafka.bootstrap, kind, getattr(self.site, attribute), operation)

    def turn(self):
        self.operator.turn()


def did(site, statement):
    try:
        site.postgres.server.ask(statement)
        return True
    except psycopg2.Error:
        return False


def taken_in_postgres(site, chance, rights):
    take, give = chance.choice(rights)
    site.say(f"  {take}")
    site.world.taken += 1
    yield from until(lambda: did(site, take))
    if chance.random() < 0.3:
        did(site, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                  "WHERE usename = 'hapax_worker'")
    yield chance.uniform(0.5, 6)
    yield from until(lambda: did(site, give))
    site.world.taken -= 1


@fault("rights", 5, rare=6, lasts=3, world="rights")
def right_of_handler_taken(site, chance):
    yield from taken_in_postgres(site, chance, HANDLERS)


@fault("rights", 5, rare=5, lasts=3, world="rights")
def right_of_hapax_taken(site, chance):
    yield from taken_in_postgres(site, chance, OWN)


@fault("kafka rights", 5, rare=4, lasts=8, world="rights")
def right_in_kafka_taken(site, chance):
    what = chance.choice(KAFKA)
    site.say(f"  {what[2]} on the {what[0]} is taken")
    yield from until(lambda: site.world.acl(what, acls.delete))
    yield chance.uniform(2, 8)
    yield from until(lambda: site.world.acl(what, acls.create))


def ready(worker):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/readyz", timeout=2):
            return True
    except (OSError, urllib.error.HTTPError):
        return False


@fault("all workers", 0.001, rare=1.5, lasts=10, world="rights")
def read_taken_and_told(site, chance):
    """READ on the topic: within a bound nobody is ready any more."""
    yield from until(lambda: site.world.acl(KAFKA[0], acls.delete))
    deadline = time.monotonic() + TOLD_WITHIN_S
    while any(worker.runs() and ready(worker) for worker in site.fleet.all):
        if time.monotonic() > deadline:
            site.world.untold.append("READ on the topic was taken, and a worker is ready "
                                     f"{TOLD_WITHIN_S} s later")
            break
        yield 0.3
    yield from until(lambda: site.world.acl(KAFKA[0], acls.create))
