"""What the HTTP tests share: a signer, a raw client that sees exact bytes, the
daemon under test, and its database (tests/lib/pg.sh has started the server).
"""
import base64
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BUILD = os.environ["PN_BUILD"]
HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE = 60  # of any wait: only a hang reaches it
APP_ID, SELLER, MCHID = "2021000000000001", "2088000000000001", "1900000001"
WX_APPID = "wx0000000000000001"
numbers = itertools.count(1)


def psql(sql, database=None):
    """Rows as lists of text."""
    out = subprocess.run(
        ["psql", "-qXAt", "-F", "\t", "-d", database or os.environ["PGDATABASE"],
         "-v", "ON_ERROR_STOP=1", "-c", sql],
        check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in out.splitlines()]


def eventually(condition, what):
    """Waits until condition() is true, at most DEADLINE."""
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)


class Signer:
    def __init__(self, folder):
        self.process = subprocess.Popen(
            ["node", os.path.join(HERE, "sign.mjs"), folder], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert json.loads(self.process.stdout.readline())["ready"]

    def sign(self, **job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        made = json.loads(self.process.stdout.readline())
        return made["headers"], base64.b64decode(made["body"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def alipay(self, trade=None, change=None, **options):
        trade = trade or f"A{next(numbers)}"
        fields = {
            "notify_time": "2026-03-01 10:00:06", "notify_type": "trade_status_sync",
            "notify_id": f"n{trade}", "app_id": APP_ID, "auth_app_id": APP_ID,
            "charset": "utf-8", "version": "1.0", "trade_no": f"20260301{trade}",
            "out_trade_no": trade, "seller_id": SELLER, "trade_status": "TRADE_SUCCESS",
            "total_amount": "88.88", "receipt_amount": "88.88",
            "gmt_create": "2026-03-01 09:59:58", "gmt_payment": "2026-03-01 10:00:05",
            "subject": "测试 & 商品",
        }
        fields.update(change or {})
        return self.sign(provider="alipay", fields=fields, **options)

    def wechat(self, trade=None, change=None, **options):
        trade = trade or f"W{next(numbers)}"
        plain = {
            "mchid": MCHID, "appid": WX_APPID, "out_trade_no": trade,
            "transaction_id": f"42000{trade}", "trade_type": "JSAPI",
            "trade_state": "SUCCESS", "trade_state_desc": "支付成功",
            "bank_type": "OTHERS", "success_time": "2026-03-01T10:00:05+08:00",
            "payer": {"openid": "o1"},
            "amount": {"total": 8888, "payer_total": 8888, "currency": "CNY",
                       "payer_currency": "CNY"},
        }
        plain.update(change or {})
        return self.sign(provider="wechat", plain=plain, id=f"e{trade}",
                         type="TRANSACTION.SUCCESS", **options)


def raw(path, headers, body, length=True, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: pay.example.com"]
    lines += [f"{k}: {v}" for k, v in headers.items()]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body!r}"


class Client:
    """One connection."""

    def __init__(self, address, source=None):
        if isinstance(address, int):
            address = ("127.0.0.1", address)
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(DEADLINE)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def read(self, bodyless=False):
        """One reply, exactly; None at the end of the connection."""
        try:
            line = self.file.readline()
        except ConnectionResetError:
            return None
        if not line:
            return None
        status = int(re.fullmatch(rb"HTTP/1\.1 (\d{3}) [^\r]*\r\n", line)[1])
        headers = {}
        while (line := self.file.readline()) != b"\r\n":
            name, value = line[:-2].decode().split(": ", 1)
            assert name not in headers, name
            headers[name] = value
        size = 0 if bodyless else int(headers.get("Content-Length", 0))
        return Reply(status, headers, self.file.read(size))

    def ask(self, data):
        self.send(data)
        return self.read()

    def is_closed(self):
        """Waits for the other side's end."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.file.close()
        self.socket.close()

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: self.close()


CONF = """[server]
listen = 127.0.0.1:0
listen = unix:{folder}/http.sock
{server}
[admin]
listen = unix:{folder}/admin.sock
{admin}
[database]
dsn = {dsn}
[alipay shop1]
app_id = {app_id}
seller_id = {seller}
public_key = {keys}/alipay.pem
[wechat shop1]
mchid = {mchid}
appid = {wx_appid}
api_v3_key_file = {keys}/apiv3.txt
public_key = PUB_KEY_ID_0000000000000000000001:{keys}/wechat.pem
"""


class Daemon:
    """A daemon with its configuration, log and port."""

    def __init__(self, signer_folder, server="", dsn=None, accounts="", admin=""):
        self.folder = tempfile.mkdtemp(prefix="pnh.", dir="/tmp")
        self.conf = os.path.join(self.folder, "paynotifyd.conf")
        self.log_path = os.path.join(self.folder, "log")
        with open(self.conf, "w") as f:
            f.write(CONF.format(
                folder=self.folder, server=server, admin=admin, app_id=APP_ID,
                seller=SELLER,
                dsn=dsn or os.environ["PN_DSN"], keys=f"{signer_folder}/keys",
                mchid=MCHID, wx_appid=WX_APPID)
                + accounts.format(keys=f"{signer_folder}/keys"))
        os.chmod(self.conf, 0o600)
        with open(self.log_path, "wb") as log:
            self.process = self.launch(log)
        eventually(lambda: "listening on" in self.log() or self.exited(),
                   "the daemon listens")
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", self.log())
        if not found:
            raise AssertionError(self.log())
        self.port = int(found[1])

    def launch(self, log):
        return subprocess.Popen([f"{BUILD}/paynotifyd", "-c", self.conf], stderr=log)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def exited(self):
        return self.process.poll() is not None

    def admin(self, path, method="GET"):
        with Client(f"{self.folder}/admin.sock") as c:
            c.send(raw(path, {}, b"", length=False, method=method))
            return c.read(bodyless=method == "HEAD")

    def metric(self, name, **labels):
        """The sum of all series of that name that have these labels."""
        text = self.admin("/metrics").body.decode()
        found = re.findall(rf"(?m)^{name}(?:{{(.*)}})? (-?[\d.]+)$", text)
        values = [float(value) for have, value in found
                  if all(f'{k}="{v}"' in have for k, v in labels.items())]
        assert values, f"no {name} with {labels}"
        return sum(values)

    def ready(self):
        eventually(lambda: self.admin("/readyz").status == 200, "ready")
        return self

    def connect(self):
        return Client(self.port)

    def ask(self, path, headers, body):
        with self.connect() as c:
            return c.ask(raw(path, headers, body))

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def begin_to_stop(self):
        """Told to, and the server knows of it."""
        self.terminate()
        eventually(lambda: f"accepting nothing more on 127.0.0.1:{self.port}"
                   in self.log(), "the stop has begun")

    def wait(self):
        return self.process.wait(DEADLINE)

    def stop(self):
        if not self.exited():
            self.terminate()
        return self.wait()


class Case(unittest.TestCase):
    """One daemon for the tests of a class; server is its [server] section,
    accounts are sections of further ones."""
    server = accounts = ""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pnk.", dir="/tmp")
        cls.signer = Signer(cls.folder)
        cls.daemons = []
        cls.daemon = cls.start(cls.server).ready()

    @classmethod
    def tearDownClass(cls):
        cls.signer.close()
        codes = [d.stop() for d in cls.daemons]
        logs = [d.log() for d in cls.daemons]
        subprocess.run(["rm", "-rf", cls.folder, *(d.folder for d in cls.daemons)],
                       check=True)
        assert not any(codes), f"exit status {codes}\n" + "\n".join(logs)

    @classmethod
    def start(cls, server="", dsn=None, admin=""):
        if "commit_timeout" not in server: # nothing here is about that
            server = f"commit_timeout = 20s\n{server}"
        cls.daemons.append(Daemon(cls.folder, server, dsn, cls.accounts, admin))
        return cls.daemons[-1]

    def expect(self, reply, status, body=None, content_type=None):
        self.assertIsNotNone(reply, "closed without a reply")
        self.assertEqual(reply.status, status, repr(reply))
        if body is not None:
            self.assertEqual(reply.body, body)
            self.assertEqual(reply.headers["Content-Length"], str(len(body)))
        if content_type is not None:
            self.assertEqual(reply.headers["Content-Type"], content_type)
        return reply


def events_of(trade, database=None):
    return psql("SELECT type, key, amount FROM paynotify.events WHERE out_trade_no"
                f" = '{trade}' ORDER BY seq", database)


@contextlib.contextmanager
def locked(table):
    """Nobody reads or writes the table of the schema paynotify within it."""
    with subprocess.Popen(["psql", "-qXAt"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        holder.stdin.write(f"BEGIN; LOCK TABLE paynotify.{table} IN ACCESS EXCLUSIVE"
                           " MODE; SELECT 'locked';\n")
        holder.stdin.flush()
        assert holder.stdout.readline().strip() == "locked"
        try:
            yield
        finally:
            holder.communicate("ROLLBACK;\n")


def postgres_pids():
    with open(os.path.join(os.environ["PN_PG_DIR"], "data/postmaster.pid")) as f:
        postmaster = int(f.readline())
    children = subprocess.run(["pgrep", "-P", str(postmaster)], text=True,
                              capture_output=True).stdout.split()
    return [postmaster, *map(int, children)]


def postgres_signal(number):
    for pid in postgres_pids():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
