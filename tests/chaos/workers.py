"""The workers: processes of the real binary, kept alive as an orchestrator would."""

import json
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

from processes import Child, free_port, run_to_end

START_AGAIN_AFTER = 0.2
SESSION_TIMEOUT_MS = 2000


def config_of(name, port, site, variant, group, topic):
    """What a worker runs with; `variant` is what the seed decided."""
    kafka = {
        "bootstrap.servers": site.kafka.proxied,
        "group.id": group or site.group,
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": 400,
        "partition.assignment.strategy": variant["assignor"],
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 500,
        "socket.timeout.ms": 5000,
        "topic.metadata.refresh.interval.ms": 2000,
    }
    if variant["static"]:
        kafka["group.instance.id"] = name
    if site.world.sasl:
        kafka |= {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
                  "sasl.username": "worker", "sasl.password": "worker"}
    config = {
        "kafka": kafka,
        "postgres": {"url": site.worker_url, "idle_in_transaction_timeout": "2s",
                     "connect_timeout": "2s", "lock_timeout": "1s"},
        "worker": {"name": name, "lanes": 4, "ordering": variant["ordering"],
                   "checkpoint_interval": variant["checkpoint_interval"],
                   "revoke_timeout": "1s", "shutdown_timeout": "5s"},
        "routes": [{
            "topic": topic or site.topic, "handler": site.world.handler, "plugin": str(site.plugin),
            "key": {"header": "idempotency-key"}, "batch": variant["batch"],
            "retry": {"max_attempts": site.max_attempts, "max_crashes": site.max_crashes,
                      "first": "20ms", "max": "200ms"},
            "retention": variant["retention"], "breaker": 0, "options": {"folder": str(site.folder)}}],
        "admin": {"listen": f"127.0.0.1:{port}"},
        "log": {"format": "json"},
    }
    site.world.configure(config)
    return config


def seconds_of(duration):
    """Of one in hapax's configuration."""
    return float(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def false_clock():
    """What makes a wall clock lie; None where it is not installed."""
    return next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def clock_of(file):
    """An environment in which the wall clock is off by what stands in the file."""
    library = false_clock()
    if not library:
        raise SystemExit("no libfaketime: apt-get install libfaketime")
    shim = file.parent / "clock_shim.so"
    if not shim.exists():
        run_to_end(["cc", "-shared", "-fPIC", "-O1", "-o", shim,
                    pathlib.Path(__file__).with_name("clock_shim.c")], file.parent / "cc.log")
    return {"LD_PRELOAD": f"{shim} {library}", "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class Worker:
    command = "run"

    def __init__(self, name, site, variant, group=None, topic=None):
        """`group`, `topic`: where they are not the site's."""
        self.name = name
        self.of = group, topic
        self.port = free_port()
        self.site = site
        self.folder = site.folder / "workers"
        self.folder.mkdir(exist_ok=True)
        self.config = self.folder / f"{name}.json"
        self.write(variant)
        self.log = self.folder / f"{name}.log"
        self.clock = self.folder / f"{name}.clock"
        self.clock.write_text("+0\n")
        self.environment = clock_of(self.clock) if variant["false_clocks"] else {}
        self.wanted = False
        self.aborts = []  # signals that it died of, though we sent none
        self.child = None
        self.frozen = []  # [process id, from, to], by the monotonic clock; None: still
        self.ended_at = 0
        self.deaths = 0

    def write(self, variant):
        config = config_of(self.name, self.port, self.site, variant, *self.of)
        self.group = config["kafka"]["group.id"]
        self.config.write_text(json.dumps(config, indent=2))

    def start(self):
        self.wanted = True
        if not self.runs():
            self.child = Child([self.site.hapax, self.command, "-c", self.config], self.log,
                               environment=self.environment)

    def runs(self):
        return self.child is not None and self.child.runs()

    def kill(self):
        self.child.signal(signal.SIGKILL)

    def freeze(self):
        self.frozen.append([self.child.pid, time.monotonic(), None])
        self.child.signal(signal.SIGSTOP)

    def thaw(self):
        self.child.signal(signal.SIGCONT)
        for one in self.frozen:
            one[2] = one[2] or time.monotonic()

    def leave(self):
        """Asked to go; stays away until it is started again."""
        self.wanted = False
        if self.child:
            self.child.signal(signal.SIGTERM)

    def report(self):
        """What it says of itself, for whoever looks at a run that does not end."""
        with open(self.folder / f"{self.name}.report", "w") as file:
            for page in ("readyz", "metrics"):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{page}",
                                                timeout=5) as answer:
                        file.write(answer.read().decode())
                except urllib.error.HTTPError as error:
                    file.write(f"{error.code}: {error.read().decode()}\n")
                except OSError as error:
                    file.write(f"{page}: {error}\n")

    def tell_stacks(self):
        """Where it hangs, where there is a gdb."""
        if shutil.which("gdb"):
            with open(self.folder / f"{self.name}.stacks", "w") as file:
                subprocess.run(["gdb", "-p", str(self.child.pid), "-batch", "-ex",
                                "thread apply all bt"], stdout=file, stderr=file, check=False)

    def keep_alive(self):
        if self.wanted and not self.runs():
            if not self.ended_at:
                self.deaths += 1
                code = self.child.process.returncode
                if code < 0 and code != -signal.SIGKILL:  # a message may kill its process by that
                    self.aborts.append(-code)
                self.ended_at = time.monotonic()
            elif time.monotonic() > self.ended_at + START_AGAIN_AFTER:
                self.ended_at = 0
                self.start()


class Fleet:
    def __init__(self, site, count, variant):
        self.all = [Worker(f"w{n + 1}", site, variant) for n in range(count)]
        for worker in self.all:
            worker.start()

    def of(self, group):
        """One of this group."""
        return next(worker for worker in self.all if worker.group == group)

    def keep_alive(self):
        for worker in self.all:
            worker.keep_alive()

    def stop(self, seconds):
        """What went wrong while leaving; nothing else may end a healthy worker."""
        # A message may have killed it since keep_alive() looked.
        dead = [worker.name for worker in self.all if not worker.runs()]
        for worker in self.all:
            worker.thaw()
            worker.leave()
        complaints = []
        for worker in self.all:
            code = worker.child.wait(seconds)
            complaints += [f"worker {worker.name} died of signal {number}, and we sent none"
                           for number in worker.aborts]
            if code != 0 and not (worker.name in dead and code == -signal.SIGKILL):
                complaints.append(f"worker {worker.name} was told to leave and ended with {code}")
            if code is None:
                worker.tell_stacks()
            worker.child.kill()
        return complaints
