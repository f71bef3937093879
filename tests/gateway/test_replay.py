"""What is kept is told again, byte for byte, for as long as it lives."""
import json
import time
import unittest

from support import BODY, Case, eventually, seconds_left

KEPT = [200, 201, 202, 203, 204, 206, 301, 302, 303, 307, 308, 400, 401, 402,
        403, 404, 405, 409, 410, 412, 413, 415, 418, 422, 423, 424, 428, 451]
CHOSEN = [("Content-Type", "application/vnd.shop+json"),
          ("Content-Language", "zh-CN"), ("Content-Encoding", "identity"),
          ("Location", "/v1/charges/ch_1"), ("ETag", '"v1"'),
          ("Link", '</v1>; rel="up"'), ("Link", '</v2>; rel="next"'),
          ("X-Request-Id", "r1"), ("Cache-Control", "no-store"),
          ("Retry-After", "3"), ("X-Up", "1")]
NOT_CHOSEN = [("Set-Cookie", "session=secret"),
              ("Set-Cookie2", "session=secret"),
              ("WWW-Authenticate", "Basic realm=shop"),
              ("Authentication-Info", "nextnonce=secret"),
              ("Date", "Thu, 01 Jan 2026 00:00:00 GMT")]


class Replay(Case):
    routes = {
        "charges": "",
        "choosy": "keep_header = X-Request-Id\nkeep_header = Content-Type",
        "long": "ttl = 72h",
        "short": "ttl = 1s",
        "brief": "ttl = 6s",
        "once": "ttl = 1s\nafter_expiry = refuse",
    }

    def expired(self, key):
        """Waits for the end of a key's life, by the database's clock, which is
        the daemon's too."""
        gone = lambda: (self.row(key, "expires_at <= clock_timestamp()")
                        or [True])[0]
        eventually(gone, f"{key} has expired")

    def archive(self, key):
        """As the janitor does, who may have been here before."""
        self.sql("SELECT paynotify.archive_expired_keys(500)")
        self.assertIsNone(self.row(key))

    def test_gateway__a_replay_is_the_first_answer_with_three_headers(self):
        """Status, body and the chosen headers, and that it is one: for clients
        of the draft, of Stripe and of their forerunners."""
        key = self.key()
        first = self.made(self.ask(key))
        for _ in range(3):
            again = self.replayed(self.ask(key), first)
            for name in ("Content-Type", "ETag"):
                self.assertEqual(again.get(name), first.get(name))
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__body_bytes_come_back_exactly(self):
        """A signature over the body must hold for the replay as well."""
        every = bytes(range(256)).decode("latin-1")
        for body in (every * 40, "", "\0", '{"a" : 1.0 }\r\n', "\\x41\\"):
            with self.subTest(body=body[:10]):
                key = self.key()
                first = self.made(self.ask(key, do={"body": body[:1500]}))
                self.assertEqual(first.body, body[:1500].encode("latin-1"))
                self.replayed(self.ask(key), first)
                # Of the database, not of what a daemon remembers.
                self.assertEqual(bytes(self.row(key, "response_body")[0]),
                                 first.body)

    def test_gateway__a_long_answer_comes_back_exactly(self):
        """Longer than what is remembered, sent in chunks by the upstream."""
        key = self.key()
        first = self.made(self.ask(key, do={"size": 900_000, "chunked": True}))
        self.assertEqual(first.body, b"x" * 900_000)
        self.assertEqual(first.get("Content-Length"), "900000")
        self.replayed(self.ask(key), first)

    def test_gateway__long_answers_come_back_at_once(self):
        """In batches of their own, which end soon enough; and a new key beside
        them."""
        firsts = {}
        body = b"x" * (6 << 20)
        for _ in range(5):
            key = self.key()
            self.made(self.ask(key))
            self.stored(key, "response_body", body)
            firsts[key] = None
        for key in firsts:      # nobody remembers the short one
            eventually(lambda k=key: self.ask(k).body == body, "it is long")
        clients = [self.begin(key) for key in firsts for _ in range(2)]
        self.made(self.ask(self.key()))
        for client in clients:
            reply = client.read()
            self.assertEqual((reply.status, len(reply.body), reply.replayed),
                             (201, len(body), True))
            client.close()

    def test_gateway__only_chosen_headers_are_kept(self):
        """A session's cookie is for the one who was there."""
        key = self.key()
        plan = {"headers": CHOSEN + NOT_CHOSEN}
        first = self.made(self.ask(key, do=plan))
        again = self.replayed(self.ask(key), first)
        for reply in (first, again):
            for name, _ in CHOSEN:
                self.assertEqual(reply.all(name),
                                 [v for n, v in CHOSEN if n == name], name)
        for name, value in NOT_CHOSEN:
            if name != "Date":
                self.assertEqual(first.all(name), [value])
                self.assertEqual(again.all(name), [], name)
        # Of whom the answer is: not 2026-01-01.
        self.assertNotIn("Jan 2026 00:00:00", again.get("Date") or "")

    def test_gateway__keep_header_replaces_the_defaults(self):
        """A route says itself what its replays need, and no more."""
        key = self.key()
        plan = {"headers": CHOSEN + NOT_CHOSEN}
        self.made(self.ask(key, "choosy", do=plan))
        again = self.ask(key, "choosy")
        self.assertEqual(again.get("X-Request-Id"), "r1")
        self.assertEqual(again.get("Content-Type"), CHOSEN[0][1])
        self.assertEqual(again.all("Location") + again.all("ETag"), [])

    def test_gateway__an_upstream_cannot_say_that_it_is_a_replay(self):
        """Only the gateway knows."""
        key = self.key()
        first = self.made(self.ask(key, do={"headers": [
            ("Idempotency-Replayed", "true"), ("Idempotent-Replayed", "true"),
            ("X-Idempotent-Replay", "true"),
            ("Idempotency-Expires", "1970-01-01T00:00:00Z")]}))
        self.assertGreater(seconds_left(first), 0)

    def test_gateway__the_end_of_the_keys_life_is_told(self):
        """A client knows until when it may repeat: ttl from the claim on, and
        the same moment in each answer."""
        for route, ttl in (("charges", 24 * 3600), ("long", 72 * 3600)):
            key = self.key()
            first = self.made(self.ask(key, route))
            again = self.replayed(self.ask(key, route), first)
            self.assertEqual(first.get("Idempotency-Expires"),
                             again.get("Idempotency-Expires"))
            self.assertGreater(seconds_left(first), ttl - 60)
            self.assertLess(seconds_left(first), ttl + 60)

    def stored(self, key, column, value):
        """As an application could have stored it; nobody remembers more."""
        self.sql(f"UPDATE paynotify.idempotency_keys SET {column} = %s"
                 " WHERE key = %s", value, key)
        self.sql("SELECT paynotify.guard_tell(tenant, request_path, key)"
                 " FROM paynotify.idempotency_keys WHERE key = %s", key)

    def test_gateway__a_time_past_all_calendars_is_told_as_the_last(self):
        """One such row would end the daemon, and whoever lists the keys."""
        key = self.key()
        self.made(self.ask(key))
        self.stored(key, "expires_at", "20000-01-01")
        eventually(lambda: self.ask(key).get("Idempotency-Expires")[:4]
                   == "9999", "the new end is told")
        code, rows = self.daemon.ctl("keys", "show", key)
        self.assertEqual((code, rows[0]["expires_at"][:4]), (0, "9999"))

    def test_gateway__an_answer_without_a_status_is_not_replayed(self):
        """1xx is no answer: to send one would end the daemon."""
        for status in (102, 600, None):
            with self.subTest(status=status):
                key = self.key()
                self.made(self.ask(key))
                self.stored(key, "response_status", status)
                eventually(lambda: self.ask(key).status == 409,
                           "it is forgotten")
                self.problem(self.ask(key), "set-aside", 409)

    def test_gateway__2xx_3xx_and_4xx_are_kept(self):
        """They are answers: asked again the upstream would do it again, or say
        something else about it."""
        for status in KEPT:
            with self.subTest(status=status):
                key = self.key()
                first = self.made(self.ask(key, do={"status": status}), status)
                self.assertEqual(self.state(key), "COMPLETED")
                self.replayed(self.ask(key, do={"status": 200}), first)
                self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_redirect_is_not_followed(self):
        """It is the client's to follow."""
        key = self.key()
        before = self.upstream.count()
        target = f"http://127.0.0.1:{self.upstream.port}/elsewhere"
        first = self.made(self.ask(key, do={
            "status": 307, "headers": [("Location", target)]}), 307)
        self.assertEqual(first.get("Location"), target)
        self.assertEqual(self.upstream.count(), before + 1)
        self.assertEqual(self.ask(key).get("Location"), target)

    def test_gateway__a_restart_forgets_nothing(self):
        """What was told is in the database, not in the process."""
        daemon = self.start()
        key = self.key()
        plan = {"headers": CHOSEN, "body": "\xff\0" * 9}
        first = self.made(self.ask(key, do=plan, daemon=daemon))
        remembered = self.replayed(self.ask(key, daemon=daemon), first)
        self.assertEqual(daemon.stop(), 0)
        daemon.restart()
        again = self.replayed(self.ask(key, daemon=daemon), first)
        no_date = lambda r: sorted(h for h in r.headers if h[0] != "Date")
        self.assertEqual(no_date(again), no_date(remembered))
        self.problem(self.ask(key, body=b"{}", daemon=daemon), "mismatch", 422)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__another_daemon_tells_the_same(self):
        """A load balancer may send a repeat anywhere."""
        other = self.start()
        key = self.key()
        first = self.made(self.ask(key))
        self.replayed(self.ask(key, daemon=other), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__an_expired_key_is_a_new_one(self):
        """after_expiry = new: it runs, for this request, whatever the one
        before was; the attempts go on, they are what fences."""
        key = self.key()
        first = self.made(self.ask(key, "short"))
        self.expired(key)
        second = self.made(self.ask(key, "short", body=b'{"another":1}'))
        self.sql("UPDATE paynotify.idempotency_keys SET expires_at ="
                 " expires_at + '1 day' WHERE key = %s", key)
        self.assertNotEqual(first.body, second.body)
        self.assertEqual(self.attempts(key), [1, 2])
        self.problem(self.ask(key, "short"), "mismatch", 422)

    def test_gateway__an_answer_that_outlasts_its_keys_life_is_shared(self):
        """Who waits for it at another daemon would do the work once more."""
        other = self.start()
        key = self.key()
        leader, seen = self.hold(key, "brief")
        waiter, = self.waiters(1, key, "brief", daemon=other)
        self.expired(key)
        seen.release()
        first = self.made(leader.read())
        self.assertGreaterEqual(seconds_left(first), 0)
        self.replayed(waiter.read(), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__an_archived_key_is_a_new_one(self):
        """The permanent tier knows it, and how often it was tried."""
        key = self.key()
        self.made(self.ask(key, "short"))
        self.expired(key)
        self.archive(key)
        self.made(self.ask(key, "short"))
        self.assertEqual(self.attempts(key), [1, 2])

    def test_gateway__an_expired_key_can_be_refused(self):
        """after_expiry = refuse: a retry a year later must not charge again;
        neither while the key is here, nor when it is archived."""
        key = self.key()
        self.made(self.ask(key, "once"))
        self.expired(key)
        for _ in range(2):
            said = self.problem(self.ask(key, "once"), "expired", 422,
                                again=False)
            self.assertIn("no longer kept", said["detail"])
            self.problem(self.ask(key, "once", body=b"{}"), "mismatch", 422)
            self.archive(key)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__an_answer_without_a_key_is_not_kept(self):
        """Refusals of the gateway are no answers."""
        key = self.key()
        self.problem(self.ask(key + "\xe4"), "key-malformed", 400)
        self.assertEqual(self.sql(
            "SELECT 1 FROM paynotify.idempotency_keys WHERE key LIKE %s",
            key + "%"), [])
        self.made(self.ask(key))

    def test_gateway__what_came_is_what_is_kept(self):
        """The row has the request's hash and the answer, and no lease."""
        key = self.key()
        first = self.made(self.ask(key))
        status, headers, body, token, hash = self.row(
            key, "response_status, response_headers, response_body,"
            " lease_token, length(request_hash)")
        self.assertEqual((status, bytes(body), token, hash),
                         (201, first.body, None, 32))
        self.assertIn("Content-Type: application/json", headers)
        self.assertNotIn("Set-Cookie", headers)
        self.assertEqual(json.loads(BODY)["amount"], 100)


class SlowReaders(Case):
    routes = {"charges": "max_response = 8m"}
    server = "request_timeout = 1s"

    def test_gateway__a_long_answer_may_be_read_slowly(self):
        """Whoever is behind a thin line would never see the end of it, in no
        repeat either. It is longer than what the kernel takes by itself."""
        key, size = self.key(), 8 << 20
        for _ in range(2):
            client = self.begin(key, do={"size": size})
            self.assertEqual(client.file.peek(1)[:1], b"H")
            time.sleep(4) # four times request_timeout
            self.assertEqual(len(client.read().body), size)
        self.assertEqual(self.attempts(key), [1])


if __name__ == "__main__":
    unittest.main()
