"""Requests that come while the first one is being worked on."""
import time
import unittest

from support import Case, connect, eventually

MANY = 50
CROWD = 2000


class Progress(Case):
    server = "max_connections = 5000\ncommit_timeout = 20s"
    routes = {
        "charges": "wait = 50s",
        "now": "wait = 0s",
        "soon": "wait = 300ms",
        "long": "wait = 50s\nlease = 10m",
    }

    def shared(self, first, others):
        """One answer, told once as the first and to all others as replays."""
        self.made(first)
        for reply in others:
            self.replayed(reply, first)

    def test_gateway__concurrent_requests_are_one_at_the_upstream(self):
        """A double click fifty times: one charge, and everybody gets the same
        bytes."""
        key = self.key()
        client, seen = self.hold(key, then={"body": "\0\xff" * 500})
        others = self.waiters(MANY, key)
        seen.release()
        self.shared(client.read(), [c.read() for c in others])
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_race_has_one_winner(self):
        """Without anybody being first: all are sent before any is read, to two
        daemons."""
        other = self.start()
        key = self.key()
        clients = [self.begin(key, daemon=(self.daemon, other)[i % 2])
                   for i in range(MANY)]
        replies = [c.read() for c in clients]
        self.assertEqual(self.attempts(key), [1])
        self.assertEqual({(r.status, r.body) for r in replies},
                         {(201, replies[0].body)})
        self.assertEqual([r.replayed for r in replies].count(False), 1)

    def test_gateway__two_thousand_waiters_cost_no_thread_each(self):
        """Nor a statement, nor an upstream's connection."""
        key = self.key()

        def threads():
            with open(f"/proc/{self.daemon.pid}/status") as f:
                return [line for line in f if line.startswith("Threads:")]

        client, seen = self.hold(key, "long")
        before, connections = threads(), self.upstream.connections
        others = self.waiters(CROWD, key, "long")
        self.assertEqual(threads(), before)
        self.assertEqual(self.daemon.metric("flights"), 1)
        seen.release()
        self.shared(client.read(), [c.read() for c in others])
        self.assertEqual(self.attempts(key), [1])
        self.assertEqual(self.upstream.connections, connections)
        self.assertEqual(self.daemon.metric("flights"), 0)

    def test_gateway__wait_0_is_409_at_once(self):
        """As the draft has it: a conflict, and when to come again."""
        key = self.key()
        client, seen = self.hold(key, "now")
        said = self.problem(self.ask(key, "now"), "in-progress", 409,
                            again=True)
        self.assertIn("same key", said["detail"])
        seen.release()
        first = self.made(client.read())
        self.replayed(self.ask(key, "now"), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_wait_that_ends_is_409(self):
        """Only for who waits: the first one waits for the upstream."""
        key = self.key()
        client, seen = self.hold(key, "soon")
        others = self.waiters(3, key, "soon")
        for c in others:
            self.problem(c.read(), "in-progress", 409, again=True)
        self.assertEqual(self.state(key), "PROCESSING")
        seen.release()
        first = self.made(client.read())
        self.replayed(self.ask(key, "soon"), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_client_that_goes_does_not_undo_the_work(self):
        """What it asked for is done, so the answer is kept for its repeat."""
        key = self.key()
        client, seen = self.hold(key)
        client.close()
        seen.release()
        self.in_state(key, "COMPLETED")
        reply = self.ask(key)
        self.assertEqual((reply.status, reply.replayed), (201, True))
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__waiters_survive_the_first_client(self):
        """And each other: those who go are nobody's loss."""
        key = self.key()
        client, seen = self.hold(key)
        others = self.waiters(6, key)
        for c in [client, *others[::2]]:
            c.close()
        seen.release()
        replies = [c.read() for c in others[1::2]]
        self.assertEqual([(r.status, r.replayed, r.body) for r in replies],
                         [(201, True, replies[0].body)] * 3)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__pipelined_repeats_get_their_answers_in_order(self):
        """On one connection as on several."""
        key = self.key()
        with self.daemon.connect() as c:
            for _ in range(3):
                c.send("POST", "/v1/charges", self.headers(key), b"{}")
            first = self.made(c.read())
            self.replayed(c.read(), first)
            self.replayed(c.read(), first)
        self.assertEqual(self.attempts(key), [1])


class AcrossDaemons(Case):
    server = "commit_timeout = 20s"
    routes = {"charges": "wait = 50s\nlease = 5m", "now": "wait = 0s"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.start()
        cls.watch = connect("postgres") # counts as no commit of the database

    @classmethod
    def tearDownClass(cls):
        cls.watch.close()
        super().tearDownClass()

    def looked(self):
        """When the other daemon's last claim ended, once it has."""
        rows = self.watch.execute(
            "SELECT max(query_start) FROM pg_stat_activity WHERE"
            " application_name = %s AND state = 'idle' AND query LIKE"
            " %s", [self.other.name, "%guard_claim_many%"]).fetchall()
        return rows[0][0]

    def next_look(self):
        """Waits until it has claimed once more."""
        before = self.looked()
        eventually(lambda: (now := self.looked()) is not None and now != before
                   , "the other daemon looks again")

    def commits(self):
        return self.watch.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE"
            " datname = %s", [self.database]).fetchall()[0][0]

    def test_gateway__another_daemons_waiters_share_the_answer(self):
        """They are told by a notification when there is one, not when it
        would be their turn to look: that is once a second."""
        delays = []
        names = ("waits_total", "wait_seconds_count")
        counts = [self.other.metric(n) + 3 for n in names]
        for _ in range(3):
            key = self.key()
            client, seen = self.hold(key)
            before = self.looked()
            waiter = self.begin(key, daemon=self.other)
            eventually(lambda: self.looked() != before, "it found it busy")
            self.next_look()
            seen.release()
            first = self.made(client.read())
            begin = time.monotonic()
            self.replayed(waiter.read(), first)
            delays.append(time.monotonic() - begin)
            self.assertEqual(self.attempts(key), [1])
        self.assertEqual([self.other.metric(n) for n in names], counts)
        # The quickest of three: a busy machine is no fault.
        self.assertLess(min(delays), 0.5)

    def test_gateway__waiting_is_no_storm_of_polling(self):
        """Two hundred who wait at another daemon: one statement a second, for
        all of them together."""
        key = self.key()
        client, seen = self.hold(key)
        others = [self.begin(key, daemon=self.other)]
        others += self.waiters(199, key, daemon=self.other)
        self.next_look()
        before = self.commits()
        for _ in range(3):
            self.next_look()
        commits = self.commits() - before
        seen.release()
        first = self.made(client.read())
        for c in others:
            self.replayed(c.read(), first)
        # Three looks, renewals of leases, the janitors and health of two
        # daemons; what each of 200 would ask for once is far more.
        self.assertLess(commits, 100)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_key_is_busy_at_another_daemon(self):
        """wait = 0: 409, with how long the lease lasts."""
        key = self.key()
        client, seen = self.hold(key, "now")
        reply = self.ask(key, "now", daemon=self.other)
        self.problem(reply, "in-progress", 409, again=True)
        self.assertGreater(int(reply.get("Retry-After")), 1)
        self.assertLessEqual(int(reply.get("Retry-After")), 30)
        seen.release()
        self.made(client.read())

    def test_gateway__another_daemon_runs_what_was_freed(self):
        """Told of a release, a waiter elsewhere does not wait for the lease:
        it is the next."""
        key = self.key()
        client, seen = self.hold(key, then={"status": 429})
        before = self.looked()
        waiter = self.begin(key, daemon=self.other)
        eventually(lambda: self.looked() != before, "it found it busy")
        seen.release()
        self.made(client.read(), 429)
        self.made(waiter.read())
        self.assertEqual(self.attempts(key), [1, 1])

    def test_gateway__an_application_shares_keys_by_sql(self):
        """Who claims by SQL does not notify: looked at once a second."""
        key = self.key()
        first = self.made(self.ask(key))
        self.replayed(self.ask(key, daemon=self.other), first)
        hash = self.row(key, "request_hash")[0]
        key = self.key()
        claimed = self.sql(
            "SELECT outcome, token FROM paynotify.guard_claim('shop1',"
            " 'POST /v1/charges', %s, %s)", key, hash)[0]
        self.assertEqual(claimed[0], "run")
        waiter = self.begin(key)
        self.sql("SELECT paynotify.guard_complete('shop1', 'POST /v1/charges',"
                 " %s, %s, 202, 'Content-Type: text/plain', 'by hand')", key,
                 claimed[1])
        reply = waiter.read()
        self.assertEqual((reply.status, reply.body, reply.replayed),
                         (202, b"by hand", True))
        self.assertEqual(self.attempts(key), [])


if __name__ == "__main__":
    unittest.main()
