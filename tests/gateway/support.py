"""What the tests of the gateway share: daemons with [guard] routes, a client
that sends and reads exact bytes, the database.

A class has an upstream, a daemon and routes of its own; a process has a
database of its own, a copy of the one that run.sh has migrated. Nobody sleeps:
what has to happen first is waited for (eventually), and leases end when a test
says so (end_lease), unless their length is what is tested.
"""
import calendar
import contextlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from email.utils import parsedate_to_datetime

import psycopg

from upstream import WAIT_SECONDS_MAX, Upstream

BUILD = os.environ["PN_BUILD"]
PROXY = "127.0.0.1"         # the only one that is trusted
STRANGER = "127.0.0.2"
JSON = ("Content-Type", "application/json")
BODY = b'{"amount":100,"currency":"CNY"}'
REPLAY_HEADERS = ("Idempotency-Replayed", "Idempotent-Replayed",
                  "X-Idempotent-Replay")
numbers = itertools.count(1)

# Two thousand clients, on both sides of the connection.
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def eventually(found, what):
    """What found() returns once that is true."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not (result := found()):
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)
    return result


# -- the database -------------------------------------------------------------


def connect(database):
    return psycopg.connect(host=os.environ["PGHOST"],
                           user=os.environ["PGUSER"], dbname=database,
                           autocommit=True)


def make_database():
    name = f"gateway_{os.getpid()}"
    with connect("postgres") as c:
        if not c.execute("SELECT 1 FROM pg_database WHERE datname = %s",
                         [name]).fetchall():
            c.execute(f"CREATE DATABASE {name}"
                      f" TEMPLATE \"{os.environ['PGDATABASE']}\"")
    return name


# -- HTTP ---------------------------------------------------------------------


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        assert len(values) <= 1, f"{name} came {len(values)} times: {self}"
        return values[0] if values else None

    @property
    def replayed(self):
        """All three headers say so, or none is there."""
        said = [self.all(name) for name in REPLAY_HEADERS]
        assert said in ([["true"]] * 3, [[]] * 3), self
        return bool(said[0])

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]!r}"


def head(method, target, headers, size):
    lines = [f"{method} {target} HTTP/1.1"]
    if not any(n.lower() == "host" for n, _ in headers):
        lines.append("Host: api.example.com")
    lines += [f"{n}: {v}" for n, v in headers]
    if size is not None:
        lines.append(f"Content-Length: {size}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def chunks(body, size):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in [*pieces, b""])


class Client:
    """A connection; requests on it in turn."""

    def __init__(self, port, source=PROXY):
        self.socket = socket.create_connection(
            ("127.0.0.1", port), WAIT_SECONDS_MAX, (source, 0))
        self.file = self.socket.makefile("rb")
        self.bodyless = False

    def send(self, method, target, headers=(), body=b""):
        self.bodyless = method == "HEAD"
        self.socket.sendall(head(method, target, headers, len(body)) + body)
        return self

    def send_bytes(self, data):
        self.socket.sendall(data)
        return self

    def read(self):
        """An answer; None if the connection was closed without one."""
        line = self.file.readline()
        if not line:
            return None
        status = int(re.fullmatch(rb"HTTP/1\.1 (\d{3})( [^\r]*)?\r\n", line)[1])
        headers = []
        while (line := self.file.readline()) != b"\r\n":
            name, value = line[:-2].decode("latin-1").split(":", 1)
            headers.append((name, value.strip(" ")))
        if status == 100:
            return self.read()
        reply = Reply(status, headers, b"")
        if not self.bodyless and status not in (204, 304):
            reply.body = self._body(reply)
        return reply

    def _body(self, reply):
        if reply.get("Transfer-Encoding") is None:
            return self.file.read(int(reply.get("Content-Length") or 0))
        assert reply.get("Transfer-Encoding") == "chunked", reply
        body = b""
        while size := int(self.file.readline(), 16):
            body += self.file.read(size)
            assert self.file.read(2) == b"\r\n"
        assert self.file.readline() == b"\r\n"
        return body

    def ask(self, *request):
        return self.send(*request).read()

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# -- daemons ------------------------------------------------------------------


class Daemon:
    """conf: everything but [server] listen, [admin] and [database]."""

    def __init__(self, conf, server="", dsn=None, database=None):
        self.folder = tempfile.mkdtemp(prefix="pngw.", dir="/tmp")
        self.name = os.path.basename(self.folder)
        self.conf = os.path.join(self.folder, "paynotifyd.conf")
        dsn = dsn or (f"host={os.environ['PGHOST']}"
                      f" user={os.environ['PGUSER']}"
                      f" dbname={database or make_database()}")
        self.write("paynotifyd.conf", f"""[server]
listen = unix:{self.folder}/http.sock
trusted_proxies = {PROXY}/32
{server}
[admin]
listen = unix:{self.folder}/admin.sock
[database]
dsn = {dsn} application_name={self.name}
{conf}""")
        self.log_path = os.path.join(self.folder, "log")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(text)
        return path

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [f"{BUILD}/paynotifyd", "-c", self.conf], stderr=log)
        self.pid = self.process.pid
        # All else listens on unix sockets.
        self.port = int(eventually(
            lambda: re.findall(r"listening on .*127\.0\.0\.1:(\d+)",
                               self.log()) or self.exited() and ["0"],
            "the gateway listens")[-1])
        if self.exited():
            raise AssertionError(self.log())
        return self

    def ready(self):
        eventually(lambda: self.admin("/readyz").status == 200, "ready")
        return self

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def exited(self):
        return self.process.poll() is not None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT_SECONDS_MAX)

    def restart(self):
        """After a stop or a kill, on another port."""
        os.truncate(self.log_path, 0)
        return self.start().ready()

    def stop(self):
        """The exit status; what was killed before has none."""
        if self.exited():
            return 0 if self.process.returncode == -signal.SIGKILL \
                else self.process.returncode
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        return self.process.wait(WAIT_SECONDS_MAX)

    def admin(self, path):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
            s.settimeout(WAIT_SECONDS_MAX)
            s.connect(f"{self.folder}/admin.sock")
            s.sendall(head("GET", path, [("Connection", "close")], None))
            with s.makefile("rb") as f:
                first, _, body = f.read().partition(b"\r\n\r\n")
        return Reply(int(first.split(b" ")[1]), [], body)

    def metric(self, name):
        """Of all routes; name may end in a label."""
        text = self.admin("/metrics").body.decode()
        name, _, label = name.partition("{")
        found = [float(value) for labels, value in re.findall(
            rf"(?m)^paynotify_guard_{name}(?:{{(.*)}})? ([\d.]+)$", text)
            if label.rstrip("}") in labels]
        assert found, f"no metric {name}: {text}"
        return sum(found)

    def results(self, *names):
        return {n: self.metric('requests_total{result="%s"}' % n)
                for n in names}

    def works(self):
        return {n: self.metric('upstream_total{work="%s"}' % n)
                for n in ("done", "not_done", "unknown")}

    def connect(self, source=PROXY):
        return Client(self.port, source)

    def ctl(self, *args):
        """The exit status and the JSON objects of a paynotifyctl."""
        done = subprocess.run(
            [f"{BUILD}/paynotifyctl", *args[:2], "-c", self.conf, "--json",
             *args[2:]], capture_output=True, text=True)
        self.complaint = done.stderr
        return done.returncode, [json.loads(line)
                                 for line in done.stdout.splitlines()]


# -- tests --------------------------------------------------------------------


class Case(unittest.TestCase):
    """routes: names and options; route x is POST /v1/x of tenant shop1 unless
    its options say otherwise. more: of the configuration."""

    routes = {"charges": ""}
    guard = ""
    server = ""
    more = ""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.database = make_database()
        cls.admin = connect(cls.database)
        cls.daemons, cls.clients = [], []
        cls.upstream = Upstream()
        cls.prepare()
        cls.daemon = cls.start()

    @classmethod
    def prepare(cls):
        """What must be there before the first daemon."""

    @classmethod
    def tearDownClass(cls):
        for client in cls.clients:
            client.close()
        codes = [d.stop() for d in cls.daemons]
        logs = "\n".join(d.log() for d in cls.daemons)
        for d in cls.daemons:
            shutil.rmtree(d.folder)
        cls.upstream.close()
        cls.admin.close()
        assert not any(codes), f"exit status {codes}\n{logs}"

    def tearDown(self):
        for r in self.upstream.requests:
            r.release()
        for client in self.clients:
            client.close()
        self.clients.clear()
        if self.has_failed() and os.environ.get("PN_LOGS"):
            print("\n".join(d.log() for d in self.daemons))

    def has_failed(self):
        errors = self._outcome.result
        return any(t is self for t, _ in errors.failures + errors.errors)

    @classmethod
    def conf_text(cls):
        text = [f"[guard]\nlisten = 127.0.0.1:0\n{cls.guard}"]
        for name, options in cls.routes.items():
            lines = [f"[guard {name}]"]
            if "path =" not in options:
                lines.append(f"path = POST /v1/{name}")
            if "upstream =" not in options:
                lines.append(f"upstream = http://127.0.0.1:"
                             f"{cls.upstream.port}/up/{name}")
            if not re.search(r"(?m)^(tenant|api_keys)", options):
                lines.append("tenant = shop1")
            text.append("\n".join([*lines, options]))
        return "\n".join([*text, cls.more])

    @classmethod
    def server_text(cls):
        """Commits of a loaded machine may take seconds; only tests of that, and
        of leases, which are longer than it, say how long."""
        timed = re.search(r"(?m)^(commit_timeout|lease) =",
                          cls.server + "\n" + cls.conf_text())
        return cls.server if timed else cls.server + "\ncommit_timeout = 20s"

    @classmethod
    def start(cls, **more):
        daemon = Daemon(cls.conf_text(), cls.server_text(), **more)
        cls.daemons.append(daemon)
        return daemon.start().ready()

    # -- requests ---------------------------------------------------------

    def key(self):
        """One that is nobody's."""
        return f"{self._testMethodName}-{next(numbers)}"

    def headers(self, key, do=None, more=()):
        headers = [JSON, *more]
        if key is not None:
            headers.append(("Idempotency-Key", key))
        if do is not None:
            headers.append(("X-Do", json.dumps(do)))
        return headers

    def begin(self, key, route="charges", body=BODY, do=None, headers=(),
              daemon=None, source=PROXY, method="POST"):
        """Sends a request; its answer is to be read from the client."""
        client = (daemon or self.daemon).connect(source)
        self.clients.append(client)
        target = route if route.startswith("/") else f"/v1/{route}"
        return client.send(method, target, self.headers(key, do, headers),
                           body)

    def ask(self, key, *args, **more):
        client = self.begin(key, *args, **more)
        reply = client.read()
        client.close()
        return reply

    def hold(self, key, route="charges", then=None, **more):
        """Sends a request that the upstream has, and does not answer yet:
        client, request at the upstream."""
        before = len(self.upstream.seen(key))
        client = self.begin(key, route, do={"hold": True, **(then or {})},
                            **more)
        return client, self.upstream.wait(key, before + 1)

    def waiters(self, n, key, *args, daemon=None, **more):
        """n clients that have joined the request under way."""
        daemon = daemon or self.daemon
        before = daemon.metric("waits_total")
        clients = [self.begin(key, *args, daemon=daemon, **more)
                   for _ in range(n)]
        eventually(lambda: daemon.metric("waits_total") >= before + n,
                   f"{n} clients wait")
        return clients

    # -- what came --------------------------------------------------------

    def made(self, reply, status=201):
        """An answer of the upstream, the first time it is told."""
        self.assertEqual(reply.status, status, reply)
        self.assertFalse(reply.replayed, reply)
        return reply

    def replayed(self, reply, first):
        self.assertEqual((reply.status, reply.body),
                         (first.status, first.body), reply)
        self.assertTrue(reply.replayed, reply)
        return reply

    def problem(self, reply, name, status, again=None):
        """Of the gateway; again: whether Retry-After is there."""
        self.assertIsNotNone(reply, f"closed, instead of {name}")
        self.assertEqual(reply.get("Content-Type"), "application/problem+json",
                         reply)
        said = reply.json()
        self.assertEqual((said["type"], said["status"], reply.status),
                         (f"urn:paynotify:problem:{name}", status, status),
                         reply)
        self.assertGreater(len(said["title"]), 10)
        self.assertGreater(len(said["detail"]), 20)
        self.assertFalse(reply.replayed, reply)
        if again is not None:
            self.assertEqual(reply.get("Retry-After") is not None, again,
                             reply)
        if reply.get("Retry-After") is not None:
            self.assertGreaterEqual(int(reply.get("Retry-After")), 1)
        return said

    def attempts(self, key):
        """Idempotency-Attempt of all that the upstream has seen."""
        return [r.attempt for r in self.upstream.seen(key)]

    # -- the database -----------------------------------------------------

    def sql(self, text, *args):
        cursor = self.admin.execute(text, args)
        return cursor.fetchall() if cursor.description else []

    def row(self, key, columns="state::text"):
        rows = self.sql(f"SELECT {columns} FROM paynotify.idempotency_keys"
                        " WHERE key = %s", key)
        return rows[0] if rows else None

    def state(self, key):
        row = self.row(key)
        return row[0] if row else None

    def in_state(self, key, state):
        eventually(lambda: self.state(key) == state, f"{key} is {state}")

    def end_lease(self, key):
        rows = self.sql(
            "UPDATE paynotify.idempotency_keys SET lease_expires_at ="
            " clock_timestamp() WHERE key = %s AND lease_token IS NOT NULL"
            " RETURNING key", key)
        self.assertEqual(len(rows), 1, "no lease to end")


def seconds_left(reply):
    """Of the key's life, by the answer's own clock."""
    said = reply.get("Idempotency-Expires")
    expires = time.strptime(said.split(".")[0].rstrip("Z"),
                            "%Y-%m-%dT%H:%M:%S")
    assert said.endswith("Z"), said
    now = parsedate_to_datetime(reply.get("Date"))
    return calendar.timegm(expires) - now.timestamp()
