"""Holders that crash, stop for a while, or take long: the lease."""
import signal
import unittest

from support import Case, eventually


class ShortLeases(Case):
    server = "commit_timeout = 1500ms"

    def queued(self, route, daemon):
        """A request that waits for its turn at a daemon, and what has it:
        key, client; client, request at the upstream."""
        holder = self.hold(self.key(), route, daemon=daemon)
        key = self.key()
        client = self.begin(key, route, daemon=daemon)
        self.in_state(key, "PROCESSING")
        return key, client, *holder

    def close_gate(self, event, *keys):
        """Statements that INSERT or UPDATE these keys do not end until it is
        opened, as if they waited for a standby: at their commit."""
        self.sql("CREATE TABLE public.gate (key text)")
        self.sql("INSERT INTO public.gate SELECT unnest(%s::text[])",
                 list(keys))
        self.sql("CREATE FUNCTION public.pass_gate() RETURNS trigger"
                 " LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN WHILE EXISTS"
                 " (SELECT FROM public.gate g WHERE g.key = NEW.key) LOOP"
                 " PERFORM pg_sleep(0.005); END LOOP; RETURN NULL; END $$")
        self.sql(f"CREATE CONSTRAINT TRIGGER slow_commit AFTER {event} ON"
                 " paynotify.idempotency_keys DEFERRABLE INITIALLY DEFERRED"
                 " FOR EACH ROW EXECUTE FUNCTION public.pass_gate()")
        self.addCleanup(self.sql, "DROP TABLE public.gate")
        self.addCleanup(self.sql, "DROP FUNCTION public.pass_gate CASCADE")
        self.addCleanup(self.open_gate)

    def open_gate(self):
        self.sql("DELETE FROM public.gate")

    def at_gate(self, daemon):
        eventually(lambda: self.sql(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
            " AND wait_event = 'PgSleep'", daemon.name), "it commits")


class Leases(ShortLeases):
    routes = {
        "charges": "wait = 50s\nlease = 1600ms",
        "now": "wait = 0s\nlease = 1600ms",
        "hold": "wait = 50s\nlease = 1600ms\nunknown = hold",
        "one": "wait = 50s\nlease = 1600ms\nmax_in_flight = 1",
        "poison": "wait = 50s\nlease = 30s\nattempts_max = 2",
    }

    def crash(self, key, route):
        """A daemon that is killed while the upstream works; when its lease
        ends, by the database."""
        daemon = self.start()
        client, _ = self.hold(key, route, daemon=daemon)
        daemon.kill()
        self.assertIsNone(client.read())
        self.assertEqual(self.state(key), "PROCESSING")
        return self.row(key, "lease_expires_at")[0]

    def test_gateway__a_killed_daemon_frees_its_key_after_the_lease(self):
        """Not before: its request may still be worked on. Then the next one
        runs, as attempt 2."""
        key = self.key()
        ends = self.crash(key, "charges")
        first = self.made(self.ask(key))
        self.assertEqual(self.attempts(key), [1, 2])
        self.assertGreaterEqual(self.row(key, "locked_at")[0], ends)
        self.assertNotEqual(*(r.get("Idempotency-Token")
                              for r in self.upstream.seen(key)))
        self.replayed(self.ask(key), first)

    def test_gateway__a_killed_daemon_leaves_its_key_busy_until_then(self):
        """Who does not wait is told for how long."""
        key = self.key()
        ends = self.crash(key, "now")
        reply = self.ask(key, "now")
        # On a slow machine the lease may have ended before.
        if self.attempts(key) == [1]:
            self.problem(reply, "in-progress", 409, again=True)
            eventually(lambda: self.sql("SELECT clock_timestamp() > %s",
                                        ends)[0][0], "the lease ends")
            self.made(self.ask(key, "now"))
        self.assertEqual(self.attempts(key), [1, 2])
        self.assertGreaterEqual(self.row(key, "locked_at")[0], ends)

    def test_gateway__unknown_hold_sets_a_crashed_key_aside(self):
        """The work may have been done: no second attempt by itself."""
        key = self.key()
        self.crash(key, "hold")
        said = self.problem(self.ask(key, "hold"), "set-aside", 409,
                            again=False)
        self.assertIn("did not come back", said["detail"])
        self.assertEqual(self.state(key), "FAILED")
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__a_poisoned_key_is_set_aside(self):
        """One that crashes its handler each time would do it for ever:
        after attempts_max it is a dead letter, until an operator lets it
        go."""
        key = self.key()
        for _ in range(2):
            self.crash(key, "poison")
            self.end_lease(key)
        said = self.problem(self.ask(key, "poison"), "set-aside", 409,
                            again=False)
        self.assertIn("2 holders", said["detail"])
        self.assertEqual(self.attempts(key), [1, 2])
        code, rows = self.daemon.ctl("keys", "list", "--state", "FAILED")
        row = [r for r in rows if r["key"] == key][0]
        self.assertEqual((code, row["attempts"], row["crashes"]), (0, 2, 2))
        self.assertEqual(self.daemon.ctl(
            "keys", "release", "--tenant", "shop1", "--route",
            "POST /v1/poison", "--reason", "mended", key)[0], 0)
        self.made(self.ask(key, "poison"))
        self.assertEqual(self.attempts(key), [1, 2, 3])

    def test_gateway__a_paused_holder_cannot_complete(self):
        """A process that was stopped, or on a machine that was, and goes on
        after its lease: another attempt counts, and its client must not be
        told the other outcome."""
        paused = self.start()
        key = self.key()
        client, seen = self.hold(key, daemon=paused,
                                 then={"body": "of the paused one"})
        paused.signal(signal.SIGSTOP)
        first = self.made(self.ask(key, do={"body": "of the second"}))
        self.assertEqual(self.attempts(key), [1, 2])
        seen.release()
        paused.signal(signal.SIGCONT)
        said = self.problem(client.read(), "lease-lost", 409, again=True)
        self.assertIn("same key", said["detail"])
        for daemon in (paused, self.daemon):
            self.replayed(self.ask(key, daemon=daemon), first)
        self.assertEqual(first.body, b"of the second")
        self.assertEqual(bytes(self.row(key, "response_body")[0]), first.body)
        self.assertGreaterEqual(paused.metric("leases_lost_total"), 1)
        self.assertEqual(
            paused.results("not_kept")["not_kept"], 1)

    def test_gateway__a_paused_holder_cannot_free_the_key(self):
        """Nor set it aside, while another one is at work under it."""
        paused = self.start()
        key = self.key()
        client, seen = self.hold(key, daemon=paused, then={"status": 429})
        paused.signal(signal.SIGSTOP)
        second = self.begin(key, do={"hold": True})
        other = self.upstream.wait(key, 2)
        token = self.row(key, "lease_token")[0]
        seen.release()
        paused.signal(signal.SIGCONT)
        client.read() # whatever it says: nothing was done by it
        self.assertEqual(self.row(key, "lease_token")[0], token)
        other.release()
        first = self.made(second.read())
        self.replayed(self.ask(key, daemon=paused), first)
        self.assertEqual(self.attempts(key), [1, 2])

    def test_gateway__a_paused_queue_is_not_sent(self):
        """What waited for its turn longer than its lease is another daemon's by
        then: sending it would do the work twice."""
        paused = self.start()
        key, client, holder, seen = self.queued("one", paused)
        paused.signal(signal.SIGSTOP)
        first = self.made(self.ask(key, "one"))
        seen.release()
        paused.signal(signal.SIGCONT)
        holder.read() # whatever became of that one
        self.replayed(client.read(), first)
        self.assertEqual(self.attempts(key), [2])

    def test_gateway__a_released_key_in_the_queue_is_claimed_again(self):
        """An operator took it, and another daemon has done the work."""
        daemon = self.start()
        key, client, holder, seen = self.queued("one", daemon)
        # At once: the one in the queue would claim it between the two.
        self.sql("UPDATE paynotify.idempotency_keys SET state = 'COMPLETED',"
                 " attempts = 2, lease_token = NULL, lease_expires_at = NULL,"
                 " settled_by = gen_random_uuid(), response_status = 201,"
                 " completed_at = clock_timestamp(), response_body = 'elsewhere'"
                 " WHERE key = %s", key)
        self.sql("SELECT paynotify.guard_tell('shop1', 'POST /v1/one', %s)", key)
        eventually(lambda: daemon.metric("leases_lost_total") >= 1,
                   "it has noticed")
        seen.release()
        self.made(holder.read())
        reply = client.read()
        self.assertEqual((reply.status, reply.body, reply.replayed),
                         (201, b"elsewhere", True))
        self.assertEqual(self.attempts(key), [])

    def test_gateway__a_claim_that_took_its_lease_is_none(self):
        """A commit that waited until the lease was over: somebody else may be
        at work by now."""
        key = self.key()
        self.close_gate("INSERT", key)
        client = self.begin(key)
        self.at_gate(self.daemon)
        self.sql("SELECT pg_sleep(1.65)") # its lease is over
        self.open_gate()
        reply = client.read()
        # On a slow machine it was given up before: it is free again then.
        if reply.status != 503:
            self.made(reply)
            self.assertEqual(self.attempts(key), [2])

    def test_gateway__a_renewal_that_hangs_keeps_nobody(self):
        """The answer is there, but not to be stored: 503, in the time that a
        commit may take."""
        key = self.key()
        client, seen = self.hold(key)
        self.close_gate("UPDATE", key)
        self.at_gate(self.daemon)
        seen.release()
        self.problem(client.read(), "not-stored", 503, again=True)

    def test_gateway__who_waits_for_a_lost_settlement_asks_anew(self):
        """The lease was not theirs to lose: one of them runs, and the others
        wait for that one. What the lost one came to is for its client."""
        for status in (201, 429):
            key = self.key()
            client, seen = self.hold(key, "poison", then={"status": status})
            waiters = self.waiters(2, key, "poison")
            self.end_lease(key)
            seen.release()
            if status == 201:
                self.problem(client.read(), "lease-lost", 409, again=True)
            else:
                self.made(client.read(), status)
            replies = sorted((c.read() for c in waiters),
                             key=lambda r: r.replayed)
            first = self.made(replies[0])
            self.replayed(replies[1], first)
            self.assertEqual(self.attempts(key), [1, 2])

    def test_gateway__the_lease_slides_while_the_upstream_works(self):
        """An upstream that is slower than the lease keeps its key: nobody else
        runs, and its answer is stored."""
        other = self.start()
        key = self.key()
        client, seen = self.hold(key)
        ends = self.row(key, "lease_expires_at")[0]
        waiter = self.begin(key, daemon=other)
        eventually(lambda: self.sql("SELECT clock_timestamp() > %s"
                                    " + interval '0.5 s'", ends)[0][0],
                   "it is past the first lease")
        self.assertEqual(self.row(key, "lease_expires_at > clock_timestamp(),"
                                  " attempts, crashes"), (True, 1, 0))
        seen.release()
        first = self.made(client.read())
        self.replayed(waiter.read(), first)
        self.assertEqual(self.attempts(key), [1])

    def test_gateway__an_operator_takes_a_key_from_its_holder(self):
        """Released while the upstream hangs: the next one runs at once, and
        the hung one's answer is none."""
        key = self.key()
        client, seen = self.hold(key, "poison")
        self.assertEqual(self.daemon.ctl(
            "keys", "release", "--tenant", "shop1", "--route",
            "POST /v1/poison", "--reason", "the upstream hangs", key)[0], 0)
        other = self.start()
        first = self.made(self.ask(key, "poison", daemon=other))
        seen.release()
        self.problem(client.read(), "lease-lost", 409, again=True)
        self.replayed(self.ask(key, "poison"), first)
        self.assertEqual(self.attempts(key), [1, 2])

    def test_gateway__a_released_key_runs_at_its_holder_too(self):
        """There may be no other daemon: who waits for the hung one is the next,
        and who comes later is told its answer."""
        key = self.key()
        client, seen = self.hold(key, "poison")
        waiters = self.waiters(2, key, "poison")
        self.assertEqual(self.daemon.ctl(
            "keys", "release", "--tenant", "shop1", "--route",
            "POST /v1/poison", "--reason", "the upstream hangs", key)[0], 0)
        replies = sorted((c.read() for c in waiters), key=lambda r: r.replayed)
        first = self.made(replies[0])
        self.replayed(replies[1], first)
        self.replayed(self.ask(key, "poison"), first)
        seen.release()
        self.problem(client.read(), "lease-lost", 409, again=True)
        self.replayed(self.ask(key, "poison"), first)
        self.assertEqual(self.attempts(key), [1, 2])


class Stop(ShortLeases):
    """With a grace as short as the timeouts."""

    routes = {"brief": "wait = 50s\nlease = 1600ms\ntimeout = 2s\n"
                       "max_in_flight = 1"}

    def test_gateway__a_renewal_that_hangs_keeps_no_stop(self):
        """Neither of what was sent, nor of what waits for its turn; that is
        not sent, it may be another one's by then."""
        daemon = self.start()
        key, client, holder, seen = self.queued("brief", daemon)
        self.close_gate("UPDATE", seen.key, key)
        self.at_gate(daemon)
        daemon.signal(signal.SIGTERM)
        # By whether it is its own renewal that hangs, or the next one's.
        self.assertIn(holder.read().status, (503, 504))
        self.assertEqual(client.read().status, 503)
        self.assertEqual(daemon.process.wait(60), 0, daemon.log())
        self.assertEqual(self.upstream.seen(key), [])


if __name__ == "__main__":
    unittest.main()
