-- The table of the guard that is written in FastAPI: what its statements need
-- and no more, with one index.
CREATE TABLE guard_keys (
    tenant       text NOT NULL,
    route        text NOT NULL,
    key          text NOT NULL,
    request_hash bytea NOT NULL,
    status       int,
    body         bytea,
    locked_at    timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    PRIMARY KEY (tenant, route, key)
);
