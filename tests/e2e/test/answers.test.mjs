// What an endpoint answers, and what the daemon makes of it. Nothing waits for
// the back-off: when an event is due again stands in the database, and is set to
// now. If one of these fails, an application that is in trouble is pushed harder
// than it asked for, or loses events, or gets them in the wrong order.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import readline from 'node:readline';
import { after, before, test } from 'node:test';
import { Daemon, sql } from '../lib/daemon.mjs';
import { hurry, notify, park, section, unfinished, whsec } from '../lib/pushed.mjs';
import { Sink, until } from '../lib/sink.mjs';
import { authorities } from '../lib/tls.mjs';

const PLAIN = ['gone', 'later', 'date', 'moved', 'order'];
// What is to be looked at is not tried again meanwhile, however slow we are.
const LONG = { 'Retry-After': '3600' };
let d, sink, tls;

before(async () => {
  const a = authorities();
  sink = await Sink.start();
  tls = await Sink.start(a.server);
  const sections = PLAIN.map((name) => section(name, `${sink.base}/${name}`, ['secret.txt'])).join('')
    + section('private', `${tls.base}/private`, ['secret.txt'], ['ca_file = ca.pem'])
    + section('foreign', `${tls.base}/foreign`, ['secret.txt'], ['ca_file = foreign.pem']);
  d = await Daemon.start({ sections,
    files: { 'secret.txt': whsec(), 'ca.pem': a.ca, 'foreign.pem': a.foreign } });
});
after(async () => {
  await d.stop();
  await sink.stop();
  await tls.stop();
});

const retrying = (endpoint, order) => until(`${order} is set aside by ${endpoint}`,
  async () => await unfinished(endpoint, order) === 'retry 1');
const done = (endpoint, order) => until(`${order} is done by ${endpoint}`,
  async () => await unfinished(endpoint, order) === '');
// Every attempt for an order: "outcome status error".
const attempts = (endpoint, order) => sql(
  `SELECT a.outcome || ' ' || coalesce(a.status, 0) || ' ' || coalesce(a.error, '-') FROM paynotify.delivery_attempts a
   JOIN paynotify.consumers c ON c.id = a.consumer_id JOIN paynotify.event_log e USING (seq)
   WHERE c.name = '${endpoint}' AND e.out_trade_no = '${order}' ORDER BY a.started_at`);
const consumer = (name) => JSON.parse(d.ctl('consumers', 'list', '--json').toString().split('\n')
  .find((l) => l && JSON.parse(l).name === name));

test('410 disables the endpoint until an operator resumes it, and nothing is lost', async () => {
  sink.answer('/gone', () => ({ status: 410, body: 'no longer here' }));
  notify(d, 'GO1');
  await sink.wait('/gone', 'GO1');
  await until('it is disabled', async () => await sql("SELECT state FROM paynotify.consumers WHERE name = 'gone'") === 'disabled');
  assert.match(consumer('gone').reason, /410/);
  await hurry('gone');
  notify(d, 'GO2');
  await sink.wait('/order', 'GO2'); // the others go on, and have been looked after
  assert.equal(sink.at('/gone').length, 1, 'nothing is sent to it');

  sink.answer('/gone', () => ({}));
  d.ctl('deliveries', 'resume', 'gone', '--reason', 'deployed again');
  await sink.wait('/gone', 'GO1', 2);
  await sink.wait('/gone', 'GO2');
  await done('gone', 'GO1');
  assert.equal(await attempts('gone', 'GO1'), 'retry 410 answered 410\ndone 200 -');
  assert.equal(consumer('gone').state, 'active');
});

// Seconds from the end of the first attempt until it is due again.
const putOff = (endpoint, order) => until(`${order} is put off by ${endpoint}`, () => sql(
  `SELECT extract(epoch FROM d.retry_at - a.started_at) - a.latency_us / 1e6 FROM paynotify.deliveries d
   JOIN paynotify.delivery_attempts a USING (consumer_id, seq)
   JOIN paynotify.consumers c ON c.id = d.consumer_id JOIN paynotify.event_log e USING (seq)
   WHERE c.name = '${endpoint}' AND e.out_trade_no = '${order}' AND d.state = 'retry' AND d.attempts = 1`));

const ASKED = [[429, '120', 120, 150], [503, '900', 900, 930], [503, '1', 4, 30],
  [429, '99999999999999999999', 86400, 86430], [503, 'soon', 4, 30], [500, '600', 600, 630]];
for (const [i, [status, asked, least, most]] of ASKED.entries()) {
  test(`${status} with Retry-After: ${asked} is due again in ${least} s at least`, async () => {
    sink.answer('/later', () => ({ status, headers: { 'Retry-After': asked } }));
    notify(d, `LA${i}`);
    const s = +await putOff('later', `LA${i}`);
    assert.ok(s >= least && s <= most, `due in ${s} s`);
    await park('later'); // or its failures would open the breaker, where we are slow
  });
}

test('what was put off comes when its time has come, once', async () => {
  sink.answer('/later', () => ({}));
  await hurry('later');
  for (const i of ASKED.keys()) await done('later', `LA${i}`);
  for (const i of ASKED.keys()) {
    assert.equal(sink.of('/later', `LA${i}`).filter((p) => p.status === 200).length, 1);
  }
});

test('Retry-After may be a date', async () => {
  const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 300e3);
  sink.answer('/date', () => ({ status: 503, headers: { 'Retry-After': at.toUTCString() } }));
  notify(d, 'DA1');
  await retrying('date', 'DA1');
  const due = +await unfinished('date', 'DA1', 'extract(epoch FROM d.retry_at) * 1000');
  assert.ok(due >= +at && due < +at + 30e3, `${new Date(due).toISOString()} for ${at.toISOString()}`);
});

for (const status of [301, 302, 307, 308]) {
  test(`a redirect (${status}) is a failure and not followed`, async () => {
    const order = `MO${status}`;
    sink.answer('/moved', () => ({ status, headers: { Location: `${sink.base}/elsewhere` } }));
    notify(d, order);
    const tried = await until('it was tried', () => attempts('moved', order));
    assert.match(tried, new RegExp(`^retry ${status} answered ${status}$`, 'm'));
    assert.equal(sink.at('/elsewhere').length, 0);
  });
}

test('TLS: a private authority is trusted where it is configured, another is not', async () => {
  notify(d, 'TL1');
  const [push] = await tls.wait('/private', 'TL1');
  assert.equal(push.event.out_trade_no, 'TL1');
  await done('private', 'TL1');
  // Whichever event: all of them fail there, and it is left alone for longer and longer.
  const failed = () => sql(`SELECT DISTINCT a.outcome || ' ' || coalesce(a.status, 0) || ' ' || a.error
    FROM paynotify.delivery_attempts a JOIN paynotify.consumers c ON c.id = a.consumer_id WHERE c.name = 'foreign'`);
  await until('the other endpoint was tried', failed);
  assert.match(await failed(), /^retry 0 .*certificate.*$/i);
  assert.equal(tls.at('/foreign').length, 0, 'not a request got there');
});

test('one order is in order: the later event waits while the first one fails, others do not', async () => {
  sink.answer('/order', (p) => (p.event.out_trade_no === 'OR1' && p.event.type === 'payment.succeeded'
    ? { status: 503, headers: LONG } : {}));
  notify(d, 'OR1', 'payment.succeeded');
  await retrying('order', 'OR1');
  notify(d, 'OR1', 'refund.succeeded');
  notify(d, 'OR2', 'payment.succeeded');
  await sink.wait('/order', 'OR2');
  await until('the refund waits', async () => await unfinished('order', 'OR1') === 'retry 1\nwaiting 0');
  await hurry('order');
  await sink.wait('/order', 'OR1', 2);
  await until('it failed again', async () => await unfinished('order', 'OR1') === 'retry 2\nwaiting 0');
  sink.answer('/order', () => ({}));
  await hurry('order');
  const came = await sink.wait('/order', 'OR1', 4);
  assert.deepEqual(came.map((p) => `${p.event.type} ${p.status}`), ['payment.succeeded 503', 'payment.succeeded 503',
    'payment.succeeded 200', 'refund.succeeded 200']);
  await done('order', 'OR1');
});

test('events tail --follow shows events as they are recorded', async () => {
  const tail = d.ctlSpawn('events', 'tail', '--follow', '--json', '--limit', '1');
  const lines = readline.createInterface({ input: tail.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value);
  try {
    const { seq } = await next(); // what was there already
    for (const order of ['TA1', 'TA2']) {
      notify(d, order);
      const event = await next();
      assert.equal(event.out_trade_no, order);
      assert.ok(event.seq > seq);
    }
  } finally {
    tail.kill('SIGINT');
    await once(tail, 'exit');
  }
});
