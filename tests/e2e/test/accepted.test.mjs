// What the SDKs sign is accepted: reply bytes exact, one event row each. If one
// of these fails, a merchant's real notifications would be refused or lost.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import WxPay from 'wechatpay-node-v3';
import { Hash } from 'wechatpay-axios-plugin';
import { Daemon, IDS, events, sql } from '../lib/daemon.mjs';
import * as n from '../lib/notifications.mjs';

const ALIPAY_OK = { status: 200, body: 'success', length: '7' };
const V3_OK = { status: 200, body: '{"code":"SUCCESS"}', length: '18' };
const V2_OK = '<xml><return_code><![CDATA[SUCCESS]]></return_code>'
  + '<return_msg><![CDATA[OK]]></return_msg></xml>';

let d, sdk, wx;
before(async () => {
  d = await Daemon.start();
  sdk = n.alipaySdk(d);
  wx = new WxPay({ appid: IDS.wxAppid, mchid: IDS.mchid, publicKey: d.wechat.publicKey,
    privateKey: d.wechat.privateKey, serial_no: 'X', key: d.v3 });
});
after(() => d.stop());

function is(reply, want) {
  for (const [k, v] of Object.entries(want)) assert.equal(reply[k], v, `${k}: ${JSON.stringify(reply)}`);
}
const alipay = (fields) => d.post('alipay/shop1', n.FORM, n.form(fields));
const v3 = (body, sign = n.axiosSigner(d), ts = undefined) => d.post('wechat/shop1', n.wechatHeaders(body, sign, ts), body);

test('alipay-sdk: a paid trade is recorded once', async () => {
  const fields = n.alipaySign(n.alipayTrade('E2E0001'), d.alipay.privateKey);
  assert.equal(sdk.checkNotifySignV2(fields), true, 'the SDK takes its own signature');
  is(await alipay(fields), ALIPAY_OK);
  is(await alipay(fields), ALIPAY_OK);
  const retry = n.alipayTrade('E2E0001', { notify_time: n.beijing(new Date(Date.now() + 4000)) });
  is(await alipay(n.alipaySign(retry, d.alipay.privateKey)), ALIPAY_OK);
  assert.equal(await events('E2E0001'), 'payment.succeeded 8888');
});

test('alipay-sdk: a refund comes behind its payment', async () => {
  const f = n.alipayTrade('E2E0002', { refund_fee: '10.00', gmt_refund: `${n.beijing()}.123`,
    out_biz_no: 'RF1' });
  is(await alipay(n.alipaySign(f, d.alipay.privateKey)), ALIPAY_OK);
  assert.equal(await events('E2E0002'), 'payment.succeeded 8888\nrefund.succeeded -');
});

test('alipay-sdk: an empty value is signed as the SDK signs it', async () => {
  const f = n.alipaySign(n.alipayTrade('E2E0003', { body: '' }), d.alipay.privateKey);
  assert.equal(sdk.checkNotifySignV2(f), true);
  is(await alipay(f), ALIPAY_OK);
  assert.equal(await events('E2E0003'), 'payment.succeeded 8888');
});

test('alipay-sdk: a message that the SDK signs with sign_type in it', async () => {
  const f = n.alipayMessage('alipay.open.servicemarket.order.notify', {
    notifyType: 'servicemarket_order_notify', notifyId: 'E2E0004msg', notifyTime: n.beijing(),
    commodityOrderId: '201511021500', merchantPid: '2088001' }, d);
  assert.equal(sdk.checkNotifySignV2(f), true);
  is(await alipay(f), ALIPAY_OK);
  assert.equal(await sql("SELECT type FROM paynotify.events WHERE key = 'webhook:alipay:notify:E2E0004msg'"),
    'alipay.servicemarket_order_notify');
});

test('alipay-sdk: a changed value and a stranger\'s key are refused', async () => {
  const good = n.alipaySign(n.alipayTrade('E2E0005'), d.alipay.privateKey);
  is(await alipay({ ...good, total_amount: '0.01' }), { status: 401, body: 'fail', length: '4' });
  is(await alipay(n.alipaySign(n.alipayTrade('E2E0005'), d.stranger.privateKey)), { status: 401, body: 'fail' });
  assert.equal(await events('E2E0005'), '');
});

test('wechatpay-axios-plugin: an APIv3 payment is recorded once', async () => {
  const body = n.wechatEnvelope(n.wechatTransaction('E2E0101'), d);
  is(await v3(body), V3_OK);
  is(await v3(n.wechatEnvelope(n.wechatTransaction('E2E0101'), d)), V3_OK);
  assert.equal(await events('E2E0101'), 'payment.succeeded 8888');
});

test('wechatpay-node-v3: its signature is as good', async () => {
  const body = n.wechatEnvelope(n.wechatTransaction('E2E0102'), d);
  is(await v3(body, (text) => wx.sha256WithRsa(text)), V3_OK);
  assert.equal(await events('E2E0102'), 'payment.succeeded 8888');
});

test('wechatpay-axios-plugin: an APIv3 refund', async () => {
  const plain = { mchid: IDS.mchid, out_trade_no: 'E2E0103', transaction_id: '4200001234E2E0103',
    out_refund_no: 'RE2E0103', refund_id: '50300000E2E0103', refund_status: 'SUCCESS', success_time: n.iso(),
    user_received_account: '支付用户零钱', amount: { total: 8888, refund: 300, payer_total: 8888, payer_refund: 300 } };
  is(await v3(n.wechatEnvelope(plain, d, { event_type: 'REFUND.SUCCESS', original_type: 'refund' })), V3_OK);
  assert.equal(await events('E2E0103'), 'refund.succeeded 300');
});

test('wechatpay-axios-plugin: tampered, stale and foreign ones are refused', async () => {
  const body = n.wechatEnvelope(n.wechatTransaction('E2E0104'), d);
  const headers = n.wechatHeaders(body, n.axiosSigner(d));
  const tampered = await d.post('wechat/shop1', headers, body.replace('transaction', 'Transaction'));
  assert.equal(tampered.status, 401);
  assert.equal(JSON.parse(tampered.body).code, 'FAIL');
  const old = await v3(body, n.axiosSigner(d), Math.floor(Date.now() / 1000) - 900);
  assert.equal(old.status, 401);
  const wrong = n.wechatEnvelope(n.wechatTransaction('E2E0104', { mchid: '1900000009' }), d);
  assert.equal((await v3(wrong)).status, 403);
  assert.equal(await events('E2E0104'), '');
});

test('wechatpay-axios-plugin: APIv2 payments, MD5 and HMAC-SHA256', async () => {
  const md5 = n.v2Sign(n.v2Payment('E2E0201'), Hash.ALGO_MD5, d);
  is(await d.post('wechat/shop1', n.XML, md5), { status: 200, body: V2_OK });
  assert.equal(await events('E2E0201'), 'payment.succeeded 8888');
  const hmac = n.v2Sign(n.v2Payment('E2E0202', { sign_type: 'HMAC-SHA256' }), Hash.ALGO_HMAC_SHA256, d);
  is(await d.post('wechat/hmac', n.XML, hmac), { status: 200, body: V2_OK });
  assert.equal(await events('E2E0202'), 'payment.succeeded 8888');
  const refused = await d.post('wechat/hmac', n.XML, n.v2Sign(n.v2Payment('E2E0203'), Hash.ALGO_MD5, d));
  assert.match(refused.body, /^<xml><return_code><!\[CDATA\[FAIL\]\]>/);
  assert.equal(await events('E2E0203'), '');
});

test('wechatpay-axios-plugin: an APIv2 refund, req_info encrypted by it', async () => {
  is(await d.post('wechat/shop1', n.XML, n.v2Refund('E2E0204', d)), { status: 200, body: V2_OK });
  assert.equal(await events('E2E0204'), 'refund.succeeded 300');
});

test('wechat: v2 and v3 of one payment are one event', async () => {
  is(await v3(n.wechatEnvelope(n.wechatTransaction('E2E0301'), d)), V3_OK);
  const v2 = n.v2Sign(n.v2Payment('E2E0301'), Hash.ALGO_MD5, d);
  is(await d.post('wechat/shop1', n.XML, v2), { status: 200, body: V2_OK });
  assert.equal(await events('E2E0301'), 'payment.succeeded 8888');
});

test('every accepted notification has evidence and each request a receipt', async () => {
  assert.equal(await sql('SELECT count(*) FROM paynotify.events'),
    await sql('SELECT count(DISTINCT id) FROM paynotify.events'));
  assert.equal(await sql(`SELECT count(*) FROM paynotify.event_log e WHERE NOT EXISTS
    (SELECT FROM paynotify.evidence v WHERE v.receipt_id = e.receipt_id)`), '0');
  assert.ok(+await sql('SELECT count(*) FROM paynotify.receipts') >= 20);
});
