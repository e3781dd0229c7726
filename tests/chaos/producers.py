"""Who sends: one that retries on its own; one whose transactions commit, abort or are left open.

Each has its thread. What a send became is in the journal.
"""

import threading
import time

from confluent_kafka import KafkaError, KafkaException, Producer

from messages import Source

TRANSACTION_TIMEOUT_S = 20
MOST_UNANSWERED = 2000
ABORTS = 0.35
LEFT_OPEN = 0.1
TOO_MANY_HEADERS = [("x", b"")] * 100_001  # for a worker


def headers_of(send):
    headers = [("mid", send.mid.encode())]
    if send.operation.deed not in ("no key", "anonymous"):
        headers.append(("idempotency-key", send.operation.op.encode()))
    if send.operation.deed == "unreadable":
        headers += TOO_MANY_HEADERS
    return headers


class Sender(threading.Thread):
    """Sends what a source says, at most `rate` operations a second, until told to end."""

    def __init__(self, site, name, rate):
        super().__init__(name=name, daemon=True)
        self.site = site
        self.topic = site.topic
        self.journal = site.journal
        self.source = Source(site.seed, name, site.partitions, site.world.deeds,
                             site.world.accounts, site.world.scripts, site.world.drifts)
        self.held = threading.Event()  # nothing is sent while it is set
        self.idle = threading.Event()  # and what was is answered
        self.pause = 1 / rate
        self.wanted = []  # deeds of operations that a fault wants
        self.ending = False
        self.error = None

    def run(self):
        try:
            while not self.ending:
                began = time.monotonic()
                if self.held.is_set():
                    self.settle()
                    self.idle.set()
                    time.sleep(0.05)
                    continue
                self.turn()
                time.sleep(max(0, self.pause - (time.monotonic() - began)))
            self.finish()
        except BaseException as error:  # told by whoever joins
            self.error = error

    def next(self):
        return self.source.next(self.wanted.pop() if self.wanted else None)

    def produce(self, producer, send, answered):
        self.journal.begin(send)
        while True:
            try:
                producer.produce(self.topic, send.payload, self.site.record_key(send),
                                 partition=send.partition, headers=headers_of(send),
                                 on_delivery=answered)
                return
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:  # a partition that was added, and it has not heard yet
                if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                    raise
                producer.poll(0.1)

    def end(self):
        self.held.clear()
        self.ending = True

    def hold(self):
        """Nothing is under way once `idle` is set."""
        self.idle.clear()
        self.held.set()

    def go_on(self):
        self.held.clear()

    def ended(self, seconds):
        self.join(seconds)
        if self.error:
            raise self.error
        if self.is_alive():
            raise TimeoutError(f"producer {self.name} could not finish")


class PlainSender(Sender):
    """Not idempotent: where an answer is lost, the library sends again, and Kafka has it twice."""

    def __init__(self, site, rate):
        super().__init__(site, "p", rate)
        self.producer = self.fresh()
        self.unanswered = 0

    def fresh(self):
        return Producer({
            "bootstrap.servers": self.site.kafka.bootstrap, "acks": "all", "linger.ms": 5,
            "enable.idempotence": False, "retries": 100000, "retry.backoff.ms": 50,
            "request.timeout.ms": 2000, "socket.timeout.ms": 2500, "message.timeout.ms": 900000,
            "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500, "log_level": 0})

    def settle(self):
        """A fresh one then, which knows nothing of a topic that was there before."""
        if self.unanswered:
            self.producer.flush(1)
            if not self.unanswered:
                self.producer = self.fresh()

    def turn(self):
        if self.unanswered > MOST_UNANSWERED:
            self.producer.poll(0.1)
            return
        for send in self.next():
            self.plain(send)
        self.producer.poll(0)

    def plain(self, send):
        def answered(error, message):
            self.unanswered -= 1
            self.journal.end(send, "in doubt" if error else message.offset())
        self.unanswered += 1
        self.produce(self.producer, send, answered)

    def finish(self):
        for send in self.source.rest():
            self.plain(send)
        deadline = time.monotonic() + 90
        while self.producer.flush(1) and time.monotonic() < deadline:
            pass


class TransactionalSender(Sender):
    def __init__(self, site, rate):
        self.size = 8
        super().__init__(site, "t", rate / self.size)
        self.producer = None

    def fresh(self):
        """Ends what an earlier one left open."""
        while True:
            producer = Producer({
                "bootstrap.servers": self.site.kafka.bootstrap, "transactional.id": "chaos",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_S * 1000,
                "socket.timeout.ms": 5000, "topic.metadata.refresh.interval.ms": 1000,
                "reconnect.backoff.max.ms": 500, "log_level": 0})
            try:
                producer.init_transactions(TRANSACTION_TIMEOUT_S)
                return producer
            except KafkaException:
                if self.ending and not self.site.healed:
                    time.sleep(0.2)

    def turn(self):
        sends = [send for _ in range(self.size) for send in self.next()]
        choice = self.source.chance.random()
        self.transaction(sends, choice)

    def settle(self):
        if self.producer:
            self.producer.flush(5)
            self.producer = None

    def transaction(self, sends, choice):
        self.producer = self.producer or self.fresh()
        fate = "aborted"  # as long as no commit was asked for
        try:
            self.producer.begin_transaction()
            for send in sends:
                self.produce(self.producer, send, None)
            if choice < LEFT_OPEN:
                self.producer.flush(5)
                self.producer = None  # dies here; the next one of this name aborts it
            elif choice < LEFT_OPEN + ABORTS:
                self.producer.flush(5)
                self.producer.abort_transaction(TRANSACTION_TIMEOUT_S)
            else:
                fate = "in doubt"
                self.producer.commit_transaction(TRANSACTION_TIMEOUT_S)
                fate = "committed"
        except KafkaException:
            self.producer = None  # what Kafka made of an asked commit, the checker reads there
        for send in sends:
            self.journal.end(send, fate)

    def finish(self):
        self.producer = None
        self.transaction(self.source.rest(), 1.0)
        self.producer = self.producer or self.fresh()
