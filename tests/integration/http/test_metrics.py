"""What /metrics says of accounts, endpoints and routes, and whether Prometheus
would take it."""
import http.server
import os
import re
import subprocess
import threading

from harness import Case, eventually, psql, raw, Client

ALIPAY, WECHAT = "/notify/alipay/shop1", "/notify/wechat/shop1"


class Sink(http.server.BaseHTTPRequestHandler):
    """An endpoint, and an upstream of the gateway: takes everything."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class Metrics(Case):
    accounts = """[deliver metrics]
url = http://127.0.0.1:PORT/hook
secret_file = {keys}/hook.secret
[guard]
listen = 127.0.0.1:0
[guard charges]
path = POST /v1/charges
upstream = http://127.0.0.1:PORT/v1/charges
tenant = shop1
"""

    @classmethod
    def setUpClass(cls):
        cls.sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        threading.Thread(target=cls.sink.serve_forever, daemon=True).start()
        cls.accounts = cls.accounts.replace("PORT", str(cls.sink.server_port))
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.sink.shutdown()
        cls.sink.server_close()

    @classmethod
    def start(cls, *arguments, **named):
        path = f"{cls.folder}/keys/hook.secret"
        if not os.path.exists(path):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write("whsec_" + "A" * 43 + "=")
        return super().start(*arguments, **named)

    def requests(self, **labels):
        return self.daemon.metric("paynotify_requests_total", **labels)

    def charge(self):
        port = re.search(r"on 127\.0\.0\.1:(\d+)", self.daemon.log()
                         .split("guarding")[1])[1]
        with Client(int(port)) as c:
            return c.ask(raw("/v1/charges", {"Idempotency-Key": "m1"}, b"{}"))

    def test_http__metrics_tell_who_and_what(self):
        """An alarm about one merchant rings for another, or not at all."""
        d = self.daemon
        first = self.signer.alipay("MA1")
        for request, status in (
                (first, 200), (first, 200), (self.signer.alipay("MA2"), 200),
                (self.signer.alipay("MA2", {"total_amount": "9.99"}), 422),
                (self.signer.alipay("MA3", forge=True), 401)):
            self.expect(d.ask(ALIPAY, *request), status)
        self.expect(d.ask(WECHAT, *self.signer.wechat("MW1")), 200)
        self.expect(d.ask(WECHAT, *self.signer.wechat("MW2", key="other")), 500)
        self.expect(d.ask(WECHAT, *self.signer.wechat("MW3", age=9999)), 401)
        for provider, verdict, count in (
                ("alipay", "accepted", 2), ("alipay", "duplicate", 1),
                ("alipay", "conflict", 1), ("alipay", "bad_signature", 1),
                ("alipay", "undecryptable", 0), ("wechat", "accepted", 1),
                ("wechat", "undecryptable", 1), ("wechat", "stale", 1),
                ("wechat", "conflict", 0)):
            self.assertEqual(self.requests(provider=provider, tenant="shop1",
                                           verdict=verdict), count, verdict)
        self.assertEqual(self.requests(), 8)
        self.assertEqual(d.metric("paynotify_request_seconds_count",
                                  provider="alipay"), 5)
        self.assertEqual(d.metric("paynotify_verify_seconds_count",
                                  provider="wechat"), 3)
        # One key each: what was signed right.
        self.assertEqual(d.metric("paynotify_verified_total",
                                  provider="alipay"), 4)
        self.assertEqual(d.metric("paynotify_verified_total",
                                  provider="wechat"), 2)
        self.assertGreaterEqual(d.metric("paynotify_commit_seconds_count"), 5)
        self.assertGreaterEqual(d.metric("paynotify_queue_seconds_count"), 6)
        offset = d.metric("paynotify_clock_offset_seconds", provider="wechat")
        self.assertLess(abs(offset), 60)
        self.assertEqual(
            d.metric("paynotify_database_connections", use="writer"), 1)
        # The endpoint and the route.
        eventually(lambda: d.metric("paynotify_deliveries_total",
                                    endpoint="metrics", result="done") >= 3,
                   "all pushed")
        self.assertGreaterEqual(d.metric("paynotify_delivery_seconds_count",
                                         endpoint="metrics"), 3)
        for _ in range(2):
            self.expect(self.charge(), 200, b"ok")
        for result in "answered", "replayed":
            self.assertEqual(d.metric("paynotify_guard_requests_total",
                                      route="charges", result=result), 1)
        self.assertEqual(d.metric("paynotify_guard_held_seconds_count",
                                  route="charges"), 1)
        self.assertEqual(d.metric("paynotify_series_refused_total"), 0)
        found = subprocess.run([os.environ["PN_PROMTOOL"], "check", "metrics"],
                               input=d.admin("/metrics").body,
                               capture_output=True)
        self.assertEqual((found.returncode, found.stdout + found.stderr),
                         (0, b""))

    def test_http__metrics_have_the_databases_figures(self):
        """A quarantine fills, or events are given up, and nobody is told."""
        sender = self.start().ready()
        self.expect(sender.ask(ALIPAY, *self.signer.alipay("MF1")), 200)
        self.expect(sender.ask(ALIPAY, *self.signer.alipay(
            "MF1", {"total_amount": "1.00"})), 422)
        psql("SELECT paynotify.register_consumer('slow')")
        other = self.start() # they are asked when it begins
        eventually(lambda: "\npaynotify_figures_timestamp_seconds "
                   in other.admin("/metrics").body.decode(), "asked")
        self.assertGreaterEqual(other.metric("paynotify_quarantine_open"), 1)
        self.assertGreater(other.metric("paynotify_quarantine_oldest_seconds"), 0)
        self.assertGreater(other.metric("paynotify_undelivered_age_seconds",
                                        consumer="slow"), 0)
        self.assertEqual(other.metric("paynotify_dead_letters",
                                      consumer="slow"), 0)
        self.assertEqual(other.metric("paynotify_hot_key_overdue_seconds"), 0)
        self.assertGreater(other.metric("paynotify_partitions_ahead_seconds"),
                           25 * 86400)

    def test_http__figures_that_cannot_be_asked_are_absent(self):
        """A zero that nobody counted is believed."""
        alone = self.start(dsn="host=/nonexistent dbname=x")
        page = alone.admin("/metrics").body.decode()
        self.assertIn("# TYPE paynotify_quarantine_open gauge\n", page)
        self.assertNotRegex(page, r"(?m)^paynotify_(quarantine|dead|figures)")
