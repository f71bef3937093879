// Every row of DESIGN.md section 7 for Alipay, its keys, and what is too little
// for an event.
import { agreement, closed, finished, fund, NOTIFY, ORDER, other, paid, payment, refund,
	refunded, SELLER, service, waiting } from './alipay_message.mjs';

const order = `webhook:alipay:${ORDER}`;
const none = undefined;

function tradeCases(add) {
	add('success', { events: [payment({ livemode: true, order_amount: 8888 })] });
	add('success_test_account', { conf: ['test = yes'],
		events: [payment({ livemode: false })] });
	add('success_fingerprint_fields_only', { fields: paid({ receipt_amount: '80.00',
		buyer_pay_amount: '80.00', invoice_amount: '80.00' }),
	note: 'discounts do not change the order amount' });
	add('success_without_gmt_payment', { fields: paid({ gmt_payment: none }),
		events: [payment({ occurred_at: '2026-03-01T02:00:06Z' })] });
	add('success_without_notify_type', { fields: paid({ notify_type: none }) });
	add('success_without_notify_id', { fields: paid({ notify_id: none }),
		note: 'its key does not need one' });
	add('success_refund_fee_zero', { fields: paid({ refund_fee: '0.00' }),
		note: 'the documented sample has it on a plain payment' });
	add('success_refund_fee_empty', { fields: paid({ refund_fee: '', gmt_refund: '' }) });
	add('success_out_biz_no_without_refund', { fields: paid({ out_biz_no: 'X1' }) });
	add('success_buyer_id', { fields: paid({ buyer_id: '2088000000000101',
		buyer_open_id: none }) });
	add('success_foreign_currency', { fields: paid({ trans_currency: 'USD' }),
		events: [payment({ currency: 'USD' })] });
	const pending = { type: 'payment.pending', key: `${order}:pending`,
		occurred_at: '2026-03-01T02:00:00Z' };
	add('wait_buyer_pay', { fields: waiting(), events: [payment(pending)] });
	add('wait_buyer_pay_without_gmt_create', { fields: waiting({ gmt_create: none }),
		events: [payment({ ...pending, occurred_at: '2026-03-01T02:00:06Z' })] });
	const timeout = { type: 'payment.closed', key: `${order}:closed` };
	add('timeout_close', { fields: closed(), events: [payment({ ...timeout,
		occurred_at: '2026-03-01T02:15:06Z' })] });
	add('closed_gmt_payment_empty', { fields: closed({ gmt_payment: '' }),
		events: [payment({ ...timeout, occurred_at: '2026-03-01T02:15:06Z' })] });
	add('closed_unpaid_with_refund', { fields: closed({ refund_fee: '10.00' }),
		events: [payment({ ...timeout, occurred_at: '2026-03-01T02:15:06Z' })],
		alarm: true, note: 'a contradiction: recorded, and somebody should look' });
	const done = payment({ type: 'payment.finished', key: `${order}:finished`,
		occurred_at: '2026-05-30T02:00:06Z' });
	add('finished', { fields: finished(), events: [payment(), done] });
	add('finished_after_refund_window', { fields: finished({ refund_fee: '10.00',
		gmt_refund: '2026-03-01 11:00:00.287', out_biz_no: 'R1' }),
	events: [payment(), done], note: 'its old refund marks are ignored' });
	add('finished_with_nameless_refund', { fields: finished({
		gmt_refund: '2026-03-01 11:00:00.287' }), events: [payment(), done],
	note: 'a refund that could not be named is none of its business' });
	add('finished_without_gmt_payment', { fields: finished({ gmt_payment: none }),
		events: [payment({ occurred_at: '2026-03-01T02:00:06Z' }), done] });
}

function refundCases(add) {
	const sum = (fen, over = {}) => refund({ key: `${order}:refund:${ORDER}:${fen}`,
		refund: { id: null, out_refund_no: null, refunded_total: fen }, ...over });
	const both = (event) => ({ events: [payment(), event] });
	add('partial_refund_1', { fields: refunded(), ...both(refund()) });
	add('partial_refund_2_cumulative', { fields: refunded({ refund_fee: '25.50',
		out_biz_no: 'R2' }), ...both(refund({ key: `${order}:refund:R2`,
		refund: { id: null, out_refund_no: 'R2', refunded_total: 2550 } })) });
	add('partial_refund_no_out_biz_no', { fields: refunded({ out_biz_no: none }),
		...both(sum(1000)) });
	add('partial_refund_out_biz_no_empty', { fields: refunded({ out_biz_no: '' }),
		...both(sum(1000)) });
	add('partial_refund_out_biz_no_is_order', { fields: refunded({ out_biz_no: ORDER }),
		...both(sum(1000, { refund: { id: null, refunded_total: 1000 } })) });
	add('full_refund', { fields: refunded({ trade_status: 'TRADE_CLOSED', refund_fee: '88.88',
		gmt_close: '2026-03-01 11:00:00' }), ...both(refund({
		refund: { id: null, out_refund_no: 'R1', refunded_total: 8888 } })) });
	add('full_refund_out_biz_no_is_order', { fields: refunded({ trade_status: 'TRADE_CLOSED',
		refund_fee: '88.88', out_biz_no: ORDER }), ...both(sum(8888,
		{ refund: { id: null, refunded_total: 8888 } })) });
	add('refund_fee_without_gmt_refund', { fields: refunded({ gmt_refund: none }),
		...both(refund({ occurred_at: '2026-03-01T02:00:06Z' })) });
	add('refund_gmt_refund_without_fee', { fields: refunded({ refund_fee: none }),
		...both(refund({ refund: { id: null, out_refund_no: 'R1', refunded_total: null } })) });
	add('refund_gmt_refund_fee_zero', { fields: refunded({ refund_fee: '0.00' }),
		...both(refund({ refund: { id: null, out_refund_no: 'R1', refunded_total: 0 } })) });
	add('refund_gmt_refund_whole_second', { fields: refunded({
		gmt_refund: '2026-03-01 11:00:00' }),
	...both(refund({ occurred_at: '2026-03-01T03:00:00Z' })) });
	add('refund_named_by_nothing', { fields: refunded({ refund_fee: none, out_biz_no: none }),
		verdict: 'malformed', verified: true });
	add('refund_key_escaped', { fields: refunded({ out_biz_no: 'R:1%2 退' }),
		...both(refund({ key: `${order}:refund:R%3A1%252%20%E9%80%80`,
			refund: { id: null, out_refund_no: 'R:1%2 退', refunded_total: 1000 } })) });
	add('refund_without_gmt_payment', { fields: refunded({ gmt_payment: none }),
		events: [payment({ occurred_at: '2026-03-01T02:00:06Z' }), refund()] });
}

function otherCases(add) {
	const one = (type, over) => ({ events: [other(type, over)] });
	add('dut_user_sign', { fields: agreement(), ...one('dut_user_sign',
		{ occurred_at: '2026-03-01T02:00:06Z', out_trade_no: null, currency: 'CNY' }) });
	add('dut_user_unsign', { fields: agreement({ notify_type: 'dut_user_unsign',
		status: 'UNSIGN', sign_time: none, unsign_time: '2026-03-01 10:00:05' }),
	...one('dut_user_unsign') });
	add('other_with_seller_configured', { fields: agreement(), conf: [`seller_id = ${SELLER}`],
		...one('dut_user_sign', { account: SELLER }) });
	add('fund_trans_order_changed', { fields: fund(), ...one('fund.trans.order.changed',
		{ occurred_at: '2026-03-01T02:00:06.981Z' }) });
	add('msg_method_without_prefix', { fields: fund({ msg_method: 'some.thing' }),
		...one('some.thing') });
	add('msg_method_prefix_only_once', { fields: fund({ msg_method: 'alipay.alipay.x' }),
		...one('alipay.x') });
	add('msg_method_gbk', { fields: fund({ charset: 'GBK', biz_content:
		Buffer.concat([Buffer.from('{"x":"'), Buffer.from('b2e2', 'hex'),
			Buffer.from('"}')]) }),
	...one('fund.trans.order.changed', { payload: { biz_content: '{"x":"测"}' } }) });
	add('notify_type_wins_over_msg_method', { fields: fund({ notify_type: 'alipay.one' }),
		...one('one') });
	add('servicemarket', { fields: service(), ...one('servicemarket_order_notify') });
	add('koubei', { fields: agreement({ notify_type: 'koubei_trade_ext_notify',
		charset: 'gbk', out_trade_no: ORDER, trade_status: 'TRADE_SUCCESS' }),
	...one('koubei_trade_ext_notify', { out_trade_no: ORDER }) });
	add('notify_type_unknown', { fields: agreement({ notify_type: 'what_is_this' }),
		...one('what_is_this') });
	add('notify_id_escaped', { fields: agreement({ notify_id: 'a:b%c' }),
		...one('dut_user_sign', { key: 'webhook:alipay:notify:a%3Ab%25c' }) });
	add('utc_timestamp_absent', { fields: fund({ utc_timestamp: none }),
		...one('fund.trans.order.changed', { occurred_at: null }) });
}

function refusedCases(add) {
	const no = { verdict: 'malformed', verified: true };
	const without = (name, fields) => add(name, { fields, ...no });
	without('no_out_trade_no', paid({ out_trade_no: none }));
	without('no_trade_no', paid({ trade_no: '' }));
	without('no_total_amount', paid({ total_amount: none }));
	without('no_trade_status', paid({ trade_status: none }));
	without('no_notify_id', agreement({ notify_id: none }));
	without('no_notify_id_empty', fund({ notify_id: '' }));
	without('return_url', paid({ notify_type: none, notify_id: none, trade_status: none,
		notify_time: none, timestamp: '2026-03-01 10:00:05',
		method: 'alipay.trade.page.pay.return' }));
	without('trade_status_unknown', paid({ trade_status: 'TRADE_PAID' }));
	without('trade_status_lower_case', paid({ trade_status: 'trade_success' }));
	without('notify_type_is_text', agreement({ notify_type: 'dut user' }));
	without('notify_type_too_long', agreement({ notify_type: 'x'.repeat(200) }));
	without('out_trade_no_nul', paid({ out_trade_no: 'T1\0' }));
	without('trade_no_nul', paid({ trade_no: '2026\0' }));
	without('out_biz_no_nul', refunded({ out_biz_no: '\0' }));
	without('notify_id_nul', agreement({ notify_id: `${NOTIFY}\0` }));
	without('app_id_nul', paid({ app_id: '2021000000000001\0' }));
	without('seller_id_nul', paid({ seller_id: `${SELLER}\0` }));
	without('out_trade_no_undecodable', paid({ out_trade_no: Buffer.from([0x54, 0xff]) }));
	without('out_trade_no_too_long', paid({ out_trade_no: 'x'.repeat(300) }));
	for (const [name, amount] of Object.entries({ one_decimal: '88.8', none: '88',
		three_decimals: '88.880', exponent: '1e3', plus: '+88.88', minus: '-88.88',
		blank: ' 88.88', thousands: '1,000.00', comma: '88,88', hex: '0x10.00',
		ten_digits: '1000000000.00', point_first: '.88', words: 'NaN',
		full_width: '８８.８８', newline: '88.88\n', nul: '88.88\0' })) {
		without(`amount_${name}`, paid({ total_amount: amount }));
	}
	for (const [name, date] of Object.entries({ february_30: '2026-02-30 10:00:00',
		hour_24: '2026-03-01 24:00:00', t: '2026-03-01T10:00:05', short: '2026-03-01',
		zone: '2026-03-01 10:00:05+08:00', blank: ' 2026-03-01 10:00:05' })) {
		without(`date_${name}`, paid({ gmt_payment: date }));
	}
	without('refund_fee_form', refunded({ refund_fee: '10' }));
	without('utc_timestamp_form', fund({ utc_timestamp: '2026-03-01' }));
}

function keyAndAmountCases(add) {
	const key = (name, id, escaped) => add(name, { fields: paid({ out_trade_no: id }),
		events: [payment({ key: `webhook:alipay:${escaped}`, out_trade_no: id })] });
	key('key_colon', 'A:B', 'A%3AB');
	key('key_percent', 'A%3AB', 'A%253AB');
	key('key_blank', ' A B ', '%20A%20B%20');
	key('key_chinese', '订单1', '%E8%AE%A2%E5%8D%951');
	key('key_emoji', '🎂', '%F0%9F%8E%82');
	key('key_visible_ascii', '!#$()*+,-./;<=>?@[]^_`{|}~"\'\\', '!#$()*+,-./;<=>?@[]^_`{|}~"\'\\');
	key('key_like_a_suffix', 'T1:finished', 'T1%3Afinished');
	key('key_64_bytes', 'x'.repeat(64), 'x'.repeat(64));
	add('key_chinese_gbk', { fields: paid({ charset: 'GBK',
		out_trade_no: Buffer.from('b2e231', 'hex') }),
	events: [payment({ key: 'webhook:alipay:%E6%B5%8B1', out_trade_no: '测1' })] });
	for (const [text, fen] of [['0.01', 1], ['0.10', 10], ['0.00', 0], ['1.00', 100],
		['100000000.00', 10000000000], ['999999999.99', 99999999999], ['0088.88', 8888]]) {
		add(`amount_${text.replace('.', '_')}`, { fields: paid({ total_amount: text }),
			events: [payment({ amount: fen, order_amount: fen })] });
	}
}

export function eventCases(add) {
	tradeCases(add);
	refundCases(add);
	otherCases(add);
	refusedCases(add);
	keyAndAmountCases(add);
}
