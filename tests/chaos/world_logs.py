"""Several logs and groups whose operations are one: a second group in the same scope, a renamed
group, a mirror, and a topic that is deleted and made again while workers run and while they are down.

What is promised then, and what is checked: a keyed operation takes effect at most once, whichever
log and group it comes by; a message without a key, once for each message. All that stands in a log
that somebody reads has taken effect at the end. In between, a halt with its reason and an operator's
decision is a right answer; silence is not. A log that is deleted takes along what nobody had read.
"""

import collections
import threading
import time

import psycopg2
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewTopic

import evidence
from checker import Checker
from faults import fault, until
from operators import Operator
from workers import Worker
from worlds import World, world

MIRROR = "orders.mirror"
SECOND, RENAMED, MIRRORS = "chaos-second", "chaos-renamed", "chaos-mirror"
BURST = 10  # times as fast
DECIDED_WITHIN_S = 30
LEAVE_S = 20
KINDS = ("second", "renamed", "mirror")


class Mirror(threading.Thread):
    """Copies a topic to another one, as MirrorMaker does: other offsets, the same keys and headers.
    What was copied once is never copied again, and the copy of a deleted log stays."""

    def __init__(self, site):
        super().__init__(name="mirror", daemon=True)
        self.site = site
        self.ending = False
        self.error = None
        self.fresh = threading.Event()  # the source is another log from now on

    def run(self):
        try:
            self.copy()
        except BaseException as error:
            self.error = error

    def copy(self):
        producer = Producer({"bootstrap.servers": self.site.kafka.bootstrap, "log_level": 0,
                             "enable.idempotence": True, "message.timeout.ms": 900000})
        reader = None
        while not self.ending:
            if reader is None:
                self.fresh.clear()
                reader = evidence.Reader(self.site.kafka.bootstrap, self.site.topic, "mirror")
                try:
                    reader.extend()
                except (KafkaException, KeyError):
                    reader = None
                    time.sleep(0.2)
                    continue
            for record in reader.consumer.consume(200, 0.2):
                if not record.error():
                    self.put(producer, record)
            producer.poll(0)
            if self.fresh.is_set():
                reader = None
        producer.flush(60)

    def put(self, producer, record):
        while True:
            try:
                producer.produce(MIRROR, record.value(), record.key(),
                                 partition=(record.partition() + 1) % self.site.partitions,
                                 headers=record.headers())
                return
            except BufferError:
                producer.poll(0.1)


@world
class Logs(World):
    name = "logs"
    variant = {"compacted": False, "static": False, "small_disk": False, "ordering": "key"}
    deeds = {"book": 850, "slow": 10, "flaky": 10, "anonymous": 130}
    # That it may be another topic, or may not reach so far. All are true when it was made again.
    halts = {"topic_recreated", "offset_unproven", "offset_above_end", "offset_out_of_range",
             "unknown_below_highest"}
    rate = 60
    only_probe = False
    drifts = False
    one_log = False
    except_faults = ("operator-rewinds", "operator-skips", "operator-replays", "partitions-added",
                     "message-that-kills", "message-that-kills-once", "point-in-time-restore",
                     "replica-promoted", "broker-frozen", "broker-frozen-long")

    def __init__(self, site):
        super().__init__(site)
        self.kind = site.options.variant.get("logs") or self.chance.choice(KINDS)
        self.variant = {**self.variant, "logs": self.kind, "lose_tail": False}
        self.mirror = None
        self.making = False   # whether the topic is being made again
        self.number = 1       # of the log that the topic is now
        self.hung = []        # complaints

    def configure(self, config):
        config["routes"][0] |= {"missing_key": "coordinates", "scope": "ledger"}

    def began(self):
        site = self.site
        self.operator = Operator(site, self.decide)
        site.operators.append(self.operator)
        if self.kind == "second":
            self.add_worker("second", SECOND, site.topic)
        if self.kind == "mirror":
            topic = NewTopic(MIRROR, site.partitions, site.kafka.copies)
            site.admin.create_topics([topic], operation_timeout=20)[MIRROR].result(30)
            self.add_worker("mirror", MIRRORS, MIRROR)
            self.mirror = Mirror(site)
            self.mirror.start()

    def add_worker(self, name, group, topic):
        """One more, of its own group."""
        worker = Worker(name, self.site, self.site.variant, group, topic)
        self.site.fleet.all.append(worker)
        worker.start()

    def decide(self, halt):
        """The topic was made again: that is what is true, and how to go on."""
        recreated = ("topic_recreated", "offset_unproven", "offset_above_end", "offset_out_of_range")
        return "recreated" if halt.reason in recreated and halt.topic != MIRROR else None

    def turn(self):
        self.operator.turn()

    def logs(self):
        """(topic, groups that read it)."""
        group = next(w.group for w in self.site.fleet.all if w.name == "w1")
        yield self.site.topic, [group] + ([SECOND] if self.kind == "second" else [])
        if self.kind == "mirror":
            yield MIRROR, [MIRRORS]

    def drain(self, seconds):
        if self.mirror:
            # What is still to be copied is copied within a few rounds.
            time.sleep(3)
            self.mirror.ending = True
            self.mirror.join(90)
        deadline = time.monotonic() + seconds
        left = "nothing was asked"
        while left and time.monotonic() < deadline:
            self.site.fleet.keep_alive()
            self.turn()
            left = self.left()
            time.sleep(0.5)
        return left

    def left(self):
        behind = []
        try:
            rows = {(g, t, p): n for g, t, p, n in self.site.postgres.server.ask(
                "SELECT group_id, topic, partition, next_offset FROM hapax.checkpoints")}
            for topic, groups in self.logs():
                reader = evidence.Reader(self.site.kafka.bootstrap, topic, "looks")
                reader.extend()
                ends = {p: reader.end_of(p) for p in reader.seen}
                reader.close()
                behind += [f"group {group}, {topic}/{p}: end {end}, checkpoint "
                           f"{rows.get((group, topic, p))}" for group in groups
                           for p, end in ends.items() if end and rows.get((group, topic, p)) != end]
        except (psycopg2.Error, KafkaException) as error:
            return f"a server does not answer: {error}"
        return "; ".join(behind)

    def ended(self):
        failed = self.mirror and self.mirror.error
        return self.hung + ([f"the mirror failed: {failed!r}"] if failed else [])

    def checker(self, site):
        return LogsChecker(site)


def read_whole(site, topic):
    """All messages of the topic, once; None where Kafka did not answer in time."""
    reader = evidence.Reader(site.kafka.bootstrap, topic, "looks", site.world.shrinks)
    try:
        reader.extend()
        ends = {p: reader.end_of(p) for p in reader.partitions()}
        if not reader.read_to(ends, 20):
            return None
        return [m for of in reader.messages.values() for m in of.values()]
    except (KafkaException, KeyError):
        return None
    finally:
        reader.close()


class LogsChecker(Checker):
    """Looks at operations and messages of several logs, by what the world promises."""

    def check(self):
        site = self.site
        live = {}
        for topic, _ in site.world.logs():
            live[topic] = read_whole(site, topic)
            if live[topic] is None:
                self.complain(f"Kafka could not be read to the end of {topic}")
                live[topic] = []
        connection = site.postgres.server.connect()
        with connection.cursor() as cursor:
            effects = evidence.effects(cursor)
            cursor.execute("SELECT group_id, topic, generation, partition, kafka_offset, reason, "
                           "key, error FROM hapax.dead_letters")
            for letter in cursor.fetchall():
                self.complain(f"a dead letter, and no message deserves one: {letter}")
            cursor.execute("SELECT topic, partition, kafka_offset, reason, detail FROM hapax.halts "
                           "WHERE ended_at IS NULL")
            for halt in cursor.fetchall():
                self.complain(f"halted: {halt}")
            self.check_halts(cursor)
            cursor.execute("SELECT account, amount FROM balances")
            self.balances, self.effects = dict(cursor.fetchall()), effects
        connection.close()
        self.check_balances()
        self.letters, self.aborted = {}, 0
        self.messages = [m for of in live.values() for m in of]
        self.check_effects(effects, self.messages, site.world.gone)
        return self.complaints

    def check_effects(self, effects, live, gone):
        of = collections.defaultdict(list)
        for message in live + gone:
            of[message.op].append(message)
        self.operations = len(of)
        alive = {id(m) for m in live}
        for op in effects.keys() - of.keys():
            self.complain(f"operation {op}: has an effect {effects[op]}, and no log had it")
        for op, messages in of.items():
            found = effects.get(op, [])
            places = [(m.topic, *m.at) for m in messages]
            where = f"operation {op} ({messages[0].deed}) at {sorted(places)}"
            if [e for e in found if (e.topic, *e.at) not in places]:
                self.complain(f"{where}: the effect names none of these: {found}")
            here = [m for m in messages if id(m) in alive]
            if messages[0].deed != "anonymous":
                if len(found) > 1:
                    self.complain(f"{where}: expected one effect, took {len(found)}: {found}")
                elif here and not found:
                    self.complain(f"{where}: LOST: none took effect")
                continue
            took = collections.Counter((e.topic, *e.at) for e in found)
            for place, times in took.items():
                if times > places.count(place):
                    self.complain(f"{where}: {place} took effect {times} times: {found}")
            for message in here:
                if not took[message.topic, *message.at]:
                    self.complain(f"{where}: LOST: {(message.topic, *message.at)} took no effect")


# ---- faults

def hold_senders(site):
    """Nothing is sent, and all that was is answered."""
    for sender in (site.plain, site.transactional):
        sender.hold()
    yield from until(lambda: all(sender.idle.is_set() and not getattr(sender, "unanswered", 0)
                                 for sender in (site.plain, site.transactional)))


def deleted(site):
    try:
        site.admin.delete_topics([site.topic], operation_timeout=5)[site.topic].result(10)
    except KafkaException as error:
        if error.args[0].name() not in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            return False
    try:
        return site.topic not in site.admin.list_topics(timeout=3).topics
    except KafkaException:
        return False


def made(site):
    try:
        topic = NewTopic(site.topic, site.partitions, site.kafka.copies)
        site.admin.create_topics([topic], operation_timeout=5)[site.topic].result(10)
        return True
    except KafkaException as error:
        return error.args[0].name() == "TOPIC_ALREADY_EXISTS"


def decided(site):
    """Whether each group that reads the topic has begun all of this log, by the same number."""
    site.world.turn()
    groups = [group for topic, names in site.world.logs() if topic == site.topic for group in names]
    try:
        begun = site.postgres.server.ask(
            "SELECT count(*) FROM hapax.checkpoints WHERE topic = %s AND group_id = ANY(%s) AND "
            "generation = %s AND next_offset IS NOT NULL AND start_as IS NULL",
            site.topic, groups, site.world.number)[0][0]
        return begun == len(groups) * site.partitions
    except psycopg2.Error:
        return False


def until_decided(site):
    """As the docs ask for if librdkafka cannot tell topic ids: no worker leaves, no group begins and
    the topic stays until all groups have decided."""
    deadline = time.monotonic() + DECIDED_WITHIN_S
    yield from until(lambda: decided(site) or time.monotonic() > deadline)


def made_again(site, chance, pause):
    """Another log under the topic's name. The old one is read before, for the checker."""
    found = []

    def read():
        found[:] = [read_whole(site, site.topic)]
        return found[0] is not None
    yield from until(lambda: not site.world.making)
    site.world.making = True
    yield from hold_senders(site)
    yield from until(read)
    yield from until(lambda: deleted(site))
    yield pause
    yield from until(lambda: made(site))
    site.world.gone += found[0]
    site.world.number += 1
    if site.world.mirror:
        site.world.mirror.fresh.set()
    burst = chance.random() < 0.6
    yield 0 if burst else 1
    if burst:  # so that it soon ends behind where the old one did
        site.plain.pause /= BURST
    for sender in (site.plain, site.transactional):
        sender.go_on()
    yield 2.5
    if burst:
        site.plain.pause *= BURST
    site.world.making = False


@fault("all workers", 3, rare=8, lasts=8, world="logs")
def topic_made_again(site, chance):
    """While workers run; sometimes they write on behind where the old one ended, before they look."""
    yield from until_decided(site)
    if not decided(site):
        return
    yield from made_again(site, chance, chance.choice([0, 0.5, 3]))
    site.say("  the topic is another one now, and workers ran")
    yield from until_decided(site)
    if chance.random() < 0.7:
        yield from group_renamed(site, chance)


@fault("all workers", 2, rare=1.5, lasts=12, world="logs")
def topic_made_again_while_workers_are_down(site, chance):
    yield from until_decided(site)
    if not decided(site):
        return
    yield from stop_workers(site)
    yield from made_again(site, chance, 0)
    for worker in site.fleet.all:
        worker.start()
    site.say("  the topic is another one now, and no worker saw it")
    yield from until_decided(site)
    if chance.random() < 0.7:
        yield from group_renamed(site, chance)


def stop_workers(site, kills=()):
    for worker in site.fleet.all:
        worker.leave()
        if worker in kills:
            worker.kill()
    deadline = time.monotonic() + LEAVE_S
    yield from until(lambda: not any(worker.runs() for worker in site.fleet.all)
                     or time.monotonic() > deadline)
    for worker in site.fleet.all:
        if worker.runs():
            site.world.hung.append(f"worker {worker.name} was told to leave and did not in "
                                   f"{LEAVE_S} s")
            worker.kill()
    yield from until(lambda: not any(worker.runs() for worker in site.fleet.all))


@fault("all workers", 2, rare=4, lasts=4, world="logs")
def group_renamed(site, chance):
    """As the docs say: the old one is stopped. Its offsets are taken along, or the log is read again.
    Messages without a key are known only if the new group gives the log the old one's number."""
    if site.world.kind != "renamed":
        return
    yield from stop_workers(site)
    name = RENAMED if site.group == "chaos" else "chaos"
    site.group = name
    for worker in site.fleet.all:
        worker.write(site.variant)
        worker.start()
    site.say(f"  the group's name is {name} now")
