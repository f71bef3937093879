"""claim, ack, nack: leases, and who may finish what."""
import unittest

from support import LOST, REFUSED, UNKNOWN, Case


class Claim(Case):
    def setUp(self):
        super().setUp()
        self.register()

    def test_open_transactions_claim_side_by_side(self):
        """Workers that keep their transaction open would stand in a queue, or
        get the same event."""
        seqs = self.events(6)
        got = {}
        workers = [self.session() for _ in range(3)]
        for w in workers:
            w.run("BEGIN")
            mine = self.claim(w, most=2)
            self.assertEqual(len(mine), 2)
            self.assertFalse(mine.keys() & got.keys())
            got.update(mine)
            for token in mine.values():
                self.ack(token, w)
        self.assertEqual(sorted(got), seqs)
        for w in reversed(workers):
            w.run("COMMIT")
        self.assertEqual(self.claim(), {})      # the mark passes
        self.pass_time(1)
        self.tend()
        self.assertEqual((self.states(), self.mark()), ({}, seqs[-1]))

    def test_a_claim_that_is_rolled_back_gives_all_back(self):
        """A worker that fails would take its events with it."""
        seqs = self.events(3)
        w = self.session()
        w.run("BEGIN")
        self.assertEqual(list(self.claim(w)), seqs)
        self.assertEqual(self.claim(), {})
        w.run("ROLLBACK")
        self.assertEqual(list(self.claim()), seqs)

    def test_a_claim_in_a_savepoint_is_rolled_back(self):
        """The locks of a savepoint outlive it, or its mark does."""
        seqs = self.events(4)
        w = self.session()
        w.run("BEGIN")
        first = self.claim(w, most=1)
        w.run("SAVEPOINT s")
        self.claim(w, most=2)
        w.run("ROLLBACK TO s")
        self.assertEqual(list(self.claim()), seqs[1:])
        self.ack(first[seqs[0]], w)
        w.run("COMMIT")

    def test_two_claims_in_one_transaction(self):
        """The second would find its own locks free and claim twice."""
        seqs = self.events(4)
        w = self.session()
        w.run("BEGIN")
        a, b = self.claim(w, most=2), self.claim(w, most=5)
        self.assertEqual([*a, *b], seqs)
        w.run("SELECT paynotify.ack_all(%s::uuid[])",
              [[*a.values(), *b.values()]])
        w.run("COMMIT")
        self.assertEqual(self.claim(), {})

    def test_claim_and_ack_in_one_statement(self):
        """The shortest way to use it must not be a wrong one."""
        self.events(3)
        self.sql("SELECT paynotify.ack(token)"
                 " FROM paynotify.claim('app', 10, '1 min')")
        self.assertEqual((self.claim(), self.states()), ({}, {}))

    def test_rows_are_the_event(self):
        """An application that pulls would see other events than one that
        reads the view."""
        self.event(order="o1")
        claimed = self.sql("SELECT * FROM paynotify.claim('app', 1, '1 h')")[0]
        self.assertEqual(
            repr(claimed[:-1]),
            repr(self.sql("SELECT * FROM paynotify.events")[0]))
        names = [c.name for c in self.admin.execute(
            "SELECT * FROM paynotify.claim('app', 1, '1 h')").description]
        view = [c.name for c in self.admin.execute(
            "SELECT * FROM paynotify.events").description]
        self.assertEqual(names, [*view, "token"])

    def test_ack_commits_with_the_work_or_not_at_all(self):
        """Work without `done` is done twice; `done` without work is lost."""
        seq = self.event()
        for end, work in (("ROLLBACK", 0), ("COMMIT", 1)):
            token = self.claim()[seq]
            w = self.session()
            w.run("BEGIN")
            w.run("INSERT INTO public.work VALUES (%s, 'w')", [seq])
            self.ack(token, w)
            w.run(end)
            self.assertEqual(self.value("SELECT count(*) FROM work"), work)
            self.pass_time(7200)
            self.tend()
        self.assertEqual((self.claim(), self.states()), ({}, {}))

    def test_a_failed_ack_takes_the_work_with_it(self):
        """Whoever lost the lease and commits anyway does the work twice."""
        seq = self.event()
        token = self.claim(lease="1 min")[seq]
        w = self.session()
        w.run("BEGIN")
        w.run("INSERT INTO public.work VALUES (%s, 'w')", [seq])
        self.pass_time(61)
        error = self.refused(LOST, self.ack, token, w)
        self.assertIn(f"the lease of event {seq} was lost", str(error))
        w.run("COMMIT")     # of a failed transaction: a rollback
        self.assertEqual(self.value("SELECT count(*) FROM work"), 0)

    def test_ack_of_a_made_up_token_says_which(self):
        """The number in it is of no event, and leads whoever looks astray."""
        made_up = "e2cf0000-1111-4222-8333-444444444444"
        error = self.refused(LOST, self.ack, made_up)
        self.assertIn(f"the lease of token {made_up} was lost", str(error))

    def test_ack_raises_after_the_lease_ended(self):
        """The event may be at another worker any moment."""
        seq = self.event()
        token = self.claim(lease="1 min")[seq]
        self.pass_time(60.001)
        self.refused(LOST, self.ack, token)
        self.refused(LOST, self.nack, token)

    def test_ack_holds_to_the_end_of_the_lease(self):
        """A lease that ends early makes honest workers lose."""
        seq = self.event()
        token = self.claim(lease="1 hour")[seq]
        self.pass_time(3500)
        self.tend()
        self.ack(token)

    def test_ack_raises_after_a_take_over(self):
        """Two workers would commit the same event."""
        seq = self.event()
        old = self.claim(lease="1 min")[seq]
        self.pass_time(61)
        new = self.claim(lease="1 hour")[seq]
        self.assertNotEqual(old, new)
        self.refused(LOST, self.ack, old)
        self.ack(new)
        self.refused(LOST, self.ack, old)

    def test_ack_raises_the_second_time(self):
        """A loop that acks twice would believe to have done two events."""
        seq = self.event()
        token = self.claim()[seq]
        self.ack(token)
        self.refused(LOST, self.ack, token)
        token = self.claim_next()
        self.refused(LOST, self.sql, "SELECT paynotify.ack_all(%s)",
                     [[token, token]])
        self.ack(token)     # all of that was rolled back

    def claim_next(self):
        seq = self.event()
        return self.claim()[seq]

    def test_ack_raises_after_nack(self):
        """An event that was given back is another's."""
        seq = self.event()
        token = self.claim()[seq]
        self.nack(token)
        self.refused(LOST, self.ack, token)

    def test_ack_raises_for_what_is_no_token(self):
        """NULL or a foreign id would pass as done."""
        self.event()
        self.refused("22004", self.sql, "SELECT paynotify.ack(NULL)")
        self.refused("22004", self.sql,
                     "SELECT paynotify.ack_all(ARRAY[NULL]::uuid[])")
        self.refused(LOST, self.sql,
                     "SELECT paynotify.ack(gen_random_uuid())")
        token = str(next(iter(self.claim().values())))
        guess = token[:-1] + ("0" if token[-1] != "0" else "1")
        self.refused(LOST, self.ack, guess)
        self.sql("SELECT paynotify.ack_all('{}')")

    def test_ack_in_repeatable_read(self):
        """An old snapshot still shows the lease: it must not count."""
        for lost in ("expired", "taken over", "acked"):
            with self.subTest(lost):
                seq = self.event()
                token = self.claim(lease="1 min")[seq]
                w = self.session()
                w.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
                w.run("INSERT INTO work VALUES (%s, 'old')", [seq])
                if lost == "acked":
                    self.ack(token)
                else:
                    self.pass_time(61)
                if lost == "taken over":
                    self.ack(self.claim()[seq])
                # 40001 where the row was changed under the snapshot.
                self.refused([LOST, "40001"], self.ack, token, w)
                w.run("ROLLBACK")
                self.claim_all()

    def claim_all(self):
        while got := self.claim():
            self.done(*got.values())

    def test_ack_works_in_repeatable_read(self):
        """An application with that level could not use it at all."""
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            seq = self.event()
            token = self.claim()[seq]
            w = self.session()
            w.run(f"BEGIN ISOLATION LEVEL {level}")
            self.ack(token, w)
            w.run("COMMIT")
            self.assertEqual(self.claim(), {})

    def test_claim_in_repeatable_read_is_refused(self):
        """Its snapshot is older than its locks: it would claim twice."""
        self.event()
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            w = self.session()
            w.run(f"BEGIN ISOLATION LEVEL {level}")
            error = self.refused("25001", self.claim, w)
            self.assertIn("READ COMMITTED", str(error))

    def test_nack_comes_again_when_it_said(self):
        """Too early is a busy loop, never is a loss."""
        seq = self.event()
        self.nack(self.claim()[seq], "10 minutes", "no stock")
        self.assertEqual(self.value("SELECT reason FROM paynotify.deliveries"),
                         "no stock")
        self.pass_time(590)
        self.assertEqual(self.claim(), {})
        self.pass_time(11)
        self.ack(self.claim()[seq])
        self.assertEqual(self.claim(), {})

    def test_nack_takes_part_in_the_transaction(self):
        """A nack that is rolled back would still give the event away."""
        seq = self.event()
        token = self.claim()[seq]
        w = self.session()
        w.run("BEGIN")
        self.nack(token, "0", session=w)
        w.run("ROLLBACK")
        self.assertEqual(self.claim(), {})
        self.ack(token)

    def test_nack_by_default_and_backwards(self):
        """A delay that is missing or negative must not lose the event."""
        seq = self.event()
        self.sql("SELECT paynotify.nack(%s)", [self.claim()[seq]])
        self.pass_time(31)
        self.nack(self.claim()[seq], "-1 hour")
        token = self.claim()[seq]
        # A list could not show when it comes again, or not all of the reason.
        self.refused("22023", self.nack, token, "10000 years")
        self.nack(token, "0", "\u00e9" * 100_000)
        self.assertEqual(list(self.claim()), [seq])
        self.assertEqual(self.value("SELECT reason FROM paynotify.deliveries"),
                         "\u00e9" * 1000)

    def test_a_lease_that_ended_is_claimed_again_without_a_janitor(self):
        """A worker that died would keep its events where nobody tends."""
        seqs = self.events(3)
        self.claim(lease="1 min")
        self.pass_time(61)
        self.assertEqual(list(self.claim()), seqs)

    def test_a_busy_consumer_gets_back_what_expired(self):
        """As long as there is something new, old leases would never be
        looked for."""
        lost = self.event()
        self.claim(lease="1 min")
        self.pass_time(61)
        self.events(50)
        self.assertIn(lost, {**self.claim(most=20), **self.claim(most=20)})

    def test_a_claim_holds_no_more_than_it_takes(self):
        """A claim that frees all leases that have ended, in a transaction
        that stays open, would keep them from everybody."""
        seqs = self.events(20)
        self.claim(most=20, lease="1 min")
        self.pass_time(61)
        slow = self.session()
        slow.run("BEGIN")
        got = self.claim(slow, most=2)
        self.assertEqual(len(got), 2)
        rest = self.claim(most=20)
        self.assertEqual(sorted([*got, *rest]), seqs)

    def test_an_open_ack_outlives_its_lease(self):
        """The lease ends between ack and commit: another worker must not get
        the event, or both commit."""
        seq = self.event()
        token = self.claim(lease="1 min")[seq]
        w = self.session()
        w.run("BEGIN")
        self.ack(token, w)
        self.pass_time(61)
        self.tend()
        self.assertEqual(self.claim(), {})
        w.run("COMMIT")
        self.pass_time(2)
        self.tend()
        self.assertEqual((self.claim(), self.states()), ({}, {}))

    def test_an_open_ack_that_is_rolled_back_late(self):
        """The event would be gone with the worker."""
        seq = self.event()
        token = self.claim(lease="1 min")[seq]
        w = self.session()
        w.run("BEGIN")
        self.ack(token, w)
        self.pass_time(61)
        self.tend()
        w.run("ROLLBACK")
        self.assertEqual(list(self.claim()), [seq])

    def test_nothing_is_left_of_what_is_done(self):
        """Rows, claims and marks that nobody removes fill the disk in a
        year."""
        for n in range(30):
            seqs = self.events(4)
            w = self.session() if n < 3 else w
            w.run("BEGIN")
            mine = self.claim(w, most=2)
            others = self.claim(most=2)
            self.done(*others.values())     # above the mark: a row `done`
            w.run("SELECT paynotify.ack_all(%s::uuid[])", [[*mine.values()]])
            w.run("COMMIT")
            self.assertEqual(sorted([*mine, *others]), seqs)
        self.assertEqual(self.claim(), {})      # the mark passes
        self.pass_time(3601)
        self.tend()
        counts = [self.value(f"SELECT count(*) FROM paynotify.{t}")
                  for t in ("deliveries", "claims", "consumer_marks")]
        self.assertEqual(counts[:2], [0, 0])
        self.assertLessEqual(counts[2], 2)

    def test_a_done_row_that_commits_after_the_mark_goes_too(self):
        """Acknowledged before the mark passed, committed after the cleaning:
        the row would stay for ever."""
        first, second = self.events(2)
        holder = self.session()
        holder.run("BEGIN")
        held = self.claim(holder, most=1)       # keeps the mark back
        token = self.claim(most=1)[second]
        w = self.session()
        w.run("BEGIN")
        self.ack(token, w)                      # a row `done`, open
        self.ack(held[first], holder)
        holder.run("COMMIT")
        self.event()
        self.done(*self.claim().values())       # the mark passes
        self.pass_time(2)
        self.tend()
        w.run("COMMIT")
        self.pass_time(3601)
        self.tend()
        self.assertEqual(self.states(), {})

    def test_many_more_than_one_window(self):
        """The claim looks at so many at a time: none may fall between."""
        self.sql("INSERT INTO paynotify.event_log (received_at, id,"
                 " receipt_id, livemode, type, provider, tenant, key,"
                 " request_hash) SELECT now(), gen_random_uuid(),"
                 " gen_random_uuid(), true, CASE WHEN i % 1000 = 0 THEN 'rare'"
                 " ELSE 'often' END, 'alipay', 'shop1', i::text, ''"
                 " FROM generate_series(1, 20000) i")
        self.register("rare", None, ["rare"])
        seen = []
        while got := self.claim(consumer="rare", most=3):
            seen += got
            self.done(*got.values())
        self.assertEqual(seen, list(range(1000, 20001, 1000)))
        seen = []
        while got := self.claim(most=997):
            seen += got
            self.done(*got.values())
        self.assertEqual(seen, list(range(1, 20001)))

    def test_wrong_arguments(self):
        """A typing error must say what is wrong, and claim nothing."""
        self.event()
        for most in (0, -1, None):
            self.refused("22023", self.claim, None, "app", most)
        for lease in ("0", "-1 s", None, "10000 years"):
            self.refused("22023", self.claim, None, "app", 1, lease)
        error = self.refused(UNKNOWN, self.claim, None, "nobody")
        self.assertIn("register_consumer('nobody')", str(error))
        self.refused(UNKNOWN, self.claim, None, None)
        self.sql("SELECT paynotify.put_endpoint('hook', NULL, NULL, 'http://x')")
        self.refused(REFUSED, self.claim, None, "hook")
        self.assertEqual(self.states(), {})

    def test_a_paused_consumer_gets_nothing_and_loses_nothing(self):
        """Pausing would drop what comes meanwhile, or what is leased."""
        first = self.event()
        token = self.claim()[first]
        for state in ("paused", "disabled"):
            self.sql("SELECT paynotify.set_consumer_state('app', %s, 'w', 'a')",
                     [state])
            self.event()
            self.assertEqual(self.claim(), {})
        self.ack(token)
        self.sql("SELECT paynotify.set_consumer_state('app', 'active', '', 'a')")
        self.assertEqual(len(self.claim()), 2)

    def test_consumers_do_not_meet(self):
        """One consumer's ack would be another's loss."""
        seq = self.event()
        self.register("other")
        a, b = self.claim()[seq], self.claim(consumer="other")[seq]
        self.ack(a)
        self.assertEqual(self.states("other"), {seq: "leased"})
        self.ack(b)


if __name__ == "__main__":
    unittest.main()
