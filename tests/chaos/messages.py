"""What is sent, decided by the seed alone, and the journal of what became of each send.

An operation is one business event. Its key, payload and deed are the same in all its messages,
except where it drifts. `mid` names one send; it travels in a header, so that the payloads of
duplicates are equal to the byte.
"""

import dataclasses
import json
import random
import time

# Deed -> how many in 1,000 operations. What the handler does about each: ledger.cpp.
DEEDS = {
    "book": 862, "slow": 30, "flaky": 25, "swallow": 10, "fails elsewhere": 20,
    "reject": 20, "throw": 8, "until mended": 12, "no key": 10,
}
SECOND_IN_ANOTHER_PARTITION = 0.3
DUPLICATES = 0.12
DRIFTS = 0.03
ACCOUNTS = 48
UNREPEATED = {"anonymous",  # without a key nothing tells that it is the same operation
              "unreadable"}  # its one send is named as the operation: no client gets its headers
GAPS = (0, 1, 5, 50, 400)  # operations until a duplicate comes


@dataclasses.dataclass(frozen=True)
class Operation:
    op: str
    account: str
    amount: int
    deed: str
    home: int
    script: tuple = ()  # of a hostile handler
    seconds: int = 0    # a "pin" fails until its message is so old


@dataclasses.dataclass
class Send:
    mid: str
    operation: Operation
    partition: int
    payload: bytes
    ended_s: float = 0   # when its fate was known
    fate: object = None  # an offset; "aborted", "in doubt"; None: no answer (yet)


def payload_of(operation, number):
    """`number` tells the first payload from a drifted one."""
    return json.dumps({"op": operation.op, "account": operation.account,
                       "amount": operation.amount + number, "do": operation.deed,
                       "payload": number, "home": operation.home,
                       **({"script": operation.script} if operation.script else {}),
                       **({"seconds": operation.seconds} if operation.deed == "pin" else {})}).encode()


class Source:
    """An endless list of lists of sends; who sends it decides when."""

    def __init__(self, seed, name, partitions, deeds=None, accounts=ACCOUNTS, scripts=None,
                 drifts=True):
        self.chance = random.Random(f"{seed} {name}")
        self.name = name
        self.partitions = partitions
        self.deeds = dict(deeds or DEEDS)
        self.accounts = accounts
        self.drifts = DRIFTS if drifts else 0
        self.scripts = scripts or {}
        self.operations = 0
        self.sends = 0
        self.later = []  # (at which operation, send)
        self.added = 0   # partitions since then: no order key's home
        self.gaps = GAPS
        self.pinned_s = 0

    def send(self, operation, partition, number=0):
        self.sends += 1
        mid = operation.op if operation.deed == "unreadable" else f"{self.name}{self.sends}"
        return Send(mid, operation, partition,
                    payload_of(operation, number))

    def next(self, deed=None):
        """The sends of one more operation, and of older ones that come again."""
        self.operations += 1
        chance = self.chance
        account = chance.randrange(self.accounts)
        deed = deed or chance.choices(list(self.deeds), self.deeds.values())[0]
        operation = Operation(f"{self.name}-{self.operations}", f"a{account}",
                              chance.randrange(1, 1000), deed, account % self.partitions,
                              tuple(self.scripts.get(deed, ())), self.pinned_s)
        sends = [self.send(operation, operation.home)]
        elsewhere = (operation.home + 1 + self.added) % (self.partitions + self.added)
        if deed == "fails elsewhere":
            sends.insert(chance.randrange(2), self.send(operation, elsewhere))
        elif deed in UNREPEATED:
            pass
        elif chance.random() < DUPLICATES:
            away = chance.random() < SECOND_IN_ANOTHER_PARTITION
            again = self.send(operation, elsewhere if away else operation.home)
            self.put_off(again)
        elif deed == "book" and chance.random() < self.drifts:
            self.put_off(self.send(operation, operation.home, 1))
        due = [send for at, send in self.later if at <= self.operations]
        self.later = [(at, send) for at, send in self.later if at > self.operations]
        return sends + due

    def partitions_added(self, count):
        self.added = count - self.partitions

    def put_off(self, send):
        self.later.append((self.operations + self.chance.choice(self.gaps), send))

    def rest(self):
        """What was still to come again."""
        rest, self.later = [send for _, send in self.later], []
        return rest


class Journal:
    """Every send, written down before it is made; fates as they become known."""

    def __init__(self, path):
        self.sends = {}
        self.file = open(path, "w", buffering=1)

    def begin(self, send):
        self.sends[send.mid] = send
        self.file.write(f"send {send.mid} {send.operation.op} {send.partition} "
                        f"{send.payload.decode()}\n")

    def end(self, send, fate):
        send.fate = fate
        send.ended_s = time.time()
        self.file.write(f"fate {send.mid} {fate}\n")
