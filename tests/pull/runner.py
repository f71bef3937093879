#!/usr/bin/env python3
"""Runs the tests of a folder and ends with `N passed, M failed`.

runner.py [NAME...]     names of modules, classes or tests, as unittest takes
                        them; all of the current folder without any
runner.py --halves MODULE...
                        two processes: these modules, and all others
"""
import glob
import os
import re
import subprocess
import sys
import time
import unittest


class Timed(unittest.TextTestResult):
    """Says how long each test took."""

    def startTest(self, test):
        self.begin = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok {time.monotonic() - self.begin:.2f} s")
        self.stream.flush()


def halves(modules):
    """The output of each process in one piece, the counts added up."""
    everything = {f[:-3] for f in glob.glob("test_*.py")}
    children = [subprocess.Popen([sys.executable, "-B", __file__, *sorted(half)],
                                 stdout=subprocess.PIPE, text=True)
                for half in (set(modules), everything - set(modules))]
    passed = failed = 0
    for child in children:
        out = child.communicate()[0]
        count = re.search(r"^(\d+) passed, (\d+) failed$", out, re.M)
        print(out[:count.start()] if count else out)
        passed += int(count[1]) if count else 0
        failed += int(count[2]) if count else 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or any(c.returncode for c in children) else 0


def main():
    sys.path.insert(0, os.getcwd())
    names = sys.argv[1:]
    if names[:1] == ["--halves"]:
        return halves(names[1:])
    loader = unittest.defaultTestLoader
    suite = (loader.loadTestsFromNames(names) if names
             else loader.discover(".", "test_*.py"))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2,
                                     resultclass=Timed).run(suite)
    # A test with several failed parts is one.
    failed = len({getattr(test, "test_case", test).id()
                  for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
