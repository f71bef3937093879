"""Events whose numbers are lower than those of events that are visible: their
transactions have not committed yet, or never will."""
import threading
import time
import unittest

from support import WAIT_SECONDS_MAX, Case, connect

HOLD = 4711                 # the advisory lock that stops a patched function


class OpenIngests(Case):
    def setUp(self):
        super().setUp()
        self.free = []          # sessions to use again
        self.register()

    def begin_event(self, **more):
        """A transaction that has recorded an event and stays open."""
        s = self.free.pop() if self.free else self.session()
        s.run("BEGIN")
        return s, self.event(session=s, **more)



class Gaps(OpenIngests):
    def test_a_claim_does_not_pass_an_open_ingest(self):
        """An event would be missed for ever once the mark has passed it."""
        s, low = self.begin_event()
        high = self.event()
        self.assertEqual(self.claim(), {})
        s.run("COMMIT")
        self.assertEqual(list(self.claim()), [low, high])

    def test_nor_one_whose_xid_is_higher_than_all_that_have_ended(self):
        """A snapshot does not list what runs but began after the newest
        transaction that has ended: who looks only there takes the gap for
        one that stays."""
        first = self.session()
        first.run("BEGIN")
        first.run("SELECT pg_current_xact_id()")  # the lower xid
        open_, low = self.begin_event()           # the higher xid
        high = self.event(session=first)
        first.run("COMMIT")
        self.assertEqual(self.claim(), {})
        open_.run("COMMIT")
        self.assertEqual(list(self.claim()), [low, high])

    def test_what_is_before_the_gap_is_claimed(self):
        """One slow ingest would stop the whole hand-off."""
        before = self.events(3)
        s, low = self.begin_event()
        after = self.events(3)
        self.assertEqual(list(self.claim()), before)
        s.run("COMMIT")
        self.assertEqual(list(self.claim()), [low, *after])

    def test_a_rolled_back_ingest_is_passed(self):
        """A number that was burnt would stop the hand-off for ever."""
        s, _ = self.begin_event()
        high = self.event()
        self.assertEqual(self.claim(), {})
        s.run("ROLLBACK")
        self.assertEqual(list(self.claim()), [high])

    def test_several_gaps_are_passed_one_by_one(self):
        """Only the first gap would be watched, and a later one passed."""
        first, a = self.begin_event()
        b = self.event()
        second, c = self.begin_event()
        d = self.event()
        third, _ = self.begin_event()
        f = self.event()
        self.assertEqual(self.claim(), {})
        first.run("COMMIT")
        self.assertEqual(list(self.claim()), [a, b])
        third.run("ROLLBACK")
        self.assertEqual(self.claim(), {})
        second.run("COMMIT")
        self.assertEqual(list(self.claim()), [c, d, f])

    def test_gaps_committed_from_behind(self):
        """A gap that closes behind one that is open would be taken for the
        end of all gaps."""
        first, a = self.begin_event()
        second, b = self.begin_event()
        c = self.event()
        second.run("COMMIT")
        self.assertEqual(self.claim(), {})
        first.run("COMMIT")
        self.assertEqual(list(self.claim()), [a, b, c])

    def test_a_writer_of_something_else_holds_nothing_up(self):
        """A batch job of the application, a long report or a restore would
        stop the hand-off."""
        for database in (self.database, "postgres"):
            s = self.session()
            s.run("BEGIN")
            s.run("INSERT INTO public.work VALUES (1, 'long')")
            s.run("SELECT count(*) FROM paynotify.event_log")
        other = connect("postgres", autocommit=False)
        other.execute("CREATE TEMP TABLE t (x int)")
        rolled_back, _ = self.begin_event()
        high = self.event()
        rolled_back.run("ROLLBACK")
        self.assertEqual(list(self.claim()), [high])
        other.close()

    def test_a_burnt_number_is_passed_while_ingest_never_rests(self):
        """With several receivers there is always one in a transaction: a
        number that is missing for good would stop the hand-off until the
        night."""
        burnt, _ = self.begin_event()
        high = self.event()
        ended = threading.Event()

        def record():
            one, _ = self.begin_event()
            began.set()
            while not ended.is_set():   # never a moment with none open
                other, _ = self.begin_event()
                one.run("COMMIT")
                self.free.append(one)
                one = other

        began = threading.Event()
        ingest = threading.Thread(target=record)
        ingest.start()
        began.wait(WAIT_SECONDS_MAX)
        burnt.run("ROLLBACK")
        claimer = self.session()
        found = {}
        try:
            until = time.monotonic() + WAIT_SECONDS_MAX
            while not found and time.monotonic() < until:
                found = self.claim(claimer)
        finally:
            ended.set()
            ingest.join()
        self.assertEqual(list(found)[:1], [high])

    def test_registration_while_ingests_are_open_misses_nothing(self):
        """What commits after the registration with a lower number than what
        was visible then would never be claimed."""
        s, low = self.begin_event()
        high = self.event()
        self.register("late")
        s.run("COMMIT")
        self.assertEqual(list(self.claim(consumer="late")), [low, high])

    def test_registration_for_a_date_beside_an_open_ingest(self):
        """The search for the first number of a date would pass numbers that
        are not visible yet."""
        old = self.value("SELECT now() - interval '1 day'")
        start = self.value("SELECT now()")
        for n in range(1, 20):      # wherever the halving looks
            with self.subTest(old=n):
                self.event(at=old)
                s, low = self.begin_event()
                high = self.event()
                name = f"dated{n}"
                self.register(name, None, None, start)
                s.run("COMMIT")
                self.free.append(s)
                self.assertEqual(list(self.claim(consumer=name))[-2:],
                                 [low, high])
                self.sql("UPDATE paynotify.event_log SET received_at = %s",
                         [old])

    def test_registration_for_now_beside_an_open_ingest(self):
        """The same for `now`: what commits later was received earlier, and is
        not wanted; what is recorded later is."""
        s, _ = self.begin_event()
        self.event()
        self.register("now", None, None, self.value("SELECT now()"))
        s.run("COMMIT")
        after = self.events(2)
        self.assertEqual(list(self.claim(consumer="now")), after)


class Hooked(OpenIngests):
    own_database = True

    def setUp(self):
        """Claims stop behind each look."""
        super().setUp()
        self.sql("ALTER FUNCTION paynotify.scan_window(paynotify.consumers,"
                 " bigint, bigint, integer) RENAME TO real_scan_window")
        self.sql(
            "CREATE FUNCTION paynotify.scan_window(me paynotify.consumers,"
            " after bigint, until bigint, events integer)"
            " RETURNS paynotify.claim_window LANGUAGE plpgsql AS $$"
            " DECLARE w paynotify.claim_window; BEGIN"
            " w := paynotify.real_scan_window(me, after, until, events);"
            f" PERFORM pg_advisory_lock({HOLD});"
            f" PERFORM pg_advisory_unlock({HOLD}); RETURN w; END $$")

    def claim_around(self, session):
        """What a claim gives if the session commits behind its first look."""
        self.sql(f"SELECT pg_advisory_lock({HOLD})")
        claim = self.session().start(
            "SELECT seq FROM paynotify.claim('app', 10, '1 hour')")
        self.assertFalse(claim.settle(), "the claim did not stop at the hook")
        session.run("COMMIT")
        self.sql(f"SELECT pg_advisory_unlock({HOLD})")
        return [r[0] for r in claim.result()]

    def test_a_gap_filled_between_the_two_looks(self):
        """An ingest that commits after the first look and before its end is
        noticed would be in neither: hence the second look."""
        s, low = self.begin_event()
        high = self.event()
        self.assertEqual(self.claim_around(s), [low, high])

    def test_a_gap_filled_in_part_between_the_two_looks(self):
        """The second look would see a gap in front of what has just been
        committed, and not know that it is one: what is missing there is still
        being recorded, and would be missed for ever."""
        before = self.event()
        open_, low = self.begin_event()
        s, middle = self.begin_event()
        high = self.event()
        self.assertEqual(self.claim_around(s), [before])
        open_.run("COMMIT")
        self.assertEqual(list(self.claim()), [low, middle, high])


if __name__ == "__main__":
    unittest.main()
