"""Two transactions at once, step by step; then everything at once."""
import random
import threading
import time
import unittest

import psycopg

from guard import ROUTE, GuardCase
from support import LOST, WAIT_SECONDS_MAX, connect

TIMED_OUT = "55P03"         # SQLSTATE: lock not available
NOT_HERE = "25001"          # SQLSTATE: the transaction is of another kind


class Open(GuardCase):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.session(), self.session()

    def second_waits(self, **more):
        """a has claimed in a transaction that is open, b waits for it."""
        self.a.run("BEGIN")
        first = self.claim(session=self.a, **more)
        self.assertEqual(first.outcome, "run")
        pending = self.start_claim(self.b, **more)
        self.assertFalse(pending.settle())
        return first, pending

    def test_claim_and_complete_in_one_transaction(self):
        """The second click would charge as well, or be turned away."""
        first, pending = self.second_waits()
        self.complete("k", first.token, self.a, b"charge 1")
        self.a.run("COMMIT")
        got = self.claimed(pending.result())
        self.assertEqual((got.outcome, got.response_body),
                         ("replay", b"charge 1"))

    def test_the_second_runs_when_the_first_is_rolled_back(self):
        """A click that failed would take the other one with it."""
        first, pending = self.second_waits()
        self.complete("k", first.token, self.a)
        self.a.run("ROLLBACK")
        got = self.claimed(pending.result())
        self.assertEqual((got.outcome, got.attempt), ("run", 1))
        self.refused(LOST, self.complete, "k", first.token)
        self.complete("k", got.token, self.b)

    def test_the_second_runs_when_the_first_let_go_of_a_next_life(self):
        """It would be told an answer that there is not."""
        self.used()
        self.pass_time(86401)
        first, pending = self.second_waits(request="other")
        self.release("k", first.token, session=self.a)
        self.a.run("COMMIT")
        got = self.claimed(pending.result())
        self.assertEqual((got.outcome, got.attempt), ("run", 3))
        self.complete("k", got.token, self.b)

    def test_the_second_is_busy_when_the_first_committed_only_its_claim(self):
        """It would run beside the first."""
        _, pending = self.second_waits()
        self.a.run("COMMIT")
        self.assertEqual(self.claimed(pending.result()).outcome, "busy")

    def test_a_mismatch_is_found_after_the_wait_too(self):
        """Of two requests under one key the second would get the answer of
        the first."""
        self.a.run("BEGIN")
        first = self.claim(session=self.a)
        pending = self.start_claim(self.b, request="other")
        self.assertFalse(pending.settle())
        self.complete("k", first.token, self.a)
        self.a.run("COMMIT")
        self.assertEqual(self.claimed(pending.result()).outcome, "mismatch")

    def test_what_was_let_go_meanwhile_is_not_for_another_request(self):
        """A key whose first request may have had effects would run another."""
        self.a.run("BEGIN")
        first = self.claim(session=self.a)
        pending = self.start_claim(self.b, request="other")
        self.assertFalse(pending.settle())
        self.release("k", first.token, "retry", session=self.a)
        self.a.run("COMMIT")
        self.assertEqual(self.claimed(pending.result()).outcome, "mismatch")
        self.assertEqual(self.claim().attempt, 2)

    def test_a_lease_begins_when_the_wait_is_over(self):
        """Whoever had to wait would have lost its lease before it began."""
        for crash in (False, True):     # a new row, and one that is there
            with self.subTest(crash=crash):
                if crash:
                    self.claim()
                    self.pass_time(61)
                _, pending = self.second_waits()
                self.pass_time(100)
                self.a.run("ROLLBACK")
                got = self.claimed(pending.result())
                self.assertEqual(got.outcome, "run")
                self.pass_time(40)
                self.assertEqual(self.claim().outcome, "busy")
                self.complete("k", got.token)
                self.sql("DELETE FROM paynotify.idempotency_keys")

    def test_how_long_to_wait_is_the_callers(self):
        """A request would hang as long as another one does."""
        self.a.run("BEGIN")
        self.claim(session=self.a)
        self.b.run("SET lock_timeout = '50 ms'")
        self.refused(TIMED_OUT, self.claim, session=self.b)

    def test_a_savepoint_takes_its_claim_back(self):
        """A key that nobody has would be busy; a holder that never was would
        complete."""
        self.a.run("BEGIN; SAVEPOINT s")
        first = self.claim(session=self.a)
        self.assertEqual(self.claim(session=self.a).outcome, "busy")
        self.a.run("ROLLBACK TO s")
        got = self.claim(session=self.b)
        self.assertEqual(got.outcome, "run")
        self.refused(LOST, self.complete, "k", first.token, self.a)
        self.a.run("ROLLBACK")
        self.complete("k", got.token, self.b)
        # One that is kept is kept.
        self.a.run("BEGIN; SAVEPOINT s")
        first = self.claim("j", self.a)
        self.a.run("RELEASE s; SAVEPOINT t")
        self.complete("j", first.token, self.a)
        self.a.run("ROLLBACK TO t")
        self.complete("j", first.token, self.a, b"second try")
        self.a.run("COMMIT")
        self.assertEqual(self.claim("j").response_body, b"second try")

    def test_other_isolation_levels_are_refused(self):
        """Their snapshot may be older than the move of a key: it would be in
        neither tier, and run again."""
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            self.a.run(f"BEGIN ISOLATION LEVEL {level}")
            self.refused(NOT_HERE, self.claim, session=self.a)
            self.a.run("ROLLBACK")

    def test_a_completion_that_is_not_committed_yet_holds_the_key(self):
        """Its lease ends before its commit, and the next one would run too."""
        first = self.claim()
        self.a.run("BEGIN")
        self.complete("k", first.token, self.a)
        self.pass_time(61)
        pending = self.start_claim(self.b)
        self.assertFalse(pending.settle())
        self.a.run("COMMIT")
        self.assertEqual(self.claimed(pending.result()).outcome, "replay")

    def test_one_of_many_takes_over(self):
        """Several would run when a lease has ended."""
        self.claim()
        self.pass_time(61)
        _, pending = self.second_waits()
        self.a.run("COMMIT")
        self.assertEqual(self.claimed(pending.result()).outcome, "busy")

    def test_a_repeat_holds_nobody_up(self):
        """One that looked and keeps its transaction open would keep the
        holder from completing, and the next from its answer."""
        first = self.claim()
        self.a.run("BEGIN")
        self.assertEqual(self.claim(session=self.a).outcome, "busy")
        self.complete("k", first.token, self.b)
        self.assertEqual(self.claim(session=self.a).outcome, "replay")
        self.assertEqual(self.claim(session=self.b).outcome, "replay")
        self.expire()
        self.assertEqual(self.archive(), 1)


class Move(GuardCase):
    """The janitor moves a key while somebody claims it."""

    def setUp(self):
        super().setUp()
        self.a, self.b = self.session(), self.session()

    def archive_by(self, session):
        return session.one("SELECT paynotify.archive_expired_keys(500)")

    def test_a_claim_beside_the_move_finds_the_key(self):
        """It would be in neither tier for a moment, and run again."""
        for n in range(2):      # the second time with a cached plan
            self.used("k", after_expiry="refuse", tenant=f"t{n}")
            self.expire()
            self.a.run("BEGIN")
            self.assertEqual(self.archive_by(self.a), 1)
            more = {"tenant": f"t{n}", "after_expiry": "refuse"}
            # Before the move commits: still there. After it: there.
            self.assertEqual(self.claim(session=self.b, **more).outcome,
                             "expired")
            self.a.run("COMMIT")
            self.assertEqual(self.claim(session=self.b, **more).outcome,
                             "expired")

    def test_a_key_that_comes_and_goes_between_two_looks(self):
        """A claim that found nothing in the hot tier, and then waits, would
        not see that the key was used, expired and moved meanwhile."""
        for n in range(2):
            self.a.run("BEGIN; LOCK TABLE paynotify.idempotency_keys"
                       " IN SHARE ROW EXCLUSIVE MODE")
            pending = self.start_claim(self.b, f"k{n}", after_expiry="refuse")
            self.assertFalse(pending.settle())
            self.complete(f"k{n}", self.claim(f"k{n}", self.a).token, self.a)
            self.a.run("UPDATE paynotify.idempotency_keys"
                       " SET expires_at = now()")
            self.assertEqual(self.archive_by(self.a), 1)
            self.a.run("COMMIT")
            self.assertEqual(self.claimed(pending.result()).outcome, "expired")

    def test_with_new_it_runs_once(self):
        """Two claims of an expired key, one before and one after the move,
        would both run."""
        self.used()
        self.expire()
        self.a.run("BEGIN")
        self.archive_by(self.a)
        pending = self.start_claim(self.b)
        self.assertFalse(pending.settle())
        self.a.run("COMMIT")
        got = self.claimed(pending.result())
        self.assertEqual((got.outcome, got.attempt), ("run", 2))
        self.assertEqual(self.claim().outcome, "busy")

    def test_an_open_claim_keeps_all_keys_where_they_are(self):
        """A key could move between the two looks of a claim; and the janitor
        would wait, with all receiving behind it, as long as an application
        likes."""
        self.used("old")
        self.expire()
        self.b.run("BEGIN")
        self.claim("new", self.b, after_expiry="refuse")
        self.refused(TIMED_OUT, self.archive)
        self.b.run("COMMIT")
        self.assertEqual(self.archive(), 1)

    def test_forget_beside_the_move(self):
        """It would delete from the one tier what has just gone to the
        other."""
        self.used()
        self.expire()
        self.a.run("BEGIN")
        self.archive_by(self.a)
        pending = self.b.start("SELECT paynotify.guard_forget('shop1', %s,"
                               " 'k', 'why', 'me')", [ROUTE])
        self.assertFalse(pending.settle())
        self.a.run("COMMIT")
        pending.result()
        self.assertEqual(self.claim(after_expiry="refuse").outcome, "run")


class Clicks:
    """Everybody clicks at once, and connections are cut at random."""

    THREADS = 50
    KILL_EVERY_SECONDS = 0.1
    KILLS_MAX = 40
    SECONDS_MAX = 120

    def __init__(self, case, clicks, **more):
        self.case, self.more = case, more
        self.clicks = clicks
        self.lock = threading.Lock()
        self.answers = {}
        self.problems = []
        self.kills = self.cut = 0
        self.ended = threading.Event()

    def click(self, c, key, kind):
        """One request. kind 0: all in one transaction; 1: the claim is
        committed before the work."""
        if kind == 0:
            with c.transaction():
                return self.work(c, self.claim(c, key), key)
        got = self.claim(c, key)
        with c.transaction():
            return self.work(c, got, key)

    def claim(self, c, key):
        return self.case.claimed(self.case.claim_by(
            lambda *a: c.execute(*a).fetchall(), key, key, "shop1", ROUTE,
            **self.more))

    def work(self, c, got, key):
        if got.outcome == "run":
            n = c.execute("INSERT INTO public.charges (key) VALUES (%s)"
                          " RETURNING n", [key]).fetchone()[0]
            c.execute("SELECT paynotify.guard_complete('shop1', %s, %s, %s,"
                      " 201, NULL, %s)",
                      [ROUTE, key, got.token, str(n).encode()])
            return str(n).encode()
        return got.response_body if got.outcome == "replay" else got.outcome

    def thread(self, number):
        r = random.Random(number)
        c = None
        while not self.ended.is_set():
            with self.lock:
                if not self.clicks:
                    break
                key = self.clicks.pop()
            answer = None
            while answer in (None, "busy") and not self.ended.is_set():
                try:
                    c = c or connect(self.case.database)
                    answer = self.click(c, key, r.randrange(2))
                    if answer == "busy":
                        self.ended.wait(0.05)
                except psycopg.Error as e:
                    if c is None or c.closed:       # cut
                        c = None
                        self.cut += 1
                    elif e.sqlstate != LOST:
                        self.problems.append(e)
                        return
            with self.lock:
                self.answers.setdefault(key, []).append(answer)

    def killer(self):
        r = random.Random(1)
        while not self.ended.wait(self.KILL_EVERY_SECONDS):
            pids = self.case.sql(
                "SELECT pid FROM pg_stat_activity WHERE datname ="
                " current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'")
            if pids and self.kills < self.KILLS_MAX:
                self.case.sql("SELECT pg_terminate_backend(%s)",
                              list(r.choice(pids)))
                self.kills += 1
            self.case.pass_time(2)      # a lease is 60: three seconds

    def run(self):
        threads = [threading.Thread(target=self.thread, args=(n,))
                   for n in range(self.THREADS)]
        killer = threading.Thread(target=self.killer)
        until = time.monotonic() + self.SECONDS_MAX
        killer.start()
        for t in threads:
            t.start()
        for t in threads:
            t.join(max(0, until - time.monotonic()))
        self.ended.set()
        killer.join()
        if self.problems:
            raise self.problems[0]


class Storm(GuardCase):
    own_database = True

    def setUp(self):
        super().setUp()
        # Not unique: a second charge must be seen.
        self.sql("CREATE TABLE public.charges (key text, n bigint"
                 " GENERATED ALWAYS AS IDENTITY)")

    def test_a_thousand_double_clicks_and_kills(self):
        """A customer would be charged twice, or told of another charge."""
        keys = [f"k{n}" for n in range(20)]
        clicks = keys * 50
        random.Random(2).shuffle(clicks)
        storm = Clicks(self, clicks, attempts_max=1000)
        storm.run()
        charges = {k: [str(n).encode() for n in ns] for k, ns in self.sql(
            "SELECT key, array_agg(n) FROM public.charges GROUP BY key")}
        self.assertEqual(sorted(charges), sorted(keys))
        for key, made in charges.items():
            self.assertEqual(len(made), 1, key)
            self.assertEqual(storm.answers[key], made * 50)
        self.assertGreater(storm.kills, 5)
        self.assertGreater(storm.cut, 3)

    def test_refuse_while_keys_expire_and_move(self):
        """A key that moves at the wrong moment would be charged again."""
        ended = threading.Event()
        moved = []

        def janitor():
            with connect(self.database) as c:
                while not ended.wait(0.02):
                    try:
                        moved.append(c.execute(
                            "SELECT paynotify.archive_expired_keys(500)"
                        ).fetchone()[0])
                    except psycopg.errors.LockNotAvailable:
                        pass

        def claims(number):
            with connect(self.database) as c:
                for n in range(100):
                    key = str((n + number // 2) % 50)
                    with c.transaction():
                        got = self.claimed(self.claim_by(
                            lambda *a: c.execute(*a).fetchall(), key, key,
                            "shop1", ROUTE, after_expiry="refuse",
                            ttl="1 ms"))
                        if got.outcome == "run":
                            c.execute("INSERT INTO public.charges (key)"
                                      " VALUES (%s)", [key])
                            c.execute("SELECT paynotify.guard_complete("
                                      "'shop1', %s, %s, %s, 200)",
                                      [ROUTE, key, got.token])

        j = threading.Thread(target=janitor)
        threads = [threading.Thread(target=claims, args=(n,))
                   for n in range(8)]
        for t in (j, *threads):
            t.start()
        for t in threads:
            t.join(WAIT_SECONDS_MAX)
        ended.set()
        j.join()
        self.assertEqual(self.sql("SELECT count(*), count(DISTINCT key)"
                                  " FROM public.charges"), [(50, 50)])
        self.assertGreater(sum(1 for m in moved if m), 3)


if __name__ == "__main__":
    unittest.main()
