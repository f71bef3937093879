"""What the tests of the guard share: calls of its functions, in short."""
import hashlib
from collections import namedtuple

from support import Case

ROUTE = "POST /v1/charges"
Claimed = namedtuple("Claimed", "outcome attempt token response_status"
                     " response_headers response_body created_at expires_at"
                     " retry_at reason")


def digest(request):
    return hashlib.sha256(request.encode()).digest()


class GuardCase(Case):
    def claim(self, key="k", session=None, request="r", tenant="shop1",
              route=ROUTE, **more):
        return self.claimed(self.claim_by(
            session.run if session else self.sql, key, request, tenant, route,
            **more))

    def start_claim(self, session, key="k", request="r", tenant="shop1",
                    route=ROUTE, **more):
        """Sends a claim that may have to wait."""
        return self.claim_by(session.start, key, request, tenant, route,
                             **more)

    @staticmethod
    def claim_by(run, key, request, tenant, route, **more):
        return run("SELECT * FROM paynotify.guard_claim(%s, %s, %s, %s"
                   + "".join(f", {n} => %s" for n in more) + ")",
                   [tenant, route, key, digest(request), *more.values()])

    @staticmethod
    def claimed(rows):
        return Claimed(*rows[0])

    def call(self, function, key, *args, session=None, tenant="shop1",
             route=ROUTE):
        (session.run if session else self.sql)(
            f"SELECT paynotify.guard_{function}(%s, %s, %s"
            + ", %s" * len(args) + ")", [tenant, route, key, *args])

    def complete(self, key, token, session=None, body=b"ok", status=201,
                 **more):
        self.call("complete", key, token, status, "a: b", body,
                  session=session, **more)

    def release(self, key, token, *outcome, **more):
        self.call("release", key, token, *outcome, **more)

    def used(self, key="k", **more):
        """A key that has its answer."""
        scope = {n: more[n] for n in ("tenant", "route") if n in more}
        self.complete(key, self.claim(key, **more).token, **scope)

    def state(self, key="k"):
        rows = self.sql("SELECT state::text FROM paynotify.idempotency_keys"
                        " WHERE key = %s", [key])
        return rows[0][0] if rows else None

    def expire(self):
        """All keys have expired; also for the janitor, whose clock is not the
        tests'."""
        self.sql("UPDATE paynotify.idempotency_keys"
                 " SET expires_at = now() - interval '1 s'")

    def archive(self):
        return self.value("SELECT paynotify.archive_expired_keys(500)")
