"""Notifications through TLS: real nginx and Caddy before real daemons."""
import http.server
import json
import threading
import time

import proxies
from harness import Case, eventually, events_of, psql, raw

FRIEND, STRANGER = "127.0.0.5", "127.0.0.6"
ALIPAY, WECHAT = "/notify/alipay/shop1", "/notify/wechat/shop1"
INSIDE = {"app_id": "2021000000000009", "auth_app_id": "2021000000000009",
          "seller_id": "2088000000000009"}


class Api(http.server.BaseHTTPRequestHandler):
    """The merchant's API behind the gateway: counts, and tells what it saw."""
    protocol_version = "HTTP/1.1"
    seen = []

    def do_POST(self):
        self.seen.append(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"work": len(self.seen), "tenant":
                           self.headers["X-Tenant"]}).encode()
        self.send_response_only(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Behind:
    """The same for both. The proxy is 127.0.0.1, its clients other addresses."""
    server = "trusted_proxies = 127.0.0.1\nidle_timeout = 15s"
    proxy_class = None

    @classmethod
    def setUpClass(cls):
        cls.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        threading.Thread(target=cls.api.serve_forever, daemon=True).start()
        cls.guard_port = proxies.free_port()
        cls.base = """[alipay inside]
app_id = 2021000000000009
seller_id = 2088000000000009
public_key = {keys}/alipay.pem
allow = """ + FRIEND + "\n"
        cls.accounts = cls.base + f"""[guard]
listen = 127.0.0.1:{cls.guard_port}
[guard charges]
path = POST /v1/charges
upstream = http://127.0.0.1:{cls.api.server_address[1]}/v1/charges
tenant = shop1
"""
        super().setUpClass()
        cls.accounts = cls.base
        cls.other = cls.start(cls.server).ready()
        cls.proxy = cls.proxy_class([cls.daemon.port, cls.other.port],
                                    cls.guard_port)

    @classmethod
    def tearDownClass(cls):
        cls.proxy.close()
        cls.api.shutdown()
        cls.api.server_close()
        super().tearDownClass()

    def ask(self, path, request, source=FRIEND, **more):
        headers, body = request
        with self.proxy.connect(source) as c:
            return c.ask(raw(path, {**headers, **more}, body))

    def test_proxy__notifications_arrive_byte_for_byte(self):
        """A signature does not survive the proxy, or the provider is told otherwise."""
        trade = f"PX{self.name}"
        self.expect(self.ask(ALIPAY, self.signer.alipay(trade + "a")), 200, b"success",
                    "text/plain")
        self.expect(self.ask(WECHAT, self.signer.wechat(trade + "w")), 200,
                    b'{"code":"SUCCESS"}', "application/json")
        self.expect(self.ask(ALIPAY, self.signer.sign(
            provider="alipay", fields=self.gbk(trade + "g"), bytes=True)), 200, b"success")
        for letter in "awg":
            self.assertEqual(len(events_of(trade + letter)), 1, letter)
        subject = psql("SELECT payload->>'subject' FROM paynotify.events WHERE"
                       f" out_trade_no = '{trade}g'")
        self.assertEqual(subject, [["测试"]])
        peers = psql("SELECT DISTINCT peer FROM paynotify.receipts WHERE notify_id ="
                     f" 'n{trade}a' OR notify_id = 'e{trade}w'")
        self.assertEqual(peers, [[FRIEND]])

    def gbk(self, trade):
        """As bytes, each one a character."""
        fields = {"app_id": "2021000000000001", "auth_app_id": "2021000000000001",
                  "seller_id": "2088000000000001", "charset": "GBK",
                  "notify_type": "trade_status_sync", "notify_id": f"n{trade}",
                  "notify_time": "2026-03-01 10:00:06", "version": "1.0",
                  "out_trade_no": trade, "trade_no": f"20260301{trade}",
                  "trade_status": "TRADE_SUCCESS", "total_amount": "88.88",
                  "gmt_payment": "2026-03-01 10:00:05", "subject": "测试"}
        return {k: v.encode("gbk").decode("latin1") for k, v in fields.items()}

    def test_proxy__what_a_client_says_of_its_address_is_not_believed(self):
        """A stranger comes in by a header, or the provider's address is the proxy's."""
        path = "/notify/alipay/inside"
        self.expect(self.ask(path, self.signer.alipay(change=INSIDE)), 200, b"success")
        for forged in (FRIEND, f"{FRIEND}, {FRIEND}", f"{FRIEND}, 127.0.0.1"):
            reply = self.ask(path, self.signer.alipay(change=INSIDE), STRANGER,
                             **{"X-Forwarded-For": forged, "X-Real-IP": forged,
                                "Forwarded": f"for={FRIEND}"})
            self.expect(reply, 403, b"fail")
        eventually(lambda: psql("SELECT 1 FROM paynotify.receipts WHERE verdict ="
                                f" 'not_allowed' AND peer = '{STRANGER}'"), "a receipt")

    def test_proxy__nothing_else_is_served(self):
        """Health, metrics, or a body without end are a proxy away."""
        for path in ("/", "/metrics", "/healthz", "/readyz",
                     "/notify/../metrics", "/v1/charges"):
            self.assertEqual(self.ask(path, ({}, b"x")).status, 404, path)
        with self.proxy.connect(FRIEND) as c:
            c.send(raw(ALIPAY, {}, b"", length=False, method="GET"))
            self.assertEqual(c.read().status, 405)
        self.assertEqual(self.ask(ALIPAY, ({}, b"x" * 70000)).status, 413)
        self.assertEqual(self.ask(ALIPAY, ({}, b"x" * 65000)).status, 400)

    def test_proxy__gateway(self):
        """A key does not reach the gateway, or the client names the tenant."""
        replies = [self.ask_api("/v1/charges", {
            "Idempotency-Key": f"key-{self.name}", "X-Tenant": "shop2",
            "Content-Type": "application/json"}, b'{"amount":1}') for _ in range(2)]
        self.assertEqual([r.status for r in replies], [201, 201])
        self.assertEqual(replies[0].body, replies[1].body)
        self.assertIsNone(json.loads(replies[0].body)["tenant"])
        self.assertEqual(replies[1].headers["Idempotency-Replayed"], "true")
        self.assertEqual(self.ask_api(ALIPAY, {}, b"x").status, 404)

    def ask_api(self, path, headers, body):
        request = raw(path, headers, body)
        with self.proxy.connect(FRIEND, proxies.API) as c:
            return c.ask(request.replace(proxies.PAY.encode(), proxies.API.encode(), 1))


class Nginx(Behind, Case):
    proxy_class, name = proxies.Nginx, "N"

    def restart(self, daemon):
        """On the same port, as a unit is."""
        self.assertEqual(daemon.stop(), 0)
        with open(daemon.conf, encoding="utf-8") as f:
            text = f.read()
        with open(daemon.conf, "w", encoding="utf-8") as f:
            f.write(text.replace("listen = 127.0.0.1:0\n",
                                 f"listen = 127.0.0.1:{daemon.port}\n"))
        with open(daemon.log_path, "wb") as log:
            daemon.process = daemon.launch(log)
        eventually(lambda: "listening on" in daemon.log(), "the daemon is back")
        daemon.ready()

    def test_proxy__restart_of_one_of_two_fails_no_request(self):
        """An update of one host is seen by the provider."""
        requests = [raw(ALIPAY, *self.signer.alipay(f"RS{self.name}{i}"))
                    for i in range(40)]
        stop, statuses = threading.Event(), []

        def send():
            i = 0
            try:
                while not stop.is_set():
                    with self.proxy.connect(FRIEND) as c:
                        for _ in range(5):
                            reply = c.ask(requests[i % len(requests)])
                            statuses.append(reply.status if reply else "closed")
                            i += 1
                            time.sleep(0.002)
            except Exception as e:  # in a thread nobody else would see it
                statuses.append(repr(e))

        threads = [threading.Thread(target=send) for _ in range(4)]
        for t in threads:
            t.start()
        self.restart(self.other)
        count = len(statuses)
        eventually(lambda: len(statuses) > count + 40, "requests after the restart")
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(set(statuses), {200}, self.proxy.read_log())
        # And both take part again.
        eventually(lambda: self.ask(ALIPAY, self.signer.alipay()).status == 200 and
                   self.other.metric("paynotify_requests_total") > 0, "both are asked")


class Caddy(Behind, Case):
    proxy_class, name = proxies.Caddy, "C"


if __name__ == "__main__":
    import unittest
    unittest.main()
