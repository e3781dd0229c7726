#!/usr/bin/env python3
"""Holds the layers: dependencies point down only, and a library is known to few folders."""

import re

import source_tree

# Folder of src/ -> folders of src/ that it may include beside itself.
GROUND = {"sync", "key", "config", "observe", "traces"}
STORES = {"kafka", "store", "plugin"}
ALLOWED = {
    "sync": set(),
    "key": set(),
    "observe": {"sync"},
    "config": {"key", "observe"},
    "traces": {"sync", "observe"},
    "kafka": GROUND,
    "store": GROUND,
    "plugin": GROUND,
    "outside": GROUND | STORES,
    "payload": GROUND,  # decodes payloads and checks them
    "flow": GROUND | STORES | {"outside", "payload"},
    "outbox": GROUND | STORES | {"flow"},
    "worker": GROUND | STORES | {"outside", "payload", "flow"},
    "gate": GROUND | STORES | {"flow", "worker"},
    "cli": GROUND | STORES | {"flow", "worker"},  # what all commands share
    "inspect": GROUND | STORES | {"payload", "flow", "cli"},  # reads and explains, changes nothing
    "console": GROUND | STORES | {"cli", "inspect"},  # hapax console: a web page for operators
    "tools": GROUND | STORES | {"cli", "flow", "worker", "sandbox"},  # hapax bench, hapax demo
    "app": GROUND | STORES | {"payload", "flow", "outbox", "worker", "gate", "cli", "inspect", "console", "tools"},
    "testing": GROUND | STORES | {"outside", "payload", "flow", "worker", "sandbox"},
    "sandbox": set(),  # starts servers: for the demo and the tests, and knows nothing of hapax
}

# Rooms of a folder, lowest first: each may use those before it, and what lies beside the rooms.
ROOMS = {"store": ["worker", "message", "outside", "operator", "testing"]}

# Header of a library -> the only folders of src/ that may include it. nlohmann/json is in our
# public headers, so everybody may.
LIBRARIES = {
    r"librdkafka/": {"kafka"},
    r"(pqxx|libpq|postgresql)\b": {"store"},
    r"dlfcn\.h": {"plugin"},
    r"openssl/": {"key", "gate"},  # digests | TLS
    r"(prometheus/|httplib|spdlog/|fmt/)": {"observe"},
    r"boost/": {"gate"},
    r"(curl|valijson|google/protobuf)/": {"payload"},
    r"CLI/": {"cli", "inspect", "tools", "app"},
}
# What a plugin is built with is part of its ABI.
PUBLIC_EXCEPTIONS = {("include/hapax/plugin.hpp", "pqxx/version")}

INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")', re.MULTILINE)


def rank_of(rooms, parts):
    """0 for what lies beside the rooms."""
    return rooms.index(parts[0]) + 1 if parts[0] in rooms else 0


def complaint_about(path, header, quoted):
    in_src = path.parts[0] == "src" and len(path.parts) > 2
    folder = path.parts[1] if in_src else "include"
    if in_src and folder not in ALLOWED:
        return f"{path}: src/{folder} has no place in the layers; give it one in layering.py"
    target = header.split("/")[0]
    if quoted and "/" in header and target != "hapax":
        if folder == "include":
            return f"{path}: a public header may not include {header}"
        if target in ALLOWED and target != folder and target not in ALLOWED[folder]:
            return f"{path}: {folder} may not include {header}: dependencies point down only"
        if target == folder and folder in ROOMS:
            rank = rank_of(ROOMS[folder], path.parts[2:])
            if rank_of(ROOMS[folder], header.split("/")[1:]) > rank:
                return f"{path}: may not include {header}, a higher room"
    for pattern, owners in LIBRARIES.items():
        if not quoted and re.match(pattern, header) and folder not in owners:
            if (str(path), header) not in PUBLIC_EXCEPTIONS:
                known = ", src/".join(sorted(owners))
                return f"{path}: <{header}> may be included in src/{known} only"
    return None


def check(root):
    complaints = []
    for path in source_tree.files(root, source_tree.CPP, ("include", "src")):
        for match in INCLUDE.finditer((root / path).read_text()):
            header = match.group(1)
            complaints.append(complaint_about(path, header[1:-1], header[0] == '"'))
    return sorted({complaint for complaint in complaints if complaint})


HEALTHY = {
    "include/hapax/plugin.hpp": "#include <pqxx/version>\n",
    "src/kafka/a.cpp": '#include <librdkafka/rdkafka.h>\n#include "kafka/a.hpp"\n',
    "src/flow/a.cpp": '#include "store/a.hpp"\n#include "hapax/message.hpp"\n#include <string>\n',
    "src/console/a.cpp": '#include "inspect/a.hpp"\n#include "observe/a.hpp"\n',
    "src/app/main/a.cpp": '#include "cli/a.hpp"\n#include "worker/a.hpp"\n',
    "src/tools/demo/a.cpp": '#include "sandbox/a.hpp"\n#include "tools/screen.hpp"\n',
    "src/store/message/a.cpp": '#include "store/worker/a.hpp"\n#include "store/a.hpp"\n',
    "tests/flow/a_test.cpp": "#include <librdkafka/rdkafka.h>\n",
}
FAULTS = [
    ({"src/flow/b.cpp": '#include "worker/b.hpp"\n'}, ["flow may not include worker/b.hpp"]),
    ({"src/store/b.cpp": '#include "kafka/b.hpp"\n'}, ["store may not include kafka/b.hpp"]),
    ({"src/worker/b.cpp": '#include "sandbox/b.hpp"\n'}, ["worker may not include sandbox"]),
    ({"src/inspect/b.cpp": '#include "app/b.hpp"\n'}, ["inspect may not include app/b.hpp"]),
    ({"src/store/b.cpp": '#include "store/worker/b.hpp"\n'}, ["a higher room"]),
    ({"src/store/worker/b.cpp": '#include "store/operator/b.hpp"\n'}, ["a higher room"]),
    ({"src/console/b.cpp": "#include <httplib.h>\n"}, ["in src/observe only"]),
    ({"src/worker/b.cpp": "#include <pqxx/pqxx>\n"}, ["<pqxx/pqxx> may be included in src/store"]),
    ({"src/flow/b.hpp": "#  include <librdkafka/rdkafka.h>\n"}, ["in src/kafka only"]),
    ({"include/hapax/b.hpp": "#include <pqxx/pqxx>\n"}, ["in src/store only"]),
    ({"include/hapax/b.hpp": '#include "store/b.hpp"\n'}, ["public header may not include"]),
    ({"src/helpers/b.cpp": '#include "key/b.hpp"\n'}, ["src/helpers has no place"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
