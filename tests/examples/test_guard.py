"""The guard of an application's own API, over HTTP."""
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import unittest

import psycopg

from test_examples import HERE, WAIT_SECONDS_MAX, listening, wait

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") \
    else sys.executable


class Guard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.db = psycopg.connect("", autocommit=True)
        cls.db.execute(
            "CREATE ROLE shop_api LOGIN IN ROLE paynotify_consumer;"
            "CREATE SCHEMA shop_api AUTHORIZATION shop_api;"
            "CREATE TABLE shop_api.charges (id bigint GENERATED ALWAYS AS"
            " IDENTITY, out_trade_no text, amount bigint CHECK (amount > 0));"
            "ALTER TABLE shop_api.charges OWNER TO shop_api")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            cls.port = s.getsockname()[1]
        cls.api = None
        cls.start()

    @classmethod
    def start(cls):
        cls.api = subprocess.Popen(
            [PYTHON, "-B", "-m", "uvicorn", "guard_fastapi:app", "--port",
             str(cls.port), "--log-level", "critical"], cwd=HERE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PGUSER": "shop_api"})
        wait("the API listens", lambda: listening(cls.port))

    @classmethod
    def stop(cls):
        cls.api.kill()
        cls.api.wait(WAIT_SECONDS_MAX)

    @classmethod
    def tearDownClass(cls):
        cls.stop()
        cls.db.close()

    def post(self, key, body):
        c = http.client.HTTPConnection("127.0.0.1", self.port,
                                       timeout=WAIT_SECONDS_MAX)
        c.request("POST", "/v1/charges", body,
                  {"Idempotency-Key": key} if key is not None else {})
        r = c.getresponse()
        got = r.status, r.read(), r.getheader("Idempotency-Replayed")
        c.close()
        return got

    def clicks(self, key, order, count, done):
        """So many at once; done gets the answers, None for one that was cut."""
        body = json.dumps({"out_trade_no": order, "amount": 100})

        def click():
            try:
                done.append(self.post(key, body))
            except (OSError, http.client.HTTPException):
                done.append(None)

        threads = [threading.Thread(target=click) for _ in range(count)]
        for t in threads:
            t.start()
        return threads

    def made(self, order):
        return [n for (n,) in self.db.execute(
            "SELECT id FROM shop_api.charges WHERE out_trade_no = %s",
            [order])]

    def test_double_clicks(self):
        """Two charges, or two answers, for one click."""
        answers = []
        for t in self.clicks("k1", "o1", 20, answers):
            t.join(WAIT_SECONDS_MAX)
        self.assertEqual(len(self.made("o1")), 1)
        self.assertEqual({a[:2] for a in answers}, {answers[0][:2]})
        self.assertEqual(answers[0][0], 201)
        self.assertEqual(sorted(str(a[2]) for a in answers),
                         ["None"] + ["true"] * 19)

    def test_killed_in_the_middle(self):
        """A process that dies between the charge and its answer would charge
        again, or never."""
        with psycopg.connect("") as holder:         # stops the insert
            holder.execute("LOCK TABLE shop_api.charges IN EXCLUSIVE MODE")
            answers = []
            threads = self.clicks("k2", "o2", 3, answers)
            wait("a charge is being made", lambda: self.db.execute(
                "SELECT 1 FROM pg_stat_activity WHERE usename = 'shop_api'"
                " AND wait_event_type = 'Lock' AND query LIKE '%INSERT%'"
            ).fetchone())
            self.stop()
            for t in threads:
                t.join(WAIT_SECONDS_MAX)
        self.assertEqual(answers, [None] * 3)
        # The backends notice when they next write to their clients.
        wait("they have ended", lambda: self.db.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE usename = 'shop_api'").fetchone() == (0,))
        self.start()
        for t in self.clicks("k2", "o2", 5, answers):
            t.join(WAIT_SECONDS_MAX)
        self.assertEqual(len(self.made("o2")), 1)
        self.assertEqual({a[0] for a in answers[3:]}, {201})

    def test_another_request_and_another_try(self):
        """The answer to another charge; a charge that failed for good."""
        def body(amount, order="o3"):
            return json.dumps({"amount": amount, "out_trade_no": order})

        self.assertEqual(self.post("k3", body(0))[0], 500)  # the CHECK
        self.assertEqual(self.made("o3"), [])
        self.assertEqual(self.post("k3", body(7))[0], 201)
        self.assertEqual(self.post("k3", '{"out_trade_no":"o3", "amount":7}'
                                   )[::2], (201, "true"))
        self.assertEqual(self.post("k3", body(8))[0], 422)
        self.assertEqual(len(self.made("o3")), 1)
        for key in (None, "", "x" * 256):
            self.assertEqual(self.post(key, body(7))[0], 400)
        self.assertEqual(self.post("k4", "[]")[0], 400)


if __name__ == "__main__":
    unittest.main()
