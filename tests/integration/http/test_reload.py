"""SIGHUP: keys, accounts and endpoints are exchanged under load, all or nothing.
"""
import base64
import hashlib
import hmac
import http.server
import os
import re
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from harness import (APP_ID, BUILD, MCHID, SELLER, WX_APPID, Case, Client, Daemon,
                     Signer, eventually, psql, raw)

ALIPAY, WECHAT = "/notify/alipay/shop1", "/notify/wechat/shop1"
DONE = r'paynotify_reloads_total\{result="done"\}'
REFUSED = r'paynotify_reloads_total\{result="refused"\}'


def alipay(tenant, *keys, app_id=APP_ID, seller=SELLER):
    lines = [f"[alipay {tenant}]", f"app_id = {app_id}", f"seller_id = {seller}"]
    return "\n".join(lines + [f"public_key = {k}" for k in keys]) + "\n"


def wechat(keys):
    return (f"[wechat shop1]\nmchid = {MCHID}\nappid = {WX_APPID}\n"
            f"api_v3_key_file = {keys}/apiv3.txt\n"
            f"public_key = PUB_KEY_ID_0000000000000000000001:{keys}/wechat.pem\n")


class Load(threading.Thread):
    """Sends what it is given over and over on one connection that stays open."""

    def __init__(self, port, requests):
        super().__init__()
        self.port, self.requests = port, requests
        self.stopped, self.sent, self.failures = False, 0, []

    def run(self):
        try:
            with Client(self.port) as client:
                while not self.stopped:
                    reply = client.ask(self.requests[self.sent % len(self.requests)])
                    if reply is None or reply.status != 200:
                        self.failures.append(repr(reply))
                        return
                    self.sent += 1
        except OSError as error:
            self.failures.append(repr(error))


class Sink(http.server.ThreadingHTTPServer):
    """An application: notes each push and the secret that signed it."""
    daemon_threads = True

    def __init__(self, secrets_known):
        self.pushes, self.known = [], secrets_known
        self.gate = threading.Event()  # answers wait for it
        self.gate.set()
        super().__init__(("127.0.0.1", 0), SinkHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def signer_of(self, headers, body):
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        for name, secret in self.known.items():
            mac = hmac.new(secret, text, hashlib.sha256).digest()
            if f"v1,{base64.b64encode(mac).decode()}" in headers["webhook-signature"]:
                return name
        return None


class SinkHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        who = self.server.signer_of(self.headers, body)
        self.server.pushes.append((self.headers["webhook-id"], who))
        self.server.gate.wait(60)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Reload(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other_folder = tempfile.mkdtemp(prefix="pnk.", dir="/tmp")
        cls.other = Signer(cls.other_folder)
        cls.old, cls.new = f"{cls.folder}/keys", f"{cls.other_folder}/keys"

    @classmethod
    def tearDownClass(cls):
        cls.other.close()
        subprocess.run(["rm", "-rf", cls.other_folder], check=True)
        super().tearDownClass()

    def setUp(self):
        with open(self.daemon.conf) as f:
            self.head = f.read().split("[alipay")[0]
        self.good = alipay("shop1", f"{self.old}/alipay.pem") + wechat(self.old)
        self.reload(self.good)

    def write(self, text, daemon=None):
        daemon = daemon or self.daemon
        with open(daemon.conf + ".new", "w") as f:
            f.write(self.head + text)
        os.chmod(daemon.conf + ".new", 0o600)
        os.replace(daemon.conf + ".new", daemon.conf)

    def reload(self, text, result=DONE):
        """Returns what the log says of it."""
        self.write(text)
        before, said = self.daemon.metric(result), len(self.daemon.log())
        self.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.daemon.metric(result) == before + 1, result)
        return self.daemon.log()[said:]

    def status(self, path, made):
        return self.daemon.ask(path, *made).status

    def test_reload__a_key_is_rotated_step_by_step(self):
        """A rotation refuses genuine notifications, or believes an old key."""
        key = [f"{k}/alipay.pem" for k in (self.old, self.new)]
        for n, (keys, old, new) in enumerate([
                (key[:1], 200, 401), (key, 200, 200), (key[1:], 401, 200)]):
            self.reload(alipay("shop1", *keys) + wechat(self.old))
            self.assertEqual(self.status(ALIPAY, self.signer.alipay(f"RO{n}")), old)
            self.assertEqual(self.status(ALIPAY, self.other.alipay(f"RN{n}")), new)
        self.assertEqual(self.status(WECHAT, self.signer.wechat("RW1")), 200)
        self.reload(self.good.replace(wechat(self.old), wechat(self.new)))
        self.assertEqual(self.status(WECHAT, self.signer.wechat("RW2")), 401)
        self.assertEqual(self.status(WECHAT, self.other.wechat("RW3")), 200)
        # What verified it is there for whoever verifies again.
        self.assertEqual(psql(
            "SELECT count(*) FROM paynotify.evidence LEFT JOIN paynotify.verifying_keys"
            " ON fingerprint = key_fingerprint WHERE fingerprint IS NULL"), [["0"]])

    def test_reload__a_key_file_that_is_overwritten_is_read_again(self):
        """The usual way to rotate, `cp new.pem alipay.pem`, changes nothing."""
        path = f"{self.folder}/in_place.pem"
        for source, signer, status in (
                (self.old, self.other, 401), (self.new, self.other, 200)):
            subprocess.run(["cp", f"{source}/alipay.pem", path], check=True)
            os.chmod(path, 0o600)
            self.reload(alipay("shop1", path))
            self.assertEqual(self.status(ALIPAY, signer.alipay()), status)

    def test_reload__accounts_come_and_go(self):
        """An account that was taken out is still served, or a new one is not."""
        path = "/notify/alipay/shop2"
        more = alipay("shop2", f"{self.old}/alipay.pem", seller="2088000000000002")
        for text, status in ((self.good, 404), (self.good + more, 200), (self.good, 404)):
            self.reload(text)
            made = self.signer.alipay("AC1", {"seller_id": "2088000000000002"})
            self.assertEqual(self.status(path, made), status)

    def test_reload__a_bad_file_changes_nothing_and_is_told(self):
        """A slip in the file stops receiving, or half of it is applied."""
        open_to_all = f"{self.folder}/open.txt"
        with open(open_to_all, "w") as f:
            f.write("x" * 32)
        os.chmod(open_to_all, 0o644)
        new = alipay("shop1", f"{self.new}/alipay.pem")
        bad = {
            "sign_type = MD4\n": "sign_type",
            f"public_key = {self.folder}/none.pem\n": "none.pem",
            f"test_private_key = {open_to_all}\n": "open.txt",
            f"public_key = {self.folder}/keys/apiv3.txt\n": "apiv3.txt",
        }
        for line, word in bad.items():
            said = self.reload(new + line, REFUSED)
            number = (self.head + new).count("\n") + 1
            self.assertRegex(said, "reload refused, the running configuration goes on: "
                             f"{re.escape(self.daemon.conf)}:{number}: [^\n]*{word}")
            self.assertEqual(self.status(ALIPAY, self.signer.alipay()), 200)
            self.assertEqual(self.status(ALIPAY, self.other.alipay()), 401)
            self.assertEqual(self.status(WECHAT, self.signer.wechat()), 200)
        self.reload(new)
        self.assertEqual(self.status(ALIPAY, self.other.alipay()), 200)

    def test_reload__what_needs_a_restart_is_named(self):
        """An operator believes that a reload has applied what it has not."""
        head = self.head
        try:
            self.head = head.replace("[server]\n", "[server]\nthreads = 3\n") + (
                "[guard]\nlisten = 127.0.0.1:0\n[guard charges]\npath = POST /c\n"
                "upstream = http://127.0.0.1:9/\ntenant = shop1\n")
            said = self.reload(self.good)
        finally:
            self.head = head
        for what in (r"\[server\] threads is changed", r"\[guard\] is new or was taken out",
                     r"\[guard charges\] is new or was taken out"):
            self.assertRegex(said, what + ": takes effect at the next restart")
        self.assertNotIn("restart", self.reload(self.good))

    def test_reload__under_load_fails_no_request(self):
        """A reload drops a request, or verifies it with keys that are gone."""
        both = (alipay("shop1", f"{self.new}/alipay.pem", f"{self.old}/alipay.pem") +
                alipay("shop3", f"{self.new}/alipay.pem", seller="2088000000000003") +
                wechat(self.old))
        loads, trades = [], set()
        for i in range(4):
            requests = []
            for k in range(4):
                for path, sign, trade in ((ALIPAY, self.signer.alipay, f"LA{i}{k}"),
                                          (WECHAT, self.signer.wechat, f"LW{i}{k}")):
                    requests.append(raw(path, *sign(trade)))
                    trades.add(trade)
            loads.append(Load(self.daemon.port, requests))
        for load in loads:
            load.start()
        try:
            for n in range(20):
                before = [load.sent for load in loads]
                self.reload(both if n % 2 == 0 else self.good)
                eventually(lambda before=before: all(
                    load.failures or load.sent > sent
                    for load, sent in zip(loads, before)), "all get on")
            eventually(lambda: all(load.failures or load.sent >= 8 for load in loads),
                       "each was sent")
        finally:
            for load in loads:
                load.stopped = True
            for load in loads:
                load.join()
        self.assertEqual([load.failures for load in loads], [[]] * len(loads))
        rows = psql("SELECT out_trade_no FROM paynotify.events"
                    " WHERE out_trade_no ~ '^L[AW][0-9]+$'")
        self.assertEqual(sorted(row[0] for row in rows), sorted(trades))

    def secret(self, name):
        secret = secrets.token_bytes(32)
        path = f"{self.folder}/{name}.secret"
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write("whsec_" + base64.b64encode(secret).decode())
        return path, secret

    def record(self, count):
        made = [self.signer.alipay() for _ in range(count)]
        for one in made:
            self.assertEqual(self.status(ALIPAY, one), 200)

    def test_reload__endpoints_are_exchanged_while_pushes_are_in_flight(self):
        """A push is lost, or is signed with a secret that nobody configured."""
        (one, a), (two, b) = self.secret("one"), self.secret("two")
        first, second = (Sink({"a": a, "b": b}) for _ in range(2))

        def push(name, sink, path):
            return (f"[deliver {name}]\nurl = {sink.url}\nsecret_file = {path}\n"
                    "start = 2026-01-01\n")

        def ids():
            return {row[0] for row in psql("SELECT id FROM paynotify.events")}

        def has(sink, wanted):
            return lambda: {i for i, _ in sink.pushes} >= wanted

        self.reload(self.good + push("first", first, one))
        first.gate.clear()
        self.record(5)
        eventually(lambda: len(first.pushes) >= 5, "pushes are in flight")
        # Another secret, and another endpoint, while none was answered.
        self.reload(self.good + push("first", first, two) + push("second", second, two))
        self.record(5)
        first.gate.set()
        eventually(has(first, ids()), "the first has all")
        eventually(has(second, ids()), "the second has all")
        self.assertEqual({who for _, who in second.pushes}, {"b"})
        self.assertEqual({who for _, who in first.pushes}, {"a", "b"})
        # Not what other tests left: their endpoints may be gone.
        eventually(lambda: psql(
            "SELECT count(*) FROM paynotify.deliveries d JOIN paynotify.consumers c"
            " ON c.id = d.consumer_id AND c.name IN ('first', 'second')"
            " WHERE d.state <> 'done'") == [["0"]], "all is settled")
        # Unchanged ones stay: nothing is said and nothing begins anew.
        count = len(second.pushes)
        self.reload(self.good + push("first", first, two) + push("second", second, two))
        # One is taken out: its events wait, the other's go on.
        self.reload(self.good + push("first", first, two))
        self.record(2)
        eventually(has(first, ids()), "the first has all")
        self.assertEqual(len(second.pushes), count)
        self.reload(self.good + push("second", second, one))
        eventually(has(second, ids()), "what waited comes")
        self.assertEqual({who for _, who in second.pushes[count:]}, {"a"})
        self.reload(self.good)


class Watched(Daemon):
    """As systemd starts it, with a watchdog."""

    def launch(self, log):
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.settimeout(60)
        self.manager.bind(f"{self.folder}/notify")
        return subprocess.Popen(
            [f"{BUILD}/paynotifyd", "-c", self.conf], stderr=log,
            env={**os.environ, "NOTIFY_SOCKET": f"{self.folder}/notify",
                 "WATCHDOG_USEC": "400000"})

    def told(self, wanted):
        """Waits for that message."""
        while not re.match(wanted, text := self.manager.recv(4096).decode()):
            pass
        return text


class Storm(threading.Thread):
    def __init__(self, process):
        super().__init__()
        self.process, self.stopped = process, False

    def run(self):
        while not self.stopped and self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)


class Service(Case):
    def test_reload__systemd_is_told_and_a_storm_neither_starves_nor_stops(self):
        """systemd kills a daemon that is reloaded often, or cannot stop it."""
        self.daemons.append(Watched(self.folder))
        d = self.daemons[-1].ready()
        d.told("READY=1")
        d.process.send_signal(signal.SIGHUP)
        self.assertRegex(d.told("RELOADING=1"), r"\nMONOTONIC_USEC=\d+\n")
        d.told("READY=1")
        storm = Storm(d.process)
        storm.start()
        try:
            for _ in range(5):
                d.told("WATCHDOG=1")
            self.expect(d.ask(ALIPAY, *self.signer.alipay()), 200)
            d.terminate()
            self.assertEqual(d.wait(), 0)
        finally:
            storm.stopped = True
            storm.join()
        self.assertIn("stopping on SIGTERM", d.log())

    def test_reload__needs_no_database(self):
        """Keys cannot be mended while the database is away."""
        d = self.start(dsn="host=/nonexistent dbname=x")
        d.process.send_signal(signal.SIGHUP)
        eventually(lambda: d.metric(DONE) == 1, "it is reloaded")


if __name__ == "__main__":
    unittest.main()
