"""An API of your own with Idempotency-Key, on FastAPI and asyncpg, without a
gateway: the claim of the key, your own insert and the answer that is kept are
one transaction. A crash or an error anywhere leaves nothing, and the client may
try again; whoever clicks twice waits for the first one and gets its answer.

PGHOST, PGDATABASE, PGUSER ... say where; the role is a member of
paynotify_consumer. uvicorn guard_fastapi:app
"""
import hashlib
import json

import asyncpg
from fastapi import FastAPI, Request, Response

TENANT = "shop1"
ROUTE = "POST /v1/charges"
WAIT = "5s"                 # for the first of two clicks

app = FastAPI()
pool = None


@app.on_event("startup")
async def startup():
    global pool
    pool = await asyncpg.create_pool(max_size=10)


@app.on_event("shutdown")
async def shutdown():
    await pool.close()


def answer(status, value, **headers):
    return Response(json.dumps(value), status, headers,
                    "application/json")


def problem(status, text, **headers):
    return Response(json.dumps({"title": text, "status": status}), status,
                    headers, "application/problem+json")


async def charge(db, request):
    """Your own work, in the transaction of the key."""
    number = await db.fetchval(
        "INSERT INTO charges (out_trade_no, amount) VALUES ($1, $2)"
        " RETURNING id", request["out_trade_no"], request["amount"])
    return answer(201, {"id": number, **request})


@app.post("/v1/charges")
async def charges(http: Request):
    key = http.headers.get("idempotency-key", "")
    if not 1 <= len(key) <= 255:
        return problem(400, "Idempotency-Key must have 1 to 255 characters")
    try:
        request = json.loads(await http.body())
        request = {"out_trade_no": str(request["out_trade_no"]),
                   "amount": int(request["amount"])}
    except (ValueError, KeyError, TypeError):
        return problem(400, "out_trade_no and amount (in fen) are needed")
    # The same request, however it is written.
    digest = hashlib.sha256(
        json.dumps(request, sort_keys=True).encode()).digest()
    try:
        async with pool.acquire() as db, db.transaction(
                isolation="read_committed"):
            await db.execute(f"SET LOCAL lock_timeout = '{WAIT}'")
            got = await db.fetchrow(
                "SELECT * FROM paynotify.guard_claim($1, $2, $3, $4,"
                " after_expiry => 'refuse')", TENANT, ROUTE, key, digest)
            if got["outcome"] == "run":
                reply = await charge(db, request)
                await db.execute(
                    "SELECT paynotify.guard_complete($1, $2, $3, $4, $5,"
                    " NULL, $6)", TENANT, ROUTE, key, got["token"],
                    reply.status_code, reply.body)
                return reply        # once the transaction is committed
    except asyncpg.LockNotAvailableError:
        return problem(409, "the first request is still at work",
                       **{"Retry-After": "1"})
    if got["outcome"] == "replay":
        return Response(got["response_body"], got["response_status"],
                        {"Idempotency-Replayed": "true"}, "application/json")
    if got["outcome"] == "mismatch":
        return problem(422, "the key was used for another request")
    return problem(409, f"the key cannot be used now: {got['outcome']}")
