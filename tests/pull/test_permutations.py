"""Two workers and the end of a lease, in every order that there is: at most one
of them commits its work, and in the end it has been done once."""
import itertools
import unittest

import psycopg

from support import LOST, Case


def interleavings(*tracks):
    """All merges of the tracks that keep the order within each."""
    names = [i for i, t in enumerate(tracks) for _ in t]
    for order in sorted(set(itertools.permutations(names))):
        at = [iter(t) for t in tracks]
        yield [next(at[i]) for i in order]


class Worker:
    """Claims and acks as an application does; remembers what became of it."""

    def __init__(self, case, name):
        self.case, self.name = case, name
        self.session = case.session()
        self.begin()

    def begin(self):
        self.token = None
        self.failed = self.committed = False
        self.pending = None
        self.session.run("BEGIN")

    def settle(self):
        """The result of a statement that was blocked."""
        if self.pending is None:
            return
        try:
            self.pending.result()
        except psycopg.Error as e:
            self.case.assertEqual(e.sqlstate, LOST, e)
            self.failed = True
        self.pending = None

    def claim(self):
        self.settle()
        if not self.failed:
            got = self.session.run(
                "SELECT token FROM paynotify.claim('app', 1, '1 min')")
            self.token = got[0][0] if got else None

    def claim_alone(self):
        """In a transaction of its own, then a new one."""
        self.claim()
        self.session.run("COMMIT")
        self.session.run("BEGIN")

    def ack(self):
        if self.token is None:
            return
        self.pending = self.session.start(
            "WITH w AS (INSERT INTO work VALUES (1, %s))"
            " SELECT paynotify.ack(%s)", [self.name, self.token])
        # It may have to wait for the other: then it goes on later.
        if self.pending.settle():
            self.settle()

    def commit(self):
        self.settle()
        self.session.run("COMMIT" if not self.failed else "ROLLBACK")
        self.committed = self.token is not None and not self.failed

    def ack_commit(self):
        self.ack()
        self.commit()

    def rollback(self):
        self.settle()
        self.session.run("ROLLBACK")


class Permutations(Case):
    def setUp(self):
        super().setUp()
        self.workers = [Worker(self, n) for n in "ab"]

    def run_all(self, *tracks):
        count = done_by = 0
        for steps in interleavings(*tracks):
            count += 1
            try:
                done_by += self.run_one(steps)
            except AssertionError as e:
                raise AssertionError(" ".join(steps)) from e
        return count, done_by

    def run_one(self, steps):
        self.sql("DELETE FROM work; DELETE FROM paynotify.claims;"
                 "DELETE FROM paynotify.deliveries;"
                 "DELETE FROM paynotify.consumer_marks;"
                 "DELETE FROM paynotify.consumers;"
                 "DELETE FROM paynotify.event_log")
        self.register()
        self.event("o1")
        for step in steps:
            who, _, what = step.partition(".")
            if who == "expire":
                self.pass_time(61)
            elif who == "expire_tend":
                self.pass_time(61)
                self.tend()
            else:
                getattr(self.workers["ab".index(who)], what)()
        work = self.value("SELECT count(*) FROM work")
        committed = sum(w.committed for w in self.workers)
        self.assertLessEqual(committed, 1)
        self.assertEqual(work, committed)
        # Whatever became of them, a third gets what is left, once.
        for w in self.workers:
            w.begin()
            w.session.run("ROLLBACK")
        self.pass_time(61)
        self.tend()
        left = self.claim()
        self.assertEqual(len(left), 1 - work)
        self.done(*left.values())
        self.assertEqual(self.claim(), {})
        self.pass_time(61)
        self.tend()
        self.assertEqual(self.states(), {})
        for w in self.workers:
            w.begin()
        return committed

    def test_claims_that_commit_at_once(self):
        """The usual way: claim, then work and ack in a transaction."""
        n, done = self.run_all(["a.claim_alone", "a.ack", "a.commit"],
                               ["expire"],
                               ["b.claim_alone", "b.ack", "b.commit"])
        self.assertEqual(n, 140)
        self.assertGreater(done, 100)

    def test_all_in_one_transaction(self):
        """Claim, work and ack in one transaction that stays open."""
        n, done = self.run_all(["a.claim", "a.ack", "a.commit"], ["expire"],
                               ["b.claim", "b.ack", "b.commit"])
        self.assertEqual(n, 140)
        self.assertGreater(done, 100)

    def test_one_rolls_back_while_leases_are_tended(self):
        """The janitor between any two steps, and a worker that fails."""
        n, done = self.run_all(["a.claim_alone", "a.ack", "a.rollback"],
                               ["expire_tend"],
                               ["b.claim", "b.ack_commit"])
        self.assertEqual(n, 60)
        self.assertGreater(done, 20)


if __name__ == "__main__":
    unittest.main()
