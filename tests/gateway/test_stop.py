"""How a daemon ends, and what it counts."""
import signal
import socket
import unittest

from support import BODY, Case, eventually


class Stop(Case):
    routes = {
        "charges": "wait = 50s\ntimeout = 60s",
        "retry": "wait = 50s\ntimeout = 60s",
        "hold": "wait = 50s\ntimeout = 60s\nunknown = hold",
        "release": "wait = 50s\ntimeout = 60s\nunknown = release",
        "one": "wait = 50s\ntimeout = 60s\nmax_in_flight = 1",
    }

    def stopping(self, daemon):
        """Told to stop, and no longer accepting."""
        daemon.signal(signal.SIGTERM)

        def refused():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", daemon.port)) != 0

        eventually(refused, "it accepts no more")

    def ended(self, daemon):
        self.assertEqual(daemon.process.wait(60), 0, daemon.log())

    def test_gateway__a_stop_answers_what_is_in_flight(self):
        """A deployment must not make a charge unknown."""
        daemon = self.start()
        key = self.key()
        client, seen = self.hold(key, daemon=daemon)
        others = self.waiters(5, key, daemon=daemon)
        passing = self.begin(None, method="GET", body=b"", daemon=daemon,
                             do={"hold": True, "status": 200})
        get = self.upstream.wait_for(
            lambda: [r for r in self.upstream.requests if r.method == "GET"],
            "the GET")[0]
        self.stopping(daemon)
        self.assertFalse(daemon.exited())
        seen.release()
        get.release()
        first = self.made(client.read())
        for c in others:
            self.replayed(c.read(), first)
        self.made(passing.read(), 200)
        self.ended(daemon)
        self.replayed(self.ask(key), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_stop_ends_when_its_grace_does(self):
        """Who hangs does not keep it: what was sent is unknown, and `unknown`
        says what becomes of its key; what was not sent is free."""
        daemon = self.start()
        keys, clients = {}, {}
        for route in ("retry", "hold", "release", "one"):
            keys[route] = self.key()
            clients[route] = self.hold(keys[route], route, daemon=daemon)[0]
        waiter = self.waiters(1, keys["retry"], "retry", daemon=daemon)[0]
        queued = self.key()
        in_queue = self.begin(queued, "one", daemon=daemon)
        self.in_state(queued, "PROCESSING")
        self.stopping(daemon)
        for c in [*clients.values(), waiter]:
            said = self.problem(c.read(), "interrupted", 503, again=True)
            self.assertIn("may have been done", said["detail"])
        self.problem(in_queue.read(), "stopping", 503, again=True)
        self.ended(daemon)
        held = "state::text, lease_token IS NOT NULL"
        self.assertEqual(self.row(keys["retry"], held), ("PROCESSING", True))
        self.assertEqual(self.row(keys["hold"], held), ("FAILED", False))
        self.assertEqual(self.row(keys["release"], held),
                         ("PROCESSING", False))
        self.assertIsNone(self.row(queued))
        self.assertEqual(self.upstream.seen(queued), [])
        self.problem(self.ask(keys["hold"], "hold"), "set-aside", 409)
        self.made(self.ask(keys["release"], "release"))
        self.assertEqual(self.attempts(keys["release"]), [1, 2])
        self.made(self.ask(queued, "one"))
        self.assertEqual(self.attempts(queued), [1])

    def test_gateway__a_stop_of_what_waits_elsewhere_ends(self):
        """Waiting for another daemon's key is no work."""
        daemon = self.start()
        key = self.key()
        client, seen = self.hold(key)
        waiter = self.begin(key, daemon=daemon)
        eventually(lambda: daemon.metric("flights") == 1, "it waits")
        self.stopping(daemon)
        seen.release()
        first = self.made(client.read())
        self.replayed(waiter.read(), first)
        self.ended(daemon)

    def test_gateway__an_idle_daemon_stops_at_once(self):
        """Also with a client that keeps its connection."""
        daemon = self.start()
        with daemon.connect() as c:
            self.made(c.ask("POST", "/v1/charges", self.headers(self.key()),
                            BODY))
            daemon.signal(signal.SIGTERM)
            self.ended(daemon)
            self.assertIsNone(c.read())


class Metrics(Case):
    routes = {"charges": "wait = 50s", "now": "wait = 0s",
              "hold": "unknown = hold", "once": "after_expiry = refuse",
              "gone": "upstream = http://nowhere.invalid:9/"}
    RESULTS = ("answered", "replayed", "mismatch", "in_progress", "set_aside",
               "expired", "refused", "upstream_failed", "unavailable",
               "not_kept", "passed")

    def change(self, act):
        """What is counted while act() runs."""
        before, works = self.daemon.results(*self.RESULTS), self.daemon.works()
        act()
        after = self.daemon.results(*self.RESULTS)
        changed = {n: after[n] - before[n] for n in after
                   if after[n] != before[n]}
        done = {f"work {n}": v - works[n]
                for n, v in self.daemon.works().items() if v != works[n]}
        return changed | done

    def test_gateway__every_result_is_counted(self):
        """What an operator alarms on: each kind by itself, once."""
        key = self.key()
        ask = lambda *a, **m: lambda: self.ask(*a, **m)
        self.assertEqual(self.change(ask(key)), {"answered": 1, "work done": 1})
        self.assertEqual(self.change(ask(key)), {"replayed": 1})
        self.assertEqual(self.change(ask(key, body=b"{}")), {"mismatch": 1})
        self.assertEqual(self.change(ask("")), {"refused": 1})
        unrouted = self.daemon.metric("unrouted_total")
        self.assertEqual(self.change(ask(self.key(), "/nowhere")), {})
        self.assertEqual(self.daemon.metric("unrouted_total"), unrouted + 1)
        self.assertEqual(self.change(ask(self.key(), "gone")),
                         {"upstream_failed": 1, "work not_done": 1})
        self.assertEqual(self.change(ask(None, method="GET", body=b"")),
                         {"passed": 1})
        key = self.key()
        self.assertEqual(self.change(ask(key, "hold", do={"status": 500})),
                         {"answered": 1, "work unknown": 1})
        self.assertEqual(self.change(ask(key, "hold")), {"set_aside": 1})
        key = self.key()
        self.ask(key, "once")
        self.sql("UPDATE paynotify.idempotency_keys SET expires_at ="
                 " clock_timestamp() WHERE key = %s", key)
        other = self.start() # which remembers nothing of it
        self.ask(key, "once", daemon=other)
        self.assertEqual(other.results("expired"), {"expired": 1})

    def test_gateway__waits_and_locks_are_counted(self):
        """How long keys are locked is the time that an upstream takes."""
        key = self.key()
        names = ("held_seconds_count", "held_seconds_sum", "waits_total",
                 "wait_seconds_count")
        before = {n: self.daemon.metric(n) for n in names}
        client, seen = self.hold(key, "now")
        self.assertEqual(self.daemon.metric("flights"), 1)
        self.assertEqual(self.change(lambda: self.ask(key, "now")),
                         {"in_progress": 1})
        seen.release()
        self.made(client.read())
        clients = [self.hold(k := self.key(), "charges"), ]
        waiters = self.waiters(3, k)
        clients[0][1].release()
        for c in [clients[0][0], *waiters]:
            c.read()
        after = {n: self.daemon.metric(n) - before[n] for n in names}
        self.assertEqual((after["held_seconds_count"], after["waits_total"],
                          after["wait_seconds_count"]), (2, 3, 3))
        self.assertGreater(after["held_seconds_sum"], 0)
        self.assertEqual(self.daemon.metric("flights"), 0)
        self.assertEqual(self.daemon.metric("leases_lost_total"), 0)


if __name__ == "__main__":
    unittest.main()
