"""The log of a daemon at work: what it must not hold, that programs can read it,
that a flood does not fill it, and that its parts are switched by themselves."""
import http.server
import json
import os
import re
import signal
import subprocess
import threading

from harness import BUILD, Case, eventually, psql, raw

ALIPAY, WECHAT = "/notify/alipay/shop1", "/notify/wechat/shop1"
# What is planted everywhere, and may be nowhere in a log.
OPENID = "oPLANTEDuMuAJO_M2pxb1Q9zNjW1"
BUYER, PHONE, LOGON = "2088777766665555", "13877665544", "planted.buyer@example.com"
SECRETS = (OPENID, BUYER, PHONE, LOGON, "planted-password", "planted-query",
           "planted-detail", "planted-answer")
BUYERS = {"buyer_id": BUYER, "buyer_open_id": OPENID, "buyer_logon_id": LOGON,
          "buyer_user_id": BUYER, "passback_params": f"phone={PHONE}"}

PLANT = f"""
CREATE FUNCTION paynotify.plant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.out_trade_no = 'LGraise' THEN
        RAISE EXCEPTION 'ledger refused {{"openid": "{OPENID}"}} of %, buyer {BUYER}',
            '{PHONE}' USING ERRCODE = '22000', DETAIL = 'planted-detail';
    END IF;
    IF NEW.out_trade_no = 'LGcheck' THEN
        INSERT INTO paynotify.planted VALUES ('planted-detail', '{OPENID}');
    END IF;
    RETURN NEW;
END $$;
CREATE TABLE paynotify.planted (a text CHECK (a <> 'planted-detail'), openid text);
CREATE TRIGGER plant BEFORE INSERT ON paynotify.event_log
    FOR EACH ROW EXECUTE FUNCTION paynotify.plant();
"""
UPROOT = """
DROP TRIGGER plant ON paynotify.event_log;
DROP FUNCTION paynotify.plant();
DROP TABLE paynotify.planted;
"""


class Sink(http.server.BaseHTTPRequestHandler):
    """An endpoint that refuses, and says whose event it was."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = f'{{"openid":"{OPENID}","why":"planted-answer"}}'.encode()
        self.send_response(500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def lines_of(daemon):
    return [json.loads(line) for line in daemon.log().splitlines()]


class Masked(Case):
    """A run of everything that can go wrong, at debug level, in JSON."""

    @classmethod
    def setUpClass(cls):
        cls.sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        threading.Thread(target=cls.sink.serve_forever, daemon=True).start()
        port = cls.sink.server_address[1]
        psql(PLANT)
        super().setUpClass()
        secret = os.path.join(cls.folder, "whsec")
        with open(secret, "w") as f:
            f.write("whsec_cGxhbnRlZC1wYXNzd29yZC1wbGFudGVkLXBhc3M=")
        os.chmod(secret, 0o600)
        cls.accounts = (
            "[log]\nlevel = debug\nformat = json\n"
            f"[deliver app]\nurl = http://127.0.0.1:{port}/hook?token=planted-query\n"
            f"secret_file = {secret}\n")
        cls.masked = cls.start(
            dsn=f"{os.environ['PN_DSN']} password=planted-password").ready()

    @classmethod
    def tearDownClass(cls):
        psql(UPROOT)
        super().tearDownClass()
        cls.sink.shutdown()
        cls.sink.server_close()

    def wechat(self, trade, mchid=None, **options):
        change = {"payer": {"openid": OPENID, "sub_openid": OPENID}, "attach": PHONE}
        if mchid is not None:
            change["mchid"] = mchid
        return self.signer.wechat(trade, change, **options)

    def test_log__holds_no_buyer_and_no_secret(self):
        """Who bought, or a password, is on a disk for everybody's eyes."""
        ask = self.masked.ask
        for trade in ("LG1", "LG1", "LGraise", "LGcheck"):
            ask(ALIPAY, *self.signer.alipay(trade, BUYERS))
        self.expect(ask(ALIPAY, *self.signer.alipay(
            "LG1", {**BUYERS, "total_amount": "1.00"})), 422)
        self.expect(ask(ALIPAY, *self.signer.alipay("LG2", BUYERS, forge=True)), 401)
        self.expect(ask(ALIPAY, *self.signer.alipay(
            "LG3", {**BUYERS, "app_id": "2021999999999999"})), 403)
        self.expect(ask(WECHAT, *self.wechat("LG4")), 200)
        self.expect(ask(WECHAT, *self.wechat("LG5", forge=True)), 401)
        self.expect(ask(WECHAT, *self.wechat("LG6", mchid="1999999999")), 403)
        self.expect(ask(WECHAT, *self.wechat("LG7", key="other")), 500)
        self.expect(ask(f"/notify/none/x?openid={OPENID}", {}, BUYER.encode()), 404)
        with self.masked.connect() as c:  # not even a request
            c.send(f"GET /?phone={PHONE} {OPENID}\r\n\r\n".encode())
        eventually(lambda: any("to push event" in line["msg"] and
                               line["subject"] == "app"
                               for line in lines_of(self.masked)), "an attempt")
        self.assertEqual(self.masked.stop(), 0)

        log = self.masked.log()
        for secret in SECRETS:
            self.assertNotIn(secret, log)
        # What was masked is there otherwise: the run did what it should.
        self.assertRegex(log, r"ledger refused .*openid.*: .*\*\*\*")
        self.assertIn("planted_a_check", log)
        self.assertRegex(log, r"/hook\?\*\*\*")
        self.check_lines(lines_of(self.masked))

    def check_lines(self, lines):
        """Each an object whose fields say whom it is about."""
        for line in lines:
            self.assertRegex(line["time"],
                             r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
            self.assertIn(line["level"], ("err", "warning", "notice", "info", "debug"))
        seen = {(line["category"], line["level"]) for line in lines}
        self.assertLessEqual({("ingest", "debug"), ("ingest", "warning"),
                              ("store", "debug"), ("store", "err"), ("net", "debug"),
                              ("deliver", "debug"), ("cmd", "info")}, seen)
        refused = next(line for line in lines if "refused as bad_sig" in line["msg"])
        self.assertRegex(refused["req"], r"^[0-9a-f]{8}-[0-9a-f-]{27}$")
        self.assertEqual((refused["provider"], refused["tenant"], refused["subject"],
                          refused["peer"]),
                         ("alipay", "shop1", "bad_signature", "127.0.0.1"))
        broken = next(line for line in lines if "ledger refused" in line["msg"])
        self.assertRegex(broken["req"], r"^[0-9a-f]{8}-")
        self.assertEqual((broken["provider"], broken["tenant"], broken["key"]),
                         ("alipay", "shop1", "webhook:alipay:LGraise"))
        answered = [line for line in lines if line["msg"].startswith("answered after")]
        self.assertLessEqual({"recorded", "duplicate", "conflict", "bad_signature",
                              "quarantined"}, {line["subject"] for line in answered})


class Flood(Case):
    accounts = "[log]\ndebug = store\n"

    def test_log__floods_collapse_and_alarms_do_not(self):
        """A stranger's forgeries fill the disk, or hide what was signed."""
        forged = raw(ALIPAY, *self.signer.alipay("FL1", forge=True))
        wrong = [raw(WECHAT, *self.signer.wechat(f"FL{i}", {"mchid": "1999999999"}))
                 for i in range(2, 27)]
        with self.daemon.connect() as c:
            for _ in range(300):
                self.expect(c.ask(forged), 401)
            for request in wrong:
                self.expect(c.ask(request), 403)

        def told():
            log = self.daemon.log()
            lines = len(re.findall(r"refused as bad_signature", log))
            held = map(int, re.findall(r"\((\d+) like it held back", log))
            return lines, sum(held)
        # The last line of a flood that has ended repeats one that was counted.
        eventually(lambda: sum(told()) in (300, 301), "all are told")
        self.assertLess(told()[0], 100)
        self.assertEqual(self.daemon.log().count("signed, but not recordable"), 25)

    def test_log__a_category_is_switched_by_itself(self):
        """Debug lines of one part cannot be had without those of all."""
        self.expect(self.daemon.ask(ALIPAY, *self.signer.alipay("CA1")), 200)
        line = re.compile(r"^time=\S+ level=debug category=(\w+) ", re.MULTILINE)
        eventually(lambda: "committed 1 notifications" in self.daemon.log(), "debug")
        self.assertEqual(set(line.findall(self.daemon.log())), {"store"})

    def test_log__a_reload_switches_it(self):
        """A fault that shows now is gone by the restart that lets it be seen."""
        daemon = self.start().ready()
        self.expect(daemon.ask(ALIPAY, *self.signer.alipay("RL1")), 200)
        self.assertNotIn("category=ingest", daemon.log())
        with open(daemon.conf) as f:
            text = f.read()
        with open(daemon.conf, "w") as f:
            f.write(text.replace("debug = store",
                                 "level = err\nformat = json\ndebug = ingest"))
        daemon.process.send_signal(signal.SIGHUP)

        def answers():
            self.expect(daemon.ask(ALIPAY, *self.signer.alipay("RL1")), 200)
            return '"category":"ingest"' in daemon.log()
        eventually(answers, "a line of ingest")
        after = daemon.log().split('"category":"ingest"', 1)[1]
        self.assertNotIn("committed 1 notifications", after)
        # Alarms are there at any level.
        self.expect(daemon.ask(WECHAT, *self.signer.wechat(
            "RL2", {"mchid": "1999999999"})), 403)
        self.expect(daemon.ask(ALIPAY, *self.signer.alipay(
            "RL1", {"total_amount": "1.00"})), 422)
        self.assertIn("signed, but not recordable", daemon.log())
        self.assertIn("known key with other content", daemon.log())
        self.assertEqual(daemon.stop(), 0)

    def test_log__unknown_words_are_refused_with_those_there_are(self):
        """A category is misspelt, and nobody notices until the lines are missed."""
        with open(self.daemon.conf) as f:
            text = f.read()
        conf = os.path.join(self.daemon.folder, "wrong.conf")
        for wrong, listed in (("debug = shop", "base or codec or crypto"),
                              ("level = loud", "err or warning or notice"),
                              ("format = xml", "logfmt or json")):
            with open(conf, "w") as f:
                f.write(text.replace("debug = store", wrong))
            os.chmod(conf, 0o600)
            done = subprocess.run([f"{BUILD}/paynotifyd", "--check", "-c", conf],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 78)
            self.assertRegex(done.stderr, r"wrong\.conf:\d+: ")
            self.assertIn(listed, done.stderr)
