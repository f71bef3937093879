"""What the tests of the admin port share: requests over its unix socket and its
TCP port, rows to read, the commands to compare with.
"""
import json
import os
import re
import subprocess
import urllib.parse

from harness import BUILD, Case, Client, psql, raw

TOKENS = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"]


def request(address, method, path, body=None, headers=None):
    """One request on a connection of its own; body: an object, or bytes."""
    headers = dict(headers or {})
    host = headers.pop("Host", "localhost")
    data = b"" if body is None else body
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
        headers.setdefault("Content-Type", "application/json")
    text = raw(path, headers, data, length=method != "GET", method=method)
    text = text.replace(b"Host: pay.example.com", f"Host: {host}".encode(), 1)
    with Client(address) as client:
        client.send(text)
        return client.read(bodyless=method == "HEAD")


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class AdminCase(Case):
    admin = "listen = 127.0.0.1:0"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.use(cls.daemon)

    @classmethod
    def start(cls, server="", dsn=None, admin=None):
        return super().start(server, dsn, cls.admin if admin is None else admin)

    @classmethod
    def use(cls, daemon):
        cls.daemon = daemon
        cls.unix = f"{daemon.folder}/admin.sock"
        cls.tcp = int(re.search(r"admin port on .*127\.0\.0\.1:(\d+)", daemon.log())[1])

    def ask(self, method, path, body=None, headers=None, address=None):
        return request(address or self.unix, method, path, body, headers)

    def items(self, path, **parameters):
        """All of an answer's items; its next."""
        query = urllib.parse.urlencode(parameters)
        reply = self.ask("GET", path + ("?" + query if query else ""))
        self.expect(reply, 200, content_type="application/json")
        answer = json.loads(reply.body)
        self.assertEqual(list(answer), ["items", "next"])
        return answer["items"], answer["next"]

    def pages(self, path, between=lambda: None, **parameters):
        """All items of all pages."""
        found, after = [], {}
        while True:
            items, following = self.items(path, **parameters, **after)
            found += items
            self.assertLessEqual(len(items), parameters.get("limit", 100))
            if following is None:
                return found
            self.assertTrue(items)
            after = {"after": following}
            between()

    def problem(self, reply, status, kind):
        self.expect(reply, status, content_type="application/problem+json")
        answer = json.loads(reply.body)
        self.assertEqual(list(answer), ["type", "title", "status", "detail"])
        self.assertEqual(answer["type"], f"urn:paynotify:problem:admin:{kind}")
        self.assertEqual(answer["status"], status)
        return answer["detail"]

    def routes(self):
        items, following = self.items("/api/v1")
        self.assertIsNone(following)
        return items

    def ctl(self, *words):
        """What the command prints, object by object."""
        out = subprocess.run(
            [f"{BUILD}/paynotifyctl", *words, "--json", "-c", self.daemon.conf],
            check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in out.splitlines()]


def sample_path(route):
    return re.sub(r"\{\w+\}", "x", route["path"])


def insert_events(tenant, count, out_trade_no="NULL"):
    psql("INSERT INTO paynotify.event_log (received_at, id, receipt_id, livemode,"
         " type, provider, tenant, key, request_hash, out_trade_no) SELECT now(),"
         f" gen_random_uuid(), gen_random_uuid(), true, 'x', 'alipay', '{tenant}',"
         f" 'k' || gen_random_uuid(), '', {out_trade_no} FROM"
         f" generate_series(1, {count})")


def insert_keys(tenant, route, count, prefix="k"):
    psql("INSERT INTO paynotify.idempotency_keys (tenant, request_path, key,"
         " request_hash, state, reason, created_at, expires_at) SELECT"
         f" '{tenant}', '{route}', '{prefix}' || i, '', 'FAILED', 'held',"
         f" now(), now() + interval '1 day' FROM generate_series(1, {count}) i")


def insert_deliveries(consumer, tenant, state="leased"):
    """All events of the tenant, claimed."""
    psql("INSERT INTO paynotify.deliveries (consumer_id, seq, received_at, state,"
         " attempts, lease_expires_at, retry_at) SELECT c.id, e.seq, e.received_at,"
         f" '{state}', 1, CASE '{state}' WHEN 'leased' THEN now() + interval '1 hour'"
         f" END, NULL FROM paynotify.consumers c, paynotify.event_log e WHERE"
         f" c.name = '{consumer}' AND e.tenant = '{tenant}'")


def environment_dsn(**options):
    """The tests' database with other options."""
    return " ".join([os.environ["PN_DSN"], *(f"{k}={v}" for k, v in options.items())])
