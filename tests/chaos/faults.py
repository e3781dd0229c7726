"""What can happen to the ground and the workers.

A fault is a generator: it does something and yields the seconds until it goes on, so that many are
under way at once. What stands before its first `yield` happens at its time in the schedule; the
rest heals. All chance comes from the schedule's generator.
"""

import dataclasses
import signal
import subprocess
import typing

import psycopg2


@dataclasses.dataclass(frozen=True)
class Fault:
    act: typing.Callable
    needs: str  # what it wants for itself; of many things, joined by "+", it waits for its turn
    weight: float
    # Of one that is too heavy, or needs too much, to be one of many: how often a minute, beside the
    # others; how long it takes; and which variant of the run it needs.
    rare: float = 0
    lasts: float = 0
    variant: str = ""
    world: str = ""  # only there


FAULTS = {}  # name -> Fault


def fault(needs, weight=10, **rare):
    def add(function):
        FAULTS[function.__name__.replace("_", "-")] = Fault(function, needs, weight, **rare)
        return function
    return add


def until(condition):
    while not condition():
        yield 0.05


# ---- workers

@fault("worker", 20)
def worker_kill(site, chance, worker):
    worker.kill()
    yield 0.1


@fault("worker", 12)
def worker_zombie(site, chance, worker):
    """Stands still for longer than its session, then wakes up believing it owns its partitions."""
    worker.freeze()
    yield chance.uniform(2.5, 6)
    worker.thaw()
    yield 1


@fault("worker", 8)
def worker_pause(site, chance, worker):
    worker.freeze()
    yield chance.uniform(0.05, 1.5)
    worker.thaw()


@fault("worker", 8)
def worker_restart(site, chance, worker):
    worker.leave()
    yield from until(lambda: not worker.runs())
    worker.start()


@fault("worker", 5)
def worker_storm(site, chance, worker):
    """Leaves and joins every 0 to 500 ms, gently or not."""
    for _ in range(chance.randrange(3, 9)):
        if chance.random() < 0.5:
            worker.kill()
            worker.wanted = False
        else:
            worker.leave()
        yield from until(lambda: not worker.runs())
        yield chance.uniform(0, 0.5)
        worker.start()
        yield chance.uniform(0, 0.5)


@fault("worker", 8, rare=4, lasts=10, variant="false_clocks")
def clock_step(site, chance, worker):
    """Its wall clock jumps by an hour, and later back."""
    worker.clock.write_text(chance.choice(["+3600\n", "-3600\n"]))
    yield chance.uniform(2, 10)
    worker.clock.write_text("+0\n")


@fault("all workers", 4)
def rolling_restart(site, chance):
    for worker in site.fleet.all:
        worker.leave()
        yield from until(lambda: not worker.runs())
        worker.start()
        yield chance.uniform(0, 1)


@fault("all workers", 3)
def all_workers_killed(site, chance):
    for worker in site.fleet.all:
        worker.kill()
    yield 0.5


# ---- PostgreSQL

def back(site):
    site.postgres.server.start()
    yield from until(site.postgres.server.is_primary)
    site.postgres.losses += 1


@fault("postgres", 8)
def postgres_kill(site, chance):
    site.postgres.losses += 1
    site.postgres.server.kill()
    yield chance.uniform(0, 3)
    yield from back(site)


@fault("postgres", 4)
def postgres_restart(site, chance):
    site.postgres.server.stop()
    yield from until(lambda: not site.postgres.server.process.runs())
    yield from back(site)


@fault("postgres", 6)
def backend_kill(site, chance):
    """SIGKILL to one backend: PostgreSQL then restarts all of them, and recovers."""
    pids = site.postgres.server.ask("SELECT pid FROM pg_stat_activity WHERE usename = "
                                    "'hapax_worker' ORDER BY pid")
    if pids:
        site.postgres.losses += 1
        subprocess.run(["kill", "-9", str(chance.choice(pids)[0])], check=False)
        yield 0.3
        yield from until(site.postgres.server.is_primary)
        site.postgres.losses += 1


@fault("postgres", 6)
def backends_ended(site, chance):
    """pg_terminate_backend for a part of the workers' sessions."""
    site.postgres.server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                             "usename = 'hapax_worker' AND pid %% 3 = %s", chance.randrange(3))
    yield 0.1


@fault("postgres", 4)
def postgres_frozen(site, chance):
    pids = [site.postgres.server.process.pid] + [row[0] for row in site.postgres.server.ask(
        "SELECT pid FROM pg_stat_activity WHERE usename = 'hapax_worker'")]
    for pid in pids:
        subprocess.run(["kill", "-STOP", str(pid)], check=False, stderr=subprocess.DEVNULL)
    yield chance.uniform(1, 5)
    for pid in pids:
        subprocess.run(["kill", "-CONT", str(pid)], check=False, stderr=subprocess.DEVNULL)


@fault("postgres", 3)
def connections_exhausted(site, chance):
    held = []
    try:
        while True:
            held.append(site.postgres.server.connect("hapax_worker"))
    except psycopg2.Error:
        pass
    site.postgres.server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                             "application_name LIKE 'hapax %%' AND pid %% 2 = 0")
    yield chance.uniform(1, 4)
    for connection in held:
        connection.close()


@fault("postgres", 4)
def replica_promoted(site, chance):
    """The primary dies while its replica lags; the replica takes its place."""
    postgres = site.postgres
    standby = postgres.copy(site.proxy.ports["replica"], standby=True)
    standby.start()
    yield chance.uniform(2, 5)
    site.proxy.order("replica", "stall")
    yield chance.uniform(0.2, 3)
    postgres.losses += 1
    postgres.server.kill()
    site.proxy.order("replica", "drop")
    site.proxy.order("replica", "pass")
    site.proxy.order("postgres", "refuse")
    yield chance.uniform(0, 1)
    standby.process.signal(signal.SIGCONT)
    yield from until(lambda: answers(standby))
    standby.ask("SELECT pg_promote(false)")
    yield from until(standby.is_primary)
    postgres.server = standby
    postgres.losses += 1
    site.redirect(standby.port)
    site.proxy.order("postgres", "pass")


@fault("postgres", 4, rare=1.2, lasts=8, variant="small_disk")
def disk_full(site, chance):
    """Nothing more fits on PostgreSQL's disk. Where that has ended it, it is started again."""
    site.postgres.losses += 1
    site.postgres.disk.fill()
    yield chance.uniform(1, 8)
    site.postgres.disk.free()
    yield from until(lambda: site.postgres.server.is_primary(again=True))
    site.postgres.losses += 1


def answers(server):
    try:
        return bool(server.ask("SELECT 1"))
    except psycopg2.Error:
        return False


@fault("postgres", 3)
def point_in_time_restore(site, chance):
    """Everything since a base backup is gone."""
    postgres = site.postgres
    backup = postgres.copy()
    yield chance.uniform(2, 10)
    postgres.losses += 1
    postgres.server.kill()
    postgres.server = backup
    site.redirect(backup.port)
    yield from back(site)


@fault("pooler", 4, rare=2, lasts=12, variant="pooler")
def pooler_shares_sessions(site, chance):
    """PgBouncer in transaction mode, as by a mistake that somebody then fixes."""
    site.pooler.share_sessions(True)
    yield chance.uniform(2, 12)
    site.pooler.share_sessions(False)


# ---- Kafka

@fault("kafka", 6)
def broker_kill(site, chance):
    broker = chance.choice(site.kafka.brokers)
    broker.kill()
    yield chance.uniform(0, 4)
    broker.start()
    yield from until(broker.ready)


@fault("kafka", 3)
def broker_restart(site, chance):
    broker = chance.choice(site.kafka.brokers)
    broker.stop()
    yield from until(lambda: not broker.process.runs())
    broker.start()
    yield from until(broker.ready)


@fault("kafka", 5)
def broker_frozen(site, chance):
    broker = chance.choice(site.kafka.brokers)
    broker.freeze()
    yield chance.uniform(1, 12)
    broker.thaw()
    yield 1


@fault("kafka", 1, rare=0.25, lasts=75)
def broker_frozen_long(site, chance):
    """Longer than most clients wait for an answer."""
    broker = chance.choice(site.kafka.brokers)
    broker.freeze()
    yield chance.uniform(65, 75)
    broker.thaw()
    yield 1


# ---- the network

def gate(site, chance):
    return chance.choice(["postgres", "postgres", "kafka1"])


@fault("network", 12)
def connections_cut(site, chance):
    """Each connection ends at a byte of its own."""
    site.proxy.order(gate(site, chance), "cut", chance.choice([40, 400, 4000, 40000]))
    yield 0.2


@fault("network", 5)
def link_slow(site, chance):
    name = gate(site, chance)
    site.proxy.order(name, "slow", chance.choice([5, 20, 80]))
    yield chance.uniform(1, 6)
    site.proxy.order(name, "slow", 0)


@fault("network", 5)
def link_stalls(site, chance):
    name = gate(site, chance)
    site.proxy.order(name, "stall")
    yield chance.uniform(0.5, 8)
    if chance.random() < 0.5:
        site.proxy.order(name, "drop")
    site.proxy.order(name, "pass")


@fault("network", 3)
def link_refuses(site, chance):
    name = gate(site, chance)
    site.proxy.order(name, "refuse")
    yield chance.uniform(0.5, 3)
    site.proxy.order(name, "pass")


# ---- messages

@fault("message", 2)
def message_that_kills(site, chance):
    site.plain.wanted.append("kill")
    yield 20


@fault("message", 4)
def message_that_kills_once(site, chance):
    site.plain.wanted.append("kill once")
    yield 5


# ---- operators

@fault("operator", 6)
def operator_rewinds(site, chance):
    partition = chance.randrange(site.partitions)
    site.operate("offsets", "rewind", partition, lambda at: max(0, at - chance.randrange(1, 300)))
    yield 0.1


@fault("operator", 3)
def operator_skips(site, chance):
    partition = chance.randrange(site.partitions)
    site.operate("offsets", "skip", partition, lambda at: at + chance.randrange(1, 4))
    yield 0.1


@fault("operator", 4)
def operator_replays(site, chance):
    if chance.random() < 0.5:
        (site.folder / "mended").touch()
    site.replay_all()
    yield 0.1


@fault("partitions", 1, rare=0.7, lasts=5)
def partitions_added(site, chance):
    yield from until(site.add_partition)
    yield 5
