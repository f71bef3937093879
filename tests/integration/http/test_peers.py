"""Who may notify an account, and how often it may be wrong."""
from harness import Case, Client, eventually, events_of, psql, raw

INSIDE = {"app_id": "2021000000000009", "auth_app_id": "2021000000000009",
          "seller_id": "2088000000000009"}
BUSY = {"app_id": "2021000000000008", "auth_app_id": "2021000000000008",
        "seller_id": "2088000000000008"}
ALIPAY, WECHAT = "/notify/alipay/inside", "/notify/wechat/inside"
NOT_ALLOWED = b'{"code":"FAIL","message":"address not allowed"}'


class Peers(Case):
    server = "trusted_proxies = 127.0.0.1\ntrusted_proxies = 203.0.113.0/24"
    accounts = """[alipay inside]
app_id = 2021000000000009
seller_id = 2088000000000009
public_key = {keys}/alipay.pem
allow = 198.51.100.0/24
allow = 2001:db8::/32
[alipay busy]
app_id = 2021000000000008
seller_id = 2088000000000008
public_key = {keys}/alipay.pem
rate_limit = 5/s
[wechat inside]
mchid = 1900000009
api_v3_key_file = {keys}/apiv3.txt
public_key = PUB_KEY_ID_0000000000000000000001:{keys}/wechat.pem
allow = 198.51.100.7
"""

    def ask_as(self, forwarded, path=ALIPAY, request=None, address=None):
        """Through the trusted proxy that this host is, or from address."""
        headers, body = request or self.signer.alipay(change=INSIDE)
        if forwarded is not None:
            headers = {**headers, "X-Forwarded-For": forwarded}
        with Client(address or self.daemon.port) as c:
            return c.ask(raw(path, headers, body))

    def test_http__who_is_in_the_list_may_come(self):
        """The list, or the proxy's header, is read wrongly: payments are lost."""
        for peer in ("198.51.100.7", "198.51.100.7:4711", "2001:db8::1",
                     "[2001:db8::1]:4711", "::ffff:198.51.100.9",
                     "100.64.9.1, 198.51.100.7",
                     "198.51.100.7, 203.0.113.5"):
            with self.subTest(peer=peer):
                self.expect(self.ask_as(peer), 200, b"success")

    def test_http__who_is_not_may_not(self):
        """A stranger's request is verified, or a forged header opens the door."""
        refused = self.daemon.metric(
            "paynotify_requests_total", verdict="not_allowed")
        peers = ("100.64.9.1", "2001:db9::1", "::ffff:100.64.9.1",
                 # What stands left was written by the client itself.
                 "198.51.100.7, 100.64.9.1", "198.51.100.7,",
                 "198.51.100.7, unknown", "198.51.100.7, 100.64.9.1, 203.0.113.5",
                 None)  # then the proxy is the client
        for peer in peers:
            with self.subTest(peer=peer):
                self.expect(self.ask_as(peer), 403, b"fail", "text/plain")
        self.assertEqual(self.daemon.metric(
            "paynotify_requests_total", verdict="not_allowed"), refused + len(peers))
        self.assertIn("refused as not_allowed", self.daemon.log())

    def test_http__a_strangers_own_header_is_not_believed(self):
        """Who reaches the daemon directly says itself where it comes from."""
        headers, body = self.signer.alipay(change=INSIDE)
        with Client(self.daemon.port, source="127.0.0.2") as c:
            reply = c.ask(raw(ALIPAY, {**headers, "X-Forwarded-For": "198.51.100.7"},
                              body))
        self.expect(reply, 403, b"fail")
        eventually(lambda: psql("SELECT 1 FROM paynotify.receipts WHERE verdict ="
                                " 'not_allowed' AND peer = '127.0.0.2'"), "a receipt")

    def test_http__through_a_unix_socket_the_header_decides(self):
        """Nobody in particular is taken for who may come."""
        path = f"{self.daemon.folder}/http.sock"
        self.expect(self.ask_as("198.51.100.7", address=path), 200, b"success")
        self.expect(self.ask_as("100.64.9.1", address=path), 403, b"fail")
        self.expect(self.ask_as(None, address=path), 403, b"fail")
        eventually(lambda: psql(
            "SELECT 1 FROM paynotify.receipts WHERE verdict = 'not_allowed' AND status"
            " = 403 AND peer IS NULL AND reason LIKE '%unix socket%'"), "a receipt")

    def test_http__refusal_speaks_as_the_provider_does(self):
        """A failure that the provider does not know as one."""
        wechat = self.signer.wechat(change={"mchid": "1900000009"})
        self.expect(self.ask_as("100.64.9.1", WECHAT, wechat), 403, NOT_ALLOWED,
                    "application/json")
        reply = self.ask_as("100.64.9.1", WECHAT, ({}, b"<xml><a>1</a></xml>"))
        self.expect(reply, 200, content_type="text/xml")
        self.assertIn(b"FAIL", reply.body)
        self.expect(self.ask_as("198.51.100.7", WECHAT, wechat), 200,
                    b'{"code":"SUCCESS"}')

    def test_http__refused_body_is_not_kept(self):
        """A stranger has bodies buffered, verified, or stored."""
        headers, body = self.signer.alipay("PE1", change=INSIDE)
        with self.daemon.connect() as c:
            stranger = {**headers, "X-Forwarded-For": "100.64.9.9"}
            self.expect(c.ask(raw(ALIPAY, stranger, body)), 403, b"fail")
            # The connection goes on: the next one may be another's.
            friend = {**headers, "X-Forwarded-For": "198.51.100.9"}
            self.expect(c.ask(raw(ALIPAY, friend, body)), 200, b"success")
            # Not even sent, if the sender asks first.
            c.send(raw(ALIPAY, {**stranger, "Expect": "100-continue",
                                "Content-Length": 60000}, b"", length=False))
            self.expect(c.read(), 403, b"fail")
        self.assertEqual(len(events_of("PE1")), 1)
        eventually(lambda: psql(
            "SELECT 1 FROM paynotify.receipts WHERE verdict = 'not_allowed' AND peer ="
            f" '100.64.9.9' AND body_bytes = {len(body)} AND length(raw) = 0"
            " AND coalesce(headers, '') = ''"), "a receipt without what was sent")

    def test_http__accounts_allowance_is_its_own(self):
        """A flood of one account from many addresses refuses the provider, or another account."""
        forged = self.signer.alipay(change=BUSY, forge=True)
        replies = [self.ask_as(f"100.64.9.{i}", "/notify/alipay/busy", forged)
                   for i in range(200)]
        self.assertEqual({r.status for r in replies}, {401, 429})
        self.assertGreaterEqual([r.status for r in replies].count(401), 5)
        last = [r for r in replies if r.status == 429][-1]
        self.expect(last, 429, b"fail")
        self.assertIn(int(last.headers["Retry-After"]), range(1, 10))
        genuine = self.signer.alipay(change=BUSY)
        self.expect(self.ask_as("100.64.9.1", "/notify/alipay/busy", genuine), 200,
                    b"success")
        other = self.signer.alipay(change=INSIDE, forge=True)
        self.expect(self.ask_as("198.51.100.7", ALIPAY, other), 401, b"fail")


if __name__ == "__main__":
    import unittest
    unittest.main()
