"""What passes through, in both directions, and what is not let through."""
import unittest

from support import BODY, PROXY, STRANGER, Case, chunks, eventually, head

HOP_BY_HOP = [("Keep-Alive", "timeout=5"), ("Proxy-Connection", "keep-alive"),
              ("TE", "trailers"), ("Trailer", "X-Sum"), ("Upgrade", "h2c"),
              ("Proxy-Authorization", "Basic cHJveHk6eA==")]


class Methods(Case):
    routes = {
        "charges": "",
        "put": "path = PUT /v1/things/*",
        "patch": "path = PATCH /v1/things/*",
        "delete": "path = DELETE /v1/things/*",
        "exact": "path = POST /v1/things/new",
    }

    def test_gateway__put_patch_and_delete_have_routes(self):
        """Each with keys of its own."""
        key = self.key()
        for method in ("PUT", "PATCH", "DELETE"):
            body = b"" if method == "DELETE" else BODY
            more = {"method": method, "body": body}
            first = self.made(self.ask(key, "things/t1", **more))
            self.replayed(self.ask(key, "things/t1", **more), first)
            self.problem(self.ask(key, "things/t2", **more), "mismatch", 422)
        self.assertEqual([(r.method, r.target)
                          for r in self.upstream.seen(key)],
                         [("PUT", "/up/put/t1"), ("PATCH", "/up/patch/t1"),
                          ("DELETE", "/up/delete/t1")])

    def test_gateway__an_exact_path_goes_before_a_wildcard(self):
        """Also where the methods differ: /new is one thing, not any."""
        key = self.key()
        self.made(self.ask(key, "things/new"))
        self.assertEqual(self.upstream.wait(key).target, "/up/exact")

    def test_gateway__methods_without_effect_pass_through(self):
        """They need no key, claim none and are not told of one."""
        for method in ("GET", "HEAD", "OPTIONS"):
            with self.subTest(method=method):
                before = self.upstream.count()
                with self.daemon.connect() as c:
                    reply = c.ask(method, "/v1/charges?limit=3", [
                        ("Accept", "text/plain"), ("Idempotency-Key", "k"),
                        ("X-Do", '{"status": 206, "body": "list"}')])
                self.made(reply, 206)
                self.assertIsNone(reply.get("Idempotency-Expires"))
                self.assertEqual(self.upstream.count(), before + 1)
                seen = self.upstream.requests[-1]
                self.assertEqual((seen.method, seen.target, seen.key),
                                 (method, "/up/charges?limit=3", None))
                self.assertEqual(seen.all("Idempotency-Attempt"), [])
                self.assertEqual(seen.get("Accept"), "text/plain")
                self.assertEqual(reply.body,
                                 b"" if method == "HEAD" else b"list")
        self.assertEqual(self.sql("SELECT 1 FROM paynotify.idempotency_keys"
                                  " WHERE key = 'k'"), [])

    def test_gateway__a_method_in_the_guise_of_another_is_400(self):
        """An upstream that heeds the header would charge on a GET, without a
        key; or delete what a key of a POST stands for."""
        before = self.upstream.count()
        for name in ("X-HTTP-Method-Override", "x-http-method",
                     "X-Method-Override", "X_HTTP_METHOD_OVERRIDE"):
            for method, other in (("GET", "POST"), ("HEAD", "delete"),
                                  ("OPTIONS", "GET"), ("POST", "DELETE"),
                                  ("POST", "GET"), ("POST", "")):
                with self.subTest(name=name, method=method, other=other):
                    reply = self.ask(self.key(), method=method, body=b"",
                                     headers=[(name, method), (name, other)])
                    if method == "HEAD":
                        self.assertEqual(reply.status, 400)
                        continue
                    said = self.problem(reply, "method-override", 400,
                                        again=False)
                    self.assertIn("Nothing was done", said["detail"])
        self.assertEqual(self.upstream.count(), before)

    def test_gateway__a_method_that_is_named_again_passes(self):
        """Whose library sends the header with every request is no fault."""
        key, named = self.key(), [("X-HTTP-Method-Override", "post")]
        self.made(self.ask(key, headers=named))
        self.assertEqual(self.attempts(key), [1])
        self.made(self.ask(None, method="GET", body=b"",
                           headers=[("X-HTTP-Method", "GET")]))

    def test_gateway__a_head_request_with_a_body_is_400(self):
        """It is the client's fault, not the upstream's, and never another."""
        before = self.upstream.count()
        with self.daemon.connect() as c:
            self.assertEqual(c.ask("HEAD", "/v1/charges", [], b"x").status,
                             400)
            self.assertEqual(self.upstream.count(), before)
            self.made(c.ask("HEAD", "/v1/charges"))

    def test_gateway__what_is_not_sent_has_its_length(self):
        """A client that asks how long a file is, or whether it has changed,
        gets no answer; and its connection is closed each time."""
        with self.daemon.connect() as c:
            for status in (200, 404):
                reply = c.ask("HEAD", "/v1/charges", [
                    ("X-Do", '{"status": %d, "size": 70000}' % status)])
                self.assertEqual(self.made(reply, status).get(
                    "Content-Length"), "70000")
            reply = c.ask("GET", "/v1/charges", [
                ("X-Do", '{"status": 304, "size": 9}')])
            self.assertEqual(self.made(reply, 304).get("Content-Length"), "9")
            self.made(c.ask("GET", "/v1/charges"))

    def test_gateway__what_passes_through_is_told_as_it_is(self):
        """Every status, all headers, and each time anew."""
        bodies = set()
        for status in (200, 404, 500, 503):
            with self.daemon.connect() as c:
                reply = c.ask("GET", "/v1/charges", [
                    ("X-Do", '{"status": %d}' % status)])
            self.made(reply, status)
            self.assertTrue(reply.get("Set-Cookie"))
            bodies.add(reply.body)
        self.assertEqual(len(bodies), 4)

    def test_gateway__an_unknown_path_is_404(self):
        """Another path is another one: no case is folded, no slash is left
        out, no dot segment resolved, and half an escape is none."""
        before = self.upstream.count()
        for target in ("/", "/v1", "/v1/charges/", "/v1%2Fcharges",
                       "/v1/%%36%33harges", "/v1/charges%",
                       "//v1/charges", "/V1/charges", "/v1/../v1/charges",
                       "/v1/things/../charges"):
            with self.subTest(target=target):
                self.problem(self.ask(self.key(), target, method="POST"),
                             "not-found", 404, again=False)
        # Not of the wildcard: its upstream may take it for /v1/things/new.
        for target in ("/v1/things//new", "/v1//things/new",
                       "/v1/things/new//"):
            for method in ("PUT", "GET"):
                with self.subTest(target=target, method=method):
                    self.problem(self.ask(self.key(), target, method=method),
                                 "not-found", 404, again=False)
        self.assertEqual(self.upstream.count(), before)

    def test_gateway__a_path_is_the_same_however_it_is_escaped(self):
        """Else the same work is done under another route's scope: the
        upstream decodes it. It gets the form that is compared."""
        key = self.key()
        first = self.made(self.ask(key, "/v1/things/%6eew"))
        self.replayed(self.ask(key, "/v1/things/new"), first)
        self.replayed(self.ask(key, "/v1/%74hings/%6Ee%77"), first)
        first = self.made(self.ask(key, "things/%7e%c3%a9", method="PUT"))
        self.replayed(self.ask(key, "things/~%C3%A9", method="PUT"), first)
        self.assertEqual([r.target for r in self.upstream.seen(key)],
                         ["/up/exact", "/up/put/~%C3%A9"])
        self.assertEqual(self.ask(None, "/v1/%63harges", method="PUT").get(
            "Allow"), "GET, HEAD, OPTIONS, POST")

    def test_gateway__another_method_is_405_with_allow(self):
        """And which ones there are."""
        before = self.upstream.count()
        for method, target, allowed in (
                ("PUT", "/v1/charges", {"POST"}),
                ("DELETE", "/v1/charges", {"POST"}),
                ("BREW", "/v1/charges", {"POST"}),
                ("TRACE", "/v1/charges", {"POST"}),
                ("POST", "/v1/things/x", {"PUT", "PATCH", "DELETE"})):
            with self.subTest(method=method, target=target):
                reply = self.ask(self.key(), target, method=method)
                self.problem(reply, "method", 405, again=False)
                self.assertEqual(set(reply.get("Allow").split(", ")),
                                 {"GET", "HEAD", "OPTIONS"} | allowed)
        self.assertEqual(self.upstream.count(), before)


class Bodies(Case):
    guard = "max_body = 2k"

    def test_gateway__a_body_over_max_body_is_413(self):
        """And not kept in memory: who asks first is told before it sends, as
        is who announces very much; else it is read and thrown away, so that
        the answer arrives."""
        key = self.key()
        for size, more, body in ((2049, [("Expect", "100-continue")], b""),
                                 (1 << 30, [], b""),
                                 (2049, [], b"x" * 2049),
                                 (1 << 20, [], b"x" * (1 << 20))):
            with self.subTest(size=size), self.daemon.connect() as c:
                c.send_bytes(head("POST", "/v1/charges",
                                  self.headers(key, more=more), size) + body)
                self.problem(c.read(), "body-too-large", 413, again=False)
        self.assertEqual(self.upstream.seen(key), [])
        self.assertIsNone(self.row(key))

    def test_gateway__chunks_over_max_body_are_413(self):
        """Nothing was announced: it is what has come that counts."""
        key = self.key()
        headers = [*self.headers(key), ("Transfer-Encoding", "chunked")]
        with self.daemon.connect() as c:
            c.send_bytes(head("POST", "/v1/charges", headers, None)
                         + chunks(b"x" * 2049, 500))
            self.problem(c.read(), "body-too-large", 413, again=False)
        self.assertEqual(self.upstream.seen(key), [])

    def test_gateway__a_body_of_max_body_is_taken(self):
        """The limit is what is promised, and not one less."""
        key, body = self.key(), b"x" * 2048
        first = self.made(self.ask(key, body=body))
        self.assertEqual(self.upstream.wait(key).body, body)
        self.replayed(self.ask(key, body=body), first)

    def test_gateway__a_chunked_body_is_the_same_body(self):
        """However it is cut; the upstream gets it with its length."""
        key, first = self.key(), None
        headers = [*self.headers(key), ("Transfer-Encoding", "chunked")]
        for size in (1, 7, 1000):
            with self.daemon.connect() as c:
                c.send_bytes(head("POST", "/v1/charges", headers, None)
                             + chunks(BODY, size))
                reply = c.read()
            first = first or self.made(reply)
            if reply is not first:
                self.replayed(reply, first)
        self.replayed(self.ask(key), first)
        seen = self.upstream.wait(key)
        self.assertEqual(seen.body, BODY)
        self.assertEqual(seen.get("Content-Length"), str(len(BODY)))
        self.assertEqual(seen.all("Transfer-Encoding"), [])

    def test_gateway__a_client_that_asks_first_is_told_to_go_on(self):
        """Expect: 100-continue is of this connection, as its answer is."""
        key = self.key()
        with self.daemon.connect() as c:
            c.send_bytes(head("POST", "/v1/charges", self.headers(
                key, more=[("Expect", "100-continue")]), len(BODY)))
            self.assertEqual(c.file.readline(), b"HTTP/1.1 100 Continue\r\n")
            self.assertEqual(c.file.readline(), b"\r\n")
            self.made(c.send_bytes(BODY).read())
        seen = self.upstream.wait(key)
        self.assertEqual((seen.body, seen.all("Expect")), (BODY, []))

    def test_gateway__an_ambiguous_length_is_400(self):
        """What two hops read differently is how requests are smuggled."""
        for lines in ([("Content-Length", "3"), ("Content-Length", "4")],
                      [("Content-Length", "3"),
                       ("Transfer-Encoding", "chunked")]):
            key = self.key()
            with self.daemon.connect() as c:
                c.send_bytes(head("POST", "/v1/charges",
                                  [*self.headers(key), *lines], None)
                             + b"3\r\nabc\r\n0\r\n\r\n")
                self.assertEqual(c.read().status, 400)
            self.assertEqual(self.upstream.seen(key), [])

    def test_gateway__a_body_that_does_not_come_is_nothing(self):
        """Half a request claims no key."""
        key = self.key()
        with self.daemon.connect() as c:
            c.send_bytes(head("POST", "/v1/charges", self.headers(key), 100))
            c.send_bytes(b"half")
        self.made(self.ask(key))
        self.assertEqual(self.attempts(key), [1])


class Headers(Case):
    @classmethod
    def prepare(cls):
        cls.routes = {"charges": "", "other": "upstream ="
                      f" http://localhost:{cls.upstream.port}/up"}

    def forwarded(self, headers, source=PROXY, route="charges"):
        key = self.key()
        self.made(self.ask(key, route, headers=headers, source=source))
        return self.upstream.wait(key)

    def test_gateway__headers_of_a_request_reach_the_upstream(self):
        """All that are between the ends, several of a name too."""
        lines = [("Authorization", "Bearer x"), ("Accept", "application/json"),
                 ("X-Trace", "1"), ("X-Trace", "2"), ("Cookie", "a=b; c=d"),
                 ("User-Agent", "shop/1"), ("X-Empty", ""),
                 ("X-Text", "sch\xf6n")]
        seen = self.forwarded(lines)
        for name, _ in lines:
            self.assertEqual(seen.all(name),
                             [v for n, v in lines if n == name], name)
        self.assertEqual(seen.get("Content-Type"), "application/json")

    def test_gateway__hop_by_hop_headers_stop_here(self):
        """They are about the connection to the gateway; so is what Connection
        names."""
        seen = self.forwarded(HOP_BY_HOP + [
            ("Connection", "keep-alive, X-Private"), ("X-Private", "1"),
            ("Connection", "x-other"), ("X-Other", "2"), ("X-Public", "3")])
        for name in [n for n, _ in HOP_BY_HOP] + ["X-Private", "X-Other"]:
            self.assertEqual(seen.all(name), [], name)
        self.assertEqual(seen.get("X-Public"), "3")

    def test_gateway__hop_by_hop_headers_of_an_answer_stop_here(self):
        """In the other direction, for the first client and for replays."""
        key = self.key()
        plan = {"headers": [
            ("Keep-Alive", "timeout=5"), ("Connection", "X-Private, ETag"),
            ("X-Private", "1"), ("ETag", '"e"'), ("Proxy-Authenticate", "x"),
            ("Upgrade", "h2c"), ("Trailer", "X-Sum"), ("X-Public", "2")]}
        first = self.made(self.ask(key, do=plan))
        again = self.replayed(self.ask(key), first)
        self.assertEqual(first.get("X-Public"), "2")
        for reply in (first, again):
            for name in ("Keep-Alive", "X-Private", "ETag", "Upgrade",
                         "Proxy-Authenticate", "Trailer"):
                self.assertEqual(reply.all(name), [], name)

    def test_gateway__hints_and_trailers_are_not_headers_of_the_answer(self):
        """What comes before the answer, and behind it, is not told as if it
        were in front."""
        key = self.key()
        plan = {"hints": True, "chunked": True}
        first = self.made(self.ask(key, do=plan))
        again = self.replayed(self.ask(key), first)
        for reply in (first, again):
            for name in ("Link", "X-Early", "X-Trailer"):
                self.assertEqual(reply.all(name), [], name)

    def test_gateway__a_header_without_a_value_is_told(self):
        """That it is there is what it says."""
        key, do = self.key(), {"headers": [("X-Empty", ""), ("X-Last", "1")]}
        first = self.made(self.ask(key, do=do))
        again = self.replayed(self.ask(key), first)
        for reply in (first, again,
                      self.ask(None, method="GET", body=b"", do=do)):
            self.assertEqual((reply.get("X-Empty"), reply.get("X-Last")),
                             ("", "1"))

    def test_gateway__headers_of_an_answer_are_told_all_or_not_at_all(self):
        """The Location behind them would be lost, for replays as well; as of
        a body that is too long nobody knows what was done."""
        end = {"headers": [("Location", "/charges/7")]}
        for lines, size in ((98, 1), (1, 16000)): # and a Content-Length
            key = self.key()
            first = self.made(self.ask(key, do={"fill": [lines, size], **end}))
            again = self.replayed(self.ask(key), first)
            for reply in (first, again):
                self.assertEqual(reply.get("Location"), "/charges/7")
                self.assertEqual(len(reply.get(f"X-{lines - 1}")), size)
        for lines, size in ((99, 1), (1, 16400), (90, 200)):
            key, do = self.key(), {"fill": [lines, size], **end}
            self.problem(self.ask(key, do=do), "response-too-large", 502)
            self.assertEqual(self.state(key), "PROCESSING")
            self.problem(self.ask(None, method="GET", body=b"", do=do),
                         "response-too-large", 502)

    def test_gateway__an_address_too_long_for_the_upstream_is_414(self):
        """Bytes that are escaped on the way become three: refused at once, and
        not with a promise that it will do later."""
        for method, key in (("POST", self.key()), ("GET", None)):
            said = self.problem(
                self.ask(key, "/v1/charges?x=" + "\xe4" * 6000, method=method,
                         body=b""), "uri-too-long", 414, again=False)
            self.assertIn("Nothing was done", said["detail"])
        key = self.key()
        self.made(self.ask(key, "/v1/charges?x=" + "\xe4" * 5000))
        self.assertEqual(len(self.upstream.seen(key)[0].target.split("=")[1]),
                         15000)

    def test_gateway__bytes_that_are_not_ascii_are_told_but_not_kept(self):
        """Nobody knows what they mean; what the first client is told is what
        came."""
        key = self.key()
        plan = {"headers": [("Location", "/caf\xe9"), ("ETag", '"e"')]}
        first = self.made(self.ask(key, do=plan))
        again = self.replayed(self.ask(key), first)
        self.assertEqual(first.get("Location"), "/caf\xe9")
        self.assertEqual(again.all("Location"), [])
        self.assertEqual(again.get("ETag"), '"e"')

    def test_gateway__the_upstream_is_told_who_asks(self):
        """A trusted proxy is believed; whoever else says that he is another
        one, is not."""
        lie = [("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=1.2.3.4"),
               ("X-Real-IP", "1.2.3.4"), ("X-Forwarded-Proto", "https")]
        seen = self.forwarded(lie, source=STRANGER)
        self.assertEqual(seen.all("X-Forwarded-For"), [STRANGER])
        for name, _ in lie[1:]:
            self.assertEqual(seen.all(name), [], name)
        seen = self.forwarded(lie)
        self.assertEqual(seen.all("X-Forwarded-For"), ["203.0.113.9"])
        self.assertEqual(seen.get("X-Forwarded-Proto"), "https")
        seen = self.forwarded([("X-Forwarded-For", "1.2.3.4, 203.0.113.9")])
        self.assertEqual(seen.all("X-Forwarded-For"), ["203.0.113.9"])
        self.assertEqual(self.forwarded([]).all("X-Forwarded-For"), [PROXY])

    def test_gateway__the_host_is_the_upstreams(self):
        """And the one that was asked for stands beside it."""
        seen = self.forwarded([("Host", "pay.example.com")], route="other")
        self.assertEqual(seen.all("Host"),
                         [f"localhost:{self.upstream.port}"])
        self.assertEqual(seen.all("X-Forwarded-Host"), ["pay.example.com"])

    def test_gateway__too_many_headers_are_refused(self):
        """Not cut: half of the headers is another request."""
        key = self.key()
        reply = self.ask(key, headers=[(f"X-{i}", "v") for i in range(500)])
        self.assertEqual(reply.status, 431, reply)
        self.assertEqual(self.upstream.seen(key), [])


class Connections(Case):
    routes = {
        "charges": "",
        "two": "max_in_flight = 2\nwait = 50s",
        "full": "max_in_flight = 1\nwait = 200ms",
        "slow": "timeout = 10m",
    }

    def test_gateway__connections_to_the_upstream_are_kept(self):
        """A handshake a request would cost more than the guard."""
        before = self.upstream.connections
        with self.daemon.connect() as c:
            for _ in range(100):
                self.made(c.ask("POST", "/v1/charges",
                                self.headers(self.key()), BODY))
        self.assertLessEqual(self.upstream.connections - before, 3)

    def test_gateway__a_refusal_keeps_the_clients_connection(self):
        """A pool of connections must not be emptied by one bad request."""
        with self.daemon.connect() as c:
            for target, more in (("/v1/charges", []), ("/nowhere", []),
                                 ("/v1/charges", [("Idempotency-Key", "")])):
                reply = c.ask("POST", target, more, BODY)
                self.assertIn(reply.status, (400, 404))
            key = self.key()
            first = self.made(c.ask("POST", "/v1/charges", self.headers(key),
                                    BODY))
            self.problem(c.ask("POST", "/v1/charges", self.headers(key),
                               b"{}"), "mismatch", 422)
            self.replayed(c.ask("POST", "/v1/charges", self.headers(key),
                                BODY), first)

    def test_gateway__a_connection_that_the_upstream_closes_is_no_fault(self):
        """It said so; the next request gets another one."""
        for _ in range(5):
            key = self.key()
            self.made(self.ask(key, do={"end": "close"}))
            self.assertEqual(self.attempts(key), [1])

    def test_gateway__max_in_flight_holds(self):
        """What is more waits for its turn, oldest first, and then runs."""
        held = [self.hold(self.key(), "two") for _ in range(2)]
        keys = [self.key() for _ in range(2)]
        before = self.daemon.metric("flights")
        waiting = []
        for n, key in enumerate(keys):
            waiting.append(self.begin(key, "two", do={"hold": True}))
            self.in_state(key, "PROCESSING") # it has its key, and waits
        self.assertEqual(self.daemon.metric("flights"), before + 2)
        self.assertEqual([self.upstream.seen(k) for k in keys], [[], []])
        self.made(self.ask(self.key())) # another route is not held up
        for n, key in enumerate(keys):
            held[n][1].release()
            self.made(held[n][0].read())
            seen = self.upstream.wait(key)
            self.assertEqual(
                [len(self.upstream.seen(k)) for k in keys], [1, n])
            held.append((waiting[n], seen))
        for client, seen in held[2:]:
            seen.release()
            self.made(client.read())

    def test_gateway__a_full_route_is_503_and_the_key_is_free(self):
        """Nothing was done for who had no place; as the first again later."""
        client, seen = self.hold(self.key(), "full")
        key = self.key()
        self.problem(self.ask(key, "full"), "no-room", 503, again=True)
        self.assertIsNone(self.row(key))
        self.assertEqual(self.upstream.seen(key), [])
        seen.release()
        self.made(client.read())
        self.made(self.ask(key, "full"))
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__what_passes_through_has_a_room_of_its_own(self):
        """However many reads hang, work finds a connection; a read too many
        is told so at once, and finds a place when one of them has ended."""
        requests, before = self.upstream.requests, self.upstream.count()
        clients = [self.daemon.connect() for _ in range(256)]
        self.clients.extend(clients)
        for client in clients:
            client.send("GET", "/v1/slow", self.headers(None, {"hold": True}))
        self.upstream.wait_for(lambda: len(requests) == before + 256,
                               "256 reads")
        held = requests[before:]
        with self.daemon.connect() as c:
            said = self.problem(c.ask("GET", "/v1/charges"), "no-room", 503,
                                again=True)
            self.assertIn("without a key", said["detail"])
        self.assertEqual(len(requests), before + 256)
        self.made(self.ask(self.key(), "full"))
        passed = self.daemon.results("passed")
        held[0].release()
        eventually(lambda: self.daemon.results("passed") != passed,
                   "a read has ended")
        with self.daemon.connect() as c:
            self.made(c.ask("GET", "/v1/charges"))
        for seen in held:
            seen.release()
        for client in clients:
            self.made(client.read())

    def test_gateway__a_client_that_goes_while_it_queues_costs_nothing(self):
        """Its request was not sent yet; whether it still is, its key is not
        left behind."""
        client, seen = self.hold(self.key(), "full")
        key = self.key()
        queued = self.begin(key, "full")
        self.in_state(key, "PROCESSING")
        queued.close()
        seen.release()
        self.made(client.read())
        eventually(lambda: self.state(key) in (None, "COMPLETED"),
                   "the key is settled")
        reply = self.ask(key, "full")
        self.assertEqual(reply.status, 201)
        self.assertEqual(self.attempts(key), [1])


if __name__ == "__main__":
    unittest.main()
