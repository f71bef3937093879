"""Events of one order, one after the other; other orders go on."""
import unittest

from support import LOST, REFUSED, Case


class Order(Case):
    def setUp(self):
        super().setUp()
        self.register()
        self.payment = self.event("o1")
        self.refund = self.event("o1", type="refund.succeeded")
        self.other = self.event("o2")

    def operate(self, what, seq):
        self.sql(f"SELECT paynotify.{what}('app', ARRAY[%s]::bigint[],"
                 " 'why', 'me')", [seq])

    def test_payment_first_then_refund(self):
        """A refund at the ledger before its payment."""
        got = self.claim()
        self.assertEqual(list(got), [self.payment, self.other])
        self.assertEqual(self.claim(), {})
        self.ack(got[self.payment])
        self.assertEqual(list(self.claim()), [self.refund])

    def test_not_before_the_ack_commits(self):
        """The refund would be handed off beside a payment that rolls back."""
        token = self.claim()[self.payment]
        w = self.session()
        w.run("BEGIN")
        self.ack(token, w)
        self.assertEqual(self.claim(), {})
        w.run("COMMIT")
        self.assertEqual(list(self.claim()), [self.refund])

    def test_a_worker_may_do_a_whole_order_in_one_transaction(self):
        """What it acked itself would block its own next claim."""
        w = self.session()
        w.run("BEGIN")
        seen = []
        while got := self.claim(w):
            seen += got
            w.run("SELECT paynotify.ack_all(%s::uuid[])", [[*got.values()]])
        w.run("COMMIT")
        self.assertEqual(seen, [self.payment, self.other, self.refund])

    def test_a_nacked_payment_holds_back_its_refund_only(self):
        """Order broken by a retry, or all orders stopped by one."""
        got = self.claim()
        self.nack(got[self.payment], "1 min")
        self.ack(got[self.other])
        more = self.event("o3")
        self.assertEqual(list(self.claim()), [more])
        self.pass_time(61)
        again = self.claim()
        self.assertEqual(list(again), [self.payment])
        self.ack(again[self.payment])
        self.assertEqual(list(self.claim()), [self.refund])

    def test_an_expired_payment_holds_back_its_refund(self):
        """A worker that died would let the refund overtake."""
        self.claim(lease="1 min")
        self.pass_time(61)
        again = self.claim(lease="1 hour")
        self.assertEqual(list(again), [self.payment, self.other])
        self.ack(again[self.payment])
        self.assertEqual(list(self.claim()), [self.refund])

    def test_skipped(self):
        """A payment that is given up would hold its order for ever."""
        token = self.claim()[self.payment]
        self.operate("skip", self.payment)
        self.refused(LOST, self.ack, token)
        self.assertEqual(list(self.claim()), [self.refund])

    def test_dead(self):
        """The same for one that the deliverer has given up."""
        token = self.claim()[self.payment]
        self.sql("SELECT * FROM paynotify.settle(ARRAY[%s]::uuid[],"
                 " ARRAY['dead'], ARRAY[NULL::interval], ARRAY['gone'])",
                 [token])
        self.assertEqual(list(self.claim()), [self.refund])
        self.operate("redeliver", self.payment)
        self.assertEqual(list(self.claim()), [self.payment])
        self.assertEqual(self.claim(), {})

    def test_redelivered_events_are_out_of_order_by_will(self):
        """A redelivery of what is done would wait, or make others wait."""
        got = self.claim()
        self.done(*got.values())
        self.ack(self.claim()[self.refund])
        self.operate("redeliver", self.payment)
        self.operate("redeliver", self.refund)
        new = self.event("o1")
        again = self.claim()
        self.assertEqual(list(again), [self.payment, self.refund, new])
        self.done(*again.values())
        self.assertEqual(self.claim(), {})

    def test_redeliver_is_refused_where_it_would_break_the_order(self):
        """Two holders of one event, or a refund before its payment."""
        self.claim()
        for seq in (self.payment, self.refund):
            self.refused(REFUSED, self.operate, "redeliver", seq)
        late = self.event("o9")
        self.refused(REFUSED, self.operate, "redeliver", late)

    def test_an_event_that_is_only_ever_claimed_in_vain(self):
        """One that fails in the transaction that claimed it leaves no row, and
        would hold its consumer up for ever."""
        late = self.event("o9")
        last = self.event("o8")
        a = self.session()
        a.run("BEGIN")
        a.run("SELECT * FROM paynotify.claim('app', 10, '1 min')")
        self.refused(REFUSED, self.operate, "skip", late)
        a.run("ROLLBACK")
        self.operate("skip", late)
        self.refused(REFUSED, self.operate, "skip", late)
        got = self.claim()
        self.assertNotIn(late, got)
        self.assertIn(last, got)

    def test_events_of_three_in_line(self):
        """The wake-up would free more than the next."""
        third = self.event("o1", type="refund.succeeded")
        self.ack(self.claim()[self.payment])
        got = self.claim()
        self.assertEqual(list(got), [self.refund])
        self.ack(got[self.refund])
        self.assertEqual(list(self.claim()), [third])

    def test_a_waiting_one_that_is_skipped(self):
        """Those behind it would wait for a row that is gone."""
        third = self.event("o1")
        token = self.claim()[self.payment]
        self.operate("skip", self.refund)
        self.assertEqual(self.claim(), {})
        self.ack(token)
        self.assertEqual(list(self.claim()), [third])

    def test_an_order_across_claims_of_open_transactions(self):
        """Another worker would take the refund while the payment is claimed
        in a transaction that nobody sees yet."""
        a, b = self.session(), self.session()
        a.run("BEGIN")
        b.run("BEGIN")
        got = self.claim(a, most=1)
        self.assertEqual(list(got), [self.payment])
        self.assertEqual(list(self.claim(b)), [self.other])
        b.run("COMMIT")
        self.pass_time(2)
        self.tend()
        self.assertEqual(self.claim(), {})
        a.run("ROLLBACK")
        self.assertEqual(list(self.claim()), [self.payment])

    def test_an_order_across_windows_of_one_claim(self):
        """The same, where the payment was in an earlier window: a claim that
        looks on would forget it."""
        a, b = self.session(), self.session()
        a.run("BEGIN")
        self.assertEqual(list(self.claim(a, most=1)), [self.payment])
        self.done(*self.claim().values())       # `other`
        line = [self.event("o7") for _ in range(40)]
        late = self.event("o1", type="refund.succeeded")
        last = self.event("o8")
        b.run("BEGIN")
        self.assertEqual(list(self.claim(b, most=3)), [line[0], last])
        b.run("COMMIT")
        self.pass_time(2)
        self.tend()
        self.assertEqual(self.claim(), {})
        a.run("ROLLBACK")
        self.assertEqual(list(self.claim()), [self.payment])

    def test_who_looks_on_locks_no_event_of_another_order(self):
        """A worker whose transaction stays open would keep a refund that it
        only looked at from everybody."""
        a, b = self.session(), self.session()
        self.claim()
        first = self.event("o5")
        a.run("BEGIN")
        token = self.claim(a)[first]
        second, last = self.event("o5"), self.event("o6")
        b.run("BEGIN")
        self.assertEqual(list(self.claim(b)), [last])
        self.ack(token, a)
        a.run("COMMIT")
        self.assertEqual(list(self.claim()), [second])  # b is open
        b.run("COMMIT")

    def test_wake_ups_that_cross(self):
        """ack cannot see the row that starts to wait in a transaction that is
        still open: nobody would wake it."""
        token = self.claim()[self.payment]
        for free in ("tend", "claim"):
            a, b = self.session(), self.session()
            a.run("BEGIN")
            self.ack(token, a)
            late = self.event("o1")
            b.run("BEGIN")
            self.assertEqual(self.claim(b), {})     # `late` waits
            a.run("COMMIT")
            b.run("COMMIT")
            self.pass_time(2)
            if free == "tend":
                self.tend()
            got = self.claim()
            self.assertIn(len(got), (1, 2))
            if self.refund in got:
                self.ack(got[self.refund])
                got = self.claim()
            self.assertEqual(list(got), [late])
            token = got[late]

    def test_a_wake_up_beside_one_that_is_not_committed(self):
        """Two would be freed at once: the first by a sweep whose transaction
        is open, the next by whoever finds the first locked."""
        first = self.event("o5")
        token = self.claim()[first]
        a, b, c = self.session(), self.session(), self.session()
        a.run("BEGIN")
        self.ack(token, a)
        second, third = self.event("o5"), self.event("o5")
        b.run("BEGIN")
        self.assertEqual(self.claim(b), {})     # both wait, nobody wakes them
        a.run("COMMIT")
        b.run("COMMIT")
        self.pass_time(2)
        c.run("BEGIN")
        c.run("SELECT paynotify.tend_consumers()")
        self.sql("SELECT paynotify.wake(ARRAY[id], ARRAY[paynotify.order_hash("
                 "'shop1', '2088000000000001', 'o5')], clock_timestamp())"
                 " FROM paynotify.consumers")
        c.run("COMMIT")
        self.assertEqual([self.states()[s] for s in (second, third)],
                         ["retry", "waiting"])
        self.assertEqual(list(self.claim()), [second])

    def test_events_without_an_order_go_side_by_side(self):
        """Account notices would stand in one line."""
        seqs = self.events(3, order=None)
        self.assertEqual(list(self.claim())[-3:], seqs)

    def test_orders_of_other_accounts_and_tenants(self):
        """Numbers are unique within an account only: shops would wait for
        each other."""
        seqs = [self.event("o1", tenant="shop2"),
                self.event("o1", account="2088000000000002"),
                self.event("o1", account=None)]
        self.assertEqual(list(self.claim()), [self.payment, self.other, *seqs])

    def test_a_long_line_of_one_order(self):
        """Waiting ones would be counted as claimed, and other orders starve."""
        line = [self.event("o7") for _ in range(60)]
        last = self.event("o8")
        got = self.claim(most=5)
        self.assertEqual(list(got), [self.payment, self.other, line[0], last])
        seen = []
        while got:
            seen += [s for s in got if s in line]
            self.done(*got.values())
            got = self.claim(most=5)
        self.assertEqual(seen, line)


if __name__ == "__main__":
    unittest.main()
