// What the tests of pushing share: secrets, sections, notifications.
import crypto from 'node:crypto';
import { sql } from './daemon.mjs';

export const whsec = () => `whsec_${crypto.randomBytes(32).toString('base64')}`;

// A [deliver] section. lines: further options.
export const section = (name, url, secretFiles, lines = []) => [`[deliver ${name}]`, `url = ${url}`,
  ...secretFiles.map((f) => `secret_file = ${f}`), ...lines, ''].join('\n');

const seed = (order) => String(crypto.createHash('sha256').update(order).digest().readUInt32BE());

// One notification, sent and taken. Those of one order tell of one transaction,
// those of another order of another one.
export const notify = (d, order, type = 'payment.succeeded', account = 'alipay/shop1') => d.ctl(
  'trigger', type, '--account', account, '--out-trade-no', order, '--seed', seed(order));

// What of an order is not done by an endpoint, oldest first: "state attempts".
export const unfinished = (endpoint, order, columns = "d.state || ' ' || d.attempts") => sql(
  `SELECT ${columns} FROM paynotify.deliveries d
   JOIN paynotify.consumers c ON c.id = d.consumer_id JOIN paynotify.event_log e USING (seq)
   WHERE c.name = '${endpoint}' AND e.out_trade_no = '${order}' AND d.state <> 'done' ORDER BY seq`);

// When what the back-off has set aside is due: now; not while we look.
const setDue = (endpoint, after) => sql(
  `UPDATE paynotify.deliveries SET retry_at = clock_timestamp() + interval '${after}' WHERE state = 'retry'
   AND consumer_id = (SELECT id FROM paynotify.consumers WHERE name = '${endpoint}')`);
export const hurry = (endpoint) => setDue(endpoint, '0');
export const park = (endpoint) => setDue(endpoint, '1 hour');
