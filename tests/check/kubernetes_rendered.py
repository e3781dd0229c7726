#!/usr/bin/env python3
"""Checks what `kubectl apply -k` would apply, folder by folder as docs/operating.md tells, against
Kubernetes' own schemas: patches, labels and generated names can break what is right in each file.

Not checked: what KEDA defines. Exits 77 without kubectl, and as kubernetes_schema.py does.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import kubernetes_schema
import source_tree
from kubernetes_schema import PAGE, PLACE, REAL

FOLDERS = re.compile(rf"kubectl apply -k ({PLACE}[\w/-]*)")
HEALTHY = {str(path.relative_to(REAL)): path.read_text()
           for path in [REAL / PAGE, *sorted((REAL / PLACE).rglob("*"))] if path.is_file()}


def check(root):
    complaints, rendered = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(set(FOLDERS.findall((root / PAGE).read_text()))):
            done = subprocess.run(["kubectl", "kustomize", root / name], capture_output=True, text=True)
            complaints += [f"{name}: {line}" for line in done.stderr.splitlines()]
            # KEDA's kinds have no schema here.
            known = [text for text in done.stdout.split("\n---\n") if "apiVersion: keda.sh/" not in text]
            rendered.append(pathlib.Path(folder) / (name.replace("/", "-") + ".yaml"))
            rendered[-1].write_text("\n---\n".join(known))
        if not rendered:
            return [f"{PAGE} applies no folder of {PLACE}"]
        return complaints or kubernetes_schema.complaints_about(root, rendered)


def broken(name, old, new):
    path = name if name == PAGE else f"{PLACE}/{name}"
    assert old in HEALTHY[path], (name, old)
    return {path: HEALTHY[path].replace(old, new)}


REMOVED = "{op: remove, path: /spec/replicas}"
FAULTS = [
    # Each file is right.
    (broken("keda/kustomization.yaml", REMOVED, "{op: replace, path: /spec/replicas, value: two}"),
     ["is not of type 'integer'"] * 2),
    (broken("keda/kustomization.yaml", REMOVED, "{op: add, path: /spec/replica, value: 2}"), ["unexpected"] * 2),
    (broken("keda/kustomization.yaml", REMOVED, "{op: remove, path: /spec/replica}"), ["replica"]),
    (broken("payments/kustomization.yaml", "[gate.json]", "[other.json]"), ["other.json"]),
    (broken(PAGE, "kubectl apply -k", "kubectl apply -f"), ["applies no folder"]),
]

if __name__ == "__main__":
    kubernetes_schema.skip_without_tools()
    if not shutil.which("kubectl"):
        print("NOT CHECKED: what kustomize renders. There is no kubectl here")
        sys.exit(77)
    source_tree.main(check, HEALTHY, FAULTS)
