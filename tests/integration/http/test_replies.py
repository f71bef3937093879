"""The exact bytes of replies: dialects, framing, paths and methods."""
import harness
from harness import Case, raw, events_of, psql

ALIPAY, WECHAT = "/notify/alipay/shop1", "/notify/wechat/shop1"
OK_WECHAT = b'{"code":"SUCCESS"}'


class Replies(Case):
    def test_http__alipay_success_is_seven_bytes(self):
        """Alipay goes on retrying when the body is anything but `success`."""
        headers, body = self.signer.alipay("RA1")
        for _ in range(2):  # the second is a duplicate
            reply = self.daemon.ask(ALIPAY, headers, body)
            self.expect(reply, 200, b"success", "text/plain")
        self.assertEqual(events_of("RA1"),
                         [["payment.succeeded", "webhook:alipay:RA1", "8888"]])

    def test_http__wechat_success_is_exact(self):
        """WeChat Pay goes on retrying, or a retry with another signature is new."""
        for _ in range(2):
            headers, body = self.signer.wechat("RW1")
            reply = self.daemon.ask(WECHAT, headers, body)
            self.expect(reply, 200, OK_WECHAT, "application/json")
        self.assertEqual(events_of("RW1"),
                         [["payment.succeeded", "webhook:wechat:42000RW1", "8888"]])

    def test_http__refusals_speak_the_dialect(self):
        """A refusal is told in words that the provider does not know."""
        headers, body = self.signer.alipay(forge=True)
        self.expect(self.daemon.ask(ALIPAY, headers, body), 401, b"fail", "text/plain")
        self.expect(self.daemon.ask(ALIPAY, {}, b"a=b"), 400, b"fail", "text/plain")
        self.expect(self.daemon.ask(ALIPAY, {}, b""), 400, b"fail", "text/plain")
        headers, body = self.signer.wechat(forge=True)
        reply = self.expect(self.daemon.ask(WECHAT, headers, body), 401,
                            content_type="application/json")
        self.assertIn(b'"code":"FAIL"', reply.body)
        headers, body = self.signer.wechat(age=301)
        self.expect(self.daemon.ask(WECHAT, headers, body), 401)
        headers, body = self.signer.wechat()
        self.expect(self.daemon.ask(WECHAT, {}, body), 400)
        reply = self.expect(self.daemon.ask(WECHAT, {}, b"<xml></xml>"), 200,
                            content_type="text/xml")
        self.assertIn(b"FAIL", reply.body)

    def test_http__refused_but_signed_is_quarantined_first(self):
        """What the provider really sent is dropped with a status code."""
        headers, body = self.signer.alipay("RQ1", {"app_id": "2021000000000009"})
        for _ in range(3):
            self.expect(self.daemon.ask(ALIPAY, headers, body), 403, b"fail")
        headers, body = self.signer.wechat("RQ2", key="other")
        for _ in range(2):
            self.expect(self.daemon.ask(WECHAT, headers, body), 500)
        rows = psql("SELECT count(*) FROM paynotify.quarantine WHERE subject IN"
                    " ('nRQ1', 'eRQ2')")
        self.assertEqual(rows, [["2"]])
        self.assertEqual(events_of("RQ1"), [])

    def test_http__the_longest_body_is_recorded(self):
        """A signed notification is answered 503 for ever, since it takes more
        memory than a request may."""
        daemon = self.start("max_body = 1m\ncommit_timeout = 30s").ready()
        # Unescaped control bytes: one in the body, six in the payload; and
        # one character that makes a copy in UTF-8 necessary.
        for trade, change, status in (("LB1", {}, 200),
                                      ("LB2", {"app_id": "2021000000000009"}, 403)):
            headers, body = self.signer.alipay(
                trade, {**change, "body": "测" + "\x01" * (1020 << 10)})
            body = body.replace(b"%01", b"\x01")
            self.assertGreater(len(body), 1020 << 10)
            self.assertLess(len(body), 1 << 20)
            # In chunks: what is read has no length to be reserved for it.
            data = raw(ALIPAY, {**headers, "Transfer-Encoding": "chunked"}, b"", length=False)
            with daemon.connect() as c:
                self.expect(c.ask(data + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)), status)
        self.assertEqual(len(events_of("LB1")), 1)
        rows = psql("SELECT count(*) FROM paynotify.quarantine WHERE subject = 'nLB2'")
        self.assertEqual(rows, [["1"]])
        self.assertEqual(daemon.stop(), 0)

    def test_http__other_content_under_a_known_key_is_a_conflict(self):
        """A variant of a recorded payment is taken for it."""
        headers, body = self.signer.alipay("RC1")
        self.expect(self.daemon.ask(ALIPAY, headers, body), 200)
        headers, body = self.signer.alipay("RC1", {"total_amount": "1.00"})
        self.expect(self.daemon.ask(ALIPAY, headers, body), 422, b"fail")
        self.assertEqual(len(events_of("RC1")), 1)
        self.assertIn("other content", self.daemon.log())

    def test_http__unknown_paths_are_404(self):
        """A path that only resembles a route is served."""
        for path in ("/", "/notify/alipay", "/notify/alipay/", "/notify/alipay/shop2",
                     "/notify/alipay/shop1/", "/notify//alipay/shop1", "/healthz",
                     "/notify/alipay/shop%31", "/notify/alipay/shop1%00", "/" + "x" * 600):
            reply = self.daemon.ask(path, {}, b"a=b")
            self.expect(reply, 404, b"not found", "text/plain")
        log = self.daemon.log()
        self.assertEqual(log.count("no account is served at"), 1, log)
        self.assertIn('at \\"/notify/alipay\\"', log)

    def test_http__query_is_ignored(self):
        """A notify_url with a query finds no route."""
        headers, body = self.signer.alipay("RU1")
        self.expect(self.daemon.ask(ALIPAY + "?from=a&b=c", headers, body), 200, b"success")
        headers, body = self.signer.alipay("RU2")
        self.expect(self.daemon.ask("http://pay.example.com" + ALIPAY, headers, body),
                    200, b"success")

    def test_http__other_methods_are_405(self):
        """A browser's GET is taken for a notification."""
        before = self.daemon.metric("paynotify_requests_total")
        with self.daemon.connect() as c:
            for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH"):
                c.send(raw(ALIPAY, {}, b"", method=method))
                reply = self.expect(c.read(), 405, b"method not allowed", "text/plain")
                self.assertEqual(reply.headers["Allow"], "POST")
            c.send(raw(ALIPAY, {}, b"", method="HEAD"))
            self.expect(c.read(bodyless=True), 405)
        self.assertEqual(self.daemon.metric("paynotify_requests_total"), before)

    def test_http__pages_leave_the_connection_usable(self):
        """A 404 with a body desynchronises a keep-alive connection."""
        headers, body = self.signer.alipay("RK1")
        with self.daemon.connect() as c:
            self.expect(c.ask(raw("/nowhere", {}, b"x" * 5000)), 404)
            self.expect(c.ask(raw(ALIPAY, headers, body)), 200, b"success")

    def test_http__keep_alive_and_pipelining(self):
        """Replies come in another order, or a connection serves one request."""
        one, two = self.signer.alipay("RP1"), self.signer.alipay(forge=True)
        with self.daemon.connect() as c:
            for _ in range(5):
                self.expect(c.ask(raw(ALIPAY, *one)), 200, b"success")
            c.send(raw(ALIPAY, *one) + raw(ALIPAY, *two) + raw("/x", {}, b"")
                   + raw(ALIPAY, *one))
            self.assertEqual([c.read().status for _ in range(4)], [200, 401, 404, 200])

    def test_http__body_in_pieces(self):
        """A body that comes in several packets is cut."""
        headers, body = self.signer.wechat("RB1")
        data = raw(WECHAT, headers, body)
        with self.daemon.connect() as c:
            for i in range(0, len(data), 97):
                c.send(data[i:i + 97])
            self.expect(c.read(), 200, OK_WECHAT)

    def test_http__unix_socket(self):
        """A proxy on a unix socket is not served, or its clients are nobody."""
        headers, body = self.signer.alipay("RX1")
        headers["X-Forwarded-For"] = "6.6.6.6, 203.0.113.77"
        with harness.Client(f"{self.daemon.folder}/http.sock") as c:
            self.expect(c.ask(raw(ALIPAY, headers, body)), 200, b"success")
        rows = psql("SELECT DISTINCT peer FROM paynotify.receipts WHERE peer LIKE"
                    " '203.0.113.77%'")
        self.assertEqual(len(rows), 1)


class Framing(Case):
    server = "max_body = 4k"

    def chunked(self, headers, body, size):
        out = raw(ALIPAY, {**headers, "Transfer-Encoding": "chunked"}, b"", length=False)
        for i in range(0, len(body), size):
            piece = body[i:i + size]
            out += b"%x\r\n%s\r\n" % (len(piece), piece)
        return out + b"0\r\n\r\n"

    def test_http__chunked_bodies_are_verified_as_sent(self):
        """A chunked body is refused, or verified with its framing."""
        headers, body = self.signer.alipay("FC1")
        with self.daemon.connect() as c:
            for size in (1, 7, 4096):
                self.expect(c.ask(self.chunked(headers, body, size)), 200, b"success")

    def test_http__chunked_over_the_limit_is_answered_at_its_end(self):
        """The client of an over-long chunked body gets no reply."""
        with self.daemon.connect() as c:
            c.send(self.chunked({}, b"x" * 4097, 500))
            reply = self.expect(c.read(), 413, b"body too large", "text/plain")
            self.assertEqual(reply.headers["Connection"], "close")
            self.assertTrue(c.is_closed())
        with self.daemon.connect() as c:  # the limit itself passes
            self.expect(c.ask(self.chunked({}, b"x" * 4096, 500)), 400, b"fail")

    def test_http__length_far_over_the_limit_is_answered_at_once(self):
        """A client must send a gigabyte to learn that it is too much."""
        for size in (1 << 30, 1 << 33, 1 << 62):
            head = raw(ALIPAY, {"Content-Length": size}, b"", length=False)
            with self.daemon.connect() as c:
                reply = self.expect(c.ask(head), 413, b"body too large", "text/plain")
                self.assertEqual(reply.headers["Connection"], "close")
                self.assertTrue(c.is_closed())
        with self.daemon.connect() as c:
            self.expect(c.ask(raw(ALIPAY, {}, b"x" * 4096)), 400, b"fail")

    def test_http__over_long_body_that_is_sent_is_answered(self):
        """A client that sends it all the same sees a reset and no status."""
        for size in (4097, 60000, 1 << 20, 2 << 20):
            for _ in range(5):
                with self.daemon.connect() as c:
                    reply = c.ask(raw(ALIPAY, {}, b"x" * size))
                    self.expect(reply, 413, b"body too large", "text/plain")
                    self.assertTrue(c.is_closed())
            with self.daemon.connect() as c:
                self.expect(c.ask(raw("/nowhere", {}, b"x" * size)), 404)
                self.expect(c.ask(raw(ALIPAY, {}, b"x", method="PUT")), 405)

    def test_http__expect_continue(self):
        """A client waits for 100 Continue for ever, or sends what is refused."""
        headers, body = self.signer.alipay("FE1")
        expect = {**headers, "Expect": "100-continue", "Content-Length": len(body)}
        with self.daemon.connect() as c:
            c.send(raw(ALIPAY, expect, b"", length=False))
            self.expect(c.read(), 100)
            self.expect(c.ask(body), 200, b"success")
        expect["Content-Length"] = 5000
        with self.daemon.connect() as c:
            self.expect(c.ask(raw(ALIPAY, expect, b"", length=False)), 413)

    def test_http__ambiguous_lengths_are_refused(self):
        """A proxy and this server see two different bodies (smuggling)."""
        headers, body = self.signer.alipay("FS1")
        size = len(body)
        for extra in ([f"Content-Length: {size}"] * 2,
                      [f"Content-Length: {size}", f"Content-Length: {size - 1}"],
                      [f"Content-Length: {size}", "Transfer-Encoding: chunked"],
                      ["Transfer-Encoding: chunked", f"Content-Length: {size}"],
                      ["Transfer-Encoding: gzip"],
                      ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
                      [f"Content-Length : {size}"], [f"Content-Length\t: {size}"],
                      [f"Content-Length:\r\n {size}"], ["Transfer-Encoding : chunked"],
                      ["Transfer-Encoding:\r\n\tchunked"],
                      [f"Content-Length: {size}", "Transfer-Encoding: chunked\r\n ,x"]):
            data = raw(ALIPAY, headers, b"", length=False)
            data = data[:-2] + "\r\n".join(extra).encode() + b"\r\n\r\n" + body
            with self.daemon.connect() as c:
                c.send(data + raw(ALIPAY, headers, body))
                self.expect(c.read(), 400, b"fail", "text/plain")
                self.assertTrue(c.is_closed())
        with self.daemon.connect() as c:
            data = raw(WECHAT, {"Transfer-Encoding": "gzip"}, b"", length=False)
            self.expect(c.ask(data), 400, content_type="application/json")
        self.assertEqual(events_of("FS1"), [])

    def test_http__proper_heads_are_taken(self):
        """A head that is only unusual is refused as one that is folded."""
        headers, body = self.signer.alipay("RH1")
        last = [f"Content-Length: {len(body)}", "X-Last:"]
        for lines in (["X-Empty:"], ["X-Blank:   "], ["X:1"], ["X-Tab:\ta\t"],
                      ["X_Under!#$%&'*+-.^`|~9: a"], ["X-Colon::a:b:"],
                      ["X-Long: " + "a" * 6000, "X-" + "n" * 2000 + ": b"],
                      ["X-Same: a"] * 90):
            data = raw(ALIPAY, headers, b"", length=False)[:-2]
            data += "\r\n".join(lines + last).encode() + b"\r\n\r\n" + body
            with self.daemon.connect() as c:
                self.expect(c.ask(data), 200, b"success")
                for i in range(0, len(data), 97):
                    c.send(data[i:i + 97])
                self.expect(c.read(), 200, b"success")

    def receipt(self, trick):
        """(verdict, status, body_bytes, raw's length) of the one from there."""
        rows = []

        def there():
            rows[:] = psql("SELECT verdict, status, body_bytes, length(raw) FROM"
                           f" paynotify.receipts WHERE peer = '{trick}'")
            return rows
        harness.eventually(there, f"a receipt of {trick}")
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_http__refusals_get_a_receipt(self):
        """What was refused before it was read leaves no trace, or a wrong length."""
        forged, body = self.signer.alipay(change={"body": "x" * 2500}, forge=True)
        many = {f"X-{i}": "1" for i in range(110)}
        for peer, data, status, expected in (
                ("192.0.2.1", {"Content-Length": 1 << 33}, 413, [str((1 << 31) - 1), "0"]),
                ("192.0.2.2", {"Content-Length": 1 << 30}, 413, [str(1 << 30), "0"]),
                ("192.0.2.3", {"Content-Length": 9999, "Expect": "100-continue"}, 413,
                 ["9999", "0"])):
            head = raw(ALIPAY, {**data, "X-Forwarded-For": peer}, b"", length=False)
            with self.daemon.connect() as c:
                self.expect(c.ask(head), status)
            self.assertEqual(self.receipt(peer), ["malformed", str(status), *expected])
        for peer, data, expected in (
                ("192.0.2.4", raw(ALIPAY, {"X-Forwarded-For": "192.0.2.4"}, b"x" * 9999),
                 ["malformed", "413", "9999", "16"]),
                ("192.0.2.5", self.chunked({"X-Forwarded-For": "192.0.2.5"}, b"x" * 9999, 500),
                 ["malformed", "413", "9999", "2048"]),
                ("192.0.2.6", raw(ALIPAY, {**forged, "X-Forwarded-For": "192.0.2.6"}, body),
                 ["bad_signature", "401", str(len(body)), "2048"]),
                ("192.0.2.7", raw(ALIPAY, {"X-Forwarded-For": "192.0.2.7"}, b"xyz",
                                  method="PUT"), ["malformed", "405", "3", "3"])):
            with self.daemon.connect() as c:
                self.expect(c.ask(data), int(expected[1]))
            self.assertEqual(self.receipt(peer), expected)
        before = psql("SELECT count(*) FROM paynotify.receipts WHERE status = 431")
        with self.daemon.connect() as c:
            self.expect(c.ask(raw(ALIPAY, many, b"")), 431, b"too many headers")
        harness.eventually(lambda: before != psql(
            "SELECT count(*) FROM paynotify.receipts WHERE status = 431"),
            "a receipt of the 431")

    def test_http__no_receipt_without_an_account(self):
        """A scanner fills the receipts, or is not seen at all."""
        before = self.daemon.metric("paynotify_not_found_total")
        with self.daemon.connect() as c:
            self.expect(c.ask(raw("/scan", {"X-Forwarded-For": "192.0.2.8"}, b"")), 404)
            self.expect(c.ask(raw(ALIPAY, {"X-Forwarded-For": "192.0.2.9"}, b"",
                                  method="PUT")), 405)
        self.receipt("192.0.2.9")  # so the other's would be there too
        self.assertEqual(psql("SELECT 1 FROM paynotify.receipts WHERE peer = '192.0.2.8'"),
                         [])
        self.assertEqual(self.daemon.metric("paynotify_not_found_total"), before + 1)

    def test_http__too_many_headers(self):
        """Headers without end are kept in memory."""
        many = {f"X-{i}": "1" for i in range(150)}
        with self.daemon.connect() as c:
            self.expect(c.ask(raw(ALIPAY, many, b"")), 431)
        with self.daemon.connect() as c:
            c.send(raw(ALIPAY, {"X-Long": "x" * 20000}, b""))
            reply = c.read()
            self.assertIn(reply.status if reply else 431, (400, 413, 431))
