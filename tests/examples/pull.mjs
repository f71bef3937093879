#!/usr/bin/env node
// An application that takes its events by SQL, in Node (pg).
//
// PGHOST, PGDATABASE, PGUSER ... say where. Each event is worked on and
// acknowledged in one transaction, so it is done exactly once.
//
//   pull.mjs [--drain]       --drain: ends when there is nothing left
import pg from 'pg';

const consumer = process.env.CONSUMER ?? 'shop-mjs';
const pollMs = 1000 * (process.env.POLL_SECONDS ?? 5);

// Your own work, in the transaction that acknowledges.
async function work(db, event) {
  await db.query(
    'INSERT INTO payments (event_id, type, out_trade_no, amount, currency) VALUES ($1, $2, $3, $4, $5)',
    [event.id, event.type, event.out_trade_no, event.amount, event.currency],
  );
}

const db = new pg.Client();
await db.connect();
let woken = false, wake = () => {};
db.on('notification', () => { woken = true; wake(); });
await db.query('SELECT paynotify.register_consumer($1)', [consumer]);
await db.query('LISTEN paynotify_events');

for (;;) {
  woken = false;
  const { rows } = await db.query("SELECT * FROM paynotify.claim($1, 100, '5 minutes')", [consumer]);
  for (const event of rows) {
    try {
      await db.query('BEGIN');
      await work(db, event);
      await db.query('SELECT paynotify.ack($1)', [event.token]);
      await db.query('COMMIT');
    } catch (e) {
      await db.query('ROLLBACK'); // throws if the connection is gone: start again
      console.error(`event ${event.id}: ${e.message}`);
      await db.query("SELECT paynotify.nack($1, '5 minutes', $2)", [event.token, e.message.slice(0, 200)])
        .catch(() => {}); // the lease was lost: it comes anyway
    }
  }
  if (rows.length > 0) continue;
  if (process.argv.includes('--drain')) break;
  if (!woken) await new Promise((resolve) => { wake = resolve; setTimeout(resolve, pollMs); });
}
await db.end();
