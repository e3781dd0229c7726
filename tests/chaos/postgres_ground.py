"""A real PostgreSQL as an ordinary user, fsync on; a streaming replica and backups of it where a
fault wants them. Each loss of its tail is counted, because it takes facts back.
"""

import os
import pathlib
import pwd
import shutil
import signal

import psycopg2

from disk import Disk
from processes import Child, free_port, run_to_end, wait_until

USER = "postgres"
# Room for a copy a failover.
SMALL_DISK_MB = 3000


def binaries():
    found = shutil.which("initdb")
    if found:
        return pathlib.Path(found).resolve().parent
    versions = pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(versions, key=lambda p: int(p.parent.parent.name), default=None)
    if not newest:
        raise SystemExit("no PostgreSQL server here: apt-get install postgresql")
    return newest.parent


class Server:
    """One data folder and its postmaster."""

    def __init__(self, folder, settings):
        """`folder`: of the data; logs are beside it."""
        self.folder = folder
        self.settings = settings
        self.port = free_port()
        self.user = USER if os.geteuid() == 0 else None
        self.process = None

    def tool(self, name, *arguments):
        run_to_end([binaries() / name, *arguments], self.folder.parent / "postgres.tools.log",
                   self.user, self.folder.parent)

    def make(self):
        self.tool("initdb", "--pgdata", self.folder, "--username", "postgres", "--auth", "trust",
                  "--locale", "C", "--encoding", "UTF8", "--no-sync")

    def start(self):
        # A crash leaves its lock file; its process is gone.
        (self.folder / "postmaster.pid").unlink(missing_ok=True)
        arguments = ["-D", self.folder, "-p", self.port]
        for name, value in self.settings.items():
            arguments += ["-c", f"{name}={value}"]
        self.process = Child([binaries() / "postgres", *arguments],
                             self.folder.parent / "postgres.log", self.user, self.folder.parent,
                             signal.SIGQUIT)

    def url(self, user="postgres", port=None):
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/postgres"

    def connect(self, user="postgres"):
        connection = psycopg2.connect(self.url(user), connect_timeout=3)
        connection.autocommit = True
        return connection

    def ask(self, sql, *values):
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, values)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def is_primary(self, again=False):
        """`again`: it may have ended by itself, and is started then."""
        try:
            return not self.ask("SELECT pg_is_in_recovery()")[0][0]
        except psycopg2.Error:
            if not self.process.runs() and again:
                self.start()
            if not self.process.runs():
                raise RuntimeError("PostgreSQL ended by itself") from None
            return False

    def kill(self):
        """SIGKILL to all of it at once: what was not flushed is gone."""
        pids = [self.process.pid]
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                if f"\nPPid:\t{self.process.pid}\n" in status.read_text():
                    pids.append(int(status.parent.name))
            except OSError:
                continue
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.process.wait()

    def stop(self):
        """A fast, clean shutdown."""
        self.process.signal(signal.SIGINT)


class Postgres:
    def __init__(self, folder, lose_tail, small_disk, settings):
        folder.mkdir()
        self.disk = Disk(folder, SMALL_DISK_MB if small_disk else 0)
        if os.geteuid() == 0:
            owner = pwd.getpwnam(USER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.folder = folder
        self.settings = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "on",
            "max_connections": 70, "deadlock_timeout": "50ms", "max_wal_senders": 8,
            "wal_keep_size": "64MB", "hot_standby": "on", "log_min_messages": "warning",
        }
        if small_disk:
            self.settings.update({"max_wal_size": "96MB", "wal_keep_size": "0"})
        # Handlers' commits are answered before they are flushed; a crash then loses some.
        self.lose_tail = lose_tail
        if lose_tail:
            self.settings["wal_writer_delay"] = "10s"
        self.settings |= settings
        self.made = 0
        self.losses = 0
        self.server = self.next_server()
        self.server.make()
        self.server.start()
        wait_until("PostgreSQL", self.server.is_primary, 60)

    def next_server(self):
        self.made += 1
        return Server(self.folder / f"data{self.made}", dict(self.settings))

    def copy(self, port=None, standby=False):
        """A base backup as a new, stopped server; a standby that streams through `port`."""
        copy = self.next_server()
        arguments = ["-D", copy.folder, "-c", "fast", "-X", "stream", "--no-sync",
                     "-d", self.server.url(port=port)]
        copy.tool("pg_basebackup", *arguments, *(["-R"] if standby else []))
        return copy

    def prepare(self, hapax, roles, ledger):
        """Schema, roles and the ledger."""
        log = self.folder / "prepare.log"
        self.server.ask("CREATE ROLE hapax_worker LOGIN")
        run_to_end([hapax, "migrate", "up", "--url", self.server.url()], log)
        run_to_end(["psql", "--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", "-v",
                    "worker=hapax_worker", "-f", roles, self.server.url()], log)
        if self.lose_tail:
            self.server.ask("ALTER ROLE hapax_worker SET synchronous_commit = off")
        self.server.ask(ledger)
