#!/usr/bin/env python3
"""Checks the rules of rules.py and layers.py over the tree; prints
path:line: rule: what is wrong. Exit status 1 when something is.

    lint.py [--root DIR] [RULE...]

Reads what git would commit (tracked, or new and not ignored), or every file
where there is no git.
"""
import argparse
import os
import subprocess
import sys

import ctext
import rules

TEXT_BYTES_MAX = 4 << 20


class Tree:
    """The files of a checkout, read once."""

    def __init__(self, root):
        self.root = root
        self.notes = []
        self._files = sorted(self._list())
        self._texts, self._sources = {}, {}

    def _list(self):
        if os.path.exists(os.path.join(self.root, ".git")):
            out = subprocess.run(
                ["git", "-C", self.root, "-c", "safe.directory=*", "ls-files", "-z",
                 "-co", "--exclude-standard"], check=True, capture_output=True).stdout
            names = os.fsdecode(out).split("\0")
            return [n for n in set(names)
                    if n and os.path.isfile(os.path.join(self.root, n))]
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [d for d in folders
                          if d not in ("build", ".local", "node_modules")]
            found += [os.path.relpath(os.path.join(folder, n), self.root)
                      for n in names]
        return found

    def has(self, path):
        return path in self._files

    def note(self, text):
        self.notes.append(text)

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), "rb") as f:
                data = f.read(TEXT_BYTES_MAX)
            self._texts[path] = ("" if b"\0" in data else
                                 data.decode("utf-8", "replace"))
        return self._texts[path]

    def source(self, path):
        if path not in self._sources:
            self._sources[path] = ctext.Source(self.text(path))
        return self._sources[path]

    def c_files(self, *folders):
        return [f for f in self._files if f.endswith((".c", ".h"))
                and f.split("/")[0] in folders]

    def text_files(self):
        return [f for f in self._files
                if not f.endswith("package-lock.json") and self.text(f)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    parser.add_argument("rule", nargs="*")
    a = parser.parse_args()
    for name in a.rule:
        if name not in rules.RULES:
            parser.error(f"no rule {name}; there are: {' '.join(rules.RULES)}")
    tree = Tree(os.path.normpath(a.root))
    found = 0
    for name in a.rule or rules.RULES:
        for path, line, message in rules.RULES[name](tree):
            print(f"{path}:{line}: {name}: {message}")
            found += 1
    for note in tree.notes:
        print(note)
    print(f"lint: {len(a.rule) or len(rules.RULES)} rules,"
          f" {len(tree.c_files('src', 'include', 'tests'))} C files,"
          f" {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
