"""Thousands of connections that do nothing, or next to nothing."""
import os
import statistics
import subprocess
import sys
import time

from harness import HERE, Case, eventually, events_of, raw

ALIPAY = "/notify/alipay/shop1"
IDLE, BODY, HEAD = 4000, 500, 500
REQUESTS = 100
# Far more than noise: what costs something for each connection would be beyond.
SLOWER_MAX = 10
ROUNDS = 4


class Crowd:
    def __init__(self, port):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "../../lib/crowd.py"), str(port),
             str(IDLE), str(BODY), str(HEAD)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", "the crowd is there"

    def leave(self):
        """How many the server has closed."""
        return int(self.process.communicate()[0])


class Crowded(Case):
    # So that all are there until the end: the longest that they can be.
    server = "max_connections = 8000\nidle_timeout = 10m\nrequest_timeout = 10m"

    def rss_mb(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as f:
            return next(int(x.split()[1]) for x in f if x.startswith("VmRSS")) / 1024

    def honest(self, name):
        """The median of requests, half of them on connections of their own."""
        requests = [raw(ALIPAY, *self.signer.alipay(f"{name}{i}"))
                    for i in range(REQUESTS)]
        took = []
        with self.daemon.connect() as kept:
            for i, request in enumerate(requests):
                began = time.monotonic()
                if i % 2:
                    self.expect(kept.ask(request), 200, b"success")
                else:
                    with self.daemon.connect() as own:
                        self.expect(own.ask(request), 200, b"success")
                took.append(time.monotonic() - began)
        self.assertEqual(len(events_of(f"{name}0")), 1)
        return statistics.median(took) * 1000

    def test_http__a_crowd_does_not_slow_who_is_honest(self):
        """Who holds connections and sends nothing keeps the provider out."""
        alone_mb, alone = self.rss_mb(), self.honest("CA")
        crowd = Crowd(self.daemon.port)
        amid, amid_mb = self.honest("CB0-"), self.rss_mb()
        for i in range(1, ROUNDS):  # what else this machine does is no slowness
            if amid < SLOWER_MAX * alone:
                break
            amid = min(amid, self.honest(f"CB{i}-"))
        self.assertEqual(self.daemon.metric("paynotify_connections"),
                         IDLE + BODY + HEAD)
        self.assertEqual(crowd.leave(), 0, "closed by the server")
        print(f"alone {alone:.2f} ms, beside {IDLE} idle and {BODY + HEAD} slow ones"
              f" {amid:.2f} ms; {alone_mb:.1f} and {amid_mb:.1f} MB")
        self.assertLess(amid / alone, SLOWER_MAX)
        self.assertEqual(self.daemon.metric("paynotify_connections_refused_total"), 0)
        eventually(lambda: self.daemon.metric("paynotify_connections") == 0,
                   "all connections gone")


if __name__ == "__main__":
    import unittest
    unittest.main()
