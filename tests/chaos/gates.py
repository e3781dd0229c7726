"""The gates: processes of the real binary that serve HTTP, kept alive like the workers."""

import hashlib
import json

from workers import Worker

HANDLER_TIMEOUT_S = 1
HANGS_MS = 1600  # shorter than postgres.idle_in_transaction_timeout, which would end its session
LANES = 4


def token_of(tenant):
    return f"token-of-{tenant}"


def write_secrets(folder, tenants):
    """The files that the configuration names."""
    lines = [f"{tenant} {hashlib.sha256(token_of(tenant).encode()).hexdigest()}" for tenant in tenants]
    (folder / "tokens").write_text("\n".join(lines) + "\n")
    (folder / "operations.key").write_text("0123456789abcdef" * 8)


class Gate(Worker):
    command = "gate"

    def __init__(self, name, site, variant, listen):
        self.listen = listen
        super().__init__(name, site, variant)

    def write(self, variant):
        site = self.site
        handler = {"handler": site.world.handler, "plugin": str(site.plugin),
                   "options": {"folder": str(site.folder), "hang_ms": HANGS_MS}}
        self.group = None  # it consumes nothing
        self.config.write_text(json.dumps({
            "gate": {"listen": f"127.0.0.1:{self.listen}", "lanes": LANES, "queue": 40, "wait": "1s",
                     "handler_timeout": f"{HANDLER_TIMEOUT_S}s", "shutdown_timeout": "5s",
                     "callers": {"tokens": f"@{site.folder}/tokens"},
                     "operations": {"key": f"@{site.folder}/operations.key"}},
            "kafka": {"bootstrap.servers": site.kafka.proxied, "group.id": site.group,
                      "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500,
                      "socket.timeout.ms": 5000, "topic.metadata.refresh.interval.ms": 2000},
            "postgres": {"url": site.worker_url, "idle_in_transaction_timeout": "2s",
                         "connect_timeout": "2s", "lock_timeout": "1s"},
            "routes": [{"path": "/payments", "batch": variant["shares"], **handler},
                       {"path": "/own", **handler},
                       {"path": "/orders", "batch": variant["shares"],
                        "accept": {"topic": site.topic, "scope": site.world.handler,
                                   "record_key": {"json": "/account"}}}],
            "admin": {"listen": f"127.0.0.1:{self.port}"},
            "log": {"format": "json", "error_text": True}}, indent=2))
