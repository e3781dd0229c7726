"""Child processes, ports and waiting: what all servers and workers here are made of.

Everything is started from the main thread: a child dies with the thread that started it.
"""

import ctypes
import os
import pwd
import signal
import socket
import subprocess
import time

LIBC = ctypes.CDLL("libc.so.6", use_errno=True)
PR_SET_PDEATHSIG = 1


GIVEN = set()  # ports; who got one may not listen yet


def free_port():
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


def wait_until(what, met, seconds):
    """Asks until it is met. Raises TimeoutError with `what`."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


class Child:
    """One process, its output appended to a file."""

    def __init__(self, argv, log, user=None, cwd=None, death=signal.SIGKILL, stdin=None,
                 environment=None, inherited=()):
        self.argv = [str(a) for a in argv]
        self.log = log
        account = pwd.getpwnam(user) if user else None
        parent = os.getpid()

        def become():
            if account:
                os.setgroups([])
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
            LIBC.prctl(PR_SET_PDEATHSIG, death)
            if os.getppid() != parent:
                os._exit(127)

        with open(log, "ab") as output:
            self.process = subprocess.Popen(self.argv, stdout=output, stderr=output, cwd=cwd,
                                            stdin=stdin or subprocess.DEVNULL, preexec_fn=become,
                                            start_new_session=True, pass_fds=inherited,
                                            env={**os.environ, **(environment or {})})

    @property
    def pid(self):
        return self.process.pid

    def runs(self):
        return self.process.poll() is None

    def signal(self, number):
        if self.runs():
            self.process.send_signal(number)

    def wait(self, seconds):
        """The exit code, or None."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


def run_to_end(argv, log, user=None, cwd=None, seconds=120):
    """Raises RuntimeError with the end of its output where it fails."""
    child = Child(argv, log, user, cwd)
    code = child.wait(seconds)
    if code != 0:
        child.kill()
        with open(log, errors="replace") as text:
            raise RuntimeError(f"{' '.join(child.argv)}: {code}\n{text.read()[-3000:]}")
