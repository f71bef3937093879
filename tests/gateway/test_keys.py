"""What a key is, and what is answered where there is none."""
import unittest

from support import BODY, JSON, Case


class Keys(Case):
    def refused(self, headers, name, status=400):
        """Asks with these header lines; nothing may have been done."""
        before = self.upstream.count()
        with self.daemon.connect() as c:
            reply = c.ask("POST", "/v1/charges", [JSON, *headers], BODY)
        said = self.problem(reply, name, status, again=False)
        self.assertEqual(self.upstream.count(), before)
        self.assertIn("Nothing was done", said["detail"])
        return said

    def taken(self, *headers):
        """Asks; returns the key under which the upstream was asked."""
        with self.daemon.connect() as c:
            reply = c.ask("POST", "/v1/charges", [JSON, *headers], BODY)
        self.made(reply)
        return self.upstream.requests[-1].key

    def test_gateway__a_missing_key_is_400(self):
        """A client that forgot the key must learn it before money moves."""
        said = self.refused([], "key-missing")
        self.assertIn("Idempotency-Key", said["detail"])
        self.assertIn("UUID", said["detail"])

    def test_gateway__an_empty_key_is_400(self):
        """All clients whose variable is empty would share one key."""
        for value in ("", " ", "\t ", '""', '"  "'):
            with self.subTest(value=value):
                self.refused([("Idempotency-Key", value)], "key-empty")

    def test_gateway__a_key_over_255_characters_is_400(self):
        """Cut off or stored in part it could be another one's."""
        for value in ("k" * 256, "k" * 4000, '"' + "k" * 256 + '"'):
            with self.subTest(length=len(value)):
                said = self.refused([("Idempotency-Key", value)],
                                    "key-too-long")
                self.assertIn("255", said["detail"])

    def test_gateway__a_key_of_255_characters_is_taken(self):
        """The limit is what is promised, and not one less."""
        for first, form in (("a", "{}"), ("b", '"{}"')):
            value = first * 255
            self.assertEqual(
                self.taken(("Idempotency-Key", form.format(value))), value)

    def test_gateway__several_key_lines_are_400(self):
        """Of two keys none is the one that is meant; nor of one under both
        names, which the text must not seem to allow."""
        for lines in ([("Idempotency-Key", "a"), ("Idempotency-Key", "a")],
                      [("Idempotency-Key", "a"), ("idempotency-key", "b")],
                      [("Idempotency-Key", "a"), ("X-Idempotency-Key", "a")],
                      [("X-Idempotency-Key", "a"),
                       ("X-Idempotency-Key", "b")]):
            with self.subTest(lines=lines):
                said = self.refused(lines, "key-repeated")
                self.assertIn("only one line", said["detail"])

    def test_gateway__a_malformed_key_is_400(self):
        """Half a quoted string is not a key: two that lost their ends would be
        one."""
        for value in ('"abc', '"a"b"', '"a\\b"', '"a" b', '"a";',
                      '"a";;x', "schl\xfcssel", '"\xe4"', "a\x7f"):
            with self.subTest(value=value):
                self.refused([("Idempotency-Key", value)], "key-malformed")

    def test_gateway__a_key_that_the_upstream_reads_as_another_is_400(self):
        """It is sent bare: blanks at its ends are lost there, and quotes are
        taken for those of a string. Then two keys are one at the provider."""
        key = self.key()
        for value in (f'"{key} "', f'" {key}"', f'"\\"{key}\\""'):
            with self.subTest(value=value):
                self.refused([("Idempotency-Key", value)], "key-malformed")
        self.made(self.ask(key))
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__bare_and_quoted_keys_are_one(self):
        """A client that changes its library repeats under the other form."""
        key = self.key()
        first = self.made(self.ask(key))
        self.replayed(self.ask(f'"{key}"'), first)
        self.replayed(self.ask(f'"{key}";v=1'), first)
        self.replayed(self.ask(f"  {key}  "), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__escapes_of_a_quoted_key_are_undone(self):
        """It is the string that is the key, not how it is written."""
        key = self.key()
        first = self.made(self.ask(f'"{key}\\"\\\\"'))
        self.replayed(self.ask(f'{key}"\\'), first)
        self.assertEqual(self.attempts(f'{key}"\\'), [1])

    def test_gateway__keys_differ_by_case_and_every_character(self):
        """Keys are bytes: who folds them merges two payments."""
        key = self.key()
        replies = [self.made(self.ask(k))
                   for k in (key, key.upper(), key + ".", key + " ." )]
        self.assertEqual(len({r.body for r in replies}), 4)

    def test_gateway__x_idempotency_key_is_the_same_header(self):
        """Older clients send that name, and newer ones of theirs the other."""
        key = self.key()
        self.assertEqual(self.taken(("X-Idempotency-Key", key)), key)
        with self.daemon.connect() as c:
            reply = c.ask("POST", "/v1/charges",
                          [JSON, ("x-idempotency-key", f'"{key}"')], BODY)
        self.assertTrue(reply.replayed)
        self.assertTrue(self.ask(key).replayed)

    def test_gateway__the_upstream_gets_the_bare_key_and_the_attempt(self):
        """It uses them for the provider's own idempotency: neither quotes nor
        what a client says of attempts may be among them."""
        key = self.key()
        self.made(self.ask(f'"{key}"', headers=[
            ("Idempotency-Attempt", "7"), ("Idempotency-Token", "mine"),
            ("Idempotency-Tenant", "other"), ("Idempotency_Attempt", "8"),
            ("Idempotency-Replayed", "true")]))
        seen = self.upstream.wait(key)
        own = {n.lower(): v for n, v in seen.headers
               if n.lower().replace("_", "-").startswith("idempotency-")}
        self.assertRegex(own.pop("idempotency-token"), "^[0-9a-f]{8}-[0-9a-f]"
                         "{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertEqual(own, {
            "idempotency-key": key, "idempotency-attempt": "1",
            "idempotency-tenant": "shop1"})

    def test_gateway__the_token_is_the_lease_of_the_database(self):
        """The upstream can be fenced by it."""
        key = self.key()
        client, seen = self.hold(key)
        self.assertEqual(str(self.row(key, "lease_token")[0]),
                         seen.get("Idempotency-Token"))
        seen.release()
        self.made(client.read())


if __name__ == "__main__":
    unittest.main()
