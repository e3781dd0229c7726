"""Real Apache Kafka in KRaft mode: one broker, or three with replication.

Workers reach it through the proxy (listener WORKERS); producers and the checker directly.
"""

import os
import pathlib
import random
import signal
import string

from processes import Child, free_port, run_to_end, wait_until

FOLDER = "kafka-4.3.0"  # as tests/support/get_kafka.sh
STARTED = "Kafka Server started"


def jars():
    cache = os.environ.get("HAPAX_CACHE") or pathlib.Path.home() / ".cache/hapax"
    found = pathlib.Path(cache) / FOLDER / "lib"
    if not found.is_dir():
        raise SystemExit(f"no Kafka in {found}: run tests/support/get_kafka.sh")
    return found


class Broker:
    def __init__(self, folder, node, ports, proxied, quorum, copies, sasl):
        self.folder = folder
        self.node = node
        self.port, self.controller, self.inner = ports
        folder.mkdir()
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": quorum,
            "listeners": f"BROKER://127.0.0.1:{self.port},WORKERS://127.0.0.1:{self.inner},"
                         f"CONTROLLER://127.0.0.1:{self.controller}",
            "advertised.listeners": f"BROKER://127.0.0.1:{self.port},"
                                    f"WORKERS://127.0.0.1:{proxied}",
            "listener.security.protocol.map":
                "BROKER:PLAINTEXT,WORKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder / "data",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            # A killed broker is let in again when its old session has ended.
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 2000,
            "replica.lag.time.max.ms": 2000,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": max(1, copies - 1),
            "transaction.state.log.num.partitions": 2,
            "min.insync.replicas": max(1, copies - 1),
            "log.cleaner.backoff.ms": 500,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": max(1, copies - 1),
        }
        if sasl:  # workers have a name; all others are ANONYMOUS and may do everything
            settings |= {
                "listener.security.protocol.map":
                    "BROKER:PLAINTEXT,WORKERS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "listener.name.workers.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.workers.plain.sasl.jaas.config":
                    "org.apache.kafka.common.security.plain.PlainLoginModule required "
                    'user_worker="worker";',
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            }
        (folder / "server.properties").write_text(
            "".join(f"{name}={value}\n" for name, value in settings.items()))
        self.process = None
        self.down = True  # on purpose

    def java(self, main_class):
        classes = jars().parent / "classes.jsa"  # a file that is not there would switch off Java's own archive
        archive = [f"-XX:SharedArchiveFile={classes}"] if classes.exists() else []
        return ["java", *archive, "-Xmx1g", "-XX:+ExitOnOutOfMemoryError", "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC", "-Xshare:auto",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
                "-cp", f"{jars()}/*", main_class]

    def format(self, cluster_id):
        run_to_end(self.java("kafka.tools.StorageTool") +
                   ["format", "-t", cluster_id, "-c", "server.properties"],
                   self.folder / "format.log", cwd=self.folder)

    def start(self):
        self.starts = self.log_text().count(STARTED)
        self.process = Child(self.java("kafka.Kafka") + ["server.properties"],
                             self.folder / "kafka.log", cwd=self.folder)
        self.down = False

    def log_text(self):
        log = self.folder / "kafka.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def ready(self):
        if not self.process.runs():
            raise RuntimeError(f"broker {self.node} ended: {self.log_text()[-3000:]}")
        return self.log_text().count(STARTED) > self.starts

    def kill(self):
        self.down = True
        self.process.kill()

    def stop(self):
        self.down = True
        self.process.signal(signal.SIGTERM)

    def freeze(self):
        self.process.signal(signal.SIGSTOP)

    def thaw(self):
        self.process.signal(signal.SIGCONT)


class Kafka:
    def __init__(self, folder, brokers, proxied_ports, sasl=False):
        ports = [[free_port() for _ in range(3)] for _ in range(brokers)]
        quorum = ",".join(f"{n + 1}@127.0.0.1:{p[1]}" for n, p in enumerate(ports))
        self.copies = min(3, brokers)
        self.brokers = [Broker(folder / f"kafka{n + 1}", n + 1, ports[n], proxied_ports[n], quorum,
                               self.copies, sasl) for n in range(brokers)]
        cluster_id = "".join(random.SystemRandom().choices(string.ascii_lowercase, k=22))
        for broker in self.brokers:
            broker.format(cluster_id)
            broker.start()
        for broker in self.brokers:
            wait_until(f"broker {broker.node}", broker.ready, 240)
        self.bootstrap = ",".join(f"127.0.0.1:{b.port}" for b in self.brokers)
        self.proxied = ",".join(f"127.0.0.1:{p}" for p in proxied_ports)

    def refuse_dead(self):
        """Raises RuntimeError if a broker ended by itself: the run then says nothing of hapax."""
        for broker in self.brokers:
            if not broker.down and not broker.process.runs():
                raise RuntimeError(f"broker {broker.node} ended: {broker.log_text()[-1000:]}")
