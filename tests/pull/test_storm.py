"""Thousands of events, eight workers, connections cut at random."""
import json
import os
import random
import re
import unittest

from storm import Storm
from support import Case, connect

ORDERS = 1500


class Crashes(Case):
    def test_each_event_once_and_in_order(self):
        """Work that is done twice, not at all, or a refund before its
        payment: what all of this is there to prevent."""
        self.register()
        self.sql("ALTER TABLE work ADD n bigint GENERATED ALWAYS AS IDENTITY")
        self.addCleanup(self.after)
        r = random.Random(3)
        events = []
        for n in range(ORDERS):
            for _ in range(r.choice((1, 1, 1, 2, 3))):
                events.append(("t", "alipay", "shop1", "2088",
                               f"o{n}" if n % 10 else None, 1, None))
        # The events of an order stay in order, more or less near each other.
        spread = sorted(range(len(events)), key=lambda i: i + r.random() * 60)
        events = [events[i] for i in spread]
        storm = Storm(
            self, events,
            "WITH w AS (INSERT INTO work VALUES (%s, 'w'))"
            " SELECT paynotify.ack(%s)",
            "WITH c AS MATERIALIZED (SELECT * FROM paynotify.claim('app', %s,"
            " '20 s')), w AS (INSERT INTO work SELECT c.seq, 'b' FROM c"
            " ORDER BY c.seq) SELECT paynotify.ack(c.token) FROM c")
        storm.run(lambda: self.value("SELECT count(*) FROM work")
                  >= storm.total)
        self.assertGreater(storm.kills, 5)
        self.assertEqual(
            self.sql("SELECT count(*), count(DISTINCT seq) FROM work"
                     " JOIN paynotify.event_log USING (seq)"),
            [(storm.total, storm.total)])
        self.assertEqual(
            self.sql("SELECT * FROM (SELECT w.seq, w.n - lag(w.n) OVER"
                     " (PARTITION BY e.out_trade_no ORDER BY w.seq) AS later"
                     " FROM work w JOIN paynotify.event_log e USING (seq)"
                     " WHERE e.out_trade_no IS NOT NULL) x WHERE later < 0"),
            [])
        self.assertEqual(self.claim(), {})
        self.pass_time(100)
        self.tend()
        self.assertEqual(self.states(), {})

    def after(self):
        with connect(self.database) as c:
            c.execute("ALTER TABLE work DROP n")


class Ledger(Case):
    own_database = True

    def setUp(self):
        super().setUp()
        path = os.path.join(os.environ["PN_SQL"], "examples", "ledger.sql")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.admin.execute(text)
        # What the comment tells an application to run again and again.
        self.loop = re.search(r"^--   (DO \$\$\n.*?\n)--   (END \$\$;)$", text,
                              re.M | re.S).expand(r"\1\2").replace("\n--", "\n")

    def books(self):
        return dict(self.sql("SELECT code, balance FROM ledger.balances"
                             " WHERE currency = 'CNY'"))

    def post(self, seq):
        return self.value("SELECT ledger.post(%s)", [seq])

    def alipay_refund(self, order, total, **more):
        return self.event(order, type="refund.succeeded", amount=None,
                          refund=json.dumps({"refunded_total": total}), **more)

    def test_payments_and_refunds(self):
        """An example that is wrong is copied."""
        pay = self.event("o1", amount=1000)
        self.assertTrue(self.post(pay))
        self.assertFalse(self.post(pay))
        wechat = dict(provider="wechat", account="19", order="o2")
        self.post(self.event(amount=500, **wechat))
        self.post(self.event(amount=120, type="refund.succeeded", **wechat))
        self.assertFalse(self.post(self.event("o1", type="payment.finished")))
        self.assertEqual(self.books(), {
            "assets:alipay:2088000000000001": 1000, "assets:wechat:19": 380,
            "income:shop1:sales": 1500, "refunds:shop1": 120})

    def test_alipay_refunds_are_deltas_of_the_sum(self):
        """Posting the sums would refund the first one twice."""
        self.post(self.event("o1", amount=1000))
        a, b, c = (self.alipay_refund("o1", t) for t in (300, 500, 1000))
        self.assertTrue(self.post(a))
        self.assertTrue(self.post(c))       # overtakes b
        self.assertFalse(self.post(b))
        self.assertFalse(self.post(a))
        self.assertFalse(self.post(c))
        self.assertEqual(self.books()["assets:alipay:2088000000000001"], 0)
        self.assertEqual(self.books()["refunds:shop1"], 1000)

    def test_what_cannot_be_posted_is_parked(self):
        """Genuine events that tell no sum, or move nothing, would jam the
        ledger: raised, they come again for ever."""
        self.register("ledger", None, ["payment.*", "refund.*"])
        self.post(self.event("o1", amount=1000))
        parked = [self.event("o1", type="refund.succeeded", amount=None,
                             refund=r) for r in (None, "{}")]
        for seq in (*parked, *parked,
                    self.event("o1", type="refund.succeeded", amount=0),
                    self.alipay_refund("o1", 0), self.event("o2", amount=0)):
            self.assertIs(self.post(seq), False)
        self.assertEqual(self.sql("SELECT seq, reason FROM ledger.unposted"
                                  " ORDER BY seq"),
                         [(seq, "it tells no amount") for seq in parked])
        self.assertEqual(self.books(), {
            "assets:alipay:2088000000000001": 1000,
            "income:shop1:sales": 1000})
        self.assertTrue(self.post(self.alipay_refund("o1", 400)))
        self.assertEqual(self.books()["refunds:shop1"], 400)
        nameless = self.event("o3", amount=5)
        self.sql("UPDATE paynotify.event_log SET currency = NULL"
                 " WHERE seq = %s", [nameless])
        self.assertIs(self.post(nameless), False)
        self.assertEqual(self.value("SELECT reason FROM ledger.unposted WHERE"
                                    " seq = %s", [nameless]),
                         "it tells no currency")
        for _ in range(8):      # o1 has six, one after another
            self.sql(self.loop)
        self.assertEqual(self.value("SELECT count(*) FROM paynotify.deliveries"
                                    " WHERE state <> 'done'"), 0)

    def test_a_poisoned_event_takes_no_other_with_it(self):
        """One event that fails each time would roll back all that were claimed
        with it, each time, and nothing was ever posted again."""
        self.register("ledger", None, ["payment.*", "refund.*"])
        self.event("o1", amount=100)
        poison = self.event("o2", amount=-5)    # refused by a constraint
        behind = self.event("o2", amount=7)
        self.event("o3", amount=200)
        for _ in range(2):
            self.sql(self.loop)
            self.assertEqual(self.books()["income:shop1:sales"], 300)
            self.assertEqual(
                self.sql("SELECT seq, state, reason LIKE '%%violates check%%'"
                         " FROM paynotify.deliveries WHERE state <> 'done'"
                         " ORDER BY seq"),
                [(poison, "retry", True), (behind, "waiting", None)])
        self.pass_time(301)
        self.sql(self.loop)     # again, and still alone
        self.assertEqual(self.value("SELECT attempts FROM paynotify.deliveries"
                                    " WHERE seq = %s", [poison]), 2)
        self.sql("SELECT paynotify.skip('ledger', ARRAY[%s]::bigint[], 'test',"
                 " 'test')", [poison])
        self.sql(self.loop)
        self.assertEqual(self.books()["income:shop1:sales"], 307)

    def test_two_refunds_at_the_same_time(self):
        """Two that start from the same sum would post the same difference."""
        one, two = self.session(), self.session()
        for level in ("READ COMMITTED", "REPEATABLE READ"):
            a, b = (self.alipay_refund(level, t) for t in (300, 500))
            one.run(f"BEGIN ISOLATION LEVEL {level}")
            two.run(f"BEGIN ISOLATION LEVEL {level}")
            two.run("SELECT 1 FROM ledger.journal")
            one.run("SELECT ledger.post(%s)", [a])
            waits = two.start("SELECT ledger.post(%s)", [b])
            self.assertFalse(waits.settle())
            one.run("COMMIT")
            self.refused(["23505", "40001"], waits.result)
            two.run("ROLLBACK")
            self.assertTrue(self.post(b))
        self.assertEqual(self.books()["refunds:shop1"], 2 * 500)

    def test_an_entry_that_does_not_balance(self):
        """A mistake in a posting would be found at the end of the year."""
        journal = ("INSERT INTO ledger.journal (event_id, provider, tenant,"
                   " account, out_trade_no, what, occurred_at) VALUES"
                   " ('evt_1', 'p', 't', 'a', 'o', 'w', now()) RETURNING id")
        posting = "INSERT INTO ledger.postings VALUES (%s, %s, %s, %s, %s)"
        s = self.session()
        self.sql("INSERT INTO ledger.accounts VALUES ('x', 'debit'),"
                 " ('y', 'credit')")
        for lines in ([],
                      [("x", "CNY", 5, 0)],
                      [("x", "CNY", 5, 0), ("y", "CNY", 0, 4)],
                      [("x", "CNY", 5, 0), ("y", "USD", 0, 5)]):
            s.run("BEGIN")
            entry = s.one(journal)
            for line in lines:
                s.run(posting, [entry, *line])
            self.refused("23514", s.run, "COMMIT")
        s.run("BEGIN")
        entry = s.one(journal)
        s.run(posting, [entry, "x", "CNY", 5, 0])
        s.run(posting, [entry, "y", "CNY", 0, 5])
        s.run("COMMIT")
        s.run("BEGIN")      # a closed one, even by what balances
        s.run(posting, [entry, "x", "USD", 5, 0])
        s.run(posting, [entry, "y", "USD", 0, 5])
        self.refused("23514", s.run, "COMMIT")
        for line in (("x", "EUR", 5, 5), ("x", "EUR", 0, 0),
                     ("x", "EUR", -5, 0)):
            self.refused("23514", self.sql, posting, [entry, *line])

    def test_nothing_is_changed_or_deleted(self):
        """Books that can be changed prove nothing."""
        self.post(self.event("o1"))
        for replica in ("", "SET session_replication_role = replica;"):
            for text in ("UPDATE ledger.postings SET debit = debit",
                         "DELETE FROM ledger.postings WHERE false",
                         "TRUNCATE ledger.journal CASCADE",
                         "TRUNCATE ledger.postings",
                         "UPDATE ledger.journal SET what = ''",
                         "DELETE FROM ledger.journal",
                         "UPDATE ledger.accounts SET code = 'x'",
                         "DELETE FROM ledger.accounts"):
                self.refused("42501", self.sql, replica + text)

    def test_a_clerk_posts_events_and_nothing_else(self):
        """The application would write entries of its own."""
        if not self.sql("SELECT 1 FROM pg_roles WHERE rolname = 'clerk'"):
            self.sql("CREATE ROLE clerk LOGIN")
        self.sql("GRANT ledger_clerk, paynotify_consumer TO clerk")
        self.event("o1")
        c = self.session(user="clerk")
        c.run("SELECT paynotify.register_consumer('ledger', NULL,"
              " ARRAY['payment.succeeded', 'refund.succeeded'])")
        for _ in range(2):
            c.run(self.loop)
        self.assertEqual(len(c.run("SELECT * FROM ledger.balances")), 2)
        for text in ("INSERT INTO ledger.accounts VALUES ('x', 'debit')",
                     "INSERT INTO ledger.postings VALUES (1, 'x', 'CNY', 1, 0)",
                     "UPDATE ledger.journal SET what = ''",
                     "SELECT ledger.move(1, 'a', 'debit', 'b', 'debit', 'CNY',"
                     " 1)"):
            self.refused("42501", c.run, text)

    def test_the_books_balance_after_the_storm(self):
        """Duplicates, reordering and crashes, and not a fen is missing."""
        self.register("app", None, ["payment.succeeded", "refund.succeeded"])
        r = random.Random(5)
        events, assets, sales, refunds = [], {}, {}, {}
        for n in range(ORDERS):
            tenant = f"shop{n % 3}"
            provider, account = r.choice((("alipay", "2088"),
                                          ("wechat", "1900")))
            who = (provider, tenant, account, f"o{n}")
            paid, back = r.randint(1, 10**6), 0
            mine = [("payment.succeeded", *who, paid, None)]
            while paid > back and r.random() < 0.5:
                part = r.randint(1, paid - back)
                back += part
                mine.append(("refund.succeeded", *who, part, None)
                            if provider == "wechat" else
                            ("refund.succeeded", *who, None,
                             json.dumps({"refunded_total": back})))
            # Notifications overtake each other, and Alipay may tell the same
            # sum under a second number.
            tail = mine[1:]
            r.shuffle(tail)
            if provider == "alipay" and tail and r.random() < 0.5:
                tail.append(r.choice(tail))
            events += [mine[0], *tail]
            code = f"assets:{provider}:{account}"
            assets[code] = assets.get(code, 0) + paid - back
            sales[tenant] = sales.get(tenant, 0) + paid
            refunds[tenant] = refunds.get(tenant, 0) + back
        spread = sorted(range(len(events)), key=lambda i: i + r.random() * 60)
        events = [events[i] for i in spread]
        storm = Storm(
            self, events,
            "SELECT ledger.post(%s), paynotify.ack(%s)",
            "SELECT ledger.post(seq), paynotify.ack(token)"
            " FROM paynotify.claim('app', %s, '20 s')", seed=5)

        def done():
            count, last = self.sql("SELECT count(*), max(seq)"
                                   " FROM paynotify.event_log")[0]
            return (count >= storm.total and self.mark() >= last
                    and set(self.states().values()) <= {"done"})

        storm.run(done)
        # Some are handed off again by hand: they have been posted.
        seqs = [s for (s,) in self.sql("SELECT seq FROM paynotify.event_log"
                                       " ORDER BY random() LIMIT 200")]
        self.sql("SELECT paynotify.redeliver('app', %s, 'again', 'me')", [seqs])
        self.assertEqual(set(self.sql(
            "SELECT ledger.post(seq) FROM paynotify.claim('app', 1000,"
            " '1 h')")), {(False,)})
        books = self.books()
        for code, sum_ in assets.items():
            self.assertEqual(books[code], sum_, code)
        for tenant, sum_ in sales.items():
            self.assertEqual(books[f"income:{tenant}:sales"], sum_)
        for tenant, sum_ in refunds.items():
            self.assertEqual(books[f"refunds:{tenant}"], sum_)
        self.assertEqual(self.sql("SELECT sum(debit) - sum(credit)"
                                  " FROM ledger.postings"), [(0,)])
        self.assertGreater(storm.kills, 5)


if __name__ == "__main__":
    unittest.main()
