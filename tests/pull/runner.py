#!/usr/bin/env python3
"""Runs the tests of this folder and ends with `N passed, M failed`.

runner.py [NAME...]     names of modules, classes or tests, as unittest takes
                        them; all without any
"""
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


def main():
    loader = unittest.defaultTestLoader
    names = sys.argv[1:]
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
