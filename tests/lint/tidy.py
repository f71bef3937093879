#!/usr/bin/env python3
"""Runs clang-tidy over src. A file that was clean before, with the same headers of
the project and the same .clang-tidy, is not looked at again: the cache
(build/lint) makes the second run take seconds.

    tidy.py [--deep] BUILD_DIR [FILE...]   BUILD_DIR has compile_commands.json

--deep: the analyser follows each function as far as it does by default, which
takes eight times as long.
"""
import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CACHE = os.path.join(ROOT, "build", "lint")
# The analyser gives up a function after so many states; its default is 225,000,
# which functions of 70 lines hardly need and a few spend on the same paths again.
STATES_MAX = 10000
QUICK = [f"--extra-arg={word}" for word in
         ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={STATES_MAX}")]
FILES_A_PROCESS = 8     # to start one takes as long as to look at a short file


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


def headers():
    """Of the project, all of them: which of them a file includes, directly or
    not, only a preprocessor knows, and it takes longer than most checks."""
    names = glob.glob(os.path.join(ROOT, "src", "**", "*.h"), recursive=True)
    names += glob.glob(os.path.join(ROOT, "include", "**", "*.h"), recursive=True)
    return b"".join(read(name) for name in sorted(names))


def stamp(path, entry, seed):
    text = seed + entry["command"].encode() + read(path)
    return os.path.join(CACHE, hashlib.sha256(text).hexdigest())


def problems(command, paths):
    """What clang-tidy has to say."""
    out = subprocess.run([*command, *paths], capture_output=True, text=True,
                         check=False)
    if out.returncode or "warning:" in out.stdout or "error:" in out.stdout:
        return out.stdout + out.stderr or f"exit status {out.returncode}"
    return ""


def check(command, files):
    """Files as {path: stamp}; several at once, and one by one if one is bad."""
    if not problems(command, files):
        bad = {}
    else:
        bad = {path: text for path in files
               if (text := problems(command, [path]))}
    for path, mark in files.items():
        if path not in bad:
            with open(mark, "w", encoding="ascii"):
                pass
    return bad


def main():
    args = sys.argv[1:]
    quick = [] if "--deep" in args else QUICK
    args = [a for a in args if a != "--deep"]
    if not args:
        sys.exit(__doc__)
    build = os.path.abspath(args[0])
    tidy = tool("clang-tidy-14", "clang-tidy")
    command = [tidy, "--quiet", "-p", build, *quick]
    os.makedirs(CACHE, exist_ok=True)
    version = subprocess.run([tidy, "--version"], capture_output=True, check=True)
    seed = hashlib.sha256(
        version.stdout + read(os.path.join(ROOT, ".clang-tidy")) + headers()
        + " ".join(quick).encode()).digest()
    files, new, bad = {}, {}, {}
    for path, name, entry in entries(build, args[1:]):
        files[path] = name
        mark = stamp(path, entry, seed)
        if not os.path.exists(mark):
            new[path] = mark
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        parts = [dict(list(new.items())[i:i + FILES_A_PROCESS])
                 for i in range(0, len(new), FILES_A_PROCESS)]
        for found in pool.map(lambda part: check(command, part), parts):
            for path, text in found.items():
                print(f"tidy: {files[path]}\n{text}", end="")
            bad.update(found)
    print(f"tidy: {len(files)} files, {len(files) - len(new)} of them unchanged,"
          f" {len(bad)} with problems")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
