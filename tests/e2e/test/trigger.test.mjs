// What `paynotifyctl trigger` makes passes the SDKs' verifiers: a merchant who
// tests with it tests with what the provider would send.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import WxPay from 'wechatpay-node-v3';
import { Aes, Formatter, Hash, Rsa, Transformer } from 'wechatpay-axios-plugin';
import { Daemon, IDS, sql } from '../lib/daemon.mjs';
import { parse } from '../lib/capture.mjs';
import * as n from '../lib/notifications.mjs';

let d, sdk, wx;
before(async () => {
  d = await Daemon.start();
  sdk = n.alipaySdk(d);
  wx = new WxPay({ appid: IDS.wxAppid, mchid: IDS.mchid, publicKey: d.wechat.publicKey,
    privateKey: d.wechat.privateKey, serial_no: 'X', key: d.v3 });
  WxPay.certificates[IDS.serial] = d.wechat.publicKey;
});
after(() => d.stop());

const decode = (body) => Object.fromEntries(new URLSearchParams(body));

for (const event of ['payment.succeeded', 'payment.finished', 'payment.pending', 'payment.closed', 'refund.succeeded']) {
  test(`alipay-sdk takes trigger's ${event}`, () => {
    const c = parse(d.trigger('alipay/shop1', event));
    assert.match(c.first, /^POST \/notify\/alipay\/shop1 HTTP\/1\.1$/);
    const f = decode(c.body);
    assert.equal(sdk.checkNotifySignV2(f), true);
    assert.equal(sdk.checkNotifySignV2({ ...f, out_trade_no: `${f.out_trade_no}0` }), false);
  });
}

function v3(c) {
  const h = c.headers;
  const text = Formatter.joinedByLineFeed(h['wechatpay-timestamp'], h['wechatpay-nonce'], c.body);
  assert.equal(h['wechatpay-serial'], IDS.serial);
  return { text, signature: h['wechatpay-signature'], resource: JSON.parse(c.body).resource };
}

for (const event of ['payment.succeeded', 'refund.succeeded', 'refund.abnormal', 'refund.closed']) {
  test(`both WeChat SDKs take trigger's ${event}`, async () => {
    const c = parse(d.trigger('wechat/shop1', event));
    const { text, signature, resource: s } = v3(c);
    assert.equal(Rsa.verify(text, signature, d.wechat.publicKey), true);
    assert.equal(Rsa.verify(`${text} `, signature, d.wechat.publicKey), false);
    assert.equal(await wx.verifySign({ timestamp: c.headers['wechatpay-timestamp'],
      nonce: c.headers['wechatpay-nonce'], body: c.body, serial: IDS.serial, signature }), true);
    const plain = Aes.AesGcm.decrypt(s.ciphertext, d.v3, s.nonce, s.associated_data);
    const t = JSON.parse(plain);
    assert.equal(t.mchid, IDS.mchid);
    assert.deepEqual(wx.decipher_gcm(s.ciphertext, s.associated_data, s.nonce), t);
    assert.match(event.startsWith('payment') ? t.trade_state : t.refund_status, /^[A-Z]+$/);
  });
}

for (const [dialect, account, type] of [['v2', 'wechat/shop1', Hash.ALGO_MD5],
  ['v2-hmac', 'wechat/hmac', Hash.ALGO_HMAC_SHA256]]) {
  test(`wechatpay-axios-plugin takes trigger's ${dialect} payment`, () => {
    const data = Transformer.toObject(parse(d.trigger(account, 'payment.succeeded', '--dialect', dialect)).body);
    const { sign, ...rest } = data;
    const signed = Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== ''));
    assert.equal(Hash.sign(type, signed, d.v2), sign);
    assert.equal(data.mch_id, IDS.mchid);
  });
}

test('wechatpay-axios-plugin decrypts trigger\'s v2 refund', () => {
  const data = Transformer.toObject(parse(d.trigger('wechat/shop1', 'refund.succeeded', '--dialect', 'v2')).body);
  const root = Transformer.toObject(Aes.AesEcb.decrypt(data.req_info, Hash.md5(d.v2)));
  assert.equal(root.refund_status, 'SUCCESS');
  assert.match(root.refund_fee, /^[0-9]+$/);
});

test('trigger sends what it makes, and the daemon records it', async () => {
  for (const account of ['alipay/shop1', 'wechat/shop1']) {
    d.ctl('trigger', 'payment.succeeded', '--account', account, '--duplicates', '2', '--retries', '1',
      '--out-trade-no', `SENT${account.slice(0, 6)}`);
  }
  assert.equal(await sql('SELECT count(*) FROM paynotify.events'), '2');
});
