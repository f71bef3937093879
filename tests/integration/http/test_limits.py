"""Slow clients, many connections, floods of forgeries."""
import socket
import threading
import time

from harness import Case, eventually, events_of, locked, psql, raw

ALIPAY, WECHAT = "/notify/alipay/shop1", "/notify/wechat/shop1"


class Slow(Case):
    server = "request_timeout = 1s\nidle_timeout = 1s"

    def dribble(self, data):
        """Sends a byte now and then until the server hangs up."""
        with self.daemon.connect() as c:
            c.socket.settimeout(0.1)
            for byte in data * 1000:
                try:
                    c.send(bytes([byte]))
                    if c.socket.recv(1) == b"":
                        return True
                except TimeoutError:
                    continue
                except OSError:
                    return True
        return False

    def test_http__dribbled_headers_are_cut(self):
        """A byte a second in the headers holds a connection for ever."""
        self.assertTrue(self.dribble(b"POST /notify/alipay/shop1 HTTP/1.1\r\nX: " + b"y" * 90))

    def test_http__dribbled_bodies_are_cut(self):
        """A byte a second in the body holds a connection for ever."""
        with self.daemon.connect() as c:
            c.send(raw(ALIPAY, {"Content-Length": 1000}, b"", length=False))
            c.socket.settimeout(0.05)
            for _ in range(1000):
                try:
                    c.send(b"x")
                    if c.socket.recv(1) == b"":
                        return
                except TimeoutError:
                    continue
                except OSError:
                    return
        self.fail("a whole body was dribbled")

    def test_http__idle_connections_are_closed(self):
        """Idle connections pile up."""
        with self.daemon.connect() as c:
            self.assertTrue(c.is_closed())
        headers, body = self.signer.alipay()
        with self.daemon.connect() as c:
            self.expect(c.ask(raw(ALIPAY, headers, body)), 200)
            self.assertTrue(c.is_closed())
        eventually(lambda: self.daemon.metric("paynotify_connections") == 0,
                   "all connections gone")

    def test_http__slow_but_in_time_is_served(self):
        """A request in several packets is taken for an attack."""
        headers, body = self.signer.alipay("SL1")
        data = raw(ALIPAY, headers, body)
        with self.daemon.connect() as c:
            for i in range(0, len(data), 400):
                c.send(data[i:i + 400])
                time.sleep(0.02)
            self.expect(c.read(), 200, b"success")


class Gone(Case):
    # So that no deadline ends a connection before the test is given up.
    server = "request_timeout = 10m\nidle_timeout = 10m"

    def cut_short(self, data):
        for _ in range(100):
            with self.daemon.connect() as c:
                c.send(data)

    def test_http__who_left_in_mid_request_is_noticed(self):
        """Last bytes and end arrive together: the place is taken until a deadline, and a stop waits for it."""
        data = raw(ALIPAY, *self.signer.alipay())
        for part in (data[:-20], data[:20], data[:data.index(b"\r\n\r\n") + 4]):
            self.cut_short(part)
            eventually(lambda: self.daemon.metric("paynotify_connections") == 0,
                       "the places are free")
        daemon = self.start(self.server)
        with daemon.connect() as c:
            c.send(data[:-20])
        self.assertEqual(daemon.stop(), 0)

    def test_http__who_closed_its_half_is_answered(self):
        """All was said and the answer is waited for: taken for gone."""
        data = raw(ALIPAY, *self.signer.alipay("HC1"))
        for cut in (len(data), 20, len(data) - 20):
            with self.daemon.connect() as c:
                c.send(data[:cut])
                c.send(data[cut:])
                c.socket.shutdown(socket.SHUT_WR)
                self.expect(c.read(), 200, b"success")
        eventually(lambda: self.daemon.metric("paynotify_connections") == 0,
                   "the places are free")

    def test_http__who_closes_its_half_and_is_not_alone_is_answered(self):
        """The oldest connection of a thread is, and of all others an end is read
        before the answer is sent, which it then never is."""
        daemon = self.start(self.server + "\nthreads = 1").ready()

        def submitted():
            return daemon.metric("paynotify_verify_seconds_count")

        with daemon.connect() as older:
            self.expect(older.ask(raw("/x", {}, b"")), 404)
            for early in (True, False):
                with daemon.connect() as c:
                    with locked("idempotency_keys"):
                        before = submitted()
                        c.send(raw(ALIPAY, *self.signer.alipay()))
                        if early:
                            c.socket.shutdown(socket.SHUT_WR)
                        eventually(lambda: submitted() > before, "it waits")
                        if not early:
                            c.socket.shutdown(socket.SHUT_WR)
                    self.expect(c.read(), 200, b"success")
            self.expect(older.ask(raw("/x", {}, b"")), 404)


class Connections(Case):
    server = "max_connections = 20\nmax_connections_per_peer = 2\nthreads = 1"

    def test_http__loopback_has_no_limit_of_its_own(self):
        """A proxy on this host is limited as one client."""
        clients = [self.daemon.connect() for _ in range(10)]
        for c in clients:
            self.expect(c.ask(raw("/x", {}, b"")), 404)
        for c in clients:
            c.close()

    def test_http__all_connections_together_are_limited(self):
        """Connections without end."""
        clients = [self.daemon.connect() for _ in range(40)]
        served = 0
        for c in clients:
            try:
                served += c.ask(raw("/x", {}, b"")) is not None
            except OSError:
                pass  # closed before the request was sent
        for c in clients:
            c.close()
        self.assertEqual(served, 20)
        refused = self.daemon.metric("paynotify_connections_refused_total")
        self.assertGreaterEqual(refused, 20)
        eventually(lambda: self.daemon.metric("paynotify_connections") == 0,
                   "the places are free again")
        self.expect(self.daemon.ask("/x", {}, b""), 404)


class Flood(Case):
    server = "rate_limit = 10/s"

    def test_http__flood_is_limited_and_genuine_ones_pass(self):
        """A flood of forgeries refuses the provider, or fills log and disk."""
        forged = raw(ALIPAY, *self.signer.alipay(forge=True))
        before = self.daemon.log().count("\n")
        statuses = []
        with self.daemon.connect() as flood, self.daemon.connect() as honest:
            for i in range(300):
                reply = flood.ask(forged)
                statuses.append(reply.status)
                if reply.status == 429:
                    self.assertEqual(reply.body, b"fail")
                    self.assertIn(int(reply.headers["Retry-After"]), range(1, 10))
                if i % 50 == 0:
                    good = raw(ALIPAY, *self.signer.alipay(f"FL{i}"))
                    self.expect(honest.ask(good), 200, b"success")
        self.assertEqual(set(statuses), {401, 429})
        self.assertGreaterEqual(statuses.count(401), 10)
        self.assertGreater(statuses.count(429), 100)
        lines = self.daemon.log().count("\n") - before
        self.assertLess(lines, 30, self.daemon.log())
        self.assertIn("sha256", self.daemon.log())
        eventually(lambda: psql(
            "SELECT 1 FROM paynotify.receipts WHERE status = 429 AND verdict ="
            " 'rate_limited' AND body_bytes > 0 AND length(raw) = 0"
            " AND provider = 'alipay'"), "a receipt of a 429, without what was sent")


class Proxied(Case):
    server = "rate_limit = 1/s"

    def test_http__peers_behind_a_proxy_are_told_apart(self):
        """One client behind the proxy uses up everybody's allowance."""
        headers, body = self.signer.wechat(forge=True)
        with self.daemon.connect() as c:
            seen = {c.ask(raw(WECHAT, {**headers, "X-Forwarded-For": "198.51.100.1"},
                              body)).status for _ in range(40)}
            other = c.ask(raw(WECHAT, {**headers, "X-Forwarded-For": "198.51.100.2"}, body))
        self.assertEqual((seen, other.status), ({401, 429}, 401))


class Together(Case):
    def test_http__the_same_notification_on_64_connections_is_one_event(self):
        """Two requests at the same moment are two payments."""
        other = self.start().ready()
        request = raw(ALIPAY, *self.signer.alipay("TG1"))
        start, replies = threading.Barrier(64), []

        def one(daemon):
            with daemon.connect() as c:
                start.wait()
                replies.append(c.ask(request))

        threads = [threading.Thread(target=one, args=([self.daemon, other][i % 2],))
                   for i in range(64)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual([(r.status, r.body) for r in replies], [(200, b"success")] * 64)
        self.assertEqual(len(events_of("TG1")), 1)
        rows = psql("SELECT verdict, count(*) FROM paynotify.receipts WHERE notify_id ="
                    " 'nTG1' GROUP BY 1 ORDER BY 1")
        self.assertEqual(sum(int(n) for _, n in rows), 64, rows)


if __name__ == "__main__":
    import unittest
    unittest.main()
