// What the daemon pushes is a Standard Webhook: the npm package that
// applications verify with takes it, and nothing that was changed on the way. If
// one of these fails, applications refuse our events, or believe a stranger's.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { Daemon, sql } from '../lib/daemon.mjs';
import { notify, section, unfinished, whsec } from '../lib/pushed.mjs';
import { Sink, until } from '../lib/sink.mjs';

const secrets = { old: whsec(), new: whsec(), other: whsec() };
let d, sink;

const sections = (...rotating) => section('all', `${sink.base}/all`, ['other.txt'])
  + section('rotating', `${sink.base}/rotating`, rotating)
  + section('paid', `${sink.base}/paid`, ['other.txt'], ['tenants = shop1', 'types = payment.*'])
  + section('two', `${sink.base}/two`, ['other.txt'],
    ['tenants = shop1', 'tenants = hmac', 'types = refund.succeeded', 'types = payment.closed']);

before(async () => {
  sink = await Sink.start();
  d = await Daemon.start({ sections: sections('old.txt'),
    files: { 'old.txt': secrets.old, 'new.txt': `${secrets.new}\n`, 'other.txt': secrets.other } });
});
after(async () => {
  await d.stop();
  await sink.stop();
});

const verify = (push, secret) => new Webhook(secret).verify(push.body, push.headers);
function refuses(push, secret, what) {
  assert.throws(() => verify(push, secret), WebhookVerificationError, what);
}
const shown = (id) => d.ctl('events', 'show', id, '--json').toString();

for (const [account, order] of [['alipay/shop1', 'WH0001'], ['wechat/shop1', 'WH0002']]) {
  test(`standardwebhooks takes an event of ${account}, its bytes are those of events show`, async () => {
    notify(d, order, 'payment.succeeded', account);
    const [push] = await sink.wait('/all', order);
    assert.equal(push.method, 'POST');
    assert.equal(push.headers['content-type'], 'application/json');
    assert.deepEqual(verify(push, secrets.other), push.event);
    assert.equal(push.id, push.event.id);
    assert.match(push.id, /^evt_[0-9a-f]{32}$/);
    assert.equal(`${push.body}\n`, shown(push.id));
    assert.equal(push.event.type, 'payment.succeeded');
    assert.ok(Math.abs(push.headers['webhook-timestamp'] - Date.now() / 1000) < 60);
    assert.equal(push.headers['webhook-redelivery'], undefined);
    assert.equal(push.headers['webhook-signature'].split(' ').length, 1);
  });
}

test('what is changed on the way, or by a stranger, does not verify', async () => {
  notify(d, 'WH0010');
  const [push] = await sink.wait('/all', 'WH0010');
  const h = push.headers;
  verify(push, secrets.other);
  refuses({ ...push, body: Buffer.from(push.body.toString().replace('8888', '8889')) }, secrets.other, 'body');
  refuses({ ...push, body: Buffer.from(`${push.body} `) }, secrets.other, 'one byte more');
  refuses({ ...push, headers: { ...h, 'webhook-id': `${push.id.slice(0, -1)}x` } }, secrets.other, 'id');
  refuses({ ...push, headers: { ...h, 'webhook-timestamp': String(+h['webhook-timestamp'] + 1) } },
    secrets.other, 'timestamp');
  refuses(push, secrets.old, 'the secret of another endpoint');
});

test('a redelivery keeps webhook-id and the body, and says that it is one', async () => {
  notify(d, 'WH0020');
  const [first] = await sink.wait('/all', 'WH0020');
  await until('the event is done', async () => await unfinished('all', 'WH0020') === '');
  d.ctl('deliveries', 'redeliver', first.id, '--consumer', 'all', '--reason', 'lost by the application',
    '--actor', 'wang');
  const [, again] = await sink.wait('/all', 'WH0020', 2);
  assert.equal(again.id, first.id);
  assert.equal(again.headers['webhook-redelivery'], 'true');
  assert.deepEqual(again.body, first.body);
  assert.deepEqual(verify(again, secrets.other), first.event);
  assert.equal(await sql("SELECT action || ' ' || actor || ' ' || reason FROM paynotify.delivery_actions"),
    'redeliver wang lost by the application');
});

test('filters by tenant and type: each endpoint gets its own, all of it', async () => {
  const sent = [['shop1', 'payment.succeeded'], ['hmac', 'payment.succeeded'], ['shop1', 'refund.succeeded'],
    ['hmac', 'refund.succeeded'], ['shop1', 'refund.closed'], ['hmac', 'refund.closed']];
  for (const [i, [tenant, type]] of sent.entries()) notify(d, `FI${i}`, type, `wechat/${tenant}`);
  notify(d, 'FI6', 'payment.closed', 'alipay/shop1');
  const of = (path) => sink.at(path).map((p) => p.event.out_trade_no).filter((o) => /^FI/.test(o)).sort();
  // Orders are independent: the last is no sign that the others were there.
  for (const [path, orders] of [['/all', ['FI0', 'FI1', 'FI2', 'FI3', 'FI4', 'FI5', 'FI6']],
    ['/paid', ['FI0', 'FI6']], ['/two', ['FI2', 'FI3', 'FI6']]]) {
    for (const o of orders) await sink.wait(path, o);
    await until(`${path} has nothing left`, async () => await sql(
      `SELECT max(m.seq) >= (SELECT max(seq) FROM paynotify.event_log) AND NOT EXISTS (SELECT
         FROM paynotify.deliveries d WHERE d.consumer_id = c.id AND d.state <> 'done')
       FROM paynotify.consumers c JOIN paynotify.consumer_marks m ON m.consumer_id = c.id
       WHERE c.name = '${path.slice(1)}' GROUP BY c.id`) === 't');
    assert.deepEqual(of(path), orders);
  }
  for (const p of sink.at('/paid')) assert.match(`${p.event.tenant} ${p.event.type}`, /^shop1 payment\./);
});

test('a secret is rotated: each of two verifies, then only the new one', async () => {
  notify(d, 'RO1');
  const [one] = await sink.wait('/rotating', 'RO1');
  verify(one, secrets.old);
  refuses(one, secrets.new);

  await d.restart(sections('old.txt', 'new.txt'));
  notify(d, 'RO2');
  const [two] = await sink.wait('/rotating', 'RO2');
  assert.equal(two.headers['webhook-signature'].split(' ').length, 2);
  assert.deepEqual(verify(two, secrets.old), two.event);
  assert.deepEqual(verify(two, secrets.new), two.event);
  refuses(two, secrets.other);
  refuses({ ...two, body: Buffer.from(`${two.body}\n`) }, secrets.new);

  await d.restart(sections('new.txt'));
  notify(d, 'RO3');
  const [three] = await sink.wait('/rotating', 'RO3');
  verify(three, secrets.new);
  refuses(three, secrets.old);
  // A changed configuration is the same endpoint: nothing comes again.
  assert.equal(sink.of('/rotating', 'RO1').length, 1);
});

test('every push of this file verifies, and no event came twice unasked', () => {
  for (const p of sink.got.filter((g) => g.path !== '/rotating')) verify(p, secrets.other);
  const firsts = sink.got.filter((p) => !p.headers['webhook-redelivery']).map((p) => p.path + p.id);
  assert.equal(new Set(firsts).size, firsts.length);
});
