#!/usr/bin/env python3
"""Checks what deploy/ gives to Prometheus and Grafana, with promtool (Debian's package prometheus).

Every alert is fired by a test and leads to a section of the docs. Every command in it exists. Every
metric that an alert or a panel reads is one that a worker writes. Exits 77 without promtool.
Arguments: the root and the binary hapax.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

MOST_ALERTS = 13  # more are not read
RULES = "deploy/prometheus/hapax.rules.yml"
TESTS = "tests/deploy/hapax.rules.test.yml"
BOARD = "deploy/grafana/hapax.json"


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


def anchors(page):
    """As GitHub names the headings of a page."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)}


def leads_nowhere(root, link):
    page, _, anchor = link.partition("#")
    path = root / "docs" / page
    return not path.exists() or anchor not in anchors(path)


def wrong_command(hapax, command):
    words = command.split()
    verbs = [word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
    help_text = subprocess.run([hapax, *verbs, "--help"], capture_output=True, text=True)
    known = set(re.findall(r"(?<![\w-])--?[a-z]+", help_text.stdout))
    named = f"Usage: hapax {' '.join(verbs)} " in help_text.stdout
    return not named or [word for word in words if word.startswith("-") and word not in known]


def complaints(root, hapax, rules_text, tests_text, board_text):
    found = []
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
        if leads_nowhere(root, notes["runbook"].removeprefix("docs/")):
            found.append(f"{name}: the docs have no {notes['runbook']}")
        commands = re.findall(r"(?<=: )hapax ([a-z].*?)(?=\. |$)", notes["description"])
        for command in commands:
            if wrong_command(hapax, command):
                found.append(f"{name}: no such command: hapax {command}")
    for expression in [rule["expr"] for rule in rules] + panels:
        for name in sorted(metrics_in(expression) - metrics):
            found.append(f"no worker writes {name}")
    for panel in json.loads(board_text)["panels"]:
        for link in panel.get("links", []):
            if leads_nowhere(root, link["url"].split("${runbooks}/")[1]):
                found.append(f"panel {panel['title']}: the docs have no {link['url']}")
    return found


def self_test(root, hapax, *texts):
    """Each fault, planted alone, must be found."""
    rules, tests, board = texts
    faults = {
        "a threshold too high": (rules.replace("_seconds) > 300", "_seconds) > 30000"), tests, board),
        "an alert that fires too early": (rules.replace("for: 2m", "for: 0m"), tests, board),
        "an alert without a test": (rules.replace("HapaxHalted", "HapaxStopped"), tests, board),
        "an unknown metric": (rules, tests, board.replace("hapax_in_flight", "hapax_in_fright")),
        "an unknown option": (rules.replace("--watch 2", "--look 2"), tests, board),
        "an unknown command": (rules.replace("hapax dead list", "hapax dead lost"), tests, board),
        "a section that is gone": (rules.replace("#exit-codes", "#exits"), tests, board),
        "a panel's section that is gone": (rules, tests, board.replace("#deploys-and", "#deploy-and")),
        "a query that is none": (rules, tests, board.replace("topk(10, ", "topk(10 ")),
    }
    missed = [name for name, texts in faults.items() if not complaints(root, hapax, *texts)]
    return [f"not found: {name}" for name in missed]


def main():
    if shutil.which("promtool") is None:
        print("no promtool: install the package prometheus")
        sys.exit(77)
    root, hapax = pathlib.Path(sys.argv[1]), sys.argv[2]
    texts = [(root / name).read_text() for name in (RULES, TESTS, BOARD)]
    found = complaints(root, hapax, *texts) or self_test(root, hapax, *texts)
    print("\n".join(found) or f"{len(rules_of(texts[0]))} alerts, each with a test")
    sys.exit(1 if found else 0)


main()
