#!/usr/bin/env python3
"""Runs the modules of the folder, a process each, side by side; or, with
arguments as unittest takes them, those in this process. Ends with
`N passed, M failed`.
"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

ONE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                   "../pull/runner.py")
PROCESSES = 6
# Those that wait longest come first.
FIRST = ["test_database", "test_stop", "test_leases", "test_progress"]


def run(module):
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-B", ONE, module], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return module, done, time.monotonic() - begin


def main():
    if sys.argv[1:]:
        os.execv(sys.executable, [sys.executable, "-B", ONE, *sys.argv[1:]])
    modules = [f[:-3] for f in glob.glob("test_*.py")]
    modules.sort(key=lambda m: (m not in FIRST, m))
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        for module, done, seconds in pool.map(run, modules):
            count = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout,
                              re.M)
            text = done.stdout[:count.start()] if count else done.stdout
            print(f"== {module}: {seconds:.1f} s\n{text}", flush=True)
            passed += int(count[1]) if count else 0
            failed += int(count[2]) if count else 1
            if done.returncode and count and count[2] == "0":
                failed += 1 # what is around the tests did
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
