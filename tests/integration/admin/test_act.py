"""What is done: its effect in the database, the record of who and why, the log,
and what is refused.
"""
import json

from harness import psql
from support import AdminCase, insert_deliveries, insert_events, insert_keys

WHO = {"reason": "bank called", "actor": "mei"}


class Act(AdminCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        insert_events("shop7", 5)
        for consumer in ("app", "idle"):
            psql(f"SELECT paynotify.register_consumer('{consumer}', ARRAY['shop7'])")
        insert_deliveries("app", "shop7")
        psql("UPDATE paynotify.deliveries SET state = 'dead', lease_expires_at = NULL,"
             " reason = 'gone' WHERE seq IN (SELECT seq FROM"
             " paynotify.deliveries WHERE"
             " consumer_id = (SELECT id FROM paynotify.consumers WHERE name = 'app')"
             " ORDER BY seq LIMIT 4)")
        cls.seqs = [int(s) for s, in psql(
            "SELECT seq FROM paynotify.event_log WHERE tenant = 'shop7' ORDER BY seq")]
        insert_keys("shop7", "POST /v1/charges", 2)

    def act(self, path, status=200, **body):
        return self.expect(self.ask("POST", "/api/v1/" + path, body), status)

    def done(self, path, **body):
        import json
        answer = json.loads(self.act(path, **body).body)
        self.assertIsNone(answer["next"])
        return answer["items"][0]

    def refused(self, path, status, kind, **body):
        return self.problem(self.ask("POST", "/api/v1/" + path, body), status, kind)

    def states(self):
        return [s for s, in psql("SELECT d.state FROM paynotify.deliveries d JOIN"
                                 " paynotify.consumers c ON c.id = d.consumer_id WHERE"
                                 " c.name = 'app' ORDER BY d.seq")]

    def test_act__a_deliveries(self):
        self.assertEqual(self.states(), ["dead"] * 4 + ["leased"])
        item = self.done("deliveries/redeliver", consumer="app",
                         event=str(self.seqs[0]), **WHO)
        self.assertEqual(item, {
            "action": "redeliver", "consumer": "app", "event": str(self.seqs[0]),
            "state": None, "count": 1, "actor": "mei", "reason": "bank called",
            "error": None})
        self.assertEqual(self.states()[0], "retry")
        item = self.done("deliveries/skip", consumer="app", state="dead", **WHO)
        self.assertEqual(item["count"], 3)
        self.assertEqual(psql("SELECT action, actor, reason, count(*) FROM"
                              " paynotify.delivery_actions GROUP BY 1, 2, 3"
                              " ORDER BY 1"),
                         [["redeliver", "mei", "bank called", "1"],
                          ["skip", "mei", "bank called", "3"]])
        self.assertIn("being handed off", self.refused(
            "deliveries/redeliver", 409, "refused", consumer="app",
            event=str(self.seqs[4]), **WHO))
        self.refused("deliveries/redeliver", 404, "unknown", consumer="none",
                     event=str(self.seqs[0]), **WHO)
        self.assertNotIn("done to", self.refused(
            "deliveries/skip", 404, "unknown", consumer="app", event="999999", **WHO))
        log = self.daemon.log()
        self.assertIn("POST /api/v1/deliveries/redeliver", log)
        self.assertRegex(log, r"(?m)deliveries/skip.*dead.*mei.*bank called.*done")
        self.assertRegex(log, r"(?m)deliveries/skip.*999999.*mei.*bank called.*refused")

    def test_act__b_consumers(self):
        def state():
            return psql("SELECT state FROM paynotify.consumers WHERE name = 'idle'")

        self.assertEqual(self.done("consumers/idle/pause", **WHO)["action"], "pause")
        self.assertEqual(state(), [["paused"]])
        item = self.done("consumers/idle/resume", actor="mei")
        self.assertEqual(item["reason"], "none given")
        self.assertEqual(state(), [["active"]])
        self.assertEqual(self.done("consumers/idle/remove", **WHO)["action"], "remove")
        self.assertEqual(state(), [])
        for verb in ("pause", "resume", "remove"):
            self.refused(f"consumers/idle/{verb}", 404, "unknown", **WHO)
        self.refused("consumers/app/remove", 409, "refused", **WHO)

    def test_act__c_keys(self):
        def state(key):
            return psql("SELECT state, lease_token FROM paynotify.idempotency_keys WHERE"
                        f" tenant = 'shop7' AND key = '{key}'")

        where = {"tenant": "shop7", "route": "POST /v1/charges"}
        self.assertEqual(self.done("keys/release", **where, key="k1", **WHO), {
            "action": "release", **where, "key": "k1", "actor": "mei",
            "reason": "bank called", "error": None})
        self.assertEqual(state("k1"), [["PROCESSING", ""]])
        self.done("keys/forget", **where, key="k2", **WHO)
        self.assertEqual(state("k2"), [])
        self.assertEqual(psql("SELECT action, key, actor, reason FROM"
                              " paynotify.guard_actions ORDER BY at"),
                         [["release", "k1", "mei", "bank called"],
                          ["forget", "k2", "mei", "bank called"]])
        self.refused("keys/release", 404, "unknown", **where, key="k2", **WHO)
        psql("UPDATE paynotify.idempotency_keys SET state = 'COMPLETED',"
             " completed_at = now(), response_status = 200 WHERE key = 'k1'"
             " AND tenant = 'shop7'")
        self.assertIn("forget it", self.refused("keys/release", 409, "refused", **where,
                                                key="k1", **WHO))
        self.refused("keys/release", 400, "body", tenant="shop7",
                     route="notify/alipay", key="k1", **WHO)

    def test_act__the_log_is_switched(self):
        import json
        self.assertEqual(self.items("/api/v1/log")[0],
                         [{"level": "info", "categories": []}])
        for switch in ({"level": "warning", "categories": ["store", "admin"]},
                       {"level": "debug", "categories": []},
                       {"level": "info", "categories": []}):
            reply = self.ask("PUT", "/api/v1/log", {**switch, "actor": "mei"})
            self.expect(reply, 200)
            self.assertEqual(json.loads(reply.body)["items"], [switch])
            self.assertEqual(self.items("/api/v1/log")[0], [switch])
        for body, word in (({"level": "loud"}, "warning"), ({}, "level"),
                           ({"level": "info", "categories": ["shop"]}, "ingest"),
                           ({"level": "info", "categories": [1]}, "ingest"),
                           ({"level": "info", "categories": "store"}, "array"),
                           ({"level": "info"}, "actor")):
            self.assertIn(word, self.problem(
                self.ask("PUT", "/api/v1/log", body), 400, "body"))
        self.assertIn('"debug" now', self.daemon.log().replace('\\', ''))

    def test_act__is_logged_at_any_level(self):
        """Who lowers the level hides who did it, and all that is done after."""
        def switch(level):
            self.expect(self.ask("PUT", "/api/v1/log", {"level": level, **WHO}), 200)

        switch("err")
        try:
            self.refused("consumers/quiet/pause", 404, "unknown", **WHO)
        finally:
            switch("info")
        log = self.daemon.log().replace('\\', '')
        self.assertRegex(log, r'"err" now, by "mei", because "bank called"')
        self.assertRegex(log, r"(?m)/pause.*quiet.*mei.*bank called.*refused")

    def test_act__d_bodies(self):
        """Else something would be done that nobody asked for, or for no reason."""
        event = {"consumer": "app", "event": "1"}
        for path, body, word in (
                ("deliveries/skip", {**event, "actor": "mei"}, "reason"),
                ("deliveries/skip", {**event, "reason": "x"}, "actor"),
                ("deliveries/skip", {"event": "1", **WHO}, "consumer"),
                ("deliveries/skip", {**event, "state": "dead", **WHO}, "one of them"),
                ("deliveries/skip", {"consumer": "app", **WHO}, "one of them"),
                ("deliveries/skip", {"consumer": "app", "state": "leased", **WHO},
                 "dead or retry"),
                ("deliveries/skip", {**event, "limit": 1, **WHO}, "limit"),
                ("deliveries/skip", {"consumer": "app", "event": 1, **WHO}, "string"),
                ("deliveries/skip", {**event, "actor": "mei", "reason": " "}, "reason"),
                ("deliveries/skip", {**event, "actor": "mei", "reason": "x" * 1001},
                 "1000"),
                ("deliveries/skip", {**event, "actor": "m\0i", "reason": "x"}, "NUL"),
                ("consumers/app/pause", {"actor": "mei"}, "reason"),
                ("consumers/app/pause", {**WHO, "consumer": "x"}, "consumer"),
                ("keys/forget", {"tenant": "a", "key": "b", **WHO}, "route")):
            with self.subTest(path=path, body=body):
                self.assertIn(word, self.refused(path, 400, "body", **body))
        self.refused("deliveries/skip?consumer=app", 400, "parameter", **event, **WHO)
