"""What an upstream's end means for the key: released, or unknown."""
import socket
import ssl
import subprocess
import unittest

from support import Case, Daemon, eventually
from upstream import Upstream


def status(n):
    return {"status": n, "body": f"status {n}"}


class Released(Case):
    """Nothing was done: the next request runs at once, as the first."""

    @classmethod
    def prepare(cls):
        # Bound, but nobody listens: connections are refused, until one does.
        cls.socket = socket.socket()
        cls.socket.bind(("127.0.0.1", 0))
        closed = cls.socket.getsockname()[1]
        cls.folder = Daemon("").folder
        cls.cert, key = f"{cls.folder}/cert.pem", f"{cls.folder}/key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", key, "-out", cls.cert], check=True,
            capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cls.cert, key)
        cls.secure = Upstream(ssl=context)
        tls = f"https://127.0.0.1:{cls.secure.port}/up"
        cls.routes = {
            "charges": "",
            "refused": f"upstream = http://127.0.0.1:{closed}/up",
            "nameless": "upstream = http://nowhere.invalid:9/up",
            "plain": f"upstream = https://127.0.0.1:{cls.upstream.port}/up",
            "untrusted": f"upstream = {tls}",
            "trusted": f"upstream = {tls}\nca_file = {cls.cert}",
            "frees": "release_status = 503\nrelease_status = 409\n"
                     "unknown_status = 500",
        }

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.secure.close()
        cls.socket.close()
        subprocess.run(["rm", "-rf", cls.folder], check=True)

    def unreachable(self, route):
        key = self.key()
        reply = self.ask(key, route)
        said = self.problem(reply, "upstream-unreachable", 502, again=True)
        self.assertIn("Nothing was done", said["detail"])
        self.assertIsNone(self.row(key), "the key is free")
        return key

    def test_gateway__a_refused_connection_frees_the_key(self):
        """And when the upstream is back, it is the first attempt."""
        key = self.unreachable("refused")
        self.problem(self.ask(key, "refused"), "upstream-unreachable", 502)
        self.upstream.listen_also(self.socket)
        self.made(self.ask(key, "refused"))
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_name_that_is_not_resolved_frees_the_key(self):
        """Nobody was asked."""
        key = self.unreachable("nameless")
        # Free for another request too: it was never used.
        self.problem(self.ask(key, "nameless", body=b"{}"),
                     "upstream-unreachable", 502)

    def test_gateway__failed_tls_frees_the_key(self):
        """No byte of the request leaves before the certificate is verified;
        with its authority it does."""
        self.unreachable("plain")
        self.unreachable("untrusted")
        self.assertEqual(self.secure.count(), 0)
        key = self.key()
        first = self.made(self.ask(key, "trusted"))
        self.replayed(self.ask(key, "trusted"), first)
        self.assertEqual([r.attempt for r in self.secure.seen(key)], [1])

    def test_gateway__425_and_429_free_the_key(self):
        """The upstream says that it did not begin: told as it is, also when to
        come again."""
        for n in (425, 429):
            with self.subTest(status=n):
                key = self.key()
                reply = self.made(self.ask(key, do=dict(
                    status(n), headers=[("Retry-After", "7")])), n)
                self.assertEqual(reply.body, b"status %d" % n)
                self.assertEqual(reply.get("Retry-After"), "7")
                self.assertIsNone(self.row(key))
                self.made(self.ask(key, body=b'{"a":1}'))
                self.assertEqual(self.attempts(key), [1, 1])

    def test_gateway__release_status_frees_the_key(self):
        """An upstream whose 503 means: not now."""
        for n in (503, 409):
            key = self.key()
            self.made(self.ask(key, "frees", do=status(n)), n)
            self.assertIsNone(self.row(key))
            self.made(self.ask(key, "frees"))
            self.assertEqual(self.attempts(key), [1, 1])

    def test_gateway__those_who_waited_are_told_of_the_release(self):
        """They asked for the same, and nothing was done for any of them."""
        key = self.key()
        client, seen = self.hold(key, then=status(429))
        others = self.waiters(3, key)
        seen.release()
        for c in [client, *others]:
            self.made(c.read(), 429)
        self.assertIsNone(self.row(key))
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_session_is_told_to_its_client_only(self):
        """Of an answer that is not kept those who waited get what would be kept
        of it, and when to come again: not the cookie of another client."""
        for n in (429, 500):
            with self.subTest(status=n):
                key = self.key()
                client, seen = self.hold(key, then=dict(status(n), headers=[
                    ("Set-Cookie", "session=1"), ("Retry-After", "7"),
                    ("Content-Type", "text/plain")]))
                others = self.waiters(2, key)
                seen.release()
                first = self.made(client.read(), n)
                self.assertEqual(first.get("Set-Cookie"), "session=1")
                for c in others:
                    reply = self.made(c.read(), n)
                    self.assertEqual(reply.body, first.body)
                    self.assertEqual(
                        [reply.get(h) for h in ("Set-Cookie", "Retry-After",
                                                "Content-Type")],
                        [None, "7", "text/plain"])


class Unknown(Case):
    """The work may have been done: `unknown` decides."""

    COMMON = "wait = 0s\ntimeout = 400ms\nmax_response = 1k\n"
    routes = {
        "retry": COMMON,
        "hold": COMMON + "unknown = hold",
        "release": COMMON + "unknown = release",
        "keeps": "keep_status = 503\nkeep_status = 408",
        "keeps5": "keep_status = 5xx",
        "doubts": COMMON + "unknown_status = 409\nunknown_status = 3xx",
    }
    # What the upstream does: what the client is told.
    ENDS = {
        "timeout": ({"hold": True}, "upstream-timeout", 504),
        "cut": ({"end": "silent"}, "upstream-lost", 502),
        "half": ({"end": "half"}, "upstream-lost", 502),
        "half of chunks": ({"end": "half", "chunked": True, "size": 900},
                           "upstream-lost", 502),
        "no HTTP": ({"end": "garbage"}, "upstream-lost", 502),
        "too long": ({"size": 1025}, "response-too-large", 502),
        "too many chunks": ({"size": 9999, "chunked": True},
                            "response-too-large", 502),
        "408": (status(408), None, 408),
        "500": (status(500), None, 500),
        "502": (status(502), None, 502),
        "503": (status(503), None, 503),
        "599": (status(599), None, 599),
    }

    def unknown(self, route):
        """Every such end: key, what the client was told, its status."""
        for what, (plan, name, code) in self.ENDS.items():
            with self.subTest(what=what, route=route):
                key = self.key()
                reply = self.ask(key, route, do=plan)
                if name is None:
                    self.made(reply, code)
                    self.assertEqual(reply.body, b"status %d" % code)
                else:
                    said = self.problem(reply, name, code)
                    self.assertIn("new key could do", said["detail"])
                self.assertEqual(self.attempts(key), [1])
                yield key

    def test_gateway__unknown_retry_waits_for_the_lease(self):
        """409 until it ends, since the work may still go on; then attempt 2,
        which the upstream can tell from the first."""
        for key in self.unknown("retry"):
            self.problem(self.ask(key, "retry"), "in-progress", 409,
                         again=True)
            self.assertEqual(self.attempts(key), [1])
            self.end_lease(key)
            first = self.made(self.ask(key, "retry"))
            self.assertEqual(self.attempts(key), [1, 2])
            self.replayed(self.ask(key, "retry"), first)

    def test_gateway__unknown_hold_sets_the_key_aside(self):
        """FAILED: 409 without a Retry-After, lease or not."""
        for key in self.unknown("hold"):
            self.assertEqual(self.state(key), "FAILED")
            for _ in range(2):
                said = self.problem(self.ask(key, "hold"), "set-aside", 409,
                                    again=False)
                self.assertIn("paynotifyctl keys", said["detail"])
            self.assertEqual(self.attempts(key), [1])

    def test_gateway__unknown_release_runs_at_once(self):
        """For upstreams that are idempotent themselves: attempt 2."""
        for key in self.unknown("release"):
            first = self.made(self.ask(key, "release"))
            self.assertEqual(self.attempts(key), [1, 2])
            self.replayed(self.ask(key, "release"), first)

    def test_gateway__max_response_is_taken_whole(self):
        """The limit is what is promised, and not one less."""
        for chunked in (False, True):
            key = self.key()
            first = self.made(self.ask(
                key, "retry", do={"size": 1024, "chunked": chunked}))
            self.assertEqual(len(first.body), 1024)
            self.replayed(self.ask(key, "retry"), first)

    def test_gateway__an_unknown_key_is_not_for_another_request(self):
        """Let go or not, it stays the first one's."""
        for route in ("retry", "hold", "release"):
            key = self.key()
            self.made(self.ask(key, route, do=status(500)), 500)
            self.problem(self.ask(key, route, body=b"{}"), "mismatch", 422)

    def test_gateway__keep_status_makes_it_an_answer(self):
        """A status or a class of them."""
        for route, codes in (("keeps", (503, 408)), ("keeps5", (500, 599))):
            for n in codes:
                key = self.key()
                first = self.made(self.ask(key, route, do=status(n)), n)
                self.replayed(self.ask(key, route), first)
                self.assertEqual(self.attempts(key), [1])
        key = self.key() # and no other one
        self.made(self.ask(key, "keeps", do=status(500)), 500)
        self.assertEqual(self.state(key), "PROCESSING")

    def test_gateway__unknown_status_makes_it_a_doubt(self):
        """A 409 of an upstream that means: I am at it."""
        for n in (409, 302):
            key = self.key()
            self.made(self.ask(key, "doubts", do=status(n)), n)
            self.assertEqual(self.state(key), "PROCESSING")
            self.problem(self.ask(key, "doubts"), "in-progress", 409)
            self.end_lease(key)
            self.made(self.ask(key, "doubts"))
            self.assertEqual(self.attempts(key), [1, 2])

    def test_gateway__an_operator_lists_and_shows_what_is_set_aside(self):
        """It is the dead letter list: with why, and how often."""
        key = self.key()
        self.made(self.ask(key, "hold", do=status(500)), 500)
        code, rows = self.daemon.ctl("keys", "list", "--state", "FAILED")
        self.assertEqual(code, 0, self.daemon.complaint)
        row = [r for r in rows if r["key"] == key][0]
        self.assertEqual(
            (row["tenant"], row["route"], row["state"], row["attempts"]),
            ("shop1", "POST /v1/hold", "FAILED", 1))
        self.assertIn("500", row["reason"])
        code, rows = self.daemon.ctl("keys", "show", key)
        self.assertEqual((code, rows[0]["key"]), (0, key))

    def decide(self, what, key):
        code, said = self.daemon.ctl(
            "keys", what, "--tenant", "shop1", "--route", "POST /v1/hold",
            "--reason", "looked at the bank's list", key)
        self.assertEqual(code, 0, (said, self.daemon.complaint))

    def test_gateway__an_operator_releases_a_key(self):
        """The next request runs as attempt 2, still for this request only."""
        key = self.key()
        self.made(self.ask(key, "hold", do=status(500)), 500)
        self.decide("release", key)
        self.problem(self.ask(key, "hold", body=b"{}"), "mismatch", 422)
        first = self.made(self.ask(key, "hold"))
        self.assertEqual(self.attempts(key), [1, 2])
        self.replayed(self.ask(key, "hold"), first)

    def test_gateway__an_operator_forgets_a_key(self):
        """As if it had never come; also what the gateways remember of it."""
        key = self.key()
        self.made(self.ask(key, "hold", do=status(500)), 500)
        self.decide("forget", key)
        self.made(self.ask(key, "hold", body=b'{"a":1}'))
        self.assertEqual(self.attempts(key), [1, 1])
        self.assertTrue(self.ask(key, "hold", body=b'{"a":1}').replayed)
        self.decide("forget", key)
        # Notified, so soon: until then it is replayed.
        eventually(lambda: not self.ask(key, "hold", body=b'{"a":1}').replayed,
                   "the gateway forgets")
        self.assertEqual(self.attempts(key), [1, 1, 1])

    def test_gateway__a_key_that_has_its_answer_is_not_released(self):
        """It would be charged again; who means that forgets it."""
        key = self.key()
        first = self.made(self.ask(key, "hold"))
        code, _ = self.daemon.ctl(
            "keys", "release", "--tenant", "shop1", "--route",
            "POST /v1/hold", "--reason", "x", key)
        self.assertEqual(code, 1)
        self.assertIn("has its answer", self.daemon.complaint + str(_))
        self.replayed(self.ask(key, "hold"), first)


if __name__ == "__main__":
    unittest.main()
