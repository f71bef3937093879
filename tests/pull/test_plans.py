"""How the hand-off's statements are executed when the statistics say that the
table is empty, as those of a queue do: then all plans seem to cost the same, and
one that reads every row, or everything dead before the first live one, is as
good as one by key - until there is an old snapshot."""
import re
import unittest

from support import Case, connect

# What must be looked for by each index of deliveries.
NEEDED = {"deliveries_pkey": "seq", "deliveries_order": "order_hash",
          "deliveries_due": "retry_at", "deliveries_waiting": "seq"}


class Plans(Case):
    own_database = True

    def test_all_by_key(self):
        """One old snapshot, and the hand-off falls to a tenth."""
        self.register()
        old = connect(self.database, autocommit=False)
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1 FROM paynotify.deliveries")
        self.drain(300)
        self.sql("VACUUM ANALYZE paynotify.deliveries")
        self.assertEqual(self.value(
            "SELECT reltuples FROM pg_class"
            " WHERE oid = 'paynotify.deliveries'::regclass"), 0)
        plans = []
        self.admin.add_notice_handler(
            lambda d: plans.append(d.message_primary))
        self.sql("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
                 " SET auto_explain.log_nested_statements = on;"
                 " SET client_min_messages = log")
        self.drain(30)
        first = self.event("o1")
        self.event("o1")
        self.claim(lease="1 min")
        self.pass_time(61)
        self.nack(self.claim()[first], "0")
        self.sql("SELECT paynotify.skip('app', ARRAY[%s]::bigint[], 'w', 'a')",
                 [first])
        self.drain(1)
        found = set()
        for plan in plans:
            self.assertNotRegex(plan, r"(Seq|Heap) Scan on deliveries")
            for index, rest in re.findall(
                    r"using (\w+) on deliveries \w*.*\n(.*)", plan):
                found.add(index)
                self.assertIn("Index Cond", rest, plan)
                self.assertIn(NEEDED[index], rest, plan)
        self.assertEqual(found, set(NEEDED))
        old.close()

    def drain(self, orders):
        for n in range(orders):
            for _ in range(3):
                self.event(f"d{n}")
        while got := self.claim():
            self.done(*got.values())
        self.pass_time(3601)
        self.tend()


if __name__ == "__main__":
    unittest.main()
