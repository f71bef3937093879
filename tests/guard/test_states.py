"""The states of a key, and what each call does in them."""
import unittest

from guard import ROUTE, GuardCase, digest
from support import LOST, REFUSED, UNKNOWN

BAD = "22023"               # SQLSTATE: invalid parameter value


class States(GuardCase):
    def test_first_runs_second_is_busy_third_gets_the_answer(self):
        """What all of this is for."""
        first = self.claim()
        self.assertEqual((first.outcome, first.attempt), ("run", 1))
        second = self.claim()
        self.assertEqual(second.outcome, "busy")
        self.assertIsNone(second.token)     # or anybody could complete
        self.assertEqual(second.retry_at, first.retry_at)
        self.complete("k", first.token, body=b"\x00\xff{}")
        third = self.claim()
        self.assertEqual(third.outcome, "replay")
        self.assertEqual(third[3:6], (201, "a: b", b"\x00\xff{}"))
        self.assertEqual(third.expires_at, first.expires_at)

    def test_another_request_gets_nothing_of_the_answer(self):
        """The answer to one request as the answer to another."""
        token = self.claim().token
        self.assertEqual(self.claim(request="other").outcome, "mismatch")
        self.complete("k", token)
        got = self.claim(request="other")
        self.assertEqual(got.outcome, "mismatch")
        self.assertEqual(set(got[1:]), {None})

    def test_a_lease_that_ended_does_not_free_the_key_for_another_request(self):
        """A second charge under a key whose first may have been made."""
        self.claim()
        self.pass_time(61)
        self.assertEqual(self.claim(request="other").outcome, "mismatch")
        self.assertEqual(self.claim().attempt, 2)

    def test_tenants_and_routes_apart(self):
        """One merchant would get the answer of another."""
        self.used()
        for more in ({"tenant": "shop2"}, {"route": "POST /v1/refunds"},
                     {"key": "K"}, {"key": "k "}):
            self.assertEqual(self.claim(**more).outcome, "run", more)

    def test_keys_of_1_and_255_characters(self):
        """The longest allowed key would fail, for its bytes or in the index."""
        more = {"tenant": "t" * 128, "route": "\U0001d11e" * 255}
        for key in ("x", "\U0001d11e" * 255, "a\nb", "'"):
            self.used(key, **more)
            self.assertEqual(self.claim(key, **more).outcome, "replay")
        for key in ("", "x" * 256, None):
            self.refused(BAD, self.claim, key)

    def test_no_webhook_key_can_be_reached(self):
        """An application could have a payment recorded never, or twice."""
        self.sql("INSERT INTO paynotify.idempotency_keys (tenant,"
                 " request_path, key, request_hash, state, created_at,"
                 " expires_at) VALUES ('shop1', 'notify/alipay', 'w', %s,"
                 " 'COMPLETED', now(), now() - interval '1 s')", [digest("r")])
        more = {"route": "notify/alipay"}
        self.refused(BAD, self.claim, "w", **more)
        for act in ("forget", "set_free"):
            self.refused(BAD, self.call, act, "w", "why", "me", **more)
        self.assertEqual(self.state("w"), "COMPLETED")
        self.assertEqual(self.sql("SELECT * FROM paynotify.guard_keys"), [])
        # Nor its digest in the archive, which is of route, LF, key.
        self.refused(BAD, self.claim, "b", route="POST /a\nx")

    def test_what_makes_no_sense_is_refused(self):
        """A lease that has ended, an answer that is kept for no time, a hash
        that everything matches."""
        for more in ({"lease": "0"}, {"ttl": "-1 s"}, {"unknown": "release"},
                     {"after_expiry": "old"}, {"attempts_max": 0},
                     {"lease": None}, {"unknown": None}, {"tenant": None},
                     {"route": None}, {"tenant": ""}):
            self.refused(BAD, self.claim, **more)
        # Times that no calendar has, for whoever replays or lists it.
        for more in ({"ttl": "10000 years"}, {"ttl": "401 days"},
                     {"lease": "10000 years"}, {"lease": "61 minutes"}):
            self.refused(BAD, self.claim, **more)
        self.refused(BAD, self.sql, "SELECT paynotify.guard_claim('t', 'r',"
                     " 'k', '')")
        token = self.claim().token
        for status in (99, 102, 199, 600, None):    # no server sends those
            self.refused(BAD, self.complete, "k", token, status=status)
        self.refused(BAD, self.complete, "k", token,
                     body=b"x" * (8 << 20 | 1))
        self.refused(BAD, self.call, "complete", "k", token, 201,
                     "a: " + "b" * (16 << 10), b"")
        for lease in ("0", "61 minutes", "10000 years", None):
            self.refused(BAD, self.call, "renew", "k", token, lease)
        self.refused(BAD, self.release, "k", token, "done")


class Fence(GuardCase):
    def lose_all(self, token):
        for call, *args in ((self.complete, "k", token),
                            (self.call, "renew", "k", token, "1 h"),
                            (self.release, "k", token),
                            (self.release, "k", token, "hold")):
            self.refused(LOST, call, *args)

    def test_a_paused_holder_cannot_complete_later(self):
        """Two holders would both commit."""
        old = self.claim().token
        self.pass_time(40)
        self.assertEqual(self.claim().outcome, "busy")
        self.pass_time(21)
        self.lose_all(old)                  # nobody has taken it over yet
        new = self.claim()
        self.assertEqual((new.outcome, new.attempt), ("run", 2))
        self.lose_all(old)
        self.complete("k", new.token)
        self.lose_all(old)
        self.lose_all(new.token)            # settled

    def test_a_token_is_for_its_key_alone(self):
        """A mistake in the key would complete another one."""
        token = self.claim("a").token
        self.claim("b")
        for wrong in (token.__class__(int=0), None):
            self.refused(LOST, self.complete, "a", wrong)
        self.refused(LOST, self.complete, "b", token)
        self.refused(LOST, self.complete, "a", token, tenant="shop2")
        self.complete("a", token)

    def test_renew_keeps_the_lease(self):
        """Work that is longer than a lease would be done twice."""
        token = self.claim().token
        for _ in range(3):
            self.pass_time(50)
            self.call("renew", "k", token, "1 min")
        self.assertEqual(self.claim().outcome, "busy")
        self.complete("k", token)


class Unknown(GuardCase):
    def test_retry_until_it_is_poison(self):
        """A request that kills its handlers would do so for ever."""
        for n in range(1, 4):
            self.assertEqual(self.claim(attempts_max=3).attempt, n)
            self.pass_time(61)
        got = self.claim(attempts_max=3)
        self.assertEqual((got.outcome, got.attempt), ("failed", 3))
        self.assertIn("3 holders", got.reason)
        self.assertEqual(self.state(), "FAILED")
        self.assertEqual(self.claim().outcome, "failed")
        self.assertEqual(self.claim(request="other").outcome, "mismatch")

    def test_hold_sets_aside_what_may_have_been_done(self):
        """The next one would charge again although the first may have."""
        self.claim()
        self.assertEqual(self.claim(unknown="hold").outcome, "busy")
        self.pass_time(61)
        got = self.claim(unknown="hold")
        self.assertEqual(got.outcome, "failed")
        self.assertIn("not known", got.reason)

    def test_released_leaves_nothing(self):
        """A request that was turned away would be refused, in a better form,
        under its key; and each such key would stay for ever."""
        self.release("k", self.claim().token)
        self.assertIsNone(self.state())
        self.assertEqual(self.claim(request="mended").attempt, 1)

    def test_released_later_keeps_what_came_before(self):
        """attempts would begin again though an attempt may have had effects."""
        self.claim()
        self.pass_time(61)
        self.release("k", self.claim().token)
        got = self.claim(unknown="hold", attempts_max=1)    # at once
        self.assertEqual((got.outcome, got.attempt), ("run", 3))

    def test_released_in_a_next_life_is_for_anybody(self):
        """A key whose use was turned away would be taken by the request that
        was, for a life."""
        for archived in (False, True):
            key = f"k{archived}"
            self.used(key)
            self.pass_time(86401)
            if archived:
                self.expire()
                self.assertGreater(self.archive(), 0)
            for n, request in enumerate(("other", "mended", "r"), 2):
                got = self.claim(key, request=request)
                self.assertEqual((got.outcome, got.attempt), ("run", n))
                self.release(key, got.token)
            # Used it was, whoever asks for that.
            self.assertEqual(self.claim(key, after_expiry="refuse").outcome,
                             "expired")
            self.expire()
            self.assertGreater(self.archive(), 0)
            got = self.claim(key, request="other")
            self.assertEqual((got.outcome, got.attempt), ("run", 5))
            # But what may have been done is of that request.
            self.pass_time(61)
            self.release(key, self.claim(key, request="other").token)
            self.assertEqual(self.claim(key).outcome, "mismatch")

    def test_retry_is_at_once_and_another_attempt(self):
        """An upstream that is idempotent itself would be waited for."""
        self.release("k", self.claim().token, "retry", "502")
        self.assertEqual(self.claim(request="other").outcome, "mismatch")
        got = self.claim(unknown="hold", attempts_max=1)
        self.assertEqual((got.outcome, got.attempt), ("run", 2))

    def test_a_reason_has_an_end(self):
        """Nobody could list the keys."""
        self.release("k", self.claim().token, "hold", "\u00e9" * 100_000)
        self.assertEqual(self.claim().reason, "\u00e9" * 1000)

    def test_held_by_its_holder(self):
        """What only an operator can know would run again."""
        self.release("k", self.claim().token, "hold", "timeout of the bank")
        self.pass_time(10**6)
        got = self.claim()
        self.assertEqual((got.outcome, got.reason),
                         ("failed", "timeout of the bank"))


class Expiry(GuardCase):
    def test_new_begins_anew_but_attempts_go_on(self):
        """A next life in which an attempt has the number of an old one: who
        fences by it would take the late one for the right one."""
        for n, request in enumerate(("r", "other", "r"), 1):
            self.used(request=request)
            self.assertEqual(self.claim(request=request).outcome, "replay")
            self.pass_time(86401)
            if n == 2:
                self.expire()
                self.assertEqual(self.archive(), 1)
        got = self.claim()
        self.assertEqual((got.outcome, got.attempt), ("run", 4))
        self.assertIsNone(got.response_body)

    def test_lives_are_not_crashes(self):
        """A key that is used every day would be poison after ten."""
        for _ in range(3):
            self.used(attempts_max=2)
            self.pass_time(86401)
        self.claim(attempts_max=2)
        self.pass_time(61)
        self.assertEqual(self.claim(attempts_max=2).outcome, "run")

    def test_refuse_in_both_tiers(self):
        """A retry next week would charge again."""
        self.used(after_expiry="refuse")
        self.pass_time(86401)
        for _ in range(2):
            self.assertEqual(self.claim(after_expiry="refuse").outcome,
                             "expired")
            self.assertEqual(self.claim(after_expiry="refuse",
                                        request="other").outcome, "mismatch")
            self.expire()
            self.archive()
        self.assertIsNone(self.state())
        for more in ({"tenant": "shop2"}, {"key": "other"}):
            self.assertEqual(self.claim(after_expiry="refuse", **more).outcome,
                             "run")

    def test_refuse_sets_aside_what_is_not_known(self):
        """A retry a year later would charge again, since whether the first
        charge went through was never found out."""
        self.claim("lost")
        self.release("let go", self.claim("let go").token, "retry", "502")
        for key in ("lost", "let go"):
            self.claim(f"{key} new", lease="1 ms")
        self.pass_time(86401)
        more = {"after_expiry": "refuse"}
        for key, reason, crashes in (("lost", "its time", 1),
                                     ("let go", "502; its time", 0)):
            self.assertEqual(self.claim(key, request="other", **more).outcome,
                             "mismatch")
            for _ in range(2):
                got = self.claim(key, **more)
                self.assertEqual((got.outcome, got.attempt), ("failed", 1))
                self.assertTrue(got.reason.startswith(reason), got.reason)
            self.assertEqual(self.value(
                "SELECT crashes FROM paynotify.idempotency_keys"
                " WHERE key = %s", [key]), crashes)
            self.assertEqual(self.claim(f"{key} new").outcome, "run")
            # Until an operator knows; then for as long as a claim is good.
            self.call("set_free", key, "not at the bank", "me")
            self.pass_time(86000)
            got = self.claim(key, **more)
            self.assertEqual((got.outcome, got.attempt), ("run", 2))

    def test_refuse_waits_for_who_is_at_work(self):
        """The holder would lose what it does."""
        token = self.claim(ttl="1 s").token
        self.pass_time(30)
        self.assertEqual(self.claim(after_expiry="refuse").outcome, "busy")
        self.complete("k", token)
        self.assertEqual(self.claim(after_expiry="refuse").outcome, "replay")
        self.pass_time(1)
        self.assertEqual(self.claim(after_expiry="refuse").outcome, "expired")

    def test_the_newest_life_is_what_the_archive_knows(self):
        """refuse, after new, would call a retry of the second a mismatch."""
        for request in ("first", "second"):
            self.used(request=request)
            self.expire()
            self.assertEqual(self.archive(), 1)
        self.assertEqual(self.claim(request="second", after_expiry="refuse"
                                    ).outcome, "expired")

    def test_only_what_is_completed_moves(self):
        """A key whose work is not known to be done would be forgotten, or
        taken for done."""
        self.claim("working")
        self.claim("crashed", lease="1 ms")
        self.release("held", self.claim("held").token, "hold")
        self.release("let go", self.claim("let go").token, "retry")
        self.used("done")
        self.used("young")
        self.pass_time(1)
        self.sql("UPDATE paynotify.idempotency_keys SET expires_at ="
                 " now() - interval '1 s' WHERE key <> 'young'")
        self.assertEqual(self.archive(), 1)
        self.assertEqual({k for (k,) in self.sql(
            "SELECT key FROM paynotify.idempotency_keys")},
            {"working", "crashed", "held", "let go", "young"})
        self.assertEqual(self.sql(
            "SELECT digest, attempts FROM paynotify.idempotency_archive"),
            [(digest(ROUTE + "\ndone"), 1)])

    def test_a_webhook_key_in_the_archive_stays_as_it_was_first(self):
        """A forged variant of a notification would become the original."""
        for hash_ in ("first", "second"):
            self.sql("INSERT INTO paynotify.idempotency_keys (tenant,"
                     " request_path, key, request_hash, state, created_at,"
                     " expires_at) VALUES ('t', 'notify/alipay', 'w', %s,"
                     " 'COMPLETED', now(), now())", [digest(hash_)])
            self.archive()
        self.assertEqual(self.sql(
            "SELECT request_hash FROM paynotify.idempotency_archive"),
            [(digest("first"),)])


class Operators(GuardCase):
    def actions(self):
        return self.sql("SELECT tenant, route, key, action, actor, reason"
                        " FROM paynotify.guard_actions ORDER BY at")

    def test_set_free(self):
        """A key that is set aside would be so for ever."""
        self.release("k", self.claim().token, "hold")
        self.call("set_free", "k", "the bank has no charge", "me")
        got = self.claim(unknown="hold")
        self.assertEqual((got.outcome, got.attempt), ("run", 2))
        # From somebody who is at work: fenced.
        self.call("set_free", "k", "that host is gone", "me")
        self.refused(LOST, self.complete, "k", got.token)
        self.complete("k", self.claim().token)
        self.refused(REFUSED, self.call, "set_free", "k", "why", "me")
        self.refused(UNKNOWN, self.call, "set_free", "j", "why", "me")
        self.assertEqual(self.actions(), [
            ("shop1", ROUTE, "k", "release", "me", "the bank has no charge"),
            ("shop1", ROUTE, "k", "release", "me", "that host is gone")])

    def test_set_free_gives_all_attempts_again(self):
        """A mended handler would be given up at its first restart."""
        for _ in range(3):
            got = self.claim(attempts_max=2)
            self.pass_time(61)
        self.assertEqual(got.outcome, "failed")
        self.call("set_free", "k", "mended", "me")
        self.claim(attempts_max=2)
        self.pass_time(61)
        self.assertEqual(self.claim(attempts_max=2).outcome, "run")

    def test_forget(self):
        """A key that was used by mistake could not be used again, in either
        tier."""
        for archive in (False, True):
            self.used(after_expiry="refuse")
            self.expire()
            if archive:
                self.archive()
            self.assertEqual(self.claim(after_expiry="refuse").outcome,
                             "expired")
            self.call("forget", "k", "test data", "me")
            self.assertEqual(self.claim(request="x", after_expiry="refuse"
                                        ).outcome, "run")
            self.refused(REFUSED, self.call, "forget", "k", "why", "me")
            self.call("set_free", "k", "why", "me")
            self.call("forget", "k", "why", "me")
        self.refused(UNKNOWN, self.call, "forget", "k", "why", "me")
        self.assertEqual([a[3] for a in self.actions()],
                         ["forget", "release", "forget"] * 2)

    def test_list(self):
        """An operator would not see what waits for him."""
        self.release("k", self.claim().token, "hold", "timeout")
        self.used("done")
        self.assertEqual(self.sql(
            "SELECT tenant, route, key, state::text, held, attempts, reason"
            " FROM paynotify.guard_keys WHERE state <> 'COMPLETED'"),
            [("shop1", ROUTE, "k", "FAILED", False, 1, "timeout")])


if __name__ == "__main__":
    unittest.main()
