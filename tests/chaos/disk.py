"""A disk that can be full: a file system of its own in memory, where we may mount one."""

import os
import pathlib
import subprocess

CAP_SYS_ADMIN = 21


def can_be_made():
    status = pathlib.Path("/proc/self/status").read_text()
    capable = int(status.split("CapEff:")[1].split()[0], 16)
    return bool(capable >> CAP_SYS_ADMIN & 1)


class Disk:
    """Mounted over `folder`, unless `megabytes` is 0: then what was there stays."""

    def __init__(self, folder, megabytes):
        self.folder = folder
        self.size = megabytes << 20
        if self.size:
            self.mount(f"size={self.size},mode=0755")

    def mount(self, options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "hapax-chaos", self.folder],
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def fill(self):
        """It becomes as small as what is on it."""
        for _ in range(50):  # refused where more was written meanwhile
            now = os.statvfs(self.folder)
            if self.mount(f"remount,size={(now.f_blocks - now.f_bfree) * now.f_frsize}"):
                return
        raise RuntimeError("the disk did not become full")

    def free(self):
        if not self.mount(f"remount,size={self.size}"):
            raise RuntimeError("the disk did not become large again")

    def unmount(self):
        if self.size:
            subprocess.run(["umount", "--lazy", self.folder], check=True)
            self.size = 0
