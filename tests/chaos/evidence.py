"""What Kafka and PostgreSQL hold, read with plain clients that share no code with the worker."""

import dataclasses
import json
import threading
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition


@dataclasses.dataclass(frozen=True)
class Message:
    partition: int
    offset: int
    mid: str
    op: str
    account: str
    deed: str
    payload: int
    amount: int
    sent_s: float = 0
    topic: str = ""

    @property
    def at(self):
        return self.partition, self.offset


def message_of(record):
    headers = dict(record.headers() or [])
    order = json.loads(record.value())
    mid = headers["mid"].decode() if headers else order["op"]  # unreadable headers
    return Message(record.partition(), record.offset(), mid, order["op"],
                   order["account"], order["do"], order["payload"], order["amount"],
                   record.timestamp()[1] / 1000, record.topic())


class Reader:
    """Reads a topic from its beginning, without a group."""

    def __init__(self, bootstrap, topic, group, shrinks=False):
        """`shrinks`: Kafka deletes from the log's beginning; else a gap there is an error."""
        self.topic = topic
        self.consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest" if shrinks else "error",
            "topic.metadata.refresh.interval.ms": 2000, "fetch.wait.max.ms": 50,
            "socket.timeout.ms": 3000, "reconnect.backoff.max.ms": 500, "log_level": 0})
        self.messages = {}  # partition -> {offset: Message}
        self.seen = {}      # partition -> below this all is read

    def partitions(self):
        topics = self.consumer.list_topics(self.topic, timeout=5).topics
        return sorted(topics[self.topic].partitions)

    def extend(self):
        """Reads partitions that were added, too."""
        found = self.partitions()
        if set(found) != set(self.seen):
            for partition in found:
                self.seen.setdefault(partition, 0)
                self.messages.setdefault(partition, {})
            self.consumer.assign([TopicPartition(self.topic, p, self.seen[p]) for p in found])

    def end_of(self, partition):
        """Where the partition ends, control records included."""
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.consumer.get_watermark_offsets(TopicPartition(self.topic, partition),
                                                           timeout=5)[1]
            # A leader that is not there yet says so in many ways. On a busy machine the client may
            # also not know yet of a partition that was added.
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def committed(self):
        found = self.consumer.committed([TopicPartition(self.topic, p) for p in self.seen],
                                        timeout=5)
        return {one.partition: one.offset for one in found}

    def read_to(self, ends, seconds):
        """True when all below `ends` (partition -> offset) is read."""
        deadline = time.monotonic() + seconds
        while any(self.seen[p] < end for p, end in ends.items()):
            if time.monotonic() > deadline:
                return False
            for record in self.consumer.consume(500, 0.1):
                if record.error():
                    continue
                self.messages[record.partition()][record.offset()] = message_of(record)
                self.seen[record.partition()] = record.offset() + 1
            # Control records at the end are no messages.
            for place in self.consumer.position([TopicPartition(self.topic, p) for p in ends]):
                self.seen[place.partition] = max(self.seen[place.partition], place.offset)
        return True

    def close(self):
        """librdkafka 2.0 may never come back from it, such as while the group is deleted."""
        closing = threading.Thread(target=self.consumer.close, daemon=True)
        closing.start()
        closing.join(10)


@dataclasses.dataclass(frozen=True)
class Effect:
    nr: int
    op: str
    account: str
    amount: int
    payload: int
    at: tuple
    booked_s: float
    topic: str = ""


def effects(cursor, ops=None):
    """op -> its effects, all or of some operations."""
    cursor.execute("SELECT nr, op, account, amount, payload, part, kafka_offset, "
                   "extract(epoch FROM booked_at)::float, topic FROM ledger "
                   "WHERE %s::text[] IS NULL OR op = ANY(%s) ORDER BY nr", (ops, ops))
    found = {}
    for nr, op, account, amount, payload, part, offset, booked, topic in cursor:
        found.setdefault(op, []).append(
            Effect(nr, op, account, amount, payload, (part, offset), booked, topic))
    return found


@dataclasses.dataclass(frozen=True)
class Letter:
    id: int
    reason: str
    attempts: int
    key: str
    ended_as: str


def letters(cursor, topic):
    """(partition, offset) -> dead letter."""
    cursor.execute("SELECT partition, kafka_offset, id, reason, attempts, key, ended_as "
                   "FROM hapax.dead_letters WHERE topic = %s", (topic,))
    return {(row[0], row[1]): Letter(*row[2:]) for row in cursor}


def keys_of(found):
    """The operations that these dead letters are of."""
    return {letter.key for letter in found.values()}


def checkpoints(cursor, topic):
    """partition -> (next offset, highest)."""
    cursor.execute("SELECT partition, next_offset, highest FROM hapax.checkpoints "
                   "WHERE topic = %s AND next_offset IS NOT NULL", (topic,))
    return {row[0]: (row[1], row[2]) for row in cursor}


def runs(folder):
    """(partition, offset) -> {"began": n, "threw": n, "ended": n}, from the handler's own notes."""
    found = {}
    for file in sorted((folder / "runs").iterdir()):
        for line in file.read_text().splitlines():
            op, partition, offset, what = line.rsplit(" ", 3)
            counts = found.setdefault((int(partition), int(offset)), {})
            counts[what] = counts.get(what, 0) + 1
    return found
