"""Who may: tokens, unix sockets, foreign hosts, media types, lengths; and that
every route of the table asks.
"""
import json
import os
import re
import subprocess
import tempfile

from harness import BUILD, Client, raw
from support import TOKENS, AdminCase, bearer, request, sample_path

MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                   "../../../src/cmd/man/paynotifyd.8")


class Local(AdminCase):
    """Without a token."""

    def test_access__acting_takes_a_unix_socket(self):
        """Else every process and web page of the machine could act."""
        acts = [r for r in self.routes() if r["privilege"] == "act"]
        self.assertGreaterEqual(len(acts), 7)
        for route in acts:
            with self.subTest(**route):
                path = sample_path(route)
                refused = self.ask(route["method"], path, {}, address=self.tcp)
                self.assertIn("set [admin] token_file, or use a unix socket",
                              self.problem(refused, 403, "act"))
                self.problem(self.ask(route["method"], path, {}), 400, "body")

    def test_access__foreign_hosts_are_refused(self):
        """Else a web page could read by a name that it points at 127.0.0.1."""
        for route in self.routes():
            for host in ("evil.example", "127.0.0.1.evil.example:8601", "localhost.",
                         "[::1", "[::1]x", "[localhost]", "127.0.0.1:x", "1.2.3",
                         ""):
                with self.subTest(path=route["path"], host=host):
                    reply = self.ask(route["method"], sample_path(route),
                                     headers={"Host": host}, address=self.tcp)
                    if route["privilege"] == "open":
                        self.expect(reply, 200)
                    else:
                        self.problem(reply, 421, "host")
        for host in ("localhost", "LOCALHOST:8601", f"127.0.0.1:{self.tcp}", "[::1]:80"):
            self.expect(self.ask("GET", "/api/v1", headers={"Host": host},
                                 address=self.tcp), 200)
        self.expect(self.ask("GET", "/api/v1", headers={"Host": "any.example"}), 200)

    def test_access__why_it_is_not_ready_is_for_readers(self):
        """The database's words name hosts and users."""
        told = self.ask("GET", "/readyz", address=self.tcp)
        for headers in {"Host": "evil.example"}, {"Host": "127.0.0.1.example"}:
            reply = self.ask("GET", "/readyz", headers=headers, address=self.tcp)
            self.expect(reply, told.status, b"ready")
        self.assertNotEqual(told.body, b"ready")

    def test_access__bodies_are_json_and_short(self):
        path = "/api/v1/deliveries/skip"
        for kind in ("text/plain", "application/x-www-form-urlencoded",
                     "application/jsonx", "multipart/form-data; boundary=x"):
            self.problem(self.ask("POST", path, b"{}", {"Content-Type": kind}), 415,
                         "media-type")
        self.problem(self.ask("POST", path, b"{}"), 415, "media-type")
        self.problem(self.ask("POST", path, b"{}",
                              {"Content-Type": "Application/JSON; charset=utf-8"}),
                     400, "body")
        long = b'{"reason":"' + b"x" * (64 << 10) + b'"}'
        typed = {"Content-Type": "application/json"}
        self.problem(self.ask("POST", path, long, typed), 413, "body-too-large")
        with Client(self.unix) as c:  # 10 MB, announced
            c.send(raw(path, {**typed, "Content-Length": 10 << 20}, b"", length=False))
            self.problem(c.read(), 413, "body-too-large")
        for body in (b"", b"[]", b"{", b'{"a":1,"a":2}', b'"x"', b"\xff"):
            self.problem(self.ask("POST", path, body, typed), 400, "body")

    def test_access__methods(self):
        for path, method, allow in (
                ("/api/v1/events", "POST", "GET, HEAD"),
                ("/api/v1/consumers/a/pause", "GET", "POST"),
                ("/api/v1/deliveries/skip", "DELETE", "GET, HEAD, POST"),
                ("/metrics", "PUT", "GET, HEAD")):
            reply = self.ask(method, path, {} if method != "GET" else None)
            self.problem(reply, 405, "method")
            self.assertEqual(reply.headers["Allow"], allow)
        for path in ("/", "/api", "/api/v1/", "/api/v1/nothing", "/api/v1/events/",
                     "/api/v1/consumers//pause", "/api/v1/consumers/a/b/pause"):
            self.problem(self.ask("GET", path), 404, "not-found")
        head = self.ask("HEAD", "/api/v1/events")
        self.expect(head, 200, content_type="application/json")
        self.assertEqual(head.headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(head.headers["Cache-Control"], "no-store")

    def test_access__the_man_page_has_every_route(self):
        """Else an operator would not know of it, or look for one that is gone."""
        with open(MAN, encoding="utf-8") as f:
            page = f.read()
        found = re.findall(r"(?m)^\.It Sy (GET|POST|PUT) Pa (\S+)((?: \S+)*)$", page)
        self.assertEqual([(m, p, re.findall(r"\w+", names)) for m, p, names in found],
                         [(r["method"], r["path"], r["parameters"])
                          for r in self.routes()])


class Token(AdminCase):
    """With two tokens, as during a rotation."""

    @classmethod
    def setUpClass(cls):
        cls.keys = tempfile.mkdtemp(prefix="pnt.", dir="/tmp")
        lines = ["listen = 127.0.0.1:0"]
        for i, token in enumerate(TOKENS):
            path = f"{cls.keys}/token{i}"
            with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
                f.write(token + "\n")
            lines.append(f"token_file = {path}")
        cls.admin = "\n".join(lines)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        subprocess.run(["rm", "-rf", cls.keys], check=True)

    @classmethod
    def use(cls, daemon):
        super().use(daemon)
        cls.table = request(cls.unix, "GET", "/api/v1", headers=bearer(TOKENS[0])).body

    def routes(self):
        return json.loads(self.table)["items"]

    def test_access__every_route_asks_for_the_token(self):
        """Else whoever reaches the port could read, or act."""
        wrong = [{}, bearer(TOKENS[0][:-1]), bearer(TOKENS[0] + "x"), bearer(""),
                 {"Authorization": f"Basic {TOKENS[0]}"},
                 {"Authorization": TOKENS[0]}, {"X-Token": TOKENS[0]}]
        for address in (self.unix, self.tcp):
            for route in self.routes():
                path, method = sample_path(route), route["method"]
                body = None if method == "GET" else {}
                for headers in wrong:
                    with self.subTest(path=path, headers=headers):
                        reply = self.ask(method, path, body, headers, address)
                        if route["privilege"] == "open":
                            self.expect(reply, 200)
                            continue
                        self.problem(reply, 401, "token")
                        self.assertEqual(reply.headers["WWW-Authenticate"],
                                         'Bearer realm="paynotifyd"')
                for token in TOKENS:
                    reply = self.ask(method, path, body,
                                     {**bearer(token), "Host": "any.example"}, address)
                    self.assertNotIn(reply.status, (401, 403, 421), path)
        self.problem(self.ask("GET", "/nothing"), 401, "token")
        self.expect(self.ask("GET", "/metrics", headers={
            "Authorization": f"bearer {TOKENS[1]}"}), 200)

    def test_access__tokens_are_not_logged(self):
        self.ask("GET", "/api/v1", headers=bearer(TOKENS[0]))
        for token in TOKENS:
            self.assertNotIn(token, self.daemon.log())


class Configuration(AdminCase):
    def check(self, admin):
        """--check of the daemon's configuration with this [admin]."""
        with open(self.daemon.conf) as f:
            text = f.read().replace("[database]", f"{admin}\n[database]", 1)
        path = f"{self.daemon.folder}/changed.conf"
        with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(text)
        line = 1 + text.splitlines().index(admin.splitlines()[-1])
        done = subprocess.run([f"{BUILD}/paynotifyd", "--check", "-c", path], text=True,
                              capture_output=True)
        return done.returncode, done.stderr, f"{path}:{line}: "

    def token(self, text, mode=0o600):
        path = f"{self.daemon.folder}/token"
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return f"token_file = {path}"

    def test_access__other_hosts_take_a_token(self):
        for address in ("0.0.0.0:8601", "[::]:8601", "192.0.2.1:8601", "*:8601"):
            status, said, place = self.check(f"listen = {address}")
            self.assertEqual(status, 78)
            self.assertIn(place, said)
            self.assertIn("token_file", said)
        good = self.token(TOKENS[0] + "\n")
        self.assertEqual(self.check(f"{good}\nlisten = 0.0.0.0:8601")[0], 0)

    def test_access__what_is_no_token(self):
        for text, mode, what in (("fifteen letters", 0o600, "16 bytes"), (TOKENS[0], 0o644, "chmod 600"),
                                 ("two words in it, long", 0o600, "visible ASCII"),
                                 ("é" * 16, 0o600, "visible ASCII"),
                                 (TOKENS[0] + "\n\n", 0o600, "visible ASCII")):
            status, said, place = self.check(self.token(text, mode))
            self.assertEqual(status, 78, text)
            self.assertIn(place, said)
            self.assertIn(what, said)
