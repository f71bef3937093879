"""register_consumer: who gets what, and from when on."""
import unittest

from support import REFUSED, Case


class Register(Case):
    def all_of(self, consumer):
        seen = []
        while got := self.claim(consumer=consumer):
            seen += got
            self.done(*got.values())
        return seen

    def test_from_the_beginning_by_default(self):
        """An application that registers late would miss its past."""
        seqs = self.events(3)
        self.register("late")
        self.assertEqual(self.all_of("late"), seqs)

    def test_from_a_date_across_months(self):
        """A start in history that is off by one, or by the hour in which
        numbers and times cross, misses or repeats."""
        base = self.value("SELECT date_trunc('month', now())")
        seqs = {}
        for minutes in sorted([*range(-3000, 3001, 50), -1, 1]):
            at = self.value("SELECT %s + %s * interval '1 min'",
                            [base, minutes])
            seqs[minutes] = self.event(at=at)
        # Two receivers whose clocks differ: a number later, a time earlier.
        seqs[0.5] = self.event(at=base)
        for start in (-3000, -2999, -1, 0, 1, 2, 50, 2999, 3000, 3001):
            self.sql("DELETE FROM paynotify.claims;"
                     "DELETE FROM paynotify.deliveries;"
                     "DELETE FROM paynotify.consumer_marks;"
                     "DELETE FROM paynotify.consumers")
            self.register("dated", None, None, self.value(
                "SELECT %s + %s * interval '1 min'", [base, start]))
            wanted = [s for m, s in seqs.items()
                      if (m if m != 0.5 else 0) >= start]
            self.assertEqual(self.all_of("dated"), wanted, start)

    def test_the_search_for_a_date_begins_close_to_it(self):
        """A consumer that starts now would read through all history first."""
        start = self.value("SELECT now()")
        self.sql("INSERT INTO paynotify.event_log (received_at, id,"
                 " receipt_id, livemode, type, provider, tenant, key,"
                 f" request_hash) SELECT '{start}'::timestamptz"
                 " - interval '5 hours'"
                 " + i * interval '1 s', gen_random_uuid(),"
                 " gen_random_uuid(), true, 't', 'alipay', 'shop1', i::text,"
                 " '' FROM generate_series(1, 18000) i")
        self.sql("DELETE FROM paynotify.event_log WHERE seq BETWEEN 9000 AND"
                 " 12000 OR seq % 7 = 0")
        self.register("now", None, None, start)
        mark = self.mark("now")
        self.assertLess(14390, mark)
        self.assertLess(mark, 14401)

    def test_filters(self):
        """A wildcard in a name would let strangers in, or the own ones not."""
        types = ["payment.succeeded", "payment.closed", "payments.x",
                 "refund.succeeded", "a_b.c", "axb.c", "p%.x", "pay.x",
                 "alipay.trade_status_sync", "back\\slash", "Payment.x",
                 "payment.", "payment"]
        seq = {t: self.event(type=t) for t in types}
        for n, (wanted, found) in enumerate([
                (["payment.*"], ["payment.succeeded", "payment.closed",
                                 "payment."]),
                (["payment.succeeded"], ["payment.succeeded"]),
                (["a_b.c"], ["a_b.c"]),
                (["a_b.*"], ["a_b.c"]),
                (["p%.x"], ["p%.x"]),
                (["p%.*", "refund.*"], ["refund.succeeded", "p%.x"]),
                (["back\\slash"], ["back\\slash"]),
                (["alipay.*"], ["alipay.trade_status_sync"]),
                (["*"], types)]):
            self.register(f"f{n}", None, wanted)
            self.assertEqual(self.all_of(f"f{n}"),
                             sorted(seq[t] for t in found), wanted)

    def test_tenants(self):
        """A merchant's events at another merchant."""
        seq = {t: self.event(tenant=t) for t in ("shop1", "shop2", "shop_", "s")}
        self.register("two", ["shop2", "s"])
        self.assertEqual(self.all_of("two"), [seq["shop2"], seq["s"]])
        self.register("like", ["shop_"], ["payment.*"])
        self.assertEqual(self.all_of("like"), [seq["shop_"]])

    def test_registering_again_keeps_the_place(self):
        """Registering at each start would begin again each time."""
        first = self.event()
        self.register()
        self.ack(self.claim()[first])
        second = self.event()
        self.register()
        self.register("app", None, None, self.value("SELECT now()"))
        self.assertEqual(self.all_of("app"), [second])

    def test_registering_again_changes_the_filter_from_there_on(self):
        """A filter that was widened would never take effect, or for the
        past too."""
        self.register("app", ["shop1"], ["refund.*"])
        self.event()
        self.event(tenant="shop2", type="refund.x")
        self.assertEqual(self.claim(), {})
        self.register("app") # as it starts again: no change
        self.event(tenant="shop2")
        self.assertEqual(self.claim(), {})
        self.register("app", ["*"], ["*"])
        third = self.event(tenant="shop2")
        self.assertEqual(self.all_of("app"), [third])
        self.register("app", None, ["refund.*"])
        self.event()
        self.assertEqual(self.claim(), {})

    def test_what_was_leased_comes_back_under_a_new_filter(self):
        """An event that was handed off would be lost by a change of mind."""
        seq = self.event()
        self.register()
        self.claim(lease="1 min")
        self.register("app", None, ["refund.*"])
        self.pass_time(61)
        self.assertEqual(list(self.claim()), [seq])

    def test_two_register_at_the_same_time(self):
        """The second worker at the start would fail."""
        self.event()
        a, b = self.session(), self.session()
        a.run("BEGIN")
        a.run("SELECT paynotify.register_consumer('app')")
        waits = b.start("SELECT paynotify.register_consumer('app')")
        self.assertFalse(waits.settle())
        a.run("COMMIT")
        waits.result()
        self.assertEqual(len(self.claim()), 1)

    def test_wrong_arguments(self):
        """A typing error must not make a consumer that gets nothing."""
        for name in (None, "", "a b", "a/b", "x" * 65, "ü", "a\n"):
            self.refused("22023", self.register, name)
        self.refused("22023", self.register, "a", [])
        self.refused("22023", self.register, "a", None, [])
        self.refused("22023", self.register, "a", [None])
        self.refused("22023", self.register, "a", None, ["x", None])
        self.refused("22023", self.register, "a", None, None, "infinity")
        self.refused("22023", self.register, "a", None, None, None)
        self.assertEqual(self.value("SELECT count(*) FROM paynotify.consumers"),
                         0)

    def test_names_of_endpoints(self):
        """A consumer that takes the events of an endpoint, or the other way
        round."""
        put = "SELECT paynotify.put_endpoint(%s, NULL, NULL, 'http://x')"
        self.assertTrue(self.value(put, ["hook"]))
        self.refused(REFUSED, self.register, "hook")
        self.register()
        self.assertFalse(self.value(put, ["app"]))
        self.assertEqual(self.value("SELECT count(*) FROM paynotify.endpoints"),
                         1)


if __name__ == "__main__":
    unittest.main()
