// Alipay's messages as golden cases have them, and Alipay's side of the
// signature, written after Alipay's documents with node:crypto.
import crypto from 'node:crypto';
import { beijing, bytes, keyPair } from './lib.mjs';

export const AT = 1772330406; // 2026-03-01 10:00:06 in Beijing
export const PAID = AT - 1;
export const APP = '2021000000000001';
export const SELLER = '2088000000000001';
export const ORDER = 'T20260301-0001';
export const TRADE = '2026030122001400010000000001';
export const NOTIFY = '2026030101222100001000010000000001';

// --- messages: objects of name -> text or Buffer; undefined leaves out ---

const common = () => ({
	gmt_create: beijing(AT - 6),
	charset: 'utf-8',
	seller_email: 'm@example.test',
	subject: 'Order 1',
	buyer_open_id: '000aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcdefg',
	notify_id: NOTIFY,
	notify_type: 'trade_status_sync',
	trade_status: 'TRADE_SUCCESS',
	app_id: APP,
	sign_type: 'RSA2',
	seller_id: SELLER,
	notify_time: beijing(AT),
	merchant_app_id: APP,
	version: '1.0',
	out_trade_no: ORDER,
	total_amount: '88.88',
	trade_no: TRADE,
	auth_app_id: APP,
	buyer_logon_id: 'tes***@example.test',
});

export const paid = (over = {}) => ({
	...common(),
	gmt_payment: beijing(PAID),
	invoice_amount: '88.88',
	fund_bill_list: '[{"amount":"88.88","fundChannel":"ALIPAYACCOUNT"}]',
	receipt_amount: '88.88',
	buyer_pay_amount: '88.88',
	point_amount: '0.00',
	...over,
});

export const waiting = (over = {}) => ({
	...common(), trade_status: 'WAIT_BUYER_PAY', ...over,
});

export const closed = (over = {}) => ({
	...common(), trade_status: 'TRADE_CLOSED', gmt_close: beijing(AT + 900), ...over,
});

export const finished = (over = {}) => ({
	...common(),
	trade_status: 'TRADE_FINISHED',
	gmt_payment: beijing(PAID),
	gmt_close: beijing(AT + 86400 * 90),
	...over,
});

export const refunded = (over = {}) => ({
	...common(),
	gmt_payment: beijing(PAID),
	refund_fee: '10.00',
	gmt_refund: beijing(AT + 3594, '.287'),
	out_biz_no: 'R1',
	...over,
});

export const fund = (over = {}) => ({
	charset: 'UTF-8',
	biz_content: '{"pay_date":"2026-03-01 18:30:01","action_type":"FINISH",' +
	    '"order_id":"20260301110070000006250000000001","status":"SUCCESS"}',
	utc_timestamp: String(AT * 1000 + 981),
	app_id: APP,
	version: '1.1',
	sign_type: 'RSA2',
	notify_id: NOTIFY,
	msg_method: 'alipay.fund.trans.order.changed',
	...over,
});

export const agreement = (over = {}) => ({
	charset: 'UTF-8',
	notify_time: beijing(AT),
	alipay_user_id: '2088000000000101',
	external_agreement_no: 'SN202603010001',
	version: '1.0',
	sign_time: beijing(AT - 1),
	notify_id: NOTIFY,
	notify_type: 'dut_user_sign',
	agreement_no: '20265607750930630440',
	auth_app_id: APP,
	valid_time: beijing(AT),
	invalid_time: '2115-02-01 00:00:00',
	personal_product_code: 'GENERAL_WITHHOLDING_P',
	app_id: APP,
	sign_type: 'RSA2',
	alipay_logon_id: '156******06',
	status: 'NORMAL',
	sign_scene: 'INDUSTRY|GAME_CHARGE',
	...over,
});

export const service = (over = {}) => ({
	charset: 'utf-8',
	method: 'alipay.open.servicemarket.order.notify',
	notify_type: 'servicemarket_order_notify',
	notify_id: NOTIFY,
	notify_time: beijing(AT),
	timestamp: beijing(AT),
	app_id: APP,
	version: '1.0',
	sign_type: 'RSA2',
	commodity_order_id: '2026030100000001',
	merchant_pid: SELLER,
	service_code: 'S1',
	total_price: '9.90',
	...over,
});

// --- events as expect.json states them ----------------------------------

const money = (over) => ({
	out_trade_no: ORDER,
	transaction_id: TRADE,
	amount: 8888,
	order_amount: 8888,
	currency: 'CNY',
	refund: null,
	provider: 'alipay',
	tenant: 'case',
	account: SELLER,
	...over,
});

export const payment = (over = {}) => money({
	type: 'payment.succeeded', key: `webhook:alipay:${ORDER}`,
	occurred_at: '2026-03-01T02:00:05Z', ...over,
});

export const refund = (over = {}) => money({
	type: 'refund.succeeded',
	key: `webhook:alipay:${ORDER}:refund:R1`,
	amount: null,
	refund: { id: null, out_refund_no: 'R1', refunded_total: 1000 },
	occurred_at: '2026-03-01T03:00:00.287Z',
	...over,
});

export const other = (type, over = {}) => ({
	type: `alipay.${type}`, key: `webhook:alipay:notify:${NOTIFY}`,
	amount: null, order_amount: null, refund: null, provider: 'alipay', ...over,
});

// --- signing ------------------------------------------------------------

export const alipayKey = () => keyPair('alipay');

export function pairsOf(fields) {
	return Object.entries(fields).filter(([, value]) => value !== undefined);
}

// The string that is signed. v2 keeps sign_type; drop leaves empty values out.
export function canonical(fields, { v2 = false, drop = false } = {}) {
	const list = pairsOf(fields)
		.filter(([name]) => name !== 'sign' && (v2 || name !== 'sign_type'))
		.filter(([, value]) => !drop || bytes(value).length > 0)
		.sort(([a], [b]) => Buffer.compare(bytes(a), bytes(b)));
	return Buffer.concat(list.flatMap(([name, value], i) =>
	    [bytes(i ? '&' : ''), bytes(name), bytes('='), bytes(value)]));
}

export function signature(fields, { key = alipayKey(), hash = 'RSA-SHA256',
	padding = crypto.constants.RSA_PKCS1_PADDING, ...rule } = {}) {
	return crypto.sign(hash, canonical(fields, rule), { key: key.privateKey, padding })
	    .toString('base64');
}

export function signed(fields, options) {
	return { ...fields, sign: signature(fields, options) };
}
