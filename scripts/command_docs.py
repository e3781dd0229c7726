#!/usr/bin/env python3
"""Writes hapax's man page and its completions for bash and zsh, from what `--help` prints.

  command_docs.py <binary> <folder>   writes hapax.1.gz, hapax.bash and _hapax
"""

import gzip
import pathlib
import re
import subprocess
import sys

COLUMN = 30  # in which --help begins to explain
COMPLETE_BASH = r"""
_hapax() {
  local current=${COMP_WORDS[COMP_CWORD]} at=hapax last='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* || -z ${_hapax_words["$at $word"]+set} ]] || at+=" $word"
    last=$word
  done
  # Without a word, bash completes file names.
  if [[ $last == -* && -n ${_hapax_words["$at $last"]+set} ]]; then
    COMPREPLY=($(compgen -W "${_hapax_words["$at $last"]}" -- "$current"))
  else
    COMPREPLY=($(compgen -W "${_hapax_words[$at]}" -- "$current"))
  fi
}
complete -o default -F _hapax hapax
"""
COMPLETE_ZSH = r"""
local at=hapax last='' word
for word in "${(@)words[2,CURRENT-1]}"; do
  [[ $word == -* || -z ${_hapax_words[$at $word]+set} ]] || at+=" $word"
  last=$word
done
[[ $last == -* && -n ${_hapax_words[$at $last]+set} ]] && at+=" $last"
if [[ -n ${_hapax_words[$at]} ]]; then
  compadd -- ${=_hapax_words[$at]}
else
  _files
fi
"""


class Command:
    """One `--help`: `entries` are (name, text) by section, such as ("--json", "For programs")."""

    def __init__(self, binary, path):
        self.path = path
        text = subprocess.run([binary, *path[1:], "--help"], capture_output=True, text=True, check=True).stdout
        about, usage, rest = re.fullmatch(r"(.*?)^Usage: (.*?)\n(.*)", text, re.DOTALL | re.MULTILINE).groups()
        self.about, self.usage, self.entries, self.footer = about.strip(), usage, {}, ""
        for block in re.split(r"\n\n", rest.strip("\n")):
            section = re.match(r"(Options|Positionals|Subcommands):\n", block)
            if not section:
                self.footer += block + "\n\n"
                continue
            entries = self.entries[section.group(1)] = []
            for line in block.splitlines()[1:]:
                if line.startswith(" " * COLUMN):
                    entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}".strip())
                elif line[COLUMN - 1:COLUMN] in ("", " "):
                    entries.append((line[:COLUMN].strip(), line[COLUMN:].strip()))
                else:  # so long that its text is below
                    entries.append((line.strip(), ""))

    def subcommands(self):
        return [name for name, _ in self.entries.get("Subcommands", [])]

    def words(self):
        """What may follow: by the path, and by the path and an option that takes a value."""
        at, flags, values = " ".join(self.path), [], {}
        for name, _ in self.entries.get("Options", []):
            names, _, kind = name.partition(" ")
            flags += names.split(",")
            choices = re.search(r"\{(.*?)\}", kind)
            if kind:
                values |= {f"{at} {flag}": choices.group(1).split(",") if choices else []
                           for flag in names.split(",")}
        return {at: self.subcommands() + flags} | values


def all_commands(binary, path=("hapax",)):
    command = Command(binary, path)
    yield command
    for name in command.subcommands():
        yield from all_commands(binary, (*path, name))


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def man_page(commands, version):
    page = [f'.TH HAPAX 1 "" "hapax {version}"', ".SH NAME",
            "hapax \\- Kafka consumers whose effects in PostgreSQL happen exactly once", ".SH SYNOPSIS",
            f".B {roff(commands[0].usage)}", ".SH DESCRIPTION",
            "Its documentation is in docs/ of its source: begin with README.md and docs/operating.md."]
    for command in commands:
        page += [".SH OPTIONS" if len(command.path) == 1 else f'.SS "{roff(" ".join(command.path))}"']
        if len(command.path) > 1:
            page += [roff(command.about), ".PP", f".B {roff(command.usage)}"]
        for section in ("Positionals", "Options", "Subcommands"):
            for name, text in command.entries.get(section, []):
                if not name.startswith("-h,"):
                    page += [".TP", f".B {roff(name)}", roff(text)]
        if command.footer:
            page += [".PP", ".nf", roff(command.footer.strip()), ".fi"]
        if len(command.path) == 1:
            page += [".SH COMMANDS"]
    return "\n".join(page) + "\n"


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    commands = list(all_commands(binary))
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    words = {key: value for command in commands for key, value in command.words().items()}
    lines = "\n".join(f'  ["{key}"]="{" ".join(value)}"' for key, value in words.items())
    (folder / "hapax.1.gz").write_bytes(gzip.compress(man_page(commands, told.split()[1]).encode(), 9, mtime=0))
    (folder / "hapax.bash").write_text(f"declare -gA _hapax_words=(\n{lines}\n){COMPLETE_BASH}")
    (folder / "_hapax").write_text("#compdef hapax\nlocal -A _hapax_words=(\n"
                                   + re.sub(r'\["(.*?)"\]=', r'"\1" ', lines) + f"\n){COMPLETE_ZSH}")


main()
