#!/usr/bin/env python3
"""Holds the man page and the completions, as they are installed, against what --help prints.

Each subcommand and option of each command is in its section of the man page, and is offered by bash
and zsh; values of a fixed set are offered after their option. Arguments: the binary, and the folder
with hapax.1.gz, hapax.bash and _hapax. Without zsh its file is not tried.
"""

import gzip
import re
import shutil
import subprocess
import sys


def run(*argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, check=True, **more).stdout


def all_helps(binary, path=()):
    text = run(binary, *path, "--help")
    yield path, text
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  (\w\S*)", listed.group(1) if listed else "", re.MULTILINE):
        yield from all_helps(binary, (*path, name))


def wanted(text):
    """Options at the start of a line, and subcommands."""
    for line in text.splitlines():
        names = re.match(r"  (-\S+)", line)
        yield from names.group(1).split(",") if names else ()
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    yield from re.findall(r"^  (\w\S*)", listed.group(1) if listed else "", re.MULTILINE)


def offered_by_bash(folder, words):
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hapax; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return run("bash", "-c", script, "bash", f"{folder}/hapax.bash", *words).split()


def offered_by_zsh(folder, words):
    script = ('compadd() { shift; print -l -- "$@" }; _files() { }; complete_it() { source "$1" }; '
              'file=$1; shift; words=("$@"); CURRENT=$#; complete_it $file')
    return run("zsh", "-fc", script, "zsh", f"{folder}/_hapax", *words).split()


def sections(page):
    """The text of each command of the man page, by its words."""
    plain = page.replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`").replace("\\e", "\\")
    top, *parts = re.split(r'^\.SS "hapax (.*)"$', plain, flags=re.MULTILINE)
    return {(): top} | {tuple(name.split()): text for name, text in zip(parts[::2], parts[1::2])}


def complaints(binary, folder):
    found = []
    page = gzip.open(f"{folder}/hapax.1.gz", "rt").read()
    told = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True,
                          env={"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "PATH": "/usr/bin:/bin"})
    if told.returncode or told.stderr:
        found.append(f"man complains: {told.stderr}")
    manual = sections(page)
    shells = [("bash", offered_by_bash)] + [("zsh", offered_by_zsh)] * bool(shutil.which("zsh"))
    helps = dict(all_helps(binary))
    if set(manual) != set(helps):
        found.append(f"the man page has not the commands of --help: {set(manual) ^ set(helps)}")
    for path, text in helps.items():
        name = " ".join(("hapax", *path))
        names = set(wanted(text))
        for missing in names - {"-h", "--help"} - set(re.split(r"[\s,]+", manual.get(path, ""))):
            found.append(f"the man page of {name} lacks {missing}")
        for shell, offered in shells:
            if set(offered(folder, ["hapax", *path, ""])) != names:
                found.append(f"{shell} offers after {name} not what --help lists")
            for option, values in re.findall(r"^  (?:-\w,)?(--\S+) \S*\{(.*?)\}", text, re.MULTILINE):
                if offered(folder, ["hapax", *path, option, ""]) != values.split(","):
                    found.append(f"{shell} does not offer the values of {name} {option}")
    return found


def main():
    found = complaints(*sys.argv[1:])
    print("\n".join(found) or "the man page and the completions are those of --help")
    sys.exit(1 if found else 0)


main()
