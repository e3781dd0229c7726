"""PgBouncer between the workers and PostgreSQL, in session mode: hapax prepares statements, so that
in transaction mode, which `hapax check` refuses, it gets nowhere. It must lose nothing there either.
"""

import contextlib
import os
import shutil

import psycopg2

from postgres_ground import USER
from processes import Child, free_port


ADMIN = "chaos"  # of its console


class Pooler:
    def __init__(self, folder, target):
        """Leads to `target`; `folder` belongs to PostgreSQL's user."""
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        if not os.path.exists(program):
            raise SystemExit("no pgbouncer: apt-get install pgbouncer")
        self.port = free_port()
        settings = {
            "listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "",
            "auth_type": "any", "admin_users": ADMIN, "pool_mode": "session",
            "max_client_conn": 200, "default_pool_size": 40, "server_login_retry": 1,
            "query_wait_timeout": 5,
        }
        config = folder / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host=127.0.0.1 port={target} user=hapax_worker\n[pgbouncer]\n" +
            "".join(f"{name} = {value}\n" for name, value in settings.items()))
        self.child = Child([program, "-q", config], folder / "pgbouncer.log",
                           USER if os.geteuid() == 0 else None, folder)

    def share_sessions(self, shared):
        """Transaction mode from now on, or session mode again: a client then goes on in whichever
        server session is free, with what others have prepared and set there."""
        with contextlib.closing(psycopg2.connect(
                host="127.0.0.1", port=self.port, dbname="pgbouncer", user=ADMIN)) as console:
            console.autocommit = True
            console.cursor().execute(
                f"SET pool_mode = '{'transaction' if shared else 'session'}'")
