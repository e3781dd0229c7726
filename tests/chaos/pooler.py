"""PgBouncer in session mode between the workers and PostgreSQL: hapax prepares statements, and so
refuses transaction mode (`hapax check` says so).
"""

import os
import shutil

from postgres_ground import USER
from processes import Child, free_port


class Pooler:
    def __init__(self, folder, target):
        """Leads to `target`; `folder` belongs to PostgreSQL's user."""
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        if not os.path.exists(program):
            raise SystemExit("no pgbouncer: apt-get install pgbouncer")
        self.port = free_port()
        settings = {
            "listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "",
            "auth_type": "any", "pool_mode": "session", "max_client_conn": 200,
            "default_pool_size": 40, "server_login_retry": 1, "query_wait_timeout": 5,
        }
        config = folder / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host=127.0.0.1 port={target} user=hapax_worker\n[pgbouncer]\n" +
            "".join(f"{name} = {value}\n" for name, value in settings.items()))
        self.child = Child([program, "-q", config], folder / "pgbouncer.log",
                           USER if os.geteuid() == 0 else None, folder)
