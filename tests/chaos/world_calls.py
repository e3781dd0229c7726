"""The handler charges a gateway: docs/outside.md, with one of its three declarations in each run.

The gateway (gateway.py) counts what it charged, the handler (calls.cpp) notes each step with token and
time, and a trigger notes each take of a key. The checker holds these against docs/outside.md.
"""

import collections
import json
import random
import time

import psycopg2

from calls_checker import CallsChecker
from faults import fault, point_in_time_restore, replica_promoted
from gateway import TOO_LATE_S, Double
from ground import ROOT
from operators import Operator
from world_logs import stop_workers
from worlds import World, world

LEASE_S, LONGEST_CALL_S, GRACE_S = 3, 6, 10
REMEMBERS_S, KEEPS_S = 20, 90
MORE_S = 10       # for a process that is slow to end
SETTLED_S = 30
DECISIONS = 20    # at the end


@world
class Calls(World):
    name = "calls"
    handler = "calls"
    deeds = {"book": 890, "flaky": 25, "decline": 30, "throw": 8, "until mended": 12,
             "reject booking": 6, "deep answer": 4, "kill at booking": 2, "no key": 10}
    rate = 40
    letters_settle_all = True
    checker = CallsChecker
    remembers_s = REMEMBERS_S
    ledger = """
CREATE TABLE booked (op text, charge text);
GRANT SELECT, INSERT ON booked TO hapax_worker;
CREATE TABLE takes (op text, token bigint, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE wrongs (op text, what text, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.status IN ('started', 'answered', 'unknown') THEN
      INSERT INTO wrongs VALUES (OLD.key, 'removed while ' || OLD.status);
    END IF;
    RETURN NULL;
  END IF;
  IF TG_OP = 'INSERT' THEN
    INSERT INTO takes VALUES (NEW.key, NEW.token);
    RETURN NULL;
  END IF;
  IF NEW.token IS DISTINCT FROM OLD.token THEN
    INSERT INTO takes VALUES (NEW.key, NEW.token);
    IF NEW.token < OLD.token THEN
      INSERT INTO wrongs VALUES (NEW.key, 'token went back from ' || OLD.token || ' to ' || NEW.token);
    END IF;
    IF OLD.status = 'started' AND OLD.holder <> NEW.holder AND EXISTS (
        SELECT FROM hapax.holders h WHERE h.id = OLD.holder AND h.until > clock_timestamp()) THEN
      INSERT INTO wrongs VALUES (NEW.key, 'taken over from holder ' || OLD.holder || ', whose lease lasts');
    END IF;
  ELSIF OLD.status = 'started' AND NEW.status = 'answered'
      AND NEW.answer->>'token' <> NEW.token::text THEN
    INSERT INTO wrongs VALUES (NEW.key, 'token ' || NEW.token || ' kept the answer to ' ||
                                        (NEW.answer->>'token'));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER watch AFTER INSERT OR UPDATE OR DELETE ON hapax.idempotency_keys
  FOR EACH ROW EXECUTE FUNCTION watch();
-- While a brake is on, the commit of a take lasts.
CREATE TABLE brakes (until timestamptz, seconds float);
CREATE FUNCTION brake() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE pause float := (SELECT max(seconds) FROM brakes WHERE until > clock_timestamp());
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.token IS NOT DISTINCT FROM OLD.token THEN
    RETURN NULL;
  END IF;
  IF pause IS NOT NULL AND coalesce(current_setting('chaos.braked', true), '') = '' THEN
    PERFORM set_config('chaos.braked', 'yes', true), pg_sleep(pause);
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER brake AFTER INSERT OR UPDATE OF token ON hapax.idempotency_keys
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION brake();
"""

    def __init__(self, site):
        super().__init__(site)
        repeat = self.chance.choice(["idempotent", "queryable", "never"])
        # Not drawn by self.chance: what a seed decided before there was this stays.
        together = random.Random(f"{site.seed} booked together").choice([1, 20])
        self.variant = {"repeat": repeat, "batch": together, "compacted": False}
        site.max_attempts = 12  # about five seconds: others' leases end within that
        self.gateway = None
        self.server, self.losses = None, []     # when PostgreSQL lost a tail that was flushed
        self.decided = collections.defaultdict(list)  # operation -> decisions, perhaps refused
        self.decisions = collections.Counter()
        self.hanging = {}  # process id -> when it was seen first
        self.hung = []
        self.look_at = 0
        self.calls = True  # false: a release is deployed whose handler does not call

    @property
    def repeat(self):
        return self.site.variant["repeat"]

    def configure(self, config):
        if not self.gateway:
            keeps = KEEPS_S if self.repeat == "idempotent" else 0
            self.gateway = Double(self.site.folder, self.site.seed, keeps)
        route = config["routes"][0]
        route["options"]["gateway"] = self.gateway.port
        if not self.calls:
            library = ROOT / "build/release/lib/libledger.so"
            route |= {"handler": "ledger", "plugin": str(library), "scope": self.handler}
            return
        route["retry"] |= {"first": "50ms", "max": "500ms"}
        route["outside"] = {"repeat": self.repeat, "lease": f"{LEASE_S}s", "concurrency": 8,
                            "max_duration": f"{LONGEST_CALL_S}s"}
        if self.repeat == "idempotent":
            route["outside"]["remembers"] = f"{REMEMBERS_S}s"

    def began(self):
        self.operator = Operator(self.site, self.resume, patience=(0, 3))
        self.site.operators.append(self.operator)

    def resume(self, halt):
        """Any decision that the halt allows, true or not: the checker knows what each allows."""
        if halt.reason == "tail_in_doubt":
            return self.chance.choice(["call", "as_unknown"] + ["retry"] * (not self.site.healed))
        if halt.reason != "open_call":
            return None
        try:
            keys = self.site.postgres.server.ask(
                "SELECT key, true, partition, kafka_offset FROM hapax.idempotency_keys WHERE status IN ('started', 'answered') "
                "AND topic = %s AND partition = %s AND kafka_offset = %s",
                halt.topic, halt.partition, halt.offset)
        except psycopg2.Error:
            return None
        if self.chance.random() < 0.6:
            self.decide_about(keys, self.chance, books=False)
        return "retry"

    def turn(self):
        self.operator.turn()
        if self.server is not self.site.postgres.server:
            if self.server:
                self.losses.append(time.monotonic())
            self.server = self.site.postgres.server
        if time.monotonic() < self.look_at:
            return
        self.look_at = time.monotonic() + 1
        hangs = self.site.folder / "hangs"
        for pid in hangs.read_text().split() if hangs.exists() else ():
            since = self.hanging.setdefault(int(pid), time.monotonic())
            for worker in self.site.fleet.all:
                if worker.runs() and worker.child.pid == int(pid) and time.monotonic() > \
                        since + LONGEST_CALL_S + GRACE_S + MORE_S:
                    self.hung.append(f"{worker.name} has a call that hangs, and goes on")
                    worker.kill()

    def stands_still(self):
        """Whether a worker does, or did just now: nobody can say then what did not happen."""
        return any(to is None or to > time.monotonic() - 2
                   for worker in self.site.fleet.all for _, _, to in worker.frozen)

    def decide(self, chance, most):
        """As an operator who asks the gateway first."""
        if self.stands_still():
            return
        try:
            keys = self.site.postgres.server.ask(
                "SELECT key, answer IS NOT NULL, partition, kafka_offset FROM hapax.idempotency_keys "
                "WHERE status = 'unknown' ORDER BY key")
        except psycopg2.Error:
            return
        self.decide_about(chance.sample(keys, min(most, len(keys))), chance)

    def decide_about(self, keys, chance, books=True):
        """`books`: whether a worker would book an answer."""
        events = self.gateway.events()
        charges = {e["op"]: e["charge"] for e in events if e["what"] == "charge"}
        called = {e["op"]: e["at"] for e in events if e["what"] == "call"}
        for op, has_answer, partition, offset in keys:
            if op in charges and books and chance.random() < 0.7:
                decision = ["--happened"]
                if not has_answer or chance.random() < 0.5:
                    decision.append(json.dumps({"charge": charges[op]}))
            elif op not in charges and (self.stands_still() or
                                        time.monotonic() < called.get(op, 0) + 2 * TOO_LATE_S):
                continue  # a call that has arrived may still be charged
            elif op not in charges and chance.random() < 0.7:
                decision = ["--did-not-happen"]
            else:
                decision = ["--give-up"]
            self.decided[op].append(decision[0])
            if decision == ["--give-up"]:
                self.closed[op] = partition, offset
            code = self.site.command("outside", "decide", op, *decision)
            if code in (1, 2):
                self.decided[op].pop()
                self.closed.pop(op, None)
            else:
                self.decisions[decision[0]] += 1
            self.site.say(f"  operation {op}: {decision[0]}, exit code {code}")

    def healed(self):
        for worker in self.site.fleet.all:
            worker.thaw()
        self.gateway.order("go")
        self.gateway.order("accept")
        time.sleep(3)
        self.decide(self.chance, DECISIONS)
        if self.chance.random() < 0.5:
            self.site.replay_all()

    def ended(self):
        return self.hung + self.still_open()

    def still_open(self):
        deadline = time.monotonic() + SETTLED_S
        while True:
            # `hapax outside list` shows the keys of messages that an operator skipped, and of those that
            # were given up behind a step that is done.
            rows = [row for row in self.site.postgres.server.ask(
                "SELECT key, status, token, calls, holder, h.until > clock_timestamp(), "
                "partition, kafka_offset "
                "FROM hapax.idempotency_keys k LEFT JOIN hapax.holders h ON h.id = k.holder "
                "WHERE status IN ('started', 'answered', 'forgotten') AND NOT (status = 'started' "
                "AND holder IS NULL AND error IS NOT NULL AND EXISTS (SELECT FROM hapax.dead_letters d "
                "WHERE d.key = k.key AND d.ended_at IS NULL))")
                    if not self.site.skipped(tuple(row[-2:]))]
            if not rows or time.monotonic() > deadline:
                return [f"key {row[0]} is left `{row[1]}` though all is drained: {row}"
                        for row in rows]
            time.sleep(0.3)


@fault("gateway", 6, world="calls")
def gateway_refuses(site, chance):
    """Now and then for longer than calls are tried again."""
    site.world.gateway.order("refuse")
    yield chance.uniform(0.3, 3) if chance.random() < 0.7 else chance.uniform(6, 9)
    site.world.gateway.order("accept")


@fault("gateway", 6, world="calls")
def gateway_cuts(site, chance):
    for _ in range(chance.randrange(1, 6)):
        site.world.gateway.order("cut")
        yield chance.uniform(0, 0.3)


@fault("gateway", 4, world="calls")
def gateway_holds(site, chance):
    site.world.gateway.order("hold")
    yield chance.uniform(0.5, 8)
    site.world.gateway.order("go")


@fault("worker", 6, rare=1.5, lasts=8, world="calls")
def answers_late(site, chance, worker):
    """Its calls are answered while it stands still, after others took its keys over and call, too."""
    site.world.gateway.order("hold")
    yield 0.5
    worker.freeze()
    yield LEASE_S + chance.uniform(0.8, 1.6)
    site.world.gateway.order("free", worker.child.pid)
    yield 0.3
    worker.thaw()
    yield chance.uniform(0.3, 0.6)
    site.world.gateway.order("go")


@fault("worker", 6, rare=2, lasts=8, world="calls")
def freeze_in_take(site, chance, worker):
    """It stands still while PostgreSQL commits its takes, for longer than its lease."""
    try:
        site.postgres.server.ask("INSERT INTO brakes VALUES (clock_timestamp() + '0.8 s', 0.8)")
    except psycopg2.Error:
        return
    yield chance.uniform(0.3, 0.7)
    worker.freeze()
    yield LEASE_S + chance.uniform(1.5, 3)
    worker.thaw()


@fault("message", 1, rare=0.7, lasts=20, world="calls")
def call_that_hangs(site, chance):
    site.plain.wanted.append("hang once")
    yield 20


@fault("operator", 6, rare=6, lasts=1, world="calls")
def operator_decides(site, chance):
    site.world.decide(chance, 3)
    yield 0.1


@fault("postgres", 1, rare=1, lasts=12, world="calls")
def tail_lost(site, chance):
    """An operator must look at each call then, if none may be repeated."""
    if site.world.repeat == "never":
        yield from chance.choice([point_in_time_restore, replica_promoted])(site, chance)


@fault("all workers+gateway", 1, rare=1, lasts=12, world="calls")
def release_without_calls(site, chance):
    """Deployed behind calls that have no end, by mistake; what it runs fails."""
    world = site.world
    world.gateway.order("hold")
    yield chance.uniform(0.5, 1.5)
    for calls in (False, True):
        yield from stop_workers(site, [worker for worker in site.fleet.all if chance.random() < 0.8])
        world.gateway.order("go")
        world.calls = calls
        if calls:
            (site.folder / "broken-deploy").unlink()
        else:
            (site.folder / "broken-deploy").touch()
        for worker in site.fleet.all:
            worker.write(site.variant)
            worker.start()
        site.say(f"  the release {'calls again' if calls else 'does not call'}")
        if not calls:
            yield chance.uniform(4, 9)
    yield 1
