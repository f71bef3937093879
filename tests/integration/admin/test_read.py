"""What is read: the objects are those of the commands, pages neither lose nor
repeat a row, filters filter, what is wrong is named.
"""
import json
import threading
import urllib.parse

from harness import psql
from support import AdminCase, insert_deliveries, insert_events, insert_keys

EVENTS = 1200


class Objects(AdminCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        psql("SELECT paynotify.register_consumer(n) FROM (VALUES ('ledger'), ('mail'))"
             " v (n)")
        headers, body = cls.signer.alipay("order-1")
        cls.daemon.ask("/notify/alipay/shop1", headers, body)
        cls.daemon.ask("/notify/alipay/shop1", headers, body)
        headers, body = cls.signer.alipay("order-1", {"total_amount": "1.00"})
        cls.daemon.ask("/notify/alipay/shop1", headers, body)  # a conflict
        cls.daemon.ask("/notify/wechat/shop1", *cls.signer.wechat())
        insert_events("odd", 1, "'order/1 +'")
        for consumer in ("ledger", "mail"):
            insert_deliveries(consumer, "shop1")
        insert_keys("shop1", "POST /v1/charges", 3)
        insert_keys("shop2", "POST /v1/charges", 1)

    def test_read__objects_are_those_of_the_commands(self):
        """Else a program that moves from one to the other would break."""
        for path, words in (
                ("/events", ["events", "list"]),
                ("/receipts", ["receipts", "list"]),
                ("/consumers", ["consumers", "list"]),
                ("/deliveries", ["deliveries", "list"]),
                ("/keys", ["keys", "list"]),
                ("/quarantine", ["quarantine", "list"]),
                ("/orders/order-1", ["order", "show", "order-1"]),
                ("/orders/order%2F1%20+", ["order", "show", "order/1 +"]),
                ("/orders/order/1%20%2B", ["order", "show", "order/1 +"])):
            with self.subTest(path=path):
                items, following = self.items("/api/v1" + path)
                self.assertIsNone(following)
                self.assertTrue(items)
                self.assertEqual(items, self.ctl(*words))

    def test_read__one_by_its_names(self):
        event = self.items("/api/v1/events", out_trade_no="order-1")[0][0]
        for name in (event["id"], str(event["seq"]), event["key"]):
            for path, words in (("events", ["events", "show"]),
                                ("deliveries", ["deliveries", "show"])):
                items, _ = self.items(
                    f"/api/v1/{path}/{urllib.parse.quote(name, safe='')}")
                self.assertEqual(len(items), 1)
                self.assertEqual(items, self.ctl(*words, name))
        self.assertEqual([d["consumer"] for d in items[0]["deliveries"]],
                         ["ledger", "mail"])
        items, _ = self.items("/api/v1/keys/k1", tenant="shop2")
        self.assertEqual(items, self.ctl("keys", "show", "k1", "--tenant", "shop2"))
        self.problem(self.ask("GET", "/api/v1/keys/k1"), 409, "ambiguous")
        entry = self.items("/api/v1/quarantine")[0][0]
        self.assertNotIn("events", entry)
        items, _ = self.items(f"/api/v1/quarantine/{entry['id']}")
        self.assertEqual(items, self.ctl("quarantine", "show", str(entry["id"])))
        self.assertEqual(items[0]["events"][0]["out_trade_no"], "order-1")
        self.assertEqual(items[0]["recorded_event_id"], event["id"])

    def test_read__unknown_ones_are_404(self):
        for path in ("events/evt_00000000000000000000000000000000", "events/999999",
                     "events/webhook:alipay:none", "deliveries/999999", "quarantine/99",
                     "quarantine/x", "keys/none", "keys/none?tenant=a&route=b",
                     "orders/none"):
            self.problem(self.ask("GET", "/api/v1/" + path), 404, "unknown")

    def test_read__filters(self):
        self.assertEqual(len(self.items("/api/v1/events", tenant="shop1",
                                        type="payment.succeeded", since="1h")[0]), 2)
        for wrong in ({"tenant": "x"}, {"type": "none"}, {"key": "x"},
                      {"out_trade_no": "x"}, {"since": "2999-01-01"}):
            self.assertEqual(self.items("/api/v1/events", **wrong), ([], None))
        conflicts, _ = self.items("/api/v1/receipts", verdict="conflict",
                                  provider="alipay")
        self.assertEqual([c["status"] for c in conflicts], [422])
        self.assertEqual(len(self.items("/api/v1/deliveries", consumer="mail",
                                        state="leased")[0]), 2)
        self.assertEqual(self.items("/api/v1/deliveries", state="dead")[0], [])
        self.assertEqual(len(self.items("/api/v1/quarantine", state="open")[0]), 1)
        self.assertEqual(self.items("/api/v1/quarantine", state="resolved")[0], [])
        self.assertEqual(len(self.items("/api/v1/keys", tenant="shop1",
                                        state="failed")[0]), 3)

    def test_read__wrong_parameters_are_named(self):
        """Else a misspelt filter would show everything."""
        for path, word in (
                ("events?tenat=a", "tenat"), ("events?limit=0", "limit"),
                ("events?limit=1001", "limit"), ("events?limit=x", "limit"),
                ("events?limit=", "limit"), ("events?limit=1&limit=2", "limit"),
                ("events?after=x", "after"), ("events?after=0", "after"),
                ("events?after=-1", "after"),
                ("events?since=2026-03-01T10:00:00+08:00", "%2B"),
                ("events?since=soon", "since"), ("events?tenant=%00", "tenant"),
                ("events?tenant=%ff", "tenant"), ("events?tenant=%zz", "percent"),
                ("events?tenant", "="), ("events/1?limit=1", "limit"),
                ("events/%00", "NUL"), ("events/%zz", "percent"),
                ("receipts?after=1", "after"), ("deliveries?after=1", "after"),
                ("deliveries?after=1-0", "after"), ("deliveries?after=x-1", "after"),
                ("deliveries?state=done", "waiting"), ("keys?after=00", "after"),
                ("keys?after=6", "after"), ("keys?after=610a62", "after"),
                ("keys?state=open", "PROCESSING"), ("keys?route=notify/x", "webhooks"),
                ("receipts?verdict=bad_sig", "bad_signature"),
                ("quarantine?state=dead", "accepted"), ("quarantine?after=x", "after")):
            with self.subTest(path=path):
                self.assertIn(word, self.problem(
                    self.ask("GET", "/api/v1/" + path), 400, "parameter"))


class Pages(AdminCase):
    def test_read__pages_while_events_come_in(self):
        """Else somebody who reads a long list would miss events, or see some
        twice."""
        insert_events("pages", EVENTS)
        before = {int(seq) for seq, in psql(
            "SELECT seq FROM paynotify.event_log WHERE tenant = 'pages'")}
        done = threading.Event()

        def insert():
            while not done.is_set():
                insert_events("pages", 7)

        thread = threading.Thread(target=insert)
        thread.start()
        try:
            items = self.pages("/api/v1/events", tenant="pages", limit=50)
        finally:
            done.set()
            thread.join()
        seqs = [item["seq"] for item in items]
        self.assertEqual(seqs, sorted(set(seqs), reverse=True))
        self.assertLessEqual(before, set(seqs))
        items, following = self.items("/api/v1/events", tenant="pages")
        self.assertEqual((len(items), following), (100, str(items[-1]["seq"])))

    def test_read__pages_of_receipts(self):
        psql("INSERT INTO paynotify.receipts (id, received_at, provider, tenant,"
             " verdict, status, body_bytes) SELECT gen_random_uuid(), now(), 'wechat',"
             " 'pages', 'malformed', 400, 7 FROM generate_series(1, 205)")
        # A request whose COMMIT was cut has two.
        psql("INSERT INTO paynotify.receipts SELECT * FROM paynotify.receipts"
             " WHERE tenant = 'pages'")
        ids = [r["id"] for r in self.pages("/api/v1/receipts", tenant="pages",
                                           limit=20)]
        self.assertEqual(len(ids), 205)
        self.assertEqual(ids, sorted(set(ids), reverse=True))

    def test_read__pages_of_deliveries(self):
        """Consumers share events: a page may end between two of one event."""
        insert_events("shared", 25)
        for consumer in ("a", "b", "c"):
            psql(f"SELECT paynotify.register_consumer('{consumer}',"
                 " ARRAY['shared'])")
            insert_deliveries(consumer, "shared")
        whole, following = self.items("/api/v1/deliveries", tenant="shared", limit=1000)
        self.assertEqual((len(whole), following), (75, None))
        for limit in (1, 7, 25):
            self.assertEqual(self.pages("/api/v1/deliveries", tenant="shared",
                                        limit=limit), whole)

    def test_read__pages_of_keys(self):
        for tenant, route, count in (("p1", "POST /a", 12), ("p1", "POST /b/*", 1),
                                     ("p2", "POST /a", 9), ("p3", "PUT /a", 5)):
            insert_keys(tenant, route, count)
        # The longest that there may be.
        insert_keys("p4" + "t" * 126, "\U0001d11e" * 255, 3, "\U0001d11e" * 253)
        whole = [k for k in self.items("/api/v1/keys", limit=1000)[0]
                 if k["tenant"].startswith("p")]
        names = [(k["tenant"], k["route"], k["key"]) for k in whole]
        self.assertEqual(len(whole), 30)
        self.assertEqual(names, sorted(names))
        for limit in (1, 4, 12, 13):
            self.assertEqual([k for k in self.pages("/api/v1/keys", limit=limit)
                              if k["tenant"].startswith("p")], whole)
        for some in ({"tenant": "p1"}, {"route": "POST /b/*"},
                     {"tenant": "p2", "route": "POST /a"}):
            self.assertEqual(
                self.pages("/api/v1/keys", limit=2, **some),
                [k for k in whole if all(k[n] == v for n, v in some.items())])

    def test_read__pages_of_the_quarantine(self):
        psql("INSERT INTO paynotify.quarantine (tenant, subject, fingerprint, provider,"
             " request_path, reason, events, receipt_id, received_at) SELECT 'pages',"
             " 's' || i, '', 'wechat', 'notify/wechat', 'r', '[]', gen_random_uuid(),"
             " now() FROM generate_series(1, 45) i")
        ids = [q["id"] for q in self.pages("/api/v1/quarantine", tenant="pages",
                                           limit=10)]
        self.assertEqual(len(ids), 45)
        self.assertEqual(ids, sorted(set(ids), reverse=True))

    def test_read__long_pages_end_early(self):
        """Else a page of long payloads would take any memory."""
        insert_events("long", 30)
        psql("INSERT INTO paynotify.evidence (receipt_id, received_at, provider, tenant,"
             " headers, body, key_fingerprint, payload) SELECT receipt_id, received_at,"
             " provider, tenant, '', '', '', to_json(repeat('x', 400000)) FROM"
             " paynotify.event_log WHERE tenant = 'long'")
        items, following = self.items("/api/v1/events", tenant="long")
        self.assertLess(len(items), 30)
        self.assertIsNotNone(following)
        self.assertEqual(len(self.pages("/api/v1/events", tenant="long")), 30)
        self.assertEqual(len(json.dumps(items[0]["payload"])), 400002)
