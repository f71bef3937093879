// Notifications signed by the SDKs' own code: what is signed is put together
// here after the providers' documents, never by code of paynotifyd.
import { File } from 'node:buffer';
import { Aes, Formatter, Hash, Rsa, Transformer } from 'wechatpay-axios-plugin';
import { IDS } from './daemon.mjs';
import { bare } from './keys.mjs';

// alipay-sdk's HTTP client wants a global that Node 18 (Debian's) has not.
globalThis.File ??= File;
const { AlipaySdk } = await import('alipay-sdk');
// The SDK's signing functions are not in its index.
const util = await import(new URL('../node_modules/alipay-sdk/dist/esm/util.js', import.meta.url));

const pad = (n) => String(n).padStart(2, '0');
export function beijing(date = new Date()) {
  const d = new Date(date.getTime() + 8 * 3600e3);
  return `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())} `
    + `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`;
}
export const iso = (date) => `${beijing(date).replace(' ', 'T')}+08:00`;

export const form = (fields) => new URLSearchParams(fields).toString();
export const FORM = { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' };

export function alipayTrade(no, more = {}) {
  return {
    gmt_create: beijing(), charset: 'utf-8', seller_email: 'shop@example.com',
    subject: '测试商品 & 配件 (x2)', body: 'Iphone 16 + 保护壳', buyer_id: '2088000000000009',
    invoice_amount: '88.88', notify_id: `${no}0022200000`, fund_bill_list: '[{"amount":"88.88","fundChannel":"ALIPAYACCOUNT"}]',
    notify_type: 'trade_status_sync', trade_status: 'TRADE_SUCCESS', receipt_amount: '88.88',
    buyer_pay_amount: '88.88', app_id: IDS.appId, seller_id: IDS.sellerId, gmt_payment: beijing(),
    notify_time: beijing(), version: '1.0', out_trade_no: no, total_amount: '88.88',
    trade_no: `20260301220014${no}`, auth_app_id: IDS.appId, point_amount: '0.00',
    passback_params: 'a%3d1%26b%3d2', ...more,
  };
}

// Rule V1: sign_type is not signed. The SDK's RSA2 signature.
export function alipaySign(fields, privateKey) {
  const text = Object.keys(fields).sort().map((k) => `${k}=${fields[k]}`).join('&');
  return { ...fields, sign_type: 'RSA2', sign: util.signatureV3(text, privateKey) };
}

// Rule V2: the SDK signs a whole message by itself, sign_type included.
export function alipayMessage(method, fields, d) {
  return util.sign(method, fields, { appId: IDS.appId, charset: 'utf-8', version: '1.1',
    signType: 'RSA2', privateKey: d.alipay.privateKey });
}

export function alipaySdk(d) {
  return new AlipaySdk({ appId: IDS.appId, privateKey: d.alipay.privateKey, keyType: 'PKCS8',
    alipayPublicKey: bare(d.alipay.publicKey) });
}

export function wechatTransaction(no, more = {}) {
  return { mchid: IDS.mchid, appid: IDS.wxAppid, out_trade_no: no, transaction_id: `4200001234${no}`,
    trade_type: 'JSAPI', trade_state: 'SUCCESS', trade_state_desc: '支付成功', bank_type: 'OTHERS',
    attach: '', success_time: iso(), payer: { openid: 'oUpF8uMuAJO_M2pxb1Q9zNjWeS6o' },
    amount: { total: 8888, payer_total: 8888, currency: 'CNY', payer_currency: 'CNY' }, ...more };
}

export function wechatEnvelope(plain, d, more = {}) {
  const nonce = Formatter.nonce(12), aad = more.original_type ?? 'transaction';
  return JSON.stringify({ id: more.id ?? 'a1b2c3d4-0000-5000-8000-000000000001', create_time: iso(),
    resource_type: 'encrypt-resource', event_type: more.event_type ?? 'TRANSACTION.SUCCESS',
    summary: '支付成功', resource: { original_type: aad, algorithm: 'AEAD_AES_256_GCM',
      ciphertext: Aes.AesGcm.encrypt(JSON.stringify(plain), d.v3, nonce, aad),
      associated_data: aad, nonce } });
}

// sign: (text) => base64, so that each SDK can sign the same message.
export function wechatHeaders(body, sign, timestamp = Formatter.timestamp()) {
  const nonce = Formatter.nonce();
  return { 'Content-Type': 'application/json', 'Wechatpay-Timestamp': String(timestamp),
    'Wechatpay-Nonce': nonce, 'Wechatpay-Serial': IDS.serial,
    'Wechatpay-Signature-Type': 'WECHATPAY2-SHA256-RSA2048',
    'Wechatpay-Signature': sign(Formatter.joinedByLineFeed(timestamp, nonce, body)) };
}
export const axiosSigner = (d) => (text) => Rsa.sign(text, d.wechat.privateKey);

export function v2Payment(no, more = {}) {
  return { appid: IDS.wxAppid, mch_id: IDS.mchid, nonce_str: Formatter.nonce(), result_code: 'SUCCESS',
    return_code: 'SUCCESS', openid: 'oUpF8uMuAJO_M2pxb1Q9zNjWeS6o', is_subscribe: 'N', trade_type: 'JSAPI',
    bank_type: 'OTHERS', total_fee: '8888', cash_fee: '8888', fee_type: 'CNY', coupon_fee: '100',
    coupon_fee_0: '100', coupon_id_0: '10000', coupon_count: '1', attach: '门店 <1>',
    transaction_id: `4200001234${no}`, out_trade_no: no,
    time_end: beijing().replace(/\D/g, ''), ...more };
}
export function v2Sign(data, type, d) {
  return Transformer.toXml({ ...data, sign: Hash.sign(type, data, d.v2) });
}
export const XML = { 'Content-Type': 'text/xml' };
export function v2Refund(no, d) {
  const root = `<root><out_refund_no>R${no}</out_refund_no><out_trade_no>${no}</out_trade_no>`
    + `<refund_fee>300</refund_fee><refund_id>5030${no}</refund_id><refund_status>SUCCESS</refund_status>`
    + `<settlement_refund_fee>300</settlement_refund_fee><success_time>${beijing()}</success_time>`
    + `<total_fee>8888</total_fee><transaction_id>4200001234${no}</transaction_id></root>`;
  return Transformer.toXml({ return_code: 'SUCCESS', appid: IDS.wxAppid, mch_id: IDS.mchid,
    nonce_str: Formatter.nonce(), req_info: Aes.AesEcb.encrypt(root, Hash.md5(d.v2)) });
}
