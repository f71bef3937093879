"""Whose a key is, where it holds, and what makes a request another one."""
import hashlib
import unittest

from support import BODY, JSON, PROXY, STRANGER, Case, Daemon

API_KEYS = {"key-of-shop1": "shop1", "second-of-shop1": "shop1",
            "key-of-shop2": "shop2"}


class Tenants(Case):
    routes = {
        "charges": "tenant_header = X-Tenant",
        "refunds": "tenant_header = X-Tenant",
        "fixed": "tenant = shop9",
        "keyed": "api_keys = api_keys",
        "put": "path = PUT /v1/charges\ntenant_header = X-Tenant",
        "any": "path = POST /v1/any/*\ntenant = shop1",
    }

    @classmethod
    def start(cls, **more):
        daemon = Daemon(cls.conf_text(), cls.server_text(), **more)
        daemon.write("api_keys", "# keys of the shops\n\n" + "".join(
            f"{hashlib.sha256(k.encode()).hexdigest()} {t}\n"
            for k, t in API_KEYS.items()))
        cls.daemons.append(daemon)
        return daemon.start().ready()

    def of(self, tenant, key, route="charges", **more):
        return self.ask(key, route, headers=[("X-Tenant", tenant)], **more)

    def test_gateway__two_tenants_equal_keys_never_meet(self):
        """One shop would be told another's charge."""
        key = self.key()
        one, two = self.made(self.of("shop1", key)), \
            self.made(self.of("shop2", key, body=b'{"other":1}'))
        self.replayed(self.of("shop1", key), one)
        self.replayed(self.of("shop2", key, body=b'{"other":1}'), two)
        self.assertEqual([r.get("Idempotency-Tenant")
                          for r in self.upstream.seen(key)],
                         ["shop1", "shop2"])

    def test_gateway__scope_is_tenant_method_route_and_key(self):
        """An equal key of another operation is another operation."""
        key = self.key()
        replies = [self.made(self.of("shop1", key)),
                   self.made(self.of("shop1", key, "refunds")),
                   self.made(self.of("shop1", key, method="PUT")),
                   self.made(self.of("shop1", key + "2"))]
        self.assertEqual(len({r.body for r in replies}), 4)
        self.assertEqual(
            sorted(self.sql("SELECT tenant, request_path FROM"
                            " paynotify.idempotency_keys WHERE key = %s",
                            key)),
            [("shop1", "POST /v1/charges"), ("shop1", "POST /v1/refunds"),
             ("shop1", "PUT /v1/charges")])

    def test_gateway__a_tenant_header_is_refused_of_strangers(self):
        """Who is not behind the proxy could name himself any shop."""
        key = self.key()
        self.problem(self.of("shop1", key, source=STRANGER),
                     "tenant-untrusted", 403, again=False)
        self.assertEqual(self.upstream.seen(key), [])
        self.assertIsNone(self.row(key))

    def test_gateway__what_passes_through_names_no_other_tenant(self):
        """A read of shop1's charges by whoever writes the header; on every
        route, since one upstream may be behind several."""
        lies = [("X_Tenant", "shop2"), ("X.Tenant", "shop3"),
                ("Idempotency-Tenant", "shop2"), ("Idempotency_Key", "k"),
                ("X-Idempotency_Attempt", "9")]

        def told(route, source, *lines):
            before = self.upstream.count()
            self.made(self.ask(None, route, body=b"", method="GET",
                               source=source, headers=[*lies, *lines]))
            self.assertEqual(self.upstream.count(), before + 1)
            return [(n, v) for n, v in self.upstream.requests[-1].headers
                    if "tenant" in n.lower() or "idempotency" in n.lower()]

        one, two = ("X-Tenant", "shop1"), ("x-tenant", "shop2")
        for route in ("charges", "fixed", "keyed"):
            with self.subTest(route=route):
                self.assertEqual(told(route, STRANGER, one), [])
                self.assertEqual(told(route, PROXY, one), [one])
                self.assertEqual(told(route, PROXY, one, two), [])

    def test_gateway__a_proxys_tenant_stands_alone_upstream(self):
        """WSGI makes one list of X-Tenant and a client's X_Tenant."""
        key = self.key()
        self.made(self.ask(key, headers=[("X_Tenant", "shop2"),
                                         ("X-Tenant", "shop1")]))
        self.assertEqual(
            [(n, v) for n, v in self.upstream.wait(key).headers
             if "tenant" in n.lower()],
            [("X-Tenant", "shop1"), ("Idempotency-Tenant", "shop1")])

    def test_gateway__a_missing_tenant_is_400(self):
        """No tenant is not a tenant of its own."""
        for lines in ([], [("X-Tenant", "")], [("X-Tenant", "a")] * 2,
                      [("X-Tenant", "a" * 129)], [("X-Tenant", "\xe4")]):
            with self.subTest(lines=lines):
                key = self.key()
                self.problem(self.ask(key, headers=lines), "tenant-missing",
                             400, again=False)
                self.assertEqual(self.upstream.seen(key), [])

    def test_gateway__a_fixed_tenant_needs_no_header(self):
        """Nor does a header change it."""
        key = self.key()
        first = self.made(self.ask(key, "fixed", source=STRANGER))
        self.replayed(self.of("shop1", key, "fixed"), first)
        self.assertEqual(self.upstream.wait(key).get("Idempotency-Tenant"),
                         "shop9")

    def test_gateway__an_api_key_says_whose_it_is(self):
        """Two API keys of one shop are one tenant, during a rotation."""
        key = self.key()

        def by(header, value):
            return self.ask(key, "keyed", headers=[(header, value)],
                            source=STRANGER)

        one = self.made(by("Authorization", "Bearer key-of-shop1"))
        self.replayed(by("X-Api-Key", "second-of-shop1"), one)
        self.replayed(by("authorization", "bearer  key-of-shop1"), one)
        self.made(by("X-Api-Key", "key-of-shop2"))
        self.assertEqual([r.get("Idempotency-Tenant")
                          for r in self.upstream.seen(key)],
                         ["shop1", "shop2"])

    def test_gateway__a_wrong_api_key_is_401(self):
        """And it is told how to say it, and nothing else."""
        digest = hashlib.sha256(b"key-of-shop1").hexdigest()
        for lines in ([], [("X-Api-Key", "other")], [("X-Api-Key", "")],
                      [("X-Api-Key", digest)],
                      [("Authorization", "Basic key-of-shop1")],
                      [("Authorization", "key-of-shop1")],
                      [("X-Api-Key", "key-of-shop1")] * 2,
                      [("X-Api-Key", "key-of-shop1"),
                       ("Authorization", "Bearer key-of-shop2")]):
            with self.subTest(lines=lines):
                key = self.key()
                reply = self.ask(key, "keyed", headers=lines)
                self.problem(reply, "api-key", 401, again=False)
                self.assertEqual(reply.get("WWW-Authenticate"), "Bearer")
                self.assertEqual(self.upstream.seen(key), [])

    def test_gateway__paths_of_a_wildcard_route_are_one_scope(self):
        """The rest belongs to the request, so a key that is used for another
        resource is told so."""
        key = self.key()
        first = self.made(self.ask(key, "any/ch_1/capture"))
        self.assertEqual(self.upstream.wait(key).target,
                         "/up/any/ch_1/capture")
        self.replayed(self.ask(key, "any/ch_1/capture"), first)
        self.problem(self.ask(key, "any/ch_2/capture"), "mismatch", 422)


class SameRequest(Case):
    def same(self, first, second, type="application/json", **more):
        key, headers = self.key(), [("Content-Type", type)]
        one = self.made(self.send(key, first, headers))
        self.replayed(self.send(key, second, headers, **more), one)
        self.assertEqual(len(self.upstream.seen(key)), 1)

    def other(self, first, second, type="application/json",
              target="/v1/charges"):
        key, headers = self.key(), [("Content-Type", type)]
        self.made(self.send(key, first, headers))
        self.problem(self.send(key, second, headers, target), "mismatch",
                     422, again=False)
        self.assertEqual(len(self.upstream.seen(key)), 1)

    def send(self, key, body, headers, target="/v1/charges"):
        with self.daemon.connect() as c:
            return c.ask("POST", target,
                         [("Idempotency-Key", key), *headers], body)

    def test_gateway__the_order_of_json_members_does_not_matter(self):
        """Libraries write them as a hash table has them."""
        self.same(b'{"a":1,"b":{"c":[1,2],"d":null}}',
                  b'{"b":{"d":null,"c":[1,2]},"a":1}')
        self.same(b'{"a":1,"b":2}', b'{"b":2,"a":1}',
                  "application/vnd.shop+json; charset=utf-8")

    def test_gateway__white_space_of_json_does_not_matter(self):
        """Nor do the escapes of a string that is the same."""
        self.same(b'{"a":[1,2],"b":"x y"}',
                  b' {\r\n\t"a" : [ 1 , 2 ] , "b" : "x y" }\n')
        self.same('{"a":"\u00fc/"}'.encode(), b'{"a":"\\u00fc\\/"}')

    def test_gateway__another_json_value_is_422(self):
        """The order of a list, the text of a number and every character of a
        string are what is asked for."""
        for first, second in ((b'{"a":1}', b'{"a":2}'),
                              (b'{"a":1.0}', b'{"a":1}'),
                              (b'{"a":100}', b'{"a":1e2}'),
                              (b'{"a":"1"}', b'{"a":1}'),
                              (b'{"a":[1,2]}', b'{"a":[2,1]}'),
                              (b'{"a":"x"}', b'{"a":"x "}'),
                              (b'{"a":"x"}', b'{"A":"x"}'),
                              (b'{"a":null}', b'{}')):
            with self.subTest(first=first, second=second):
                self.other(first, second)

    # JSON by RFC 8259 that not every reader takes: in two spellings, and in a
    # third that is another request.
    RARE = {
        "a number beyond 64 bits": (
            b'{"a":18446744073709551616,"b":1}',
            b'{ "b": 1, "a": 18446744073709551616 }',
            b'{"a":18446744073709551617,"b":1}'),
        "a number beyond a double": (
            b'{"a":1e400,"b":1}', b'{"b":1, "a":1e400}',
            b'{"a":1e401,"b":1}'),
        "a number of a hundred digits": (
            b'[' + b"1" * 100 + b',{}]', b'[ ' + b"1" * 100 + b' , { } ]',
            b'[' + b"1" * 99 + b'2,{}]'),
        "half of a surrogate pair": (
            b'{"a":"\\ud83d","b":1}', b'{"b":1, "a":"\\uD83D"}',
            b'{"a":"\\ud83e","b":1}'),
        "a name with a NUL": (
            b'{"a\\u0000":1,"b":1}', b'{"b":1, "\\u0061\\u0000":1}',
            b'{"a\\u0000":2,"b":1}'),
        "a depth of 40": (
            b'{"a":0,"b":' * 40 + b"1" + b"}" * 40,
            b' { "b":' * 40 + b"1" + b',"a":0}' * 40,
            b'{"a":0,"b":' * 40 + b"2" + b"}" * 40),
        "a name that stands twice": (
            b'{"a":1,"b":1,"a":2}', b'{"b":1, "a":1, "a":2}',
            b'{"a":2,"b":1,"a":1}'),
    }

    def test_gateway__all_that_is_json_is_compared_as_json(self):
        """Whether to take it is for the upstream to say, and a retry of what
        it took is no other request."""
        for what, (first, second, other) in self.RARE.items():
            with self.subTest(what):
                self.same(first, second)
                self.other(first, other)

    def test_gateway__other_types_are_compared_as_bytes(self):
        """What is not known to be JSON is not rewritten."""
        self.other(b'{"a":1,"b":2}', b'{"b":2,"a":1}', "text/plain")
        self.other(b"a=1&b=2", b"b=2&a=1",
                   "application/x-www-form-urlencoded")
        self.same(bytes(range(256)), bytes(range(256)),
                  "application/octet-stream")
        self.other(b"{not json", b"{ not json") # nor what only claims to be

    def test_gateway__the_query_belongs_to_the_request(self):
        """It is where some APIs have their parameters."""
        self.other(BODY, BODY, target="/v1/charges?capture=false")
        key = self.key()
        one = self.made(self.send(key, BODY, [JSON], "/v1/charges?a=1&b=2"))
        self.assertEqual(self.upstream.wait(key).target,
                         "/up/charges?a=1&b=2")
        self.replayed(self.send(key, BODY, [JSON], "/v1/charges?a=1&b=2"), one)
        self.problem(self.send(key, BODY, [JSON], "/v1/charges?a=1"),
                     "mismatch", 422)

    def test_gateway__a_query_is_the_same_however_it_is_escaped(self):
        """By RFC 3986 it is one URI, and a proxy may write it anew. The
        upstream gets it as it came."""
        key = self.key()
        one = self.made(self.send(key, BODY, [JSON], "/v1/charges?%61=%7e%2f"))
        self.assertEqual(self.upstream.wait(key).target,
                         "/up/charges?%61=%7e%2f")
        for query in ("a=~%2F", "%61=~%2f"):
            self.replayed(self.send(key, BODY, [JSON],
                                    f"/v1/charges?{query}"), one)
        self.problem(self.send(key, BODY, [JSON], "/v1/charges?a=~/"),
                     "mismatch", 422)

    def test_gateway__headers_do_not_belong_to_the_request(self):
        """Trace ids and dates differ in every repeat."""
        key = self.key()
        one = self.made(self.ask(key, headers=[("Traceparent", "00-1")]))
        self.replayed(self.ask(key, headers=[("Traceparent", "00-2"),
                                             ("User-Agent", "x/2")]), one)

    def test_gateway__the_upstream_gets_the_body_as_it_was_sent(self):
        """The canonical form is for comparing only."""
        key, body = self.key(), b' {"b" : 1.0 ,\r\n"a":"\\u00fc"}\n'
        self.made(self.send(key, body, [JSON]))
        self.assertEqual(self.upstream.wait(key).body, body)

    def test_gateway__a_mismatch_is_told_while_the_first_is_under_way(self):
        """It would never be this request's answer: why wait for it?"""
        key = self.key()
        client, seen = self.hold(key)
        said = self.problem(self.ask(key, body=b'{"amount":2}'), "mismatch",
                            422, again=False)
        self.assertIn("new key", said["detail"])
        seen.release()
        self.made(client.read())


if __name__ == "__main__":
    unittest.main()
