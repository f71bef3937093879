"""The database away, slow, locked, without rights; and that none of that hides
whether the daemon is alive, or holds up its end.
"""
import re
import threading

from harness import eventually, locked, psql
from support import AdminCase, environment_dsn, request


def waiting():
    """Sessions of the admin port that wait for the lock."""
    return int(psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type ="
                    " 'Lock' AND query LIKE '%event_log e%'")[0][0])


class Faults(AdminCase):
    def background(self, count, path="/api/v1/events"):
        """Asks count times at once; the list of answers to come."""
        replies = []

        def ask():
            replies.append(request(self.unix, "GET", path))

        threads = [threading.Thread(target=ask) for _ in range(count)]
        for thread in threads:
            thread.start()
        return threads, replies

    def test_faults__a_query_that_hangs_hides_nothing(self):
        """Else one long query would make the daemon look dead; and enough of them
        would make it so."""
        with locked("event_log"):
            threads, replies = self.background(40)
            eventually(lambda: waiting() == 2, "both workers wait")
            self.expect(self.ask("GET", "/healthz"), 200, b"ok")
            self.expect(self.ask("GET", "/readyz"), 200)
            self.expect(self.ask("GET", "/metrics"), 200)
            self.expect(self.ask("GET", "/api/v1"), 200)
            for thread in threads:
                thread.join()
        kinds = {}
        for reply in replies:
            self.assertEqual(reply.status, 503)
            self.assertEqual(reply.headers["Retry-After"], "5")
            kind = reply.body.split(b"admin:")[1].split(b'"')[0].decode()
            kinds[kind] = kinds.get(kind, 0) + 1
        self.assertEqual(set(kinds), {"database-slow", "busy"})
        self.assertGreaterEqual(kinds["database-slow"], 2)
        self.expect(self.ask("GET", "/api/v1/events"), 200)

    def test_faults__the_end_waits_for_no_query(self):
        """Else a restart would take as long as the slowest query."""
        self.use(self.start().ready())
        try:
            with locked("event_log"):
                threads, replies = self.background(4)
                eventually(lambda: waiting() == 2, "both workers wait")
                self.assertEqual(self.daemon.stop(), 0)
                for thread in threads:
                    thread.join()
            for reply in replies:
                self.problem(reply, 503, "stopping")
        finally:
            self.use(self.daemons[0])

    def test_faults__a_lost_connection_is_made_again(self):
        def connected():
            page = self.ask("GET", "/metrics").body.decode()
            return re.search(r"^paynotify_database_reconnects_total (\d+)", page,
                             re.M)[1]

        self.expect(self.ask("GET", "/api/v1/consumers"), 200)
        before = connected()
        psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
             " application_name = 'paynotifyd'")
        # Until it has noticed it is as ready as before.
        eventually(lambda: connected() != before, "connected again")
        eventually(lambda: self.ask("GET", "/readyz").status == 200, "ready again")
        for _ in range(4):
            self.expect(self.ask("GET", "/api/v1/consumers"), 200)

    def elsewhere(self, **options):
        """A daemon with another connection string."""
        daemon = self.start(dsn=environment_dsn(**options))
        return f"{daemon.folder}/admin.sock", daemon

    def test_faults__the_database_is_away(self):
        address, _ = self.elsewhere(host="/nowhere")
        act = {"consumer": "app", "event": "1", "reason": "x", "actor": "mei"}
        reply = request(address, "GET", "/api/v1/events")
        self.assertIn("dsn in /", self.problem(reply, 503, "database-away"))
        self.assertEqual(reply.headers["Retry-After"], "5")
        self.assertNotIn("not known", self.problem(request(
            address, "POST", "/api/v1/deliveries/skip", act), 503, "database-away"))
        self.expect(request(address, "GET", "/healthz"), 200)

    def test_faults__the_schema_is_missing(self):
        psql("CREATE DATABASE empty")
        address, _ = self.elsewhere(dbname="empty")
        self.assertIn("db migrate", self.problem(request(
            address, "GET", "/api/v1/events"), 503, "database-schema"))

    def test_faults__the_role_lacks_rights(self):
        psql("CREATE ROLE looks LOGIN IN ROLE paynotify_reader;"
             " CREATE ROLE receives LOGIN IN ROLE paynotify_receiver")
        address, _ = self.elsewhere(user="looks")
        act = {"consumer": "app", "event": "1", "reason": "x", "actor": "mei"}
        self.expect(request(address, "GET", "/api/v1/events"), 200)
        self.assertIn("paynotify_owner", self.problem(request(
            address, "POST", "/api/v1/consumers/app/pause",
            {"reason": "x", "actor": "mei"}), 503, "database-rights"))
        address, _ = self.elsewhere(user="receives")
        self.assertIn("paynotify_reader", self.problem(request(
            address, "GET", "/api/v1/events"), 503, "database-rights"))
        self.problem(request(address, "POST", "/api/v1/deliveries/skip", act), 503,
                     "database-rights")
