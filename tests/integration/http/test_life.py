"""Starting, stopping, and living without a database."""
import os
import re
import signal
import subprocess

from harness import (BUILD, Case, Client, eventually, events_of, locked,
                     postgres_signal, psql, raw)

ALIPAY = "/notify/alipay/shop1"


class Stop(Case):
    def test_http__sigterm_answers_what_is_in_flight(self):
        """Requests that were taken are dropped by a restart."""
        daemon = self.start("commit_timeout = 30s").ready()
        requests = [raw(ALIPAY, *self.signer.alipay(f"ST{i}")) for i in range(24)]
        clients = [daemon.connect() for _ in requests]
        idle = daemon.connect()
        with locked("idempotency_keys"): # until the stop has begun
            for client, request in zip(clients, requests):
                client.send(request)
            eventually(lambda: daemon.metric("paynotify_verify_seconds_count") >= 24,
                       "all taken")
            daemon.begin_to_stop()
        for client in clients:
            reply = self.expect(client.read(), 200, b"success")
            self.assertEqual(reply.headers.get("Connection"), "close")
            client.close()
        self.assertTrue(idle.is_closed())
        idle.close()
        self.assertEqual(daemon.wait(), 0, daemon.log())
        rows = psql("SELECT count(*) FROM paynotify.events WHERE out_trade_no LIKE 'ST%'")
        self.assertEqual(rows, [["24"]])

    def test_http__sigterm_with_idle_connections_ends_at_once(self):
        """A restart hangs on a load balancer's idle connections."""
        daemon = self.start("idle_timeout = 1h").ready()
        clients = [daemon.connect() for _ in range(20)]
        for c in clients:
            self.expect(c.ask(raw("/x", {}, b"")), 404)
        self.assertEqual(daemon.stop(), 0)  # idle_timeout is an hour
        self.assertNotIn("did not end in time", daemon.log())
        for c in clients:
            self.assertTrue(c.is_closed())
            c.close()
        self.assertFalse(os.path.exists(f"{daemon.folder}/http.sock"))

    def test_http__sigterm_lets_a_request_be_read(self):
        """A request whose body is on its way is cut off."""
        daemon = self.start().ready()
        headers, body = self.signer.alipay("SR1")
        data = raw(ALIPAY, headers, body)
        with daemon.connect() as c:
            c.send(data[:-10])
            self.expect(daemon.ask("/x", {}, b""), 404)
            daemon.begin_to_stop()
            c.send(data[-10:])
            self.expect(c.read(), 200, b"success")
        self.assertEqual(daemon.wait(), 0)

    def test_http__restart_on_the_same_unix_socket(self):
        """A killed daemon's socket keeps the next one from starting."""
        daemon = self.start().ready()
        daemon.process.kill()
        self.assertEqual(daemon.wait(), -9)
        self.daemons.remove(daemon)
        with open(daemon.log_path, "wb") as log:
            daemon.process = subprocess.Popen(
                [f"{BUILD}/paynotifyd", "-c", daemon.conf], stderr=log)
        eventually(lambda: "listening on" in daemon.log() or daemon.exited(), "it starts")
        self.assertFalse(daemon.exited(), daemon.log())
        self.assertEqual(daemon.stop(), 0)


class Start(Case):
    def run_daemon(self, *arguments):
        return subprocess.run([f"{BUILD}/paynotifyd", *arguments], text=True,
                              capture_output=True, timeout=60)

    def test_http__check_and_usage(self):
        """A script that checks the configuration learns nothing from it."""
        r = self.run_daemon("--check", "-c", self.daemon.conf)
        self.assertEqual((r.returncode, r.stdout), (0, "configuration OK\n"), r.stderr)
        for arguments in (["--nonsense"], ["extra"], ["--role", "x"], ["-c"],
                          ["--role"]):
            r = self.run_daemon(*arguments)
            self.assertEqual(r.returncode, 2, arguments)
            self.assertIn("paynotifyd", r.stderr)
        r = self.run_daemon("--version")
        self.assertEqual(r.returncode, 0)
        for name in ("paynotifyd", "libmicrohttpd", "OpenSSL", "libpq", "jansson",
                     "libxml2", "libsystemd", "inih"):
            self.assertRegex(r.stdout, rf"{name} \d")
        self.assertIn("--check", self.run_daemon("--help").stdout)

    def test_http__bad_configuration_is_78_with_its_line(self):
        """systemd restarts for ever what can never start."""
        with open(self.daemon.conf) as f:
            good = f.read()
        path = f"{self.folder}/bad.conf"
        for old, new in (("[admin]", "colour = red\n[admin]"),
                         ("unix:" + self.daemon.folder + "/admin.sock",
                          "0.0.0.0:8601"),
                         ("apiv3.txt", "nothing.txt")):
            with open(path, "w") as f:
                f.write(good.replace(old, new, 1))
            line = good[:good.index(old)].count("\n") + 1
            os.chmod(path, 0o600)
            for more in ([], ["--check"]):
                r = self.run_daemon("-c", path, *more)
                self.assertEqual(r.returncode, 78, r.stderr)
                self.assertRegex(r.stderr, rf"bad\.conf:{line}: ")
        self.assertEqual(self.run_daemon("-c", "/nonexistent").returncode, 78)

    def test_http__address_in_use_is_said(self):
        """The operator reads that there is "no daemon"."""
        path = f"{self.folder}/used.conf"
        with open(self.daemon.conf) as f:
            text = f.read().replace("127.0.0.1:0", f"127.0.0.1:{self.daemon.port}")
        with open(path, "w") as f:
            f.write(text.replace("http.sock", "http2.sock"))
        os.chmod(path, 0o600)
        r = self.run_daemon("-c", path)
        self.assertEqual(r.returncode, 1)
        self.assertIn(f'could not listen on "127.0.0.1:{self.daemon.port}":'
                      " address already in use", r.stderr.replace('\\"', '"'))

    def test_http__admin_port(self):
        """A monitor sees nothing, or takes any page for health."""
        self.expect(self.daemon.admin("/healthz"), 200, b"ok", "text/plain")
        self.expect(self.daemon.admin("/readyz"), 200)
        self.expect(self.daemon.admin("/nothing"), 404)
        self.expect(self.daemon.admin("/healthz", "POST"), 405)
        self.expect(self.daemon.admin("/healthz", "HEAD"), 200)
        text = self.daemon.admin("/metrics").body.decode()
        self.assertRegex(text, r"(?m)^# TYPE paynotify_requests_total counter$")


class NoDatabase(Case):
    def test_http__without_database_503(self):
        """A success that was never recorded."""
        daemon = self.start("commit_timeout = 300ms", dsn="host=/nonexistent dbname=x")
        for _ in range(2):
            reply = daemon.ask(ALIPAY, *self.signer.alipay("ND1"))
            self.expect(reply, 503, b"fail", "text/plain")
            self.assertRegex(reply.headers["Retry-After"], r"^\d+$")
        self.expect(daemon.ask(ALIPAY, *self.signer.alipay(forge=True)), 401)
        self.expect(daemon.admin("/readyz"), 503)
        self.expect(daemon.admin("/healthz"), 200)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(events_of("ND1"), [])

    def test_http__without_schema_503_and_what_to_do(self):
        """The operator is not told which command is missing."""
        psql("DROP DATABASE IF EXISTS bare", "postgres")
        psql("CREATE DATABASE bare", "postgres")
        dsn = re.sub(r"dbname=\S+", "dbname=bare", os.environ["PN_DSN"])
        daemon = self.start("commit_timeout = 300ms", dsn=dsn, admin="listen = 127.0.0.1:0")
        self.expect(daemon.ask(ALIPAY, *self.signer.alipay()), 503, b"fail")
        eventually(lambda: daemon.admin("/readyz").body.endswith(b"paynotifyctl db migrate`"),
                   "readyz names the command")
        self.expect(daemon.admin("/readyz"), 503)
        port = int(re.search(r"admin port on .*\b127\.0\.0\.1:(\d+)", daemon.log())[1])
        with Client(port) as c:  # who may not read the database's own words
            self.expect(c.ask(b"GET /readyz HTTP/1.1\r\nHost: probe.example\r\n\r\n"), 503,
                        b"the schema is missing: run `paynotifyctl db migrate`")
        self.expect(daemon.ask(ALIPAY, *self.signer.alipay()), 503, b"fail")
        self.assertRegex(daemon.log(), "could not record notification: not taken: "
                         "the database has no schema paynotify: run `paynotifyctl db")
        self.assertEqual(daemon.stop(), 0)

    def test_http__stopped_database_503_then_duplicates(self):
        """A slow database holds the provider past its timeout, or records twice."""
        daemon = self.start("commit_timeout = 500ms").ready()
        requests = [raw(ALIPAY, *self.signer.alipay(f"SD{i}")) for i in range(8)]
        postgres_signal(signal.SIGSTOP)
        try:
            clients = [daemon.connect() for _ in requests]
            for c, request in zip(clients, requests):
                c.send(request)
            for c in clients:
                self.expect(c.read(), 503, b"fail")
                c.close()
        finally:
            postgres_signal(signal.SIGCONT)
        daemon.ready()
        for request in requests:
            def recorded(request=request):
                with daemon.connect() as c:
                    return c.ask(request).status == 200
            eventually(recorded, "the retry is a success")
        for i in range(8):
            self.assertEqual(len(events_of(f"SD{i}")), 1)
        self.assertEqual(daemon.stop(), 0)
