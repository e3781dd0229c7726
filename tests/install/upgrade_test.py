#!/usr/bin/python3
"""Upgrades hapax by apt under load, on a Debian that systemd has booted, and counts.

    upgrade_test.py <bare system> <folder with hapax_*.deb> <libpayments.so built there>

The system gets PostgreSQL, the package, a worker of hapax@.service, then a package of a higher version
with the same contents. Kafka runs outside. Shown: each payment is booked once, the worker that drained
left nothing to be done again, `hapax audit` accounts for all. Printed: how long nothing was booked.

As root, on a system made for that (scripts/packages.sh): with systemd-nspawn, and what
`scripts/install_packages.sh test chaos` installs. Exit codes: 0, 1, and 77 if systemd-nspawn is missing
or boots nothing on this machine.
"""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "chaos"))
from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from kafka_ground import Kafka  # noqa: E402
from processes import Child, free_port, wait_until  # noqa: E402

PARTITIONS = 8
PAYMENTS_A_SECOND = 300
UNDER_LOAD_S = 8  # before the upgrade, and after it


class System:
    """A Debian with systemd as its first process, in this machine's network."""

    def __init__(self, root, log):
        self.root = root
        self.nspawn = Child(["systemd-nspawn", "--quiet", "--directory", root, "--register=no",
                             "--keep-unit", "--console=pipe", "--boot"], log)
        wait_until("systemd", self.booted, 60)

    def first_process(self):
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children")
        return children.read_text().split()[:1] if self.nspawn.runs() else []

    def booted(self):
        if not self.nspawn.runs():
            print(f"systemd-nspawn boots nothing here: {self.nspawn.log.read_text()[-500:]}")
            sys.exit(77)
        state = self.run("systemctl is-system-running", check=False) if self.first_process() else ""
        return state in ("running", "degraded")

    def run(self, command, check=True):
        done = subprocess.run(
            ["nsenter", "--target", *self.first_process(), "--mount", "--uts", "--ipc", "--pid",
             "--root", "--wd", "sh", "-c", command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if check and done.returncode:
            raise SystemExit(f"FAILED: {command}: {done.stdout[-3000:]}")
        return done.stdout.strip()

    def sql(self, statement):
        return self.run(f'su postgres -c "psql -qAtX -c \\"{statement}\\""')

    def install(self, *what):
        return self.run("DEBIAN_FRONTEND=noninteractive apt-get install -q -y "
                        f"--no-install-recommends {' '.join(what)}")

    def end(self):
        self.nspawn.signal(signal.SIGTERM)
        if self.nspawn.wait(30) is None:
            self.nspawn.kill()


def with_version(deb, version, folder):
    """The same package with a higher version."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    lines = [f"Version: {version}" if line.startswith("Version: ") else line
             for line in control.read_text().splitlines()]
    control.write_text("\n".join(lines) + "\n")
    subprocess.run(["dpkg-deb", "-b", tree, folder / "newer.deb"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "newer.deb"


def set_up(system, debs, plugin, kafka):
    """PostgreSQL, the package, and a worker that has joined its group."""
    files = system.root / "root/packages"
    files.mkdir(exist_ok=True)
    shutil.copy(next(debs.glob("hapax_*.deb")), files / "older.deb")
    system.run("apt-get update -q")
    system.install("postgresql", "/root/packages/older.deb")
    port = free_port()
    system.run(f"sed -i 's/^#*port = .*/port = {port}/' /etc/postgresql/*/main/postgresql.conf && "
               "systemctl restart postgresql")
    url = f"postgresql://owner:owner@127.0.0.1:{port}/postgres?sslmode=disable"
    system.sql("CREATE ROLE owner LOGIN SUPERUSER PASSWORD 'owner'")
    system.sql("CREATE TABLE payments (id text PRIMARY KEY, account text, amount_minor bigint, "
               "at timestamptz NOT NULL DEFAULT clock_timestamp())")
    system.run(f"hapax migrate up --url '{url}'")
    plugins = system.root / "usr/local/lib/hapax"
    plugins.mkdir(parents=True, exist_ok=True)
    shutil.copy(plugin, plugins / "libpayments.so")
    (system.root / "etc/hapax").mkdir(exist_ok=True)
    (system.root / "etc/hapax/payments.json").write_text(json.dumps({
        "kafka": {"bootstrap.servers": kafka.bootstrap, "group.id": "payments"},
        "postgres": {"url": url},
        "routes": [{"topic": "payments", "handler": "payments", "key": {"header": "id"},
                    "plugin": "/usr/local/lib/hapax/libpayments.so"}],
        "admin": {"listen": False}}))
    system.run("systemctl enable --now hapax@payments")  # returns once the worker has joined


class Load(threading.Thread):
    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        self.sent = 0
        self.ending = threading.Event()

    def run(self):
        while not self.ending.wait(1 / PAYMENTS_A_SECOND):
            name = f"p{self.sent}"
            self.producer.produce("payments", json.dumps({"id": name, "account": "a",
                                                          "amount_minor": 1}),
                                  partition=self.sent % PARTITIONS, headers=[("id", name)])
            self.sent += 1
            self.producer.poll(0)
        self.producer.flush()


def expect(met, what):
    if not met:
        raise SystemExit(f"FAILED: {what}")


def play(system, debs, plugin, folder):
    kafka = Kafka(folder, 1, [free_port()])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("payments", PARTITIONS, 1)])["payments"].result()
    set_up(system, debs, plugin, kafka)
    shutil.copy(with_version(system.root / "root/packages/older.deb", "99.0.0", folder),
                system.root / "root/packages/newer.deb")

    def booked():
        return int(system.sql("SELECT count(*) FROM payments"))

    def first_process():
        return system.run("systemctl show -p MainPID --value hapax@payments")

    load = Load(kafka.bootstrap)
    load.start()
    wait_until("payments", lambda: booked() > 0, 30)
    time.sleep(UNDER_LOAD_S)
    before = first_process()
    system.install("/root/packages/newer.deb")
    time.sleep(UNDER_LOAD_S)
    load.ending.set()
    load.join()
    wait_until("all payments", lambda: booked() >= load.sent, 120)

    expect(first_process() != before, "apt did not restart the worker")
    expect(booked() == load.sent, f"{booked()} payments were booked, {load.sent} sent")
    expect(system.sql("SELECT count(*) FROM hapax.dead_letters") == "0", "a payment came twice")
    journal = system.run("journalctl -o cat -u hapax@payments")
    expect(' stopped ' in journal or '"stopped"' in journal, f"the worker did not drain: {journal}")
    expect(system.run("systemctl show -p NRestarts --value hapax@payments") == "0",
           f"the worker failed: {journal}")
    audit = system.run("hapax audit -c /etc/hapax/payments.json --topic payments")
    expect("every offset is accounted for" in audit, audit)
    pause = system.sql("SELECT round(1000 * extract(epoch FROM max(at - before))) FROM (SELECT at, "
                       "lag(at) OVER (ORDER BY at) AS before FROM payments) t")
    system.run("systemctl stop hapax@payments && apt-get purge -q -y hapax")
    print(f"upgraded under {PAYMENTS_A_SECOND} payments a second: {load.sent} sent, each booked once; "
          f"nothing was booked for {pause} ms")


def main():
    root, debs, plugin = map(pathlib.Path, sys.argv[1:])
    if not shutil.which("systemd-nspawn"):
        print("no systemd-nspawn")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        system = System(root, folder / "boot")
        try:
            play(system, debs, plugin, folder)
        finally:
            system.end()


main()
