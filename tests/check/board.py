#!/usr/bin/env python3
"""Checks what deploy/ gives to Prometheus and Grafana, with promtool (Debian's package prometheus).

Every alert is fired by a test. It has a section of its own in the docs: what you see, what you type,
how you know that it worked. Every command in both exists. Every metric that an alert or a panel reads
is one that a worker writes, and a panel or an alert reads each but few. Exits 77 without promtool.
Arguments: the root and the binary hapax.
"""

import functools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import yaml

MOST_ALERTS = 12  # more are not read
RULES = "deploy/prometheus/hapax.rules.yml"
TESTS = "tests/deploy/hapax.rules.test.yml"
BOARD = "deploy/grafana/hapax.json"
DOCS = "docs/operating.md"
# What a worker or gate writes, and neither an alert nor a panel reads.
OFF_THE_BOARD = {"hapax_build_info", "hapax_gate_body_bytes", "hapax_gate_handshakes_failed_total", "hapax_gate_lost_lanes",
                 "hapax_partition_blocked_offset", "hapax_partitions_not_shown", "hapax_schema_registry_up", "hapax_spans_total"}
PARTS = ("**You see**", "**You type**", "**It worked if**")


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"promtool {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}"]


def rules_of(text):
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def metrics_in(expression):
    """Histograms are written under their name, and read with a suffix."""
    return {re.sub(r"_(bucket|sum|count)$", "", name)
            for name in re.findall(r"\b(?:hapax|process)_[a-z_]+", re.sub(r'"[^"]*"', '""', expression))}


def written_metrics(root):
    text = "".join(path.read_text() for path in (root / "src/observe").glob("*.cpp"))
    return set(re.findall(r'"((?:hapax|process)_[a-z_]+)"', text))


def sections(page):
    """The text below each heading, by the anchor that GitHub gives to it."""
    parts = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"): text
            for heading, text in zip(parts[1::2], parts[2::2])}


def commands_in(section):
    return re.findall(r"^hapax (.+)$|`hapax ([a-z][^`]*)`", section, re.MULTILINE)


@functools.cache
def help_of(hapax, *verbs):
    return subprocess.run([hapax, *verbs, "--help"], capture_output=True, text=True).stdout


def wrong_command(hapax, command):
    words = shlex.split(command, comments=True)
    verbs = [word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
    help_text = help_of(hapax, *verbs)
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", help_text))
    named = f"Usage: hapax {' '.join(verbs)} " in help_text
    return not named or [word for word in words if word.startswith("-") and word not in known]


def of_runbook(hapax, name, section):
    found = [f"{name}: its section lacks {part}" for part in PARTS if part not in section]
    typed = section.partition(PARTS[1])[2].partition(PARTS[2])[0]
    if not commands_in(typed):
        found.append(f"{name}: its section names nothing of hapax to type")
    for inside in commands_in(section):
        if wrong_command(hapax, "".join(inside)):
            found.append(f"{name}: no such command: hapax {''.join(inside)}")
    return found


def complaints(root, hapax, rules_text, tests_text, board_text, docs_text):
    found = []
    runbook = sections(docs_text)
    rules = rules_of(rules_text)
    metrics = written_metrics(root)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "whole.yml").write_text(rules_text)
        found += promtool("check", "rules", folder / "whole.yml")
        # promtool compares annotations, too; a test of a condition shall not repeat its prose.
        bare = yaml.safe_load(rules_text)
        for group in bare["groups"]:
            for rule in group["rules"]:
                rule.pop("annotations")
        (folder / "hapax.rules.yml").write_text(yaml.safe_dump(bare))
        (folder / "tests.yml").write_text(tests_text)
        found += promtool("test", "rules", folder / "tests.yml")
        panels = [target["expr"] for panel in json.loads(board_text)["panels"] for target in panel.get("targets", [])]
        queries = [query.replace("$__rate_interval", "5m") for query in panels]
        recorded = [{"record": f"panel:{i}", "expr": query} for i, query in enumerate(queries)]
        (folder / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": recorded}]}))
        found += promtool("check", "rules", folder / "panels.yml")
    if len(rules) > MOST_ALERTS:
        found.append(f"{len(rules)} alerts, more than {MOST_ALERTS}")
    fired = {test["alertname"] for group in yaml.safe_load(tests_text)["tests"]
             for test in group["alert_rule_test"] if test.get("exp_alerts")}
    for rule in rules:
        name, notes = rule["alert"], rule["annotations"]
        if name not in fired:
            found.append(f"{name}: no test fires it")
        if notes["runbook"] != f"{DOCS}#{name.lower()}":
            found.append(f"{name}: leads to {notes['runbook']}")
        found += of_runbook(hapax, name, runbook.get(name.lower(), ""))
        commands = re.findall(r"(?<=: )hapax ([a-z].*?)(?=\. |$)", notes["description"])
        if not commands:
            found.append(f"{name}: its description names no command")
        for command in commands:
            if wrong_command(hapax, command):
                found.append(f"{name}: no such command: hapax {command}")
    read = set().union(*(metrics_in(expression) for expression in [rule["expr"] for rule in rules] + panels))
    found += [f"no worker writes {name}" for name in sorted(read - metrics)]
    found += [f"no panel shows {name}" for name in sorted(metrics - read - OFF_THE_BOARD)]
    found += [f"OFF_THE_BOARD names {name}" for name in sorted(OFF_THE_BOARD - (metrics - read))]
    for panel in json.loads(board_text)["panels"]:
        for link in panel.get("links", []):
            page, _, anchor = link["url"].split("${runbooks}/")[1].partition("#")
            if f"docs/{page}" != DOCS or anchor not in runbook:
                found.append(f"panel {panel['title']}: the docs have no {link['url']}")
    return found


def self_test(root, hapax, *texts):
    """Each fault, planted alone, must be found."""
    rules, tests, board, docs = texts
    faults = {
        "a threshold too high": (rules.replace("_seconds) > 300", "_seconds) > 30000"), tests, board, docs),
        "an alert that fires too early": (rules.replace("for: 2m", "for: 0m"), tests, board, docs),
        "an alert without a test": (rules.replace("HapaxHalted", "HapaxStopped"), tests, board, docs),
        "an unknown metric": (rules, tests, board.replace("hapax_in_flight", "hapax_in_fright"), docs),
        "a metric without a panel": (rules, tests, board.replace("hapax_partition_checkpoint_age", "hapax_partition_oldest_unsettled"), docs),
        "an unknown option": (rules.replace("--watch 2", "--look 2"), tests, board, docs),
        "an unknown command": (rules.replace("hapax dead list", "hapax dead lost"), tests, board, docs),
        "a description without a command": (rules.replace(": hapax check -c gate.json", ", or a topic"), tests, board, docs),
        "a section without a command": (rules, tests, board, docs.replace("hapax check -c gate.json ", "check gate.json ")),
        "a section that is gone": (rules, tests, board, docs.replace("### HapaxHalted", "### HapaxStopped")),
        "another section": (rules.replace("#hapaxhalted", "#hapaxworkerdown"), tests, board, docs),
        "a section without an end": (rules, tests, board, docs.replace("**It worked if** the watermark", "", 1)),
        "a section with an unknown option": (rules, tests, board, docs.replace("--did-not", "--did-never")),
        "a section with an unknown command": (rules, tests, board, docs.replace("`hapax outbox list`", "`hapax out list`")),
        "a panel's section that is gone": (rules, tests, board.replace("#deploys-and", "#deploy-and"), docs),
        "a query that is none": (rules, tests, board.replace("topk(10, ", "topk(10 "), docs),
    }
    missed = [name for name, texts in faults.items() if not complaints(root, hapax, *texts)]
    return [f"not found: {name}" for name in missed]


def main():
    if shutil.which("promtool") is None:
        print("no promtool: install the package prometheus")
        sys.exit(77)
    root, hapax = pathlib.Path(sys.argv[1]), sys.argv[2]
    texts = [(root / name).read_text() for name in (RULES, TESTS, BOARD, DOCS)]
    found = complaints(root, hapax, *texts) or self_test(root, hapax, *texts)
    print("\n".join(found) or f"{len(rules_of(texts[0]))} alerts, each with a test")
    sys.exit(1 if found else 0)


main()
