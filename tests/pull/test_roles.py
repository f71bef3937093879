"""What a login role of an application may do, and nothing else."""
import unittest

from support import Case, connect

ALLOWED = {
    "register_consumer(text,text[],text[],timestamp with time zone)",
    "claim(text,integer,interval)", "ack(uuid)", "ack_all(uuid[])",
    "nack(uuid,interval,text)",
    "guard_claim(text,text,text,bytea,interval,interval,text,text,integer,"
    "uuid)",
    "guard_complete(text,text,text,uuid,integer,text,bytea)",
    "guard_renew(text,text,text,uuid,interval)",
    "guard_release(text,text,text,uuid,text,text)",
}
DENIED = "42501"            # SQLSTATE: insufficient privilege


class Roles(Case):
    def setUp(self):
        super().setUp()
        if not self.sql("SELECT 1 FROM pg_roles WHERE rolname = 'shop'"):
            self.sql("CREATE ROLE shop LOGIN IN ROLE paynotify_consumer")
        self.app = self.session(user="shop")

    def test_an_application_pulls(self):
        """The documented rights would not be enough."""
        run = self.app.run
        run("SELECT paynotify.register_consumer('shop')")
        a, b, c, d = self.events(4)
        got = self.claim(self.app, "shop")
        self.assertEqual(list(got), [a, b, c, d])
        run("BEGIN")
        run("INSERT INTO public.work VALUES (%s, 'shop')", [a])
        self.ack(got[a], self.app)
        run("COMMIT")
        run("SELECT paynotify.ack_all(%s::uuid[])", [[got[b], got[c]]])
        self.nack(got[d], "0", session=self.app)
        self.ack(self.claim(self.app, "shop")[d], self.app)
        self.assertEqual(len(run("SELECT * FROM paynotify.events")), 4)
        run("LISTEN paynotify_events")

    def test_it_calls_nothing_else(self):
        """take, settle, skip: it would take and finish others' events."""
        able = {r[0] for r in self.sql(
            "SELECT replace(p.oid::regprocedure::text, 'paynotify.', '')"
            " FROM pg_proc p"
            " WHERE p.pronamespace = 'paynotify'::regnamespace"
            " AND has_function_privilege('shop', p.oid, 'EXECUTE')")}
        self.assertEqual(able, ALLOWED)
        self.refused(DENIED, self.app.run,
                     "SELECT * FROM paynotify.take('shop', 1, '1 h')")
        self.refused(DENIED, self.app.run, "SELECT paynotify.settle(NULL,"
                     " NULL, NULL, NULL)")

    def test_it_reads_events_and_nothing_else(self):
        """Evidence has names and addresses; an event that an application
        could write is a payment that nobody made."""
        able = self.sql(
            "SELECT c.relname, p FROM pg_class c, unnest(ARRAY['SELECT',"
            " 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES',"
            " 'TRIGGER']) p WHERE c.relnamespace = 'paynotify'::regnamespace"
            " AND c.relkind IN ('r', 'p', 'v') AND (has_table_privilege("
            "'shop', c.oid, p) OR p <> ALL (ARRAY['DELETE', 'TRUNCATE',"
            " 'TRIGGER']) AND has_any_column_privilege('shop', c.oid, p))")
        self.assertEqual(able, [("events", "SELECT")])
        self.event()
        for text in ("INSERT INTO paynotify.event_log (tenant) VALUES ('x')",
                     "UPDATE paynotify.event_log SET amount = 1",
                     "DELETE FROM paynotify.event_log",
                     "SELECT * FROM paynotify.evidence",
                     "SELECT * FROM paynotify.deliveries",
                     "UPDATE paynotify.consumer_marks SET seq = 0",
                     "SELECT nextval('paynotify.event_log_seq_seq')",
                     "CREATE TABLE paynotify.t (x int)"):
            self.refused(DENIED, self.app.run, text)

    def test_its_settings_do_no_harm(self):
        """Functions with the rights of their owner would run what the caller
        puts into its search path."""
        c = connect(self.database, user="shop")
        c.execute("CREATE TEMP TABLE consumers (name text);"
                  "CREATE TEMP TABLE event_log (seq bigint);"
                  "SET search_path = pg_temp, public, paynotify")
        self.event()
        c.execute("SELECT paynotify.register_consumer('shop')")
        self.assertEqual(len(c.execute("SELECT * FROM paynotify.claim('shop',"
                                       " 5, '1 h')").fetchall()), 1)
        c.close()

    def test_a_stranger_may_do_nothing(self):
        """Any login of the database could claim."""
        if not self.sql("SELECT 1 FROM pg_roles WHERE rolname = 'stranger'"):
            self.sql("CREATE ROLE stranger LOGIN")
        s = self.session(user="stranger")
        self.refused(DENIED, self.claim, s, "app")
        self.refused(DENIED, s.run, "SELECT * FROM paynotify.events")


if __name__ == "__main__":
    unittest.main()
