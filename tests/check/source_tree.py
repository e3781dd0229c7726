"""What the checks share: the files of the tree, and proving that a check can fail.

A check is a function from folders (the root first) to a list of complaints. Run with them it prints
the complaints and exits 1 where there are any. Run with --self-test it plants each of its faults in a copy
of a healthy little tree and demands that exactly the planted ones are reported.
"""

import pathlib
import re
import sys
import tempfile

FOLDERS = ("include", "src", "tests", "examples")
CPP = (".cpp", ".hpp")


def files(root, suffixes, folders=FOLDERS):
    """Paths relative to root, sorted."""
    found = (path for folder in folders for path in (root / folder).rglob("*"))
    return sorted(p.relative_to(root) for p in found if p.suffix in suffixes and p.is_file())


def without_comments_and_strings(text):
    """The same text with the insides of comments and literals blanked; line numbers stay."""
    pattern = (r'R"(?P<tag>[^(\s]{0,16})\(.*?\)(?P=tag)"'
               r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n]){1,8}\'|//[^\n]*|/\*.*?\*/')
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    # A quote between digits separates thousands.
    return re.sub(pattern, blank, re.sub(r"(?<=\d)'(?=\d)", " ", text), flags=re.DOTALL)


def plant(root, tree):
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test(check, healthy, faults):
    """faults: (files to plant, what each complaint must hold) pairs."""
    wrong = []
    for tree, expected in [({}, [])] + faults:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            plant(root, {**healthy, **tree})
            complaints = check(root)
        matched = len(complaints) == len(expected) and all(
            any(part in complaint for complaint in complaints) for part in expected)
        if not matched:
            wrong.append(f"planted {sorted(tree)}, expected {expected}, got {complaints}")
    return wrong


def main(check, healthy, faults, check_planted=None):
    if sys.argv[1:] == ["--self-test"]:
        complaints = self_test(check_planted or check, healthy, faults)
    else:
        complaints = check(*map(pathlib.Path, sys.argv[1:]))
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)
