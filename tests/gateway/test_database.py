"""The database goes away, at the worst moments. A server of its own, which is
killed as by a power cut, or stopped.
"""
import os
import signal
import subprocess
import unittest

from support import BUILD, Case, Daemon, connect, eventually

VARIABLES = ("PN_PG_DIR", "PGHOST", "PGDATABASE", "PN_DSN")


def shell(command):
    """Of tests/lib/pg.sh; returns the variables afterwards."""
    done = subprocess.run(
        ["bash", "-c", f'. "$PN_PG_LIB"; {command} >&2 && env -0'],
        stdout=subprocess.PIPE, check=True, text=True)
    return dict(v.split("=", 1) for v in done.stdout.split("\0") if v)


def setUpModule():
    global before
    before = {n: os.environ[n] for n in VARIABLES}
    made = shell("pg_start")
    os.environ.update({n: made[n] for n in VARIABLES})
    daemon = Daemon("", database=os.environ["PGDATABASE"])
    subprocess.run([f"{BUILD}/paynotifyctl", "db", "migrate", "-c",
                    daemon.conf], check=True, capture_output=True)
    subprocess.run(["rm", "-rf", daemon.folder], check=True)


def tearDownModule():
    shell("pg_stop")
    os.environ.update(before)


def postgres_pids():
    with open(f"{os.environ['PN_PG_DIR']}/data/postmaster.pid") as f:
        postmaster = f.readline().strip()
    return [int(postmaster), *map(int, subprocess.run(
        ["pgrep", "-P", postmaster], capture_output=True,
        text=True).stdout.split())]


class DatabaseCase(Case):
    routes = {
        "charges": "wait = 50s\nlease = 5m",
        "now": "wait = 0s\nlease = 5m",
        "one": "wait = 500ms\nlease = 5m\nmax_in_flight = 1",
        "retry": "wait = 50s\nlease = 3s",
        "hold": "wait = 50s\nlease = 3s\nunknown = hold",
    }

    def setUp(self):
        self.down = False

    def tearDown(self):
        if self.down:
            self.resume()
        super().tearDown()

    def kill(self):
        shell("pg_kill")
        self.down = True

    def resume(self):
        shell("pg_resume")
        self.down = False
        self.admin.close()
        type(self).admin = connect(self.database)

    def back(self):
        """Resumes; waits until the daemon can claim, settle and listen again:
        what it claims before it can settle is left to its lease."""
        self.resume()
        eventually(lambda: self.ask(self.key()).status == 201
                   and self.ask(self.key()).status == 201,
                   "the database is back for the gateway")

    def lock(self, key):
        """A transaction that has the key, until it is closed."""
        connection = connect(self.database)
        connection.autocommit = False
        connection.execute("SELECT 1 FROM paynotify.idempotency_keys"
                           " WHERE key = %s FOR UPDATE", [key])
        return connection

    def settled_once(self, key):
        """It was never told before; from here on it is one answer."""
        first = self.made(self.ask(key))
        self.replayed(self.ask(key), first)
        return first


class Short(DatabaseCase):
    """commit_timeout ends long before the database is back."""

    server = "commit_timeout = 500ms"

    def standby(self, what):
        self.sql(f"ALTER SYSTEM {what}")
        self.sql("SELECT pg_reload_conf()")

    def claim_waits(self):
        """A claim that is stored and waits for a standby: key, client. False:
        the server has not heard of it yet, and the request went through."""
        key = self.key()
        client = self.begin(key)
        eventually(lambda: self.upstream.seen(key) or self.sql(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
            " AND wait_event = 'SyncRep'", self.daemon.name),
            "it is claimed")
        if not self.upstream.seen(key):
            return key, client
        client.close()
        return False

    def test_gateway__without_the_database_nothing_goes_upstream(self):
        """503 and when to come again; a key cannot be looked up. When it is
        back, it runs as the first."""
        key = self.key()
        self.made(self.ask(self.key()))
        self.kill()
        said = self.problem(self.ask(key), "database", 503, again=True)
        self.assertIn("upstream was not asked", said["detail"])
        self.assertEqual(self.upstream.seen(key), [])
        self.back()
        self.settled_once(key)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__without_the_database_no_answer_is_remembered(self):
        """An operator may have it forgotten elsewhere: nobody would hear of
        it. Methods without effect pass."""
        key = self.key()
        first = self.made(self.ask(key))
        self.replayed(self.ask(key), first)
        self.kill()
        # Until it has noticed, what it told the moment before is true.
        eventually(lambda: self.ask(key).status == 503, "it has noticed")
        self.problem(self.ask(key), "database", 503, again=True)
        self.made(self.ask(None, method="GET", body=b""))
        self.back()
        self.replayed(self.ask(key), first)
        self.assertEqual(self.attempts(key), [1])

    def not_stored(self, route="charges", **more):
        """Killed between the upstream's answer and the commit, and away for
        longer than the clients wait: key."""
        key = self.key()
        client, seen = self.hold(key, route, **more)
        self.kill()
        seen.release()
        self.problem(client.read(), "not-stored", 503, again=True)
        return key

    def test_gateway__an_answer_that_is_not_stored_is_not_told(self):
        """Killed between the upstream's answer and the commit: 503. But the
        answer is kept while the lease lasts, and stored when the database is
        back: to run once more would be a second charge."""
        key = self.key()
        client, seen = self.hold(key)
        waiters = self.waiters(3, key)
        self.kill()
        seen.release()
        for c in [client, *waiters]:
            said = self.problem(c.read(), "not-stored", 503, again=True)
            self.assertIn("may have been done", said["detail"])
        self.back()
        self.in_state(key, "COMPLETED")
        first = self.ask(key)
        self.assertEqual(bytes(self.row(key, "response_body")[0]), first.body)
        self.replayed(first, first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_retry_waits_for_what_is_not_stored_yet(self):
        """As for any request that is under way: no second run, and no answer
        before the commit."""
        key = self.not_stored()
        waiters = self.waiters(3, key)
        self.back()
        first = waiters[0].read()
        self.assertEqual(first.status, 201, first)
        for reply in [first, *(c.read() for c in waiters[1:]), self.ask(key)]:
            self.replayed(reply, first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_retry_that_waits_no_longer_is_told_to_come_again(self):
        """Not that the work was done: that is not stored yet."""
        key = self.not_stored("now")
        self.problem(self.ask(key, "now"), "in-progress", 409, again=True)
        self.back()
        self.in_state(key, "COMPLETED")
        self.assertTrue(self.ask(key, "now").replayed)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_database_away_longer_than_the_lease_is_unknown(self):
        """The key is nobody's then: `unknown` says what becomes of it, as of
        one whose holder crashed."""
        retry = self.not_stored("retry")
        eventually(lambda: self.daemon.metric("flights") == 0,
                   "its lease is over")
        self.back()
        self.assertEqual(self.state(retry), "PROCESSING")
        self.assertRegex(self.daemon.log(), retry + '.*the upstream answered 201,'
                         " which could not be stored: for the key's next")
        first = self.made(self.ask(retry, "retry"))
        self.replayed(self.ask(retry, "retry"), first)
        self.assertEqual(self.attempts(retry), [1, 2])
        hold = self.not_stored("hold")
        eventually(lambda: self.daemon.metric("flights") == 0,
                   "its lease is over")
        self.back()
        self.problem(self.ask(hold, "hold"), "set-aside", 409)
        self.assertEqual(self.attempts(hold), [1])

    def test_gateway__what_is_known_not_to_be_done_is_told(self):
        """Nothing has to be stored for that: who waits gets the upstream's
        answer in the time of a commit, and the key is free once the database
        is back, not at the end of its lease."""
        key = self.key()
        client, seen = self.hold(key, then={"status": 429})
        self.kill()
        seen.release()
        self.made(client.read(), 429)
        self.back()
        eventually(lambda: self.state(key) is None, "it is free")
        self.made(self.ask(key))
        self.assertEqual(self.attempts(key), [1, 1])

    def test_gateway__answers_that_are_not_stored_have_a_limit(self):
        """They have their places in max_in_flight: else a database that takes
        claims, and no answers, would fill the memory with answers."""
        key, other = self.key(), self.key()
        client, seen = self.hold(key, "one")
        blocker = self.lock(key)
        seen.release()
        self.problem(client.read(), "not-stored", 503, again=True)
        self.problem(self.ask(other, "one"), "no-room", 503, again=True)
        self.assertEqual(self.upstream.seen(other), [])
        blocker.rollback()
        blocker.close()
        self.in_state(key, "COMPLETED")
        self.made(self.ask(other, "one"))
        self.assertTrue(self.ask(key, "one").replayed)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_stop_tries_to_store_what_is_not_stored_yet(self):
        """And ends: what it cannot store in the time of a commit is left to
        its lease. Who waits for it is told so."""
        daemon = self.start()
        key = self.not_stored(daemon=daemon)
        waiter = self.waiters(1, key, daemon=daemon)[0]
        daemon.signal(signal.SIGTERM)
        self.problem(waiter.read(), "stopping", 503, again=True)
        self.assertEqual(daemon.process.wait(60), 0, daemon.log())
        self.back()
        self.assertEqual(self.state(key), "PROCESSING")
        self.end_lease(key)
        self.made(self.ask(key))
        self.assertEqual(self.attempts(key), [1, 2])

    def test_gateway__a_claim_lost_in_the_commit_is_the_retrys(self):
        """Committed, and the server killed before it says so: 503. The
        retry would be told for the whole lease that somebody is at work."""
        self.made(self.ask(self.key()))
        self.standby("SET synchronous_standby_names = 'nobody'")
        self.addCleanup(self.standby, "RESET synchronous_standby_names")
        key, client = eventually(self.claim_waits, "a claim waits")
        self.kill()
        self.problem(client.read(), "database", 503, again=True)
        client.close()
        self.resume()
        self.standby("RESET synchronous_standby_names")
        self.assertEqual(self.state(key), "PROCESSING")
        eventually(lambda: self.ask(self.key()).status == 201, "it is back")
        self.settled_once(key)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_claim_that_is_late_sends_nothing(self):
        """The database hangs longer than anybody waits, and then says that
        the key is ours: it is given back, unsent."""
        self.made(self.ask(self.key()))
        key = self.key()
        pids = postgres_pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            self.problem(self.ask(key), "database", 503, again=True)
            self.assertEqual(self.upstream.seen(key), [])
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        eventually(lambda: self.ask(self.key()).status == 201, "it goes on")
        self.settled_once(key)
        self.assertEqual(self.attempts(key), [1])


class Patient(DatabaseCase):
    """commit_timeout is longer than the database is away."""

    server = "commit_timeout = 40s"

    def test_gateway__an_answer_is_stored_when_the_database_is_back(self):
        """The client waits, and gets what is kept."""
        key = self.key()
        client, seen = self.hold(key)
        self.kill()
        seen.release()
        self.resume()
        first = self.made(client.read())
        self.assertEqual(bytes(self.row(key, "response_body")[0]), first.body)
        self.replayed(self.ask(key), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_connection_lost_in_the_commit_is_resolved(self):
        """Killed while the settlement is under way: it is told again, and
        whichever of the two was committed, it is one answer."""
        key = self.key()
        client, seen = self.hold(key)
        blocker = self.lock(key)
        seen.release()
        eventually(lambda: self.sql(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND"
            " wait_event_type = 'Lock'", self.daemon.name),
            "the settlement waits")
        self.kill()
        blocker.close()
        self.resume()
        first = self.made(client.read())
        self.replayed(self.ask(key), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__what_is_locked_does_not_hold_up_others(self):
        """An application that has a key in an open transaction costs that key,
        not the route."""
        key = self.key()
        client, seen = self.hold(key)
        blocker = self.lock(key)
        seen.release()
        for _ in range(5):
            self.made(self.ask(self.key()))
        blocker.rollback()
        blocker.close()
        self.made(client.read())


if __name__ == "__main__":
    unittest.main()
