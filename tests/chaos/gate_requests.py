"""What the clients of a gate ask for, decided by the seed alone.

An operation is one business event of one tenant, with one key. Several clients may send it, each in
a spelling of its own, and a client may send another body under the same key.
"""

import dataclasses
import json
import random

TENANTS = ("ann", "bob", "cid")
# Path -> how many in 1,000 operations; what the handler does for them: requests.cpp.
ROUTES = {"/payments": 680, "/own": 20, "/orders": 300}
ACCEPTS = {"/orders"}
DEEDS = {
    "/payments": {"book": 660, "slow": 50, "flaky": 70, "swallow": 30, "reject": 60, "refuse": 40,
                  "throw": 25, "until mended": 20, "hang": 15, "kill once": 8, "kill late": 8},
    # Its handler ends the transaction by itself.
    "/own": {"book": 700, "commit": 150, "rollback": 150},
    "/orders": {"book": 750, "slow": 40, "flaky": 60, "swallow": 20, "reject": 70, "throw": 25,
                "until mended": 20, "kill once": 8},
}
WORKS = {"book", "slow", "flaky", "swallow", "hang", "kill once", "kill late"}
REJECTED = {"reject", "refuse"}
BREAKS_OFF = {"commit", "rollback"}
TWINS = 0.12      # the same body and key of another tenant
PARALLEL = 0.35   # several clients send it at once
LATE = 0.15       # a client sends it again when it has long ended
DRIFTS = 0.08     # a client sends another body under the key
GAPS = (5, 50, 300)  # operations until a late client comes
IMPATIENT = 0.1   # clients that wait shortly for an answer
TYPES = ("application/json", "Application/JSON")


@dataclasses.dataclass(frozen=True)
class Operation:
    tenant: str
    key: str
    path: str
    deed: str
    account: str
    amount: int

    @property
    def name(self):
        return f"{self.tenant}/{self.key}"

    @property
    def is_accepted(self):
        return self.path in ACCEPTS


@dataclasses.dataclass
class Client:
    """One that wants one operation, until it has an answer or gives up."""
    name: str
    operation: Operation
    number: int      # of the body: 1 is another one under the same key
    seed: float
    attempts: list = dataclasses.field(default_factory=list)
    looks: list = dataclasses.field(default_factory=list)  # at an accepted operation

    def __post_init__(self):
        self.chance = random.Random(self.seed)
        self.patience_s = 0.25 if self.chance.random() < IMPATIENT else 6

    def is_told_to_stop(self):
        """Whether it was answered that a retry would repeat a part of the effect."""
        return any(attempt.answer and attempt.answer.problem == "in-part"
                   for attempt in self.attempts)

    def spelt(self):
        """(key, content type, body) as this attempt writes them; each spelling means the same."""
        chance, of = self.chance, self.operation
        amount = of.amount + self.number
        members = [('"op"', text(chance, of.key)), ('"account"', text(chance, of.account)),
                   ('"amount"', chance.choice([f"{amount}", f"{amount}", f"{amount}.0", f"{amount}e0"])),
                   ('"do"', text(chance, of.deed)), ('"payload"', f"{self.number}")]
        chance.shuffle(members)
        blank = chance.choice(["", "", " ", "\n  "])
        body = "{" + ",".join(f"{blank}{name}:{blank}{value}" for name, value in members) + "}"
        key = of.key if chance.random() < 0.6 else f'"{of.key}"'
        return key, chance.choice(TYPES), body.encode()


def text(chance, value):
    """A JSON string whose first character may be escaped."""
    if chance.random() < 0.2:
        return f'"\\u{ord(value[0]):04x}{value[1:]}"'
    return json.dumps(value)


class Source:
    """An endless list of clients; who runs them decides when."""

    def __init__(self, seed, accounts):
        self.chance = random.Random(f"{seed} requests")
        self.accounts = accounts
        self.count = 0
        self.clients = 0
        self.later = []  # (at which operation, client)

    def client(self, operation, number=0):
        self.clients += 1
        return Client(f"c{self.clients}", operation, number, self.chance.random())

    def next(self):
        """The clients that come now: of one more operation, and of older ones."""
        self.count += 1
        chance = self.chance
        path = chance.choices(list(ROUTES), ROUTES.values())[0]
        deeds = DEEDS[path]
        deed = chance.choices(list(deeds), deeds.values())[0]
        first = Operation(chance.choice(TENANTS), f"k-{self.count}", path, deed,
                          f"a{chance.randrange(self.accounts)}", chance.randrange(1, 1000))
        operations = [first]
        if chance.random() < TWINS:
            other = chance.choice([tenant for tenant in TENANTS if tenant != first.tenant])
            operations.append(dataclasses.replace(first, tenant=other))
        now = []
        for operation in operations:
            now += self.clients_of(operation)
        due = [client for at, client in self.later if at <= self.count]
        self.later = [(at, client) for at, client in self.later if at > self.count]
        return now + due

    def clients_of(self, operation):
        chance = self.chance
        clients = [self.client(operation)]
        if chance.random() < PARALLEL:
            clients += [self.client(operation) for _ in range(chance.randrange(1, 4))]
        if chance.random() < LATE:
            self.put_off(self.client(operation))
        if chance.random() < DRIFTS:
            other = self.client(operation, 1)
            if chance.random() < 0.5:
                clients.insert(chance.randrange(len(clients) + 1), other)
            else:
                self.put_off(other)
        return clients

    def put_off(self, client):
        self.later.append((self.count + self.chance.choice(GAPS), client))

    def rest(self):
        """Those that had still to come."""
        rest, self.later = [client for _, client in self.later], []
        return rest
