"""Each example is run as it is, and must have done each event exactly once."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time
import unittest

import psycopg
import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
DIR, BUILD, PYTHON = (os.environ[f"PN_{n}"] for n in ("DIR", "BUILD", "PYTHON"))
PORT, HOOK_PORT = (int(os.environ[f"PN_{n}"]) for n in ("PORT", "HOOK_PORT"))
WAIT_SECONDS_MAX = 60
ROW = "event_id, type, out_trade_no, amount, currency"
PULLS = {"sh": ["bash", "pull.sh"], "py": [PYTHON, "-B", "pull.py"],
         "mjs": ["node", "pull.mjs"]}


def wait(what, condition):
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.02)


def records():
    """The requests that gen.mjs made."""
    with open(os.path.join(DIR, "requests.bin"), "rb") as f:
        while head := f.readline():
            yield f.read(int(head.split()[1]))


def notify(requests):
    """Plays the providers, on one connection."""
    with socket.create_connection(("127.0.0.1", PORT)) as s:
        reply = s.makefile("rb")
        for data in requests:
            s.sendall(data)
            status = reply.readline()
            length = 0
            while (line := reply.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            reply.read(length)
            if b" 200 " not in status:
                raise AssertionError(status)


def start(*args, **environment):
    return subprocess.Popen(args, cwd=HERE, stdin=subprocess.DEVNULL,
                            env={**os.environ, **environment})


def listening(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.requests = list(records())
        cls.db = psycopg.connect("", autocommit=True)
        cls.my = pymysql.connect(unix_socket=os.environ["MYSQL_SOCKET"],
                                 user="root", autocommit=True)
        cls.daemon = start(f"{BUILD}/paynotifyd", "-c",
                           f"{DIR}/paynotifyd.conf")
        wait("the daemon listens", lambda: listening(PORT))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.send_signal(signal.SIGTERM)
        cls.daemon.wait(WAIT_SECONDS_MAX)

    def setUp(self):
        self.children = []
        with open(os.path.join(HERE, "payments.sql"), encoding="ascii") as f:
            self.table = f.read()

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()

    def run_example(self, *args, **environment):
        child = start(*args, **environment)
        self.children.append(child)
        return child

    def events(self, after=0):
        return sorted(self.db.execute(
            "SELECT id, type, out_trade_no, amount, currency"
            " FROM paynotify.events WHERE seq > %s", [after]).fetchall())

    # MariaDB: an endpoint that is pushed to

    def mysql(self, text, args=None):
        with self.my.cursor() as c:
            c.execute(text, args)
            return c.fetchall()

    def endpoint(self, port, database, secret="hook.secret"):
        child = self.run_example(PYTHON, "-B", "push_mysql.py", str(port),
                                 f"{DIR}/{secret}", MYSQL_DATABASE=database)
        wait("the endpoint listens", lambda: listening(port))
        return child

    def make_database(self, name):
        self.mysql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        self.my.select_db(name)
        self.mysql(self.table.partition("CREATE")[1]
                   + self.table.partition("CREATE")[2])
        self.mysql("CREATE TABLE seen_events (id varchar(40) PRIMARY KEY)")

    def test_1_pushed_to_mysql(self):
        """Killed in the middle, and each event done once."""
        self.make_database("shop")
        child = self.endpoint(HOOK_PORT, "shop")
        notify(self.requests[:100])

        def count():
            return self.mysql("SELECT count(*) FROM payments")[0][0]

        wait("the first are there", lambda: count() > 20)
        child.kill()
        child.wait()
        self.endpoint(HOOK_PORT, "shop")
        notify(self.requests[100:200])
        wait("all are there", lambda: count() >= len(self.events()))
        self.assertEqual(sorted(self.mysql(f"SELECT {ROW} FROM payments")),
                         self.events())
        self.assertEqual(self.mysql("SELECT count(*) FROM seen_events")[0][0],
                         len(self.events()))

    # PostgreSQL: a database role with the rights of an application

    def application(self, name):
        """A login role of the application, with a schema of its own."""
        self.db.execute(f"CREATE ROLE {name} LOGIN IN ROLE paynotify_consumer;"
                        f"CREATE SCHEMA {name} AUTHORIZATION {name};"
                        f"SET ROLE {name}; SET search_path = {name};"
                        f"{self.table}; RESET ROLE; RESET search_path")
        return {"PGUSER": name}

    def payments(self, name):
        return sorted(self.db.execute(
            f"SELECT {ROW} FROM {name}.payments").fetchall())

    def pull(self, kind):
        after = 0
        if kind == "sh":        # two processes an event: not the past, too
            self.db.execute("SELECT paynotify.register_consumer('shop-sh',"
                            " NULL, NULL, now())")
            after = self.db.execute("SELECT max(seq) FROM paynotify.events"
                                    ).fetchone()[0] or 0
        notify(self.requests[{"sh": slice(200, 230), "py": slice(230, 350),
                              "mjs": slice(350, 470)}[kind]])
        name = f"shop_{kind}"
        role = self.application(name)
        child = self.run_example(*PULLS[kind], "--drain", **role)
        self.assertEqual(child.wait(WAIT_SECONDS_MAX), 0)
        self.assertGreater(len(self.events(after)), 10)
        self.assertEqual(self.payments(name), self.events(after))
        return name, role

    def woken(self, kind, name, role):
        """A notification wakes it, long before it would look again."""
        child = self.run_example(*PULLS[kind], POLL_SECONDS="3600", **role)
        wait("it listens", lambda: self.db.execute(
            "SELECT 1 FROM pg_stat_activity WHERE usename = %s AND"
            " state = 'idle' AND query LIKE '%%claim%%'", [name]).fetchone())
        before = len(self.events())
        notify(self.requests[-10:] if kind == "py" else self.requests[-20:-10])
        self.assertGreater(len(self.events()), before)
        wait("it has been woken",
             lambda: self.payments(name) == self.events())
        self.assertIsNone(child.poll())

    def test_2_pull_in_shell(self):
        """The shell example would lose, repeat or mangle an event."""
        self.pull("sh")

    def test_3_pull_in_python(self):
        """The Python example, likewise, or sleep through a notification."""
        self.woken("py", *self.pull("py"))

    def test_4_pull_in_node(self):
        """The Node example, likewise."""
        self.woken("mjs", *self.pull("mjs"))

    def test_5_work_that_fails_comes_again(self):
        """An example that acks what failed, or stops at it."""
        name, role = "shop_fails", self.application("shop_fails")
        self.db.execute("ALTER TABLE shop_fails.payments"
                        " ADD CHECK (amount < 0)")
        for kind in ("py", "mjs"):
            child = subprocess.run(
                [*PULLS[kind], "--drain"], cwd=HERE, stdin=subprocess.DEVNULL,
                env={**os.environ, **role, "CONSUMER": f"fails-{kind}"},
                stderr=subprocess.PIPE, text=True, check=True,
                timeout=WAIT_SECONDS_MAX)
            self.assertIn("violates check constraint", child.stderr)
            self.assertEqual(self.payments(name), [])
            self.assertEqual(self.db.execute(
                "SELECT count(*) FROM paynotify.deliveries d"
                " JOIN paynotify.consumers c ON c.id = d.consumer_id"
                " WHERE c.name = %s AND d.state = 'retry'"
                " AND d.reason LIKE '%%constraint%%'",
                [f"fails-{kind}"]).fetchone(), (len(self.events()),))

    def test_6_one_that_fails_takes_no_other_with_it(self):
        """An example in which one bad event keeps all others from being
        done, or that ends at it."""
        start_at = self.db.execute("SELECT clock_timestamp()").fetchone()[0]
        for kind in PULLS:
            self.db.execute("SELECT paynotify.register_consumer(%s, start_at"
                            " => %s)", [f"poison-{kind}", start_at])
        before = self.db.execute("SELECT max(seq) FROM paynotify.events"
                                 ).fetchone()[0]
        notify(self.requests[470:480])
        events = self.events(before)
        self.assertGreater(len(events), 3)
        bad = events[1][0]
        for kind in PULLS:
            name = f"shop_poison_{kind}"
            role = self.application(name)
            self.db.execute(f"ALTER TABLE {name}.payments"
                            f" ADD CHECK (event_id <> '{bad}')")
            child = self.run_example(*PULLS[kind], "--drain", **role,
                                     CONSUMER=f"poison-{kind}")
            self.assertEqual(child.wait(WAIT_SECONDS_MAX), 0)
            waits = self.db.execute(
                "SELECT e.id, d.state, d.reason LIKE '%%check constraint%%'"
                " FROM paynotify.deliveries d JOIN paynotify.consumers c"
                " ON c.id = d.consumer_id JOIN paynotify.events e"
                " ON e.seq = d.seq WHERE c.name = %s AND d.state <> 'done'"
                " ORDER BY d.seq", [f"poison-{kind}"]).fetchall()
            self.assertEqual(waits[0], (bad, "retry", True))
            held = {w[0] for w in waits}    # itself, and its order behind it
            self.assertEqual(self.payments(name),
                             [e for e in events if e[0] not in held])

    def test_7_the_endpoint_verifies(self):
        """An endpoint that takes what paynotifyd did not sign, or twice what
        it did."""
        self.make_database("verifies")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.endpoint(port, "verifies")
        with open(f"{DIR}/hook.secret", encoding="ascii") as f:
            secret = f.read().strip()
        now = int(time.time())

        def sign(id, at, body):
            return subprocess.run(
                ["node", "sign.mjs", secret, id, str(at)], cwd=HERE,
                input=body, capture_output=True, check=True).stdout.decode()

        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

        def post(id, at, signature, body):
            c.request("POST", "/events", body, {
                "webhook-id": id, "webhook-timestamp": str(at),
                "webhook-signature": signature})
            r = c.getresponse()
            r.read()
            return r.status

        body = json.dumps({"id": "evt_1", "type": "payment.succeeded",
                           "out_trade_no": "测试", "amount": 5,
                           "currency": "CNY"}).encode()
        good = sign("evt_1", now, body)
        old = sign("evt_1", now - 301, body)
        for wrong in (("evt_1", now, good, body.replace(b"5", b"6")),
                      ("evt_2", now, good, body),
                      ("evt_1", now - 1, good, body),
                      ("evt_1", now - 301, old, body),
                      ("evt_1", "x", good, body),
                      ("evt_1", now, "", body),
                      ("evt_1", now, "v1a," + good[3:], body)):
            self.assertEqual(post(*wrong), 401, wrong)
        self.assertEqual(self.mysql("SELECT * FROM payments"), ())
        self.assertEqual(post("evt_1", now, "v1,AAAA " + good, body), 204)
        self.assertEqual(post("evt_1", now, good, body), 204)
        self.assertEqual(self.mysql("SELECT event_id, amount FROM payments"),
                         (("evt_1", 5),))
        # The work fails: its id must not be kept.
        body = b'{"id": "evt_2", "type": null, "out_trade_no": null,' \
            b' "amount": 1, "currency": "CNY"}'
        self.assertEqual(post("evt_2", now, sign("evt_2", now, body), body),
                         500)
        self.assertEqual(self.mysql("SELECT * FROM seen_events"),
                         (("evt_1",),))
        c.close()


if __name__ == "__main__":
    unittest.main()
