#!/usr/bin/env python3
"""Checks deploy/kubernetes against Kubernetes' own schemas, of the oldest release that the docs name
and of the newest that kubernetes-validate has. No unknown field passes.

Not checked: what kustomize and KEDA define; kubernetes_rendered.py looks at what kustomize makes of it.
Exits 77 if get_from_pypi.sh has not fetched it.
"""

import os
import pathlib
import re
import subprocess
import sys

import source_tree

PLACE = "deploy/kubernetes"
PAGE = "docs/operating.md"
OTHERS = r"^apiVersion: (?:kustomize\.config\.k8s|keda)\."
CACHE = pathlib.Path(os.environ.get("HAPAX_CACHE") or pathlib.Path.home() / ".cache/hapax")
TOOLS = sorted(ready.with_name("bin") / "kubernetes-validate" for ready in CACHE.glob("kubernetes-validate-*/ready"))


def complaints_about(root, files):
    oldest = re.search(r"needs Kubernetes (1\.\d+) or later", (root / PAGE).read_text())[1]
    complaints = []
    for version in (oldest, None):
        of_release = ["-k", version] if version else []
        done = subprocess.run([TOOLS[-1], "--strict", *of_release, *files], capture_output=True, text=True)
        passed = re.findall(r"^INFO (\S+) passed .* against version (\S+)$", done.stdout, re.MULTILINE)
        told = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("INFO")]
        silent = {str(path) for path in files} - {path for path, against in passed if version in (None, against)}
        complaints += told or sorted(f"{path} was not looked at" for path in silent)
    return complaints


def check(root):
    return complaints_about(root, [path for path in sorted((root / PLACE).rglob("*.yaml"))
                                   if not re.search(OTHERS, path.read_text(), re.MULTILINE)])


REAL = pathlib.Path(__file__).resolve().parents[2]
HEALTHY = {str(path.relative_to(REAL)): path.read_text() for path in [REAL / PAGE, *sorted((REAL / PLACE).rglob("*.yaml"))]}


def broken(name, old, new):
    path = f"{PLACE}/{name}"
    assert old in HEALTHY[path], (name, old)
    return {path: HEALTHY[path].replace(old, new)}


# Each in both releases.
FAULTS = [
    (broken("worker/statefulset.yaml", "serviceName:", "service:"), ["unexpected", "unexpected"]),
    (broken("worker/statefulset.yaml", "terminationGracePeriodSeconds: 20", "terminationGracePeriodSeconds: 20s"),
     ["is not of type 'integer'"] * 2),
    (broken("gate/deployment.yaml", "readOnlyRootFilesystem", "readOnlyRootFileSystem"), ["unexpected"] * 2),
    (broken("worker/disruption.yaml", "policy/v1", "policy/v1beta1"), ["find schema for kind PodDisruptionBudget"] * 2),
]

def skip_without_tools():
    if not TOOLS:
        print("NOT CHECKED against the schemas: tests/support/get_from_pypi.sh kubernetes-validate")
        sys.exit(77)


if __name__ == "__main__":
    skip_without_tools()
    source_tree.main(check, HEALTHY, FAULTS)
