"""Peer: the guard in FastAPI + uvicorn + asyncpg: the claim of the key is
committed before the work, the answer after it, as the gateway does it. The work
is done right here and takes no time: there is no upstream to ask.

PORT, WORKERS (processes), POOL (connections of each), PGHOST/PGUSER/PGDATABASE
"""
import asyncio
import hashlib
import json
import os
import signal
import socket

import asyncpg
import uvicorn
from fastapi import FastAPI, Request, Response

TENANT = "shop1"
ROUTE = "POST /v1/charges"
WAIT_SECONDS = 10
LOOK_AGAIN_SECONDS = 0.01

CLAIM = """INSERT INTO guard_keys (tenant, route, key, request_hash)
           VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING true"""
SEEN = """SELECT request_hash, status, body FROM guard_keys
          WHERE tenant = $1 AND route = $2 AND key = $3"""
DONE = """UPDATE guard_keys SET status = $4, body = $5, completed_at = now()
          WHERE tenant = $1 AND route = $2 AND key = $3"""
FREE = "DELETE FROM guard_keys WHERE tenant = $1 AND route = $2 AND key = $3"

app = FastAPI()
pool = None


@app.on_event("startup")
async def startup():
    global pool
    size = int(os.environ.get("POOL", "16"))
    pool = await asyncpg.create_pool(min_size=size, max_size=size)


@app.on_event("shutdown")
async def shutdown():
    await pool.close()


def problem(status, text, **headers):
    return Response(json.dumps({"title": text, "status": status}), status,
                    headers, "application/problem+json")


async def charge(request):
    return Response(json.dumps({"id": "ch_20261130000001",
                                "amount": request["amount"], "currency": "CNY",
                                "status": "created"}), 201,
                    media_type="application/json")


async def repeated(scope, digest):
    """The answer to the first one, when it is there."""
    for _ in range(int(WAIT_SECONDS / LOOK_AGAIN_SECONDS)):
        row = await pool.fetchrow(SEEN, *scope)
        if row is None:
            break
        if row["request_hash"] != digest:
            return problem(422, "the key was used for another request")
        if row["status"] is not None:
            return Response(row["body"], row["status"],
                            {"Idempotency-Replayed": "true"}, "application/json")
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return problem(409, "the first request is still at work",
                   **{"Retry-After": "1"})


@app.post("/v1/charges")
async def charges(http: Request):
    key = http.headers.get("idempotency-key", "")
    if not 1 <= len(key) <= 255:
        return problem(400, "Idempotency-Key must have 1 to 255 characters")
    request = json.loads(await http.body())
    # The same request, however it is written.
    digest = hashlib.sha256(
        json.dumps(request, sort_keys=True).encode()).digest()
    scope = (TENANT, ROUTE, key)
    if not await pool.fetchval(CLAIM, *scope, digest):
        return await repeated(scope, digest)
    try:
        reply = await charge(request)
    except Exception:
        await pool.execute(FREE, *scope)
        raise
    await pool.execute(DONE, *scope, reply.status_code, reply.body)
    return reply


def main():
    """Each process has a socket of its own, so that the kernel spreads the
    connections; with one for all, a process that is awake takes most."""
    sockets = []
    for _ in range(int(os.environ.get("WORKERS", "2"))):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", int(os.environ["PORT"])))
        sockets.append(s)
    for s in sockets:
        s.listen(1024)
    children = []
    for s in sockets:
        child = os.fork()
        if child == 0:
            config = uvicorn.Config(
                app, loop="uvloop", http="httptools", timeout_keep_alive=75,
                access_log=False, log_level="warning")
            uvicorn.Server(config).run(sockets=[s])
            os._exit(0)
        children.append(child)
    for s in sockets:
        s.close()
    signal.signal(signal.SIGTERM, lambda *_: None)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
