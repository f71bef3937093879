"""The gateway's functions over arrays: each element as if it were alone."""
import threading
import unittest
import uuid
from collections import namedtuple

import psycopg

from guard import ROUTE, GuardCase, digest
from support import WAIT_SECONDS_MAX, connect

DENIED = "42501"            # SQLSTATE: insufficient privilege
NOT_HERE = "25001"          # SQLSTATE: the transaction is of another kind
BAD = "22023"               # SQLSTATE: invalid parameter value
Found = namedtuple("Found", "place outcome attempt response_status"
                   " response_headers response_body expires_at retry_at"
                   " reason")


class Claim(namedtuple("Claim", "key request tenant route token lease ttl"
                       " unknown after_expiry attempts_max",
                       defaults=["r", "shop1", ROUTE, None, "1 minute",
                                 "24 hours", "retry", "new", 10])):
    def __new__(cls, key, *args, **more):
        more.setdefault("token", uuid.uuid4())
        return super().__new__(cls, key, *args, **more)


class GatewayCase(GuardCase):
    def claims_by(self, run, claims):
        columns = [[getattr(c, n) for c in claims] for n in
                   ("tenant", "route", "key", "request", "token", "lease",
                    "ttl", "unknown", "after_expiry", "attempts_max")]
        columns[3] = [r if r is None else digest(r) for r in columns[3]]
        return run("SELECT * FROM paynotify.guard_claim_many(%s::text[],"
                   " %s::text[], %s::text[], %s::bytea[], %s::uuid[],"
                   " %s::interval[], %s::interval[], %s::text[], %s::text[],"
                   " %s::integer[])", columns)

    def found(self, rows):
        got = [Found(*r) for r in sorted(rows)]
        self.assertEqual([g.place for g in got],
                         list(range(1, len(got) + 1)))
        return got

    def claim_many(self, *claims, session=None):
        got = self.found(self.claims_by(session.run if session else self.sql,
                                        claims))
        self.assertEqual(len(got), len(claims))
        return got

    def settle_many(self, *acts, session=None):
        """Each (claim, act) or (claim, act, {...}); the places that lost."""
        columns = [[] for _ in range(11)]
        for claim, act, *more in acts:
            more = {"status": 201 if act == "complete" else None,
                    "headers": None, "body": b"ok", "reason": None,
                    "lease": "1 hour" if act == "renew" else None,
                    "again": False, **(more[0] if more else {})}
            for column, value in zip(columns, (
                    claim.tenant, claim.route, claim.key, claim.token, act,
                    more["status"], more["headers"], more["body"],
                    more["reason"], more["lease"], more["again"])):
                column.append(value)
        rows = (session.run if session else self.sql)(
            "SELECT paynotify.guard_settle(%s::text[], %s::text[], %s::text[],"
            " %s::uuid[], %s::text[], %s::integer[], %s::text[], %s::bytea[],"
            " %s::text[], %s::interval[], %s::boolean[])", columns)
        return sorted(r[0] for r in rows)


class Claims(GatewayCase):
    def test_each_finds_its_own(self):
        """One would get another one's outcome."""
        held = self.claim("busy")
        self.used("replay")
        self.used("mismatch", request="other")
        self.claim("failed")
        self.claim("lost")
        self.pass_time(61)
        held = self.claim("busy")
        self.claim("failed", unknown="hold")
        self.used("expired", ttl="1 s")
        self.pass_time(2)
        got = self.claim_many(
            Claim("busy"), Claim("expired", after_expiry="refuse"),
            Claim("failed"), Claim("lost"), Claim("mismatch"), Claim("new"),
            Claim("replay"))
        self.assertEqual([g.outcome for g in got], [
            "busy", "expired", "failed", "run", "mismatch", "run", "replay"])
        self.assertEqual([g.attempt for g in got], [2, 1, 1, 2, None, 1, 1])
        self.assertEqual(got[0].retry_at, held.retry_at)
        self.assertIn("did not come back", got[2].reason)
        self.assertEqual(got[6][3:6], (201, "a: b", b"ok"))
        for g in got[:6]:           # nothing of an answer to anybody else
            if g.outcome not in ("expired",):
                self.assertEqual(g[3:6], (None, None, None), g)
        for key, n in (("lost", 3), ("new", 5)):
            self.assertEqual(self.claim(key).retry_at, got[n].retry_at)

    def test_as_guard_claim_says(self):
        """The two ways to claim would differ: through the gateway a key would
        run that an application would not run."""
        states = []
        for hash_ in ("r", "other"):
            for n, (unknown, after) in enumerate(
                    (u, a) for u in ("retry", "hold")
                    for a in ("new", "refuse")):
                more = {"unknown": unknown, "after_expiry": after}
                for state in ("none", "busy", "ended", "again", "aside",
                              "replay", "expired", "archived", "late",
                              "let go"):
                    states.append((f"{hash_}{n}{state}", state, hash_, more))
        for tenant in ("one", "many"):
            for key, state, _, _ in states:
                if state == "none":
                    continue
                got = self.claim(key, tenant=tenant,
                                 lease="1 hour" if state == "busy" else "1 s",
                                 ttl="1 minute" if state in
                                 ("expired", "archived", "late", "let go")
                                 else "1 day")
                if state in ("again", "aside", "let go"):
                    self.release(key, got.token,
                                 "hold" if state == "aside" else "retry",
                                 tenant=tenant)
                elif state in ("replay", "expired", "archived"):
                    self.complete(key, got.token, tenant=tenant)
        self.sql("UPDATE paynotify.idempotency_keys SET expires_at = now()"
                 " - interval '1 s' WHERE key LIKE '%archived'")
        self.assertEqual(self.archive(), 16)
        self.pass_time(120)
        one = [self.claim(key, tenant="one", request=hash_, **more)
               for key, _, hash_, more in states]
        many = self.claim_many(*(Claim(key, hash_, "many", **more)
                                 for key, _, hash_, more in states))
        for a, b, s in zip(one, many, states):
            self.assertEqual(a[:2] + a[3:6] + a[9:],
                             b[1:3] + b[3:6] + b[8:], s)
        dump = ("SELECT key, state, attempts, crashes, reason,"
                " lease_token IS NULL, request_hash, response_body"
                " FROM paynotify.idempotency_keys WHERE tenant = '{}'"
                " ORDER BY key")
        self.assertEqual(self.sql(dump.format("one")),
                         self.sql(dump.format("many")))

    def test_bodies_have_an_end(self):
        """A batch of large ones would take longer than anybody waits, and all
        that are in it with them."""
        for key in "abcd":
            self.complete(key, self.claim(key).token, body=b"x" * (5 << 20))
        self.used("e")
        self.claim("f")
        claims = [Claim(k) for k in "abcdefg"]
        for _ in range(2):
            got = self.claim_many(*claims)
            self.assertEqual([len(g.response_body or b"") for g in got],
                             [5 << 20] * 2 + [0] * 5)
            self.assertEqual([g.outcome for g in got],
                             ["replay"] * 2 + ["later"] * 3 + ["busy"]
                             + [got[6].outcome])
        self.assertEqual([g.outcome for g in self.claim_many(*claims[2:5])],
                         ["replay", "replay", "later"])

    def test_one_key_twice_in_a_batch(self):
        """Both would run, or the batch fail."""
        got = self.claim_many(Claim("k"), Claim("k"), Claim("k", "other"))
        self.assertEqual([g.outcome for g in got],
                         ["run", "busy", "mismatch"])

    def test_a_claim_that_is_sent_again_knows_its_own(self):
        """After a commit that was cut the key would be busy for a lease."""
        a, b, c = Claim("a"), Claim("b"), Claim("c")
        first = self.claim_many(a, b)
        again = self.claim_many(a, b, c)
        self.assertEqual([g.outcome for g in again], ["run"] * 3)
        self.assertEqual([g.attempt for g in again], [1] * 3)
        self.assertEqual(again[0].retry_at, first[0].retry_at)
        # By its token alone; not for another request, not when it has ended.
        self.assertEqual(
            self.claim_many(a._replace(request="other"))[0].outcome,
            "mismatch")
        self.assertEqual(self.claim("a", claim_token=a.token).outcome, "run")
        self.assertEqual(self.claim("a").outcome, "busy")
        self.pass_time(61)
        self.assertEqual(self.claim_many(a)[0].attempt, 2)

    def test_sent_again_it_waits_for_what_it_found(self):
        """A claim whose wait for the standby was cut off would be told without
        it: who writes nothing does not wait."""
        def wrote():
            return self.value("SELECT pg_current_xact_id_if_assigned()"
                              " IS NOT NULL")
        a = Claim("a")
        self.claim_many(a)
        self.used("b")
        c = Claim("c")
        self.claim_many(c)
        self.settle_many((c, "complete"))
        self.sql("BEGIN")
        self.claim_many(Claim("a"), Claim("b"))
        self.assertFalse(wrote())       # what others have done is only read
        self.claim_many(a)
        self.assertTrue(wrote())
        self.sql("COMMIT; BEGIN")
        self.settle_many((c, "complete", {"again": True}))
        self.assertTrue(wrote())
        self.sql("COMMIT")

    def test_a_lease_begins_when_the_wait_is_over(self):
        """Whoever had to wait would have lost its lease before it began."""
        a, b = self.session(), self.session()
        a.run("BEGIN")
        self.claim("b", session=a)
        claims = [Claim("a"), Claim("b"), Claim("c")]
        pending = b.start("SELECT 1")
        pending.result()
        done = []
        t = threading.Thread(target=lambda: done.extend(
            self.claims_by(b.run, claims)))
        t.start()
        while self.value("SELECT cardinality(pg_blocking_pids(%s))",
                         [b.pid]) == 0:
            self.assertTrue(t.is_alive())
        self.pass_time(100)
        a.run("ROLLBACK")
        t.join(WAIT_SECONDS_MAX)
        self.assertEqual([g.outcome for g in self.found(done)], ["run"] * 3)
        self.pass_time(40)
        self.assertEqual([g.outcome for g in self.claim_many(
            *(c._replace(token=uuid.uuid4()) for c in claims))],
            ["busy"] * 3)
        self.assertEqual(self.settle_many(*((c, "complete")
                                            for c in claims)), [])

    def test_what_makes_no_sense_is_refused(self):
        """A row that no other function could deal with."""
        for bad in (Claim(""), Claim("k" * 256), Claim("k", tenant=""),
                    Claim("k", tenant="a\nb"), Claim("k", route="notify/x"),
                    Claim("k", route="a\nb"), Claim("k", lease="0"),
                    Claim("k", ttl="-1 s"), Claim("k", unknown="no"),
                    Claim("k", lease="61 minutes"),
                    Claim("k", ttl="10000 years"),
                    Claim("k", after_expiry="no"), Claim("k", attempts_max=0),
                    Claim("k", token=None), Claim(None), Claim("k", None),
                    Claim("k", lease=None), Claim("k", unknown=None)):
            with self.subTest(bad=bad):
                self.refused(BAD, self.claim_many, Claim("a"), bad)
        self.assertIsNone(self.state("a"))

    def test_other_isolation_levels_are_refused(self):
        """Their snapshot may be older than the move of a key."""
        s = self.session()
        s.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.refused(NOT_HERE, self.claim_many, Claim("k"), session=s)


class Settlements(GatewayCase):
    def held(self, *keys, **more):
        claims = [Claim(k, **more) for k in keys]
        for got in self.claim_many(*claims):
            self.assertEqual(got.outcome, "run")
        return claims

    def test_each_act(self):
        """One act for another: what was not done would be replayed, or what
        was done run again."""
        keys = ["again", "aside", "complete", "doubt", "free", "renew"]
        claims = self.held(*keys)
        self.assertEqual(self.settle_many(
            *((c, c.key, {"reason": None if c.key == "free" else "why"})
              for c in claims)), [])
        rows = self.sql(
            "SELECT key, state::text, reason, lease_token, response_status,"
            " response_body, settled_by FROM paynotify.idempotency_keys"
            " ORDER BY key")
        again, aside, complete, doubt, _, renew = claims
        self.assertEqual(rows, [
            ("again", "PROCESSING", "why", None, None, None, again.token),
            ("aside", "FAILED", "why", None, None, None, aside.token),
            ("complete", "COMPLETED", None, None, 201, b"ok", complete.token),
            ("doubt", "PROCESSING", "why", doubt.token, None, None,
             doubt.token),
            ("renew", "PROCESSING", None, renew.token, None, None, None)])
        self.pass_time(1800)
        got = self.claim_many(*(Claim(k) for k in keys))
        self.assertEqual([(g.outcome, g.attempt) for g in got], [
            ("run", 2), ("failed", 1), ("replay", 1), ("run", 2), ("run", 1),
            ("busy", 1)])

    def test_an_answer_that_outlasts_its_life_begins_another(self):
        """Who waited for it would find it expired, and do the work again."""
        claims = self.held("late", "soon", lease="1 hour", ttl="1 minute")
        self.settle_many((claims[1], "complete"))
        self.pass_time(61)
        self.settle_many((claims[0], "complete"))
        late, soon = self.claim_many(Claim("late"), Claim("soon"))
        self.assertEqual([(g.outcome, g.attempt) for g in (late, soon)],
                         [("replay", 1), ("run", 2)])
        self.pass_time(58)
        self.assertEqual(self.claim_many(Claim("late"))[0].outcome, "replay")
        self.pass_time(2)
        self.assertEqual(self.claim_many(Claim("late"))[0].attempt, 2)

    def test_in_doubt_nobody_runs_until_the_lease_ends(self):
        """The work may have been done, and would be done again at once."""
        (k,) = self.held("k")
        self.settle_many((k, "doubt"))
        (got,) = self.claim_many(Claim("k"))
        self.assertEqual((got.outcome, got.reason), ("busy", "not known"))
        self.pass_time(61)
        (got,) = self.claim_many(Claim("k", attempts_max=1))
        # It counts as a crash, and who knew why has said it.
        self.assertEqual((got.outcome, got.reason), ("failed", "not known"))
        (k,) = self.held("l")
        self.settle_many((k, "doubt", {"reason": "the upstream answered 500"}))
        self.pass_time(61)
        (got,) = self.claim_many(Claim("l", unknown="hold"))
        self.assertEqual((got.outcome, got.reason),
                         ("failed", "the upstream answered 500"))

    def test_free_later_keeps_what_came_before(self):
        """What an earlier attempt may have done would be forgotten."""
        self.claim()
        self.pass_time(61)
        (k,) = self.held("k")
        self.assertEqual(self.settle_many((k, "free")), [])
        (got,) = self.claim_many(Claim("k", "other"))
        self.assertEqual(got.outcome, "mismatch")
        self.assertEqual(self.held("k")[0].key, "k")

    def test_free_in_a_next_life_is_for_anybody(self):
        """429 would give the key to the request that was turned away."""
        self.used("a")
        self.used("b")
        self.pass_time(86401)
        for n, request in enumerate(("other", "mended", "r"), 2):
            claims = [Claim(k, request) for k in "ab"]
            self.assertEqual([(g.outcome, g.attempt)
                              for g in self.claim_many(*claims)],
                             [("run", n)] * 2)
            self.assertEqual(self.settle_many(
                *((c, "free") for c in claims)), [])
            self.assertEqual(self.settle_many(
                *((c, "free", {"again": True}) for c in claims)), [])
        self.assertEqual([g.outcome for g in self.claim_many(
            Claim("a", after_expiry="refuse"), Claim("b"))],
            ["expired", "run"])

    def test_lost_ones_are_told_and_the_others_done(self):
        """A late one would take others with it, or overwrite an answer."""
        late = self.held("a", "b", "c", "d", "e", "f")
        self.pass_time(61)
        (mine,) = self.held("b")
        acts = ["complete", "free", "again", "aside", "doubt", "renew"]
        self.assertEqual(self.settle_many(
            *((c, act) for c, act in zip(late, acts)), (mine, "complete")),
            [1, 2, 3, 4, 5, 6])
        self.assertEqual(self.state("a"), "PROCESSING")
        self.assertEqual(self.state("b"), "COMPLETED")
        # Twice in one batch: the second finds it settled, or nobody knows
        # which of the two it was.
        (k,) = self.held("k")
        self.assertEqual(len(self.settle_many((k, "complete"),
                                              (k, "complete"))), 1)
        # Of another key or tenant.
        (k,) = self.held("l")
        self.assertEqual(self.settle_many(
            (k._replace(key="m"), "complete"),
            (k._replace(tenant="shop2"), "complete"),
            (k._replace(route="GET /"), "complete"),
            (k._replace(token=None), "complete")), [1, 2, 3, 4])

    def test_sent_again_it_is_not_lost(self):
        """What is stored would be answered with an error."""
        acts = ["again", "aside", "complete", "doubt", "free", "renew"]
        claims = self.held(*acts)
        self.assertEqual(self.settle_many(*((c, c.key) for c in claims)), [])
        self.assertEqual(self.settle_many(
            *((c, c.key, {"again": True}) for c in claims)), [])
        # Without that word it is a second settlement, of nothing.
        self.assertEqual(self.settle_many(
            *((c, c.key) for c in claims)), [1, 2, 3, 5])
        # And it is not for anybody: another one has the key, or had it.
        claims = [c._replace(token=uuid.uuid4()) for c in claims]
        self.assertEqual(self.settle_many(
            *((c, c.key, {"again": True}) for c in claims)),
            [1, 2, 3, 4, 6])    # free: nobody has it under that token
        self.assertEqual(self.claim_many(Claim("complete"))[0].response_body,
                         b"ok")

    def test_what_makes_no_sense_is_refused(self):
        """A row that no other function could deal with."""
        (k,) = self.held("k")
        for act, more in (("no", {}), (None, {}), ("complete", {"status": 99}),
                          ("complete", {"status": 102}),
                          ("complete", {"status": None}),
                          ("renew", {"lease": "0"}),
                          ("renew", {"lease": "61 minutes"}),
                          ("renew", {"lease": None})):
            self.refused(BAD, self.settle_many, (k, act, more))
        self.assertEqual(self.settle_many((k, "complete")), [])


class Notified(GatewayCase):
    def setUp(self):
        super().setUp()
        self.ear = connect(self.database)
        self.notified = []
        self.ear.add_notify_handler(self.notified.append)
        self.ear.execute("LISTEN paynotify_guard")

    def tearDown(self):
        self.ear.close()
        super().tearDown()

    def heard(self):
        """What has come by now: what was sent comes with the next answer."""
        self.ear.execute("SELECT 1")
        got = [n.payload for n in self.notified]
        self.notified.clear()
        return got

    def test_operators_are_heard(self):
        """A gateway would go on replaying what an operator has forgotten."""
        name = digest(f"shop1\n{ROUTE}\nk\u00e9").hex()[:32]
        self.claim("k\u00e9")
        self.call("set_free", "k\u00e9", "why", "me")
        self.assertEqual(self.heard(), [name])
        self.used("k\u00e9")
        self.call("forget", "k\u00e9", "why", "me")
        self.assertEqual(self.heard(), [name])

    def test_applications_are_silent(self):
        """Their commits would wait for each other."""
        token = self.claim("a").token
        self.call("renew", "a", token, "1 hour")
        self.complete("a", token)
        self.release("b", self.claim("b").token)
        claim = Claim("c")
        self.claim_many(claim)
        self.settle_many((claim, "complete"))
        self.assertEqual(self.heard(), [])


class Rights(GatewayCase):
    def setUp(self):
        super().setUp()
        for name, role in (("gateway", "receiver"), ("shop", "consumer")):
            if not self.sql("SELECT 1 FROM pg_roles WHERE rolname = %s",
                            [name]):
                self.sql(f"CREATE ROLE {name} LOGIN IN ROLE"
                         f" paynotify_{role}")
        self.gateway = self.session(user="gateway")

    def test_the_gateway_may_claim_and_settle(self):
        """The documented rights would not be enough."""
        a, b = Claim("a"), Claim("b")
        self.claim_many(a, b, session=self.gateway)
        self.settle_many((a, "complete"), (b, "free"), session=self.gateway)
        (got,) = self.claim_many(Claim("a"), session=self.gateway)
        self.assertEqual(got.outcome, "replay")
        self.gateway.run("LISTEN paynotify_guard")

    def test_and_nothing_else(self):
        """Whoever gets hold of the gateway's password would read and write
        what it likes."""
        claim = Claim("k")
        self.claim_many(claim)
        for sql in ("SELECT response_body FROM paynotify.idempotency_keys",
                    "UPDATE paynotify.idempotency_keys SET reason = ''",
                    "DELETE FROM paynotify.idempotency_keys",
                    "SELECT * FROM paynotify.guard_keys",
                    "SELECT * FROM paynotify.guard_actions",
                    "SELECT paynotify.guard_await()",
                    "SELECT paynotify.guard_tell('t', 'r', 'k')",
                    "SELECT paynotify.guard_claim_one('t', 'r', 'k', '',"
                    " '1 s', '1 s', 'retry', 'new', 1, NULL)",
                    "SELECT paynotify.guard_claim('t', 'r', 'k', '')",
                    "SELECT paynotify.guard_forget('t', 'r', 'k', '', '')",
                    "SELECT paynotify.guard_set_free('t', 'r', 'k', '', '')"):
            with self.subTest(sql=sql):
                self.refused(DENIED, self.gateway.run, sql)

    def test_webhook_keys_are_out_of_its_reach(self):
        """Who could claim or settle those could have an event recorded twice
        or not at all."""
        self.refused(BAD, self.claim_many,
                     Claim("k", route="notify/alipay"), session=self.gateway)
        self.sql("INSERT INTO paynotify.idempotency_keys (tenant, request_path,"
                 " key, request_hash, state, created_at, expires_at)"
                 " VALUES ('shop1', 'notify/alipay', 'k', %s, 'COMPLETED',"
                 " now(), now() + interval '1 day')", [digest("r")])
        self.refused(BAD, self.claim_many,
                     Claim("k", "other", route="notify/alipay"),
                     session=self.gateway)
        for act in ("complete", "free", "again", "aside", "doubt", "renew"):
            self.settle_many((Claim("k", route="notify/alipay"), act,
                              {"again": True}), session=self.gateway)
        self.assertEqual(self.sql(
            "SELECT state::text, response_status, lease_token, attempts"
            " FROM paynotify.idempotency_keys"), [("COMPLETED", None, None,
                                                   None)])

    def test_applications_have_their_own(self):
        """An application would settle the keys of all tenants at once."""
        shop = self.session(user="shop")
        self.refused(DENIED, self.claim_many, Claim("k"), session=shop)
        self.refused(DENIED, self.settle_many, (Claim("k"), "free"),
                     session=shop)


class Order(GatewayCase):
    own_database = True

    def test_many_batches_at_once(self):
        """Batches that lock in one order would wait for each other for
        ever; or two of them have one key."""
        runs = []
        problems = []

        def work(number):
            try:
                with connect(self.database) as c:
                    for n in range(20):
                        claims = [Claim(f"k{n}_{k:02}")
                                  for k in range(number % 3, 40, 1 + n % 3)]
                        got = self.found(self.claims_by(
                            lambda *a: c.execute(*a).fetchall(), claims))
                        runs.extend(claims[g.place - 1].key for g in got
                                    if g.outcome == "run")
            except (psycopg.Error, AssertionError) as e:
                problems.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(WAIT_SECONDS_MAX)
        self.assertEqual(problems, [])
        self.assertEqual(len(runs), len(set(runs)))
        self.assertEqual(len(runs), self.value(
            "SELECT count(*) FROM paynotify.idempotency_keys"))


if __name__ == "__main__":
    unittest.main()
