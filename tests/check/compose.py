#!/usr/bin/env python3
"""Checks docker-compose.yml and the Dockerfile as far as that goes without Docker.

They are run by people, not by the tests, so what they name must be held here: services, health
checks, mounted and copied files, and hapax's own commands.
"""

import re

import yaml

import source_tree

HAPAX_COMMANDS = {"run", "migrate"}
SERVICES = {"kafka", "postgres", "migrate", "topics", "worker"}
# Condition -> what the service waited for must have.
CONDITIONS = {
    "service_healthy": lambda service: "healthcheck" in service,
    "service_completed_successfully": lambda service: service.get("restart") == "no",
}


def complaints_about_waiting(name, services):
    for other, how in services[name].get("depends_on", {}).items():
        condition = how["condition"]
        if other not in services:
            yield f"{name} waits for {other}, which is no service"
        elif condition not in CONDITIONS:
            yield f"{name} waits for {other} by {condition}: that does not wait until it works"
        elif not CONDITIONS[condition](services[other]):
            yield f"{name} waits for {condition} of {other}, which can never say so"


def complaints_about_service(name, services, volumes, root):
    service = services[name]
    image = service.get("image", "")
    if image != "hapax" and not re.search(r":\d[\w.-]*$", image):
        yield f"{name}: image {image!r} has no fixed version"
    if image == "hapax" and service["command"][0] not in HAPAX_COMMANDS:
        yield f"{name}: hapax has no command {service['command'][0]}"
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            if not (root / source).is_file():
                yield f"{name}: {source} is mounted but not in the tree"
        elif source not in volumes:
            yield f"{name}: the volume {source} is not declared"
    yield from complaints_about_waiting(name, services)


def complaints_about_image(text, root):
    stages, now = {}, ""  # the user of each stage
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not words[1].startswith("--"):
            yield from (f"Dockerfile copies {source}, which is not in the tree"
                        for source in words[1:-1] if not (root / source).exists())
        for stage in re.findall(r"\bfrom=([\w-]+)", line):
            if stage not in stages:
                yield f"Dockerfile takes from {stage}, which is no stage before"
        if words[:1] == ["FROM"]:
            # librdkafka of an older Debian cannot do SCRAM with Kafka 4.
            if words[1] not in stages and words[1] != "debian:trixie-slim":
                yield f"Dockerfile is made from {words[1]}, not from Debian 13 or a stage"
            now = words[3] if len(words) > 3 else ""
            stages[now] = stages.get(words[1], "root")
        if words[:1] == ["USER"]:
            stages[now] = words[1]
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", stages.get(now, "root")):
        yield f"Dockerfile ends as user {stages.get(now, 'root')}, which runAsNonRoot does not take"


def check(root):
    compose = yaml.safe_load((root / "docker-compose.yml").read_text())
    services = compose["services"]
    complaints = [f"there is no service {name}" for name in sorted(SERVICES - set(services))]
    for name in services:
        complaints += complaints_about_service(name, services, compose.get("volumes", {}), root)
    if services.get("worker", {}).get("deploy", {}).get("replicas", 1) < 2:
        complaints.append("worker: one worker shows no rebalance")
    complaints += complaints_about_image((root / "Dockerfile").read_text(), root)
    return complaints


GOOD = """services:
  kafka: {image: 'apache/kafka:4.3.0', healthcheck: {test: x}, volumes: ['data:/data']}
  postgres: {image: 'postgres:17', healthcheck: {test: x}, volumes: ['./init.sql:/init.sql:ro']}
  migrate: {image: hapax, restart: 'no', command: [migrate, up],
            depends_on: {postgres: {condition: service_healthy}}}
  topics: {image: 'apache/kafka:4.3.0', restart: 'no',
           depends_on: {kafka: {condition: service_healthy}}}
  worker: {image: hapax, command: [run], deploy: {replicas: 2},
           depends_on: {migrate: {condition: service_completed_successfully}}}
volumes:
  data:
"""
HEALTHY = {"docker-compose.yml": GOOD, "init.sql": "", "src/a": "",
           "Dockerfile": "FROM debian:trixie-slim AS build\nCOPY src/a there/\n"
                         "FROM debian:trixie-slim AS last\nRUN --mount=type=bind,from=build,target=/b x\n"
                         "USER 1:1\nFROM last\nCOPY --from=build /x /y\n"}


def broken(old, new):
    assert old in GOOD
    return {"docker-compose.yml": GOOD.replace(old, new)}


def image(old, new):
    assert old in HEALTHY["Dockerfile"]
    return {"Dockerfile": HEALTHY["Dockerfile"].replace(old, new)}


FAULTS = [
    (broken("postgres:17", "postgres:latest"), ["no fixed version"]),
    (broken("[run]", "[serve]"), ["no command serve"]),
    (broken("./init.sql:", "./gone.sql:"), ["./gone.sql is mounted"]),
    (broken("'data:/", "'other:/"), ["volume other is not declared"]),
    (broken("17', healthcheck: {test: x},", "17',"), ["which can never say so"]),
    (broken("restart: 'no', command", "command"), ["which can never say so"]),
    (broken("{migrate: {cond", "{nobody: {cond"), ["nobody, which is no service"]),
    (broken("condition: service_healthy}}}\n  topics", "condition: service_started}}}\n  topics"),
     ["does not wait until it works"]),
    (broken("replicas: 2", "replicas: 1"), ["no rebalance"]),
    (broken("\n  topics:", "\n  themes:"), ["no service topics"]),
    (image("src/a", "src/gone"), ["copies src/gone"]),
    (image("from=build", "from=built"), ["from built", "from built"]),
    (image("FROM debian:trixie-slim AS build", "FROM debian:latest AS build"), ["from debian:latest"]),
    (image("USER 1:1", "USER hapax"), ["as user hapax"]),
    (image("USER 1:1\n", ""), ["as user root"]),
    (image("FROM last", "FROM debian:trixie-slim"), ["as user root"]),
    (image("FROM last", "FROM build"), ["as user root"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
