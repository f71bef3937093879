#!/usr/bin/env python3
"""Runs clang-tidy over src, two files at a time. A file whose preprocessed text
was clean before, under the same .clang-tidy, is not looked at again: the cache
(build/lint) makes the second run take seconds.

    tidy.py BUILD_DIR [FILE...]      BUILD_DIR has compile_commands.json
"""
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CACHE = os.path.join(ROOT, "build", "lint")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def tool(*names):
    for name in names:
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            if os.access(os.path.join(folder, name), os.X_OK):
                return name
    sys.exit(f"tidy: none of {' '.join(names)} is installed")


def entries(build, only):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for e in json.load(f):
            path = os.path.normpath(os.path.join(e["directory"], e["file"]))
            name = os.path.relpath(path, ROOT)
            if name.startswith("src" + os.sep) and (not only or name in only):
                yield path, name, e


def digest(entry, seed):
    """Of the preprocessed file: headers count too."""
    words = shlex.split(entry["command"])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    words = words[:words.index("-o")] + ["-E", entry["file"]]
    out = subprocess.run(words, cwd=entry["directory"], capture_output=True,
                         check=False)
    if out.returncode:
        return None
    return hashlib.sha256(seed + out.stdout).hexdigest()


def check(tidy, build, path, entry, seed):
    mark = digest(entry, seed)
    stamp = os.path.join(CACHE, mark) if mark else None
    if stamp and os.path.exists(stamp):
        return "cached", ""
    out = subprocess.run([tidy, "--quiet", "-p", build, path],
                         capture_output=True, text=True, check=False)
    if out.returncode or "warning:" in out.stdout or "error:" in out.stdout:
        return "failed", out.stdout + out.stderr
    if stamp:
        with open(stamp, "w", encoding="ascii"):
            pass
    return "clean", ""


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    tidy = tool("clang-tidy-14", "clang-tidy")
    os.makedirs(CACHE, exist_ok=True)
    version = subprocess.run([tidy, "--version"], capture_output=True, check=True)
    seed = version.stdout + read(os.path.join(ROOT, ".clang-tidy"))
    count = {"clean": 0, "cached": 0, "failed": 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        work = {pool.submit(check, tidy, build, path, e, seed): name
                for path, name, e in entries(build, sys.argv[2:])}
        for done in concurrent.futures.as_completed(work):
            state, text = done.result()
            count[state] += 1
            if state == "failed":
                print(f"tidy: {work[done]}\n{text}", end="")
    print(f"tidy: {sum(count.values())} files, {count['cached']} of them"
          f" unchanged, {count['failed']} with problems")
    return 1 if count["failed"] or not sum(count.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
