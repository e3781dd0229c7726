"""Clients send requests to gates: docs/gate.md, with handlers in the gates and behind them.

Gates run the handler for one path, and accept requests of another path for the workers. Each client
reaches each gate through the proxy. The checker holds every answer that a client got against the ledger.
"""

import time

import psycopg2

import gate_checker
from faults import answers, fault, until
from gate_clients import Clients
from gate_requests import TENANTS
from gates import HANGS_MS, Gate, token_of, write_secrets
from processes import free_port
from worlds import World, world

STANDS_STILL_S = 11  # longer than the relay's lease
STOPS_S = 30
FINAL_S = 120        # for the clients' last tries


@world
class Gates(World):
    name = "gate"
    handler = "requests"
    produced = False
    only_probe = False  # it reads the producers' messages
    one_log = False
    audited = False
    workers = 2
    rate = 25
    checker = gate_checker.GateChecker
    ledger = """
ALTER TABLE ledger ADD COLUMN run text, ADD COLUMN attempt text;
"""
    # Of the messages of producers. A lagging replica and an old backup take back answers that clients
    # have: docs/gate.md does not promise these. See sync_replica_promoted.
    except_faults = ("message-that-kills", "message-that-kills-once", "operator-skips",
                     "operator-replays", "replica-promoted", "point-in-time-restore")

    def __init__(self, site):
        super().__init__(site)
        site.max_crashes = 20  # faults kill workers beside messages
        self.variant = {"compacted": False, "gates": self.chance.choice([2, 3, 3]),
                        "shares": self.chance.choice([1, 16, 16, 100])}
        self.gates = []
        self.ports = {}
        self.clients = None

    def proxied(self):
        self.ports = {f"gate{n + 1}": free_port() for n in range(self.site.variant["gates"])}
        return self.ports

    def began(self):
        site = self.site
        write_secrets(site.folder, TENANTS)
        self.gates = [Gate(name, site, site.variant, port) for name, port in self.ports.items()]
        site.fleet.all += self.gates
        for gate in self.gates:
            gate.start()
        reached = {name: site.proxy.ports[name] for name in self.ports}
        self.clients = Clients(site.seed, self.accounts, site.options.rate or self.rate, reached,
                               {tenant: token_of(tenant) for tenant in TENANTS}, site.folder / "journal")
        self.clients.start()

    def healed(self):
        """The clients stop, and what was under way of them ends."""
        self.clients.stop()
        self.wait_for_clients(STOPS_S)
        for name in self.ports:
            self.site.proxy.order(name, "pass")

    def wait_for_clients(self, seconds):
        deadline = time.monotonic() + seconds
        while self.clients.is_busy() and time.monotonic() < deadline:
            self.site.fleet.keep_alive()
            self.site.kafka.refuse_dead()
            self.site.start_lost_partitions()
            time.sleep(0.2)

    def drain(self, seconds):
        """Each client tries until it has its answer. Returns what is left."""
        self.clients.finish(FINAL_S)
        self.wait_for_clients(FINAL_S + STOPS_S)
        left = "nothing was asked"
        deadline = time.monotonic() + seconds / 2
        while left and time.monotonic() < deadline:
            self.site.fleet.keep_alive()
            try:
                rows = self.site.postgres.server.ask("SELECT count(*) FROM hapax.outbox")[0][0]
                left = f"{rows} records are in the outbox" if rows else ""
            except psycopg2.Error as error:
                left = f"PostgreSQL does not answer: {error}"
            time.sleep(0.2)
        return left

    def ended(self):
        time.sleep(HANGS_MS / 1000)  # SIGTERM beside a handler that hangs is a failure of the gate
        return self.clients.errors + (["clients are still busy"] if self.clients.is_busy() else [])


# ---- between the clients and the gates

def of_clients(site, chance):
    return chance.choice(sorted(site.world.ports))


@fault("clients", 20, world="gate")
def clients_cut(site, chance):
    """Each connection to a gate ends at a byte of its own: in the request, in the answer, behind it."""
    for _ in range(chance.randrange(1, 5)):
        site.proxy.order(of_clients(site, chance), "cut", chance.choice([300, 800, 4000]))
        yield chance.uniform(0.05, 0.4)


@fault("clients", 12, world="gate")
def clients_cut_again_and_again(site, chance):
    """So does each new one, for a while."""
    name = of_clients(site, chance)
    site.proxy.order(name, "frail", chance.choice([600, 1500, 5000]))
    yield chance.uniform(1, 4)
    site.proxy.order(name, "frail", 0)


@fault("clients", 6, world="gate")
def clients_stall(site, chance):
    """Nothing passes; then it does, or the connections have ended."""
    name = of_clients(site, chance)
    site.proxy.order(name, "stall")
    yield chance.uniform(0.3, 3)
    if chance.random() < 0.5:
        site.proxy.order(name, "drop")
    site.proxy.order(name, "pass")


# ---- the gates themselves

@fault("worker", 4, rare=1, lasts=STANDS_STILL_S + 4, world="gate")
def gate_stands_still(site, chance, worker):
    """For longer than the lease of its relay, then it wakes up with records in hand."""
    worker.freeze()
    yield STANDS_STILL_S + chance.uniform(0, 3)
    worker.thaw()
    yield 1


@fault("postgres", 6, world="gate")
def sync_replica_promoted(site, chance):
    """The primary dies, and a replica without which it committed nothing takes its place."""
    postgres = site.postgres
    standby = postgres.copy(site.proxy.ports["replica"], standby=True)
    standby.start()
    yield from until(lambda: answers(standby))
    postgres.server.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
    postgres.server.ask("SELECT pg_reload_conf()")
    yield from until(lambda: postgres.server.ask(
        "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")[0][0])
    # A commit that waits for the replica: so do all behind it, and those before it are there.
    postgres.server.ask("SELECT pg_logical_emit_message(true, 'chaos', '')")
    yield chance.uniform(0.5, 2)
    postgres.losses += 1
    postgres.server.kill()
    site.proxy.order("postgres", "refuse")
    yield chance.uniform(0, 1)
    standby.ask("SELECT pg_promote(false)")
    yield from until(standby.is_primary)
    postgres.server = standby
    postgres.losses += 1
    site.redirect(standby.port)
    site.proxy.order("postgres", "pass")
