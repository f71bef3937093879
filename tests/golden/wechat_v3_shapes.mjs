// APIv3 behind the decryption: the plaintext's bytes, whose it is, and which
// events its shape makes.
import { APPID, certAccount, MCHID, v3 } from './wechat_make.mjs';

const paid = {
	mchid: '1900000109',
	appid: 'wx8888888888888888',
	out_trade_no: 'GOLD20260101000001',
	transaction_id: '4200002026010100000000000001',
	trade_type: 'JSAPI',
	trade_state: 'SUCCESS',
	success_time: '2026-01-01T08:00:03+08:00',
	payer: { openid: 'oGoldenOpenid' },
	amount: { total: 100, payer_total: 90, currency: 'CNY', payer_currency: 'CNY' },
};
const event = {
	type: 'payment.succeeded',
	key: 'webhook:wechat:4200002026010100000000000001',
	account: '1900000109',
	out_trade_no: 'GOLD20260101000001',
	transaction_id: '4200002026010100000000000001',
	amount: 100,
	order_amount: 100,
	currency: 'CNY',
	refund: null,
	occurred_at: '2026-01-01T00:00:03Z',
};
const accepted = { verified: true, alarm: false, events: [event] };
const kept = { verdict: 'malformed', verified: true, events: [] };
const foreign = { verdict: 'wrong_account', verified: true, events: [] };
const notify = 'webhook:wechat:notify:EV-2026010108000500001';
// An event of the other kind, under the id of the envelope.
const other = (type, over = {}) => ({ verified: true, alarm: false,
	events: [{ type, key: notify, amount: null, order_amount: null, refund: null, ...over }] });
const without = (object, ...names) =>
    Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

function plaintextCases(out) {
	const text = JSON.stringify(paid);
	v3(out, 'plaintext_empty', { plain: '', ...kept });
	v3(out, 'plaintext_not_json', { plain: 'a=1&b=2', ...kept });
	v3(out, 'plaintext_array', { plain: [paid], ...kept });
	v3(out, 'plaintext_null', { plain: 'null', ...kept });
	v3(out, 'plaintext_trailing_garbage', { plain: `${text}}`, ...kept });
	v3(out, 'plaintext_with_bom', { plain: `\ufeff${text}`, ...kept });
	v3(out, 'plaintext_duplicate_name', { plain: text.replace('{', '{"out_trade_no":"OTHER",'), ...kept });
	v3(out, 'plaintext_lone_surrogate', { plain: text.replace('{', '{"attach":"\\udc00",'), ...kept });
	v3(out, 'plaintext_invalid_utf8', { plain: Buffer.from(text.replace('{', '{"attach":"\xc3\x28",'), 'latin1'), ...kept });
	v3(out, 'plaintext_deep_nesting', { plain: text.replace('{', `{"a":${'{"a":'.repeat(200)}1${'}'.repeat(200)},`), ...kept });
	v3(out, 'plaintext_whitespace_around', { plain: ` ${JSON.stringify(paid, null, '\t')}\r\n`, ...accepted });
	v3(out, 'plaintext_nul_escape_in_attach', { plain: { ...paid, attach: 'a\u0000b' }, verified: true,
		events: [{ ...event, payload: { attach: 'a\ufffdb' } }] });
	v3(out, 'plaintext_escaped_backslash_before_u0000', { plain: { ...paid, attach: 'a\\u0000b' }, verified: true,
		events: [{ ...event, payload: { attach: 'a\\u0000b' } }] });
	v3(out, 'plaintext_emoji_in_attach', { plain: { ...paid, attach: '谢谢🙏' }, verified: true,
		events: [{ ...event, payload: { attach: '谢谢🙏' } }] });
	v3(out, 'plaintext_unicode_escapes_in_ids', { plain: text.replace('GOLD', '\\u0047OLD'), ...accepted });
	v3(out, 'plaintext_int_above_2p53_and_unknown_fields', {
		plain: text.replace('{', '{"coupon":9007199254740993,"future":{"x":[1,2.5,null]},'), ...accepted });
	v3(out, 'plaintext_int_above_int64', { plain: text.replace('{', '{"n":9223372036854775808,'), ...kept });
	v3(out, 'plaintext_int_below_int64', { plain: text.replace('{', '{"n":-9223372036854775809,'), ...kept });
}

function amountCases(out) {
	const amount = (name, value, over) => v3(out, `amount_${name}`, { plain: { ...paid, amount: value }, ...over });
	const total = (name, number, over) => v3(out, `amount_${name}`, {
		plain: JSON.stringify(paid).replace('"total":100', `"total":${number}`), ...over });
	const worth = (n, currency = 'CNY') => ({ verified: true, events: [{ ...event, amount: n, order_amount: n, currency }] });
	amount('without_currency', { total: 100 }, accepted);
	amount('currency_empty', { total: 100, currency: '' }, accepted);
	amount('in_dollars', { total: 100, currency: 'USD', payer_currency: 'CNY' }, worth(100, 'USD'));
	amount('currency_lower_case', { total: 100, currency: 'cny' }, kept);
	amount('currency_number', { total: 100, currency: 156 }, kept);
	amount('zero', { total: 0 }, worth(0));
	// A number of JavaScript cannot say these: a unit test looks at the amount.
	const any = { verified: true, events: [without(event, 'amount', 'order_amount')] };
	total('above_2p53', '9007199254740993', any);
	total('largest', '9223372036854775807', any);
	total('negative', '-100', kept);
	total('above_int64', '9223372036854775808', kept);
	total('fraction', '100.5', kept);
	total('whole_but_real', '100.0', kept);
	total('exponent', '1e2', kept);
	total('string', '"100"', kept);
	total('null', 'null', kept);
	total('true', 'true', kept);
	amount('total_missing', { payer_total: 100, currency: 'CNY' }, kept);
	amount('object_null', null, kept);
	amount('object_number', 100, kept);
	v3(out, 'amount_missing', { plain: without(paid, 'amount'), ...kept });
}

function idCases(out) {
	const id = (name, over, expect) => v3(out, `id_${name}`, { plain: { ...paid, ...over }, ...expect });
	id('transaction_of_128_bytes', { transaction_id: '9'.repeat(128) }, { verified: true,
		events: [{ ...event, transaction_id: '9'.repeat(128), key: `webhook:wechat:${'9'.repeat(128)}` }] });
	id('transaction_too_long', { transaction_id: '9'.repeat(129) }, kept);
	id('transaction_with_nul', { transaction_id: '42\u000000' }, kept);
	id('transaction_number', { transaction_id: 4200002026 }, kept);
	id('transaction_object', { transaction_id: {} }, kept);
	id('out_trade_no_too_long', { out_trade_no: 'x'.repeat(129) }, kept);
	id('out_trade_no_with_nul', { out_trade_no: 'a\u0000' }, kept);
	id('out_trade_no_number', { out_trade_no: 1 }, kept);
	id('out_trade_no_empty', { out_trade_no: '' }, kept);
	v3(out, 'id_out_trade_no_missing', { plain: without(paid, 'out_trade_no'), ...kept });
	id('out_trade_no_chinese', { out_trade_no: '订单 1' }, { verified: true, events: [{ ...event, out_trade_no: '订单 1' }] });
	// "%", ":" and what is not printable ASCII are escaped in a key.
	id('transaction_odd_characters', { transaction_id: 'a:b%c d~支/' }, { verified: true, events: [{ ...event,
		transaction_id: 'a:b%c d~支/', key: 'webhook:wechat:a%3Ab%25c%20d~%E6%94%AF/' }] });
	id('overseas_id', { transaction_id: undefined, id: '4200002026010100000000000001' }, accepted);
	id('overseas_id_beside_empty_transaction_id', { transaction_id: '', id: '4200002026010100000000000001' }, accepted);
	id('transaction_id_before_overseas_id', { id: 'something else' }, accepted);
	const at = (name, over, env, time) => v3(out, `time_${name}`, { plain: { ...paid, ...over }, env, verified: true,
		events: [{ ...event, occurred_at: time }] });
	at('with_fraction', { success_time: '2026-01-01T08:00:03.120+08:00' }, {}, '2026-01-01T00:00:03.120Z');
	at('utc', { success_time: '2026-01-01T00:00:03Z' }, {}, '2026-01-01T00:00:03Z');
	at('absent_create_time_counts', { success_time: undefined }, {}, '2026-01-01T00:00:04Z');
	at('unreadable_create_time_counts', { success_time: 'yesterday' }, {}, '2026-01-01T00:00:04Z');
	at('create_time_compact', { success_time: undefined }, { create_time: '20260101080004' }, '2026-01-01T00:00:04Z');
	at('none_at_all', { success_time: undefined }, { create_time: undefined }, null);
	at('impossible_date', { success_time: '2026-02-30T08:00:03+08:00' }, { create_time: 5 }, null);
}

function accountCases(out) {
	const appid = (...ids) => certAccount({ more: ids.map((value) => `appid = ${value}`) });
	v3(out, 'other_mchid', { plain: { ...paid, mchid: '1900000110' }, ...foreign });
	v3(out, 'mchid_prefix', { plain: { ...paid, mchid: '190000010' }, ...foreign });
	v3(out, 'mchid_number', { plain: { ...paid, mchid: 1900000109 }, ...kept });
	v3(out, 'mchid_absent', { plain: without(paid, 'mchid'), ...accepted });
	v3(out, 'mchid_empty', { plain: { ...paid, mchid: '' }, ...accepted });
	v3(out, 'appid_configured', { plain: paid, to: appid(APPID), ...accepted });
	v3(out, 'appid_second_of_two', { plain: paid, to: appid('wx0', APPID), ...accepted });
	v3(out, 'other_appid', { plain: paid, to: appid('wx0', 'wx1'), ...foreign });
	v3(out, 'appid_absent', { plain: without(paid, 'appid'), to: appid('wx0'), ...accepted });
	const partner = { ...without(paid, 'mchid', 'appid'), sp_mchid: MCHID, sp_appid: APPID, sub_mchid: '1900007777',
		sub_appid: 'wx7777777777777777', payer: { sp_openid: 'o1', sub_openid: 'o2' } };
	const ofSub = { verified: true, alarm: false, events: [{ ...event, account: '1900007777' }] };
	v3(out, 'partner_success', { plain: partner, ...ofSub });
	v3(out, 'partner_appid_configured', { plain: partner, to: appid(APPID), ...ofSub });
	v3(out, 'partner_other_sp_appid', { plain: partner, to: appid('wx7777777777777777'), ...foreign });
	v3(out, 'partner_other_sp_mchid', { plain: { ...partner, sp_mchid: '1900000110' }, ...foreign });
	v3(out, 'partner_without_sub_appid', { plain: without(partner, 'sub_appid'), ...ofSub });
	// The key and the notification are the service provider's, never the sub's.
	v3(out, 'partner_at_the_sub_merchant', { plain: partner, to: certAccount({ mchid: '1900007777' }), ...foreign });
	v3(out, 'partner_written_with_mchid', { plain: { ...paid, sub_mchid: '1900007777' }, ...ofSub });
	v3(out, 'partner_sub_mchid_number', { plain: { ...partner, sub_mchid: 5 }, ...kept });
	v3(out, 'test_account_livemode_false', { plain: paid, to: certAccount({ more: ['test = yes'] }), verified: true,
		events: [{ ...event, livemode: false }] });
	// Whose it is comes before what is wrong with it.
	v3(out, 'other_mchid_and_bad_amount', { plain: { ...paid, mchid: '1900000110', amount: {} }, ...foreign });
}

const sub = (n, over = {}) => ({
	mchid: '1900000109',
	trade_type: 'JSAPI',
	trade_state: 'SUCCESS',
	bank_type: 'CMC',
	attach: '',
	success_time: '2026-01-01T08:00:03.120+08:00',
	transaction_id: `42000020260101000000000000${n}`,
	out_trade_no: `SUB20260101${n}`,
	amount: { total_amount: n, payer_amount: n - 1, currency: 'CNY', payer_currency: 'CNY' },
	...over,
});
const subEvent = (n, over = {}) => ({
	type: 'payment.succeeded',
	key: `webhook:wechat:42000020260101000000000000${n}`,
	account: '1900000109',
	out_trade_no: `SUB20260101${n}`,
	transaction_id: `42000020260101000000000000${n}`,
	amount: n,
	order_amount: n,
	currency: 'CNY',
	refund: null,
	occurred_at: '2026-01-01T00:00:03.120Z',
	...over,
});
const combined = (orders, over = {}) => ({ combine_appid: APPID, combine_mchid: MCHID,
	combine_out_trade_no: 'COMBINE20260101', sub_orders: orders, combine_payer_info: { openid: 'o1' }, ...over });
const range = (count) => Array.from({ length: count }, (_, i) => i + 10);

function combinedCases(out) {
	const all = (...events) => ({ verified: true, alarm: false, events });
	v3(out, 'combine_success', { plain: combined([sub(10), sub(20)]), ...all(subEvent(10), subEvent(20)) });
	v3(out, 'combine_one_sub_order', { plain: combined([sub(10)]), ...all(subEvent(10)) });
	v3(out, 'combine_sub_order_numbered_as_the_whole', { plain: combined([sub(10, { out_trade_no: 'COMBINE20260101' }), sub(11)]),
		...all(subEvent(10, { out_trade_no: 'COMBINE20260101' }), subEvent(11)) });
	v3(out, 'combine_of_50', { plain: combined(range(50).map((n) => sub(n))), ...all(...range(50).map((n) => subEvent(n))) });
	v3(out, 'combine_of_64', { plain: combined(range(64).map((n) => sub(n))), ...all(...range(64).map((n) => subEvent(n))) });
	v3(out, 'combine_of_65', { plain: combined(range(65).map((n) => sub(n))), ...kept });
	v3(out, 'combine_of_none', { plain: combined([]), ...kept });
	v3(out, 'combine_sub_orders_of_other_merchants', {
		plain: combined([sub(10, { mchid: '1900000555' }), sub(11, { mchid: '1900000109', sub_mchid: '1900007777' })]),
		...all(subEvent(10, { account: '1900000555' }), subEvent(11, { account: '1900007777' })) });
	v3(out, 'combine_other_combine_mchid', { plain: combined([sub(10)], { combine_mchid: '1900000110' }), ...foreign });
	v3(out, 'combine_other_appid', { plain: combined([sub(10)]), to: certAccount({ more: ['appid = wx0'] }), ...foreign });
	v3(out, 'combine_appid_configured', { plain: combined([sub(10)]), to: certAccount({ more: [`appid = ${APPID}`] }),
		...all(subEvent(10)) });
	v3(out, 'combine_currencies_differ', { plain: combined([sub(10), sub(11, { amount: { total_amount: 11, currency: 'HKD' } })]),
		...all(subEvent(10), subEvent(11, { currency: 'HKD' })) });
	v3(out, 'combine_transaction_id_twice', { plain: combined([sub(10), sub(11), sub(10)]), ...kept });
	v3(out, 'combine_transaction_id_missing', { plain: combined([sub(10), sub(11, { transaction_id: undefined })]), ...kept });
	v3(out, 'combine_out_trade_no_missing', { plain: combined([sub(10, { out_trade_no: undefined })]), ...kept });
	v3(out, 'combine_amount_of_a_single_payment', { plain: combined([sub(10, { amount: { total: 10 } })]), ...kept });
	v3(out, 'combine_amount_negative', { plain: combined([sub(10), sub(11, { amount: { total_amount: -1 } })]), ...kept });
	v3(out, 'combine_sub_order_string', { plain: combined([sub(10), 'SUB']), ...kept });
	v3(out, 'combine_sub_order_null', { plain: combined([null]), ...kept });
	v3(out, 'combine_one_not_paid', { plain: combined([sub(10), sub(11, { trade_state: 'NOTPAY' }), sub(12)]),
		verified: true, alarm: true, events: [subEvent(10), subEvent(12), { type: 'wechat.transaction.success', key: notify }] });
	v3(out, 'combine_none_paid', { plain: combined([sub(10, { trade_state: 'CLOSED' })]), ...other('wechat.transaction.success'),
		alarm: true });
	v3(out, 'combine_without_sub_orders', { plain: without(combined([]), 'sub_orders'), ...other('wechat.transaction.success'),
		alarm: true });
}

const refund = {
	mchid: '1900000109',
	transaction_id: '4200002026010100000000000001',
	out_trade_no: 'GOLD20260101000001',
	refund_id: '50300002026010100000000000001',
	out_refund_no: 'RF20260101000001',
	refund_status: 'SUCCESS',
	success_time: '2026-01-01T08:00:03+08:00',
	user_received_account: '支付用户零钱',
	amount: { total: 100, refund: 60, payer_total: 90, payer_refund: 54 },
};
const refundEvent = (type, state, over = {}) => ({
	type,
	key: `webhook:wechat:4200002026010100000000000001:refund:50300002026010100000000000001:${state}`,
	account: '1900000109',
	out_trade_no: 'GOLD20260101000001',
	transaction_id: '4200002026010100000000000001',
	amount: 60,
	order_amount: 100,
	currency: 'CNY',
	refund: { id: '50300002026010100000000000001', out_refund_no: 'RF20260101000001', refunded_total: null },
	occurred_at: '2026-01-01T00:00:03Z',
	...over,
});

function refundCases(out) {
	const env = { type: 'REFUND.SUCCESS', aad: 'refund' };
	const one = (made, over = {}) => ({ env, verified: true, alarm: false, events: [made], ...over });
	const late = { occurred_at: '2026-01-01T00:00:04Z' }; // no success_time: create_time
	const unsettled = without(refund, 'success_time');
	v3(out, 'refund_success', { plain: refund, ...one(refundEvent('refund.succeeded', 'SUCCESS')) });
	v3(out, 'refund_abnormal_no_success_time', { plain: { ...unsettled, refund_status: 'ABNORMAL' },
		...one(refundEvent('refund.abnormal', 'ABNORMAL', late), { env: { ...env, type: 'REFUND.ABNORMAL' } }) });
	v3(out, 'refund_closed', { plain: { ...unsettled, refund_status: 'CLOSED' },
		...one(refundEvent('refund.closed', 'CLOSED', late), { env: { ...env, type: 'REFUND.CLOSED' } }) });
	v3(out, 'refund_overseas_refundclose', { plain: { ...unsettled, refund_status: 'REFUNDCLOSE' },
		...one(refundEvent('refund.closed', 'CLOSED', late)) });
	v3(out, 'refund_overseas_currency', { plain: { ...refund, amount: { ...refund.amount, currency: 'HKD' } },
		...one(refundEvent('refund.succeeded', 'SUCCESS', { currency: 'HKD' })) });
	v3(out, 'refund_of_all', { plain: { ...refund, amount: { total: 100, refund: 100 } },
		...one(refundEvent('refund.succeeded', 'SUCCESS', { amount: 100 })) });
	v3(out, 'refund_status_decides_not_event_type', { plain: { ...unsettled, refund_status: 'CLOSED' },
		...one(refundEvent('refund.closed', 'CLOSED', late)) });
	v3(out, 'refund_shape_under_transaction_success', { plain: refund,
		...one(refundEvent('refund.succeeded', 'SUCCESS'), { env: {} }) });
	v3(out, 'refund_processing', { plain: { ...unsettled, refund_status: 'PROCESSING' }, ...other('wechat.refund.processing'),
		env: { ...env, type: 'REFUND.PROCESSING' } });
	v3(out, 'refund_status_unknown', { plain: { ...refund, refund_status: 'SOMETHING' }, ...other('wechat.refund.success'), env });
	v3(out, 'refund_answer_of_the_api_shape', { plain: { ...without(refund, 'refund_status'), status: 'SUCCESS' },
		...other('wechat.refund.success'), env });
	v3(out, 'partner_refund_success', { plain: { ...without(refund, 'mchid'), sp_mchid: MCHID, sub_mchid: '1900007777' },
		...one(refundEvent('refund.succeeded', 'SUCCESS', { account: '1900007777' })) });
	v3(out, 'refund_of_another_merchant', { plain: { ...refund, mchid: '1900000110' }, env, ...foreign });
	v3(out, 'refund_out_refund_no_absent', { plain: without(refund, 'out_refund_no'),
		...one(refundEvent('refund.succeeded', 'SUCCESS', { refund: { id: '50300002026010100000000000001', out_refund_no: null } })) });
	for (const name of ['refund_id', 'transaction_id', 'out_trade_no', 'amount']) {
		v3(out, `refund_without_${name}`, { plain: without(refund, name), env, ...kept });
	}
	v3(out, 'refund_id_number', { plain: { ...refund, refund_id: 5 }, env, ...kept });
	v3(out, 'refund_amount_absent', { plain: { ...refund, amount: { total: 100 } }, env, ...kept });
	v3(out, 'refund_total_absent', { plain: { ...refund, amount: { refund: 60 } }, env, ...kept });
	v3(out, 'refund_amount_string', { plain: { ...refund, amount: { total: 100, refund: '60' } }, env, ...kept });
	v3(out, 'refund_amount_negative', { plain: { ...refund, amount: { total: 100, refund: -60 } }, env, ...kept });
}

function otherCases(out) {
	const told = (name, type, plain, expected, over = {}) => v3(out, `other_${name}`, { plain, ...expected, ...over,
		env: { type, ...over.env } });
	told('complaint_create', 'COMPLAINT.CREATE', { complaint_id: '2000002026', action_type: 'CREATE_COMPLAINT' },
		other('wechat.complaint.create', { account: '1900000109', occurred_at: '2026-01-01T00:00:04Z',
			payload: { complaint_id: '2000002026' } }));
	const transfer = { out_bill_no: 'B1', transfer_bill_no: '133', state: 'SUCCESS', mch_id: MCHID, transfer_amount: 100 };
	told('mchtransfer_bill_finished', 'MCHTRANSFER.BILL.FINISHED', transfer, other('wechat.mchtransfer.bill.finished'));
	told('mchtransfer_of_another_merchant', 'MCHTRANSFER.BILL.FINISHED', { ...transfer, mch_id: '1900000110' }, foreign);
	told('payscore_user_paid', 'PAYSCORE.USER_PAID', { mchid: MCHID, appid: APPID, out_order_no: 'PS1', state: 'DONE' },
		other('wechat.payscore.user_paid'));
	told('longest_documented_name', 'EDU_SCHOOL_PAY.USER_DEBT_STATE_UPDATE', {},
		other('wechat.edu_school_pay.user_debt_state_update'));
	told('security_echo', 'SECURITY_ECHO.SUCCESS', { mchid: MCHID, echo: '1' }, other('wechat.security_echo.success'));
	told('future_type', 'FUTURE.SOMETHING.NEW', { mchid: MCHID, nested: { a: 1 } }, other('wechat.future.something.new'));
	told('ids_are_told', 'FUTURE.X', { mchid: MCHID, out_trade_no: 'O1', transaction_id: 'T1' },
		other('wechat.future.x', { out_trade_no: 'O1', transaction_id: 'T1' }));
	told('ids_of_another_kind_are_not', 'FUTURE.X', { mchid: MCHID, out_trade_no: 5, transaction_id: ['T1'] },
		other('wechat.future.x', { out_trade_no: null, transaction_id: null }));
	told('empty_object', 'FUTURE.X', {}, other('wechat.future.x'));
	told('mixed_case', 'Future.Thing', {}, other('wechat.future.thing'));
	told('type_of_121_bytes', 'X'.repeat(121), {}, other(`wechat.${'x'.repeat(121)}`));
	told('type_too_long', 'X'.repeat(122), {}, kept);
	told('type_with_space', 'FUTURE X', {}, kept);
	told('type_chinese', '支付', {}, kept);
	told('type_with_nul', 'FUTURE\u0000', {}, kept);
	told('type_absent', 'X', {}, kept, { env: { event_type: undefined } });
	told('type_null', null, {}, kept);
	told('type_empty', '', {}, kept);
	told('type_number', 5, {}, kept);
	told('envelope_without_id', 'FUTURE.X', {}, kept, { env: { id: undefined } });
	told('envelope_id_escaped_in_key', 'FUTURE.X', {}, { verified: true,
		events: [{ type: 'wechat.future.x', key: 'webhook:wechat:notify:EV%3A1%252%20%E5%8F%B7' }] }, { env: { id: 'EV:1%2 号' } });
	// TRANSACTION.* that is no payment, no refund and no split: an alarm.
	const loud = (type) => ({ ...other(type), alarm: true });
	for (const state of ['REFUND', 'NOTPAY', 'CLOSED', 'USERPAYING', 'ACCEPT', 'success', '']) {
		told(`trade_state_${state === 'success' ? 'lower_case' : state.toLowerCase() || 'empty'}`, 'TRANSACTION.SUCCESS',
			{ ...paid, trade_state: state }, loud('wechat.transaction.success'));
	}
	told('trade_state_number', 'TRANSACTION.SUCCESS', { ...paid, trade_state: 1 }, loud('wechat.transaction.success'));
	told('deduction_failed', 'TRANSACTION.FAIL', { ...paid, trade_state: 'PAY_FAIL' }, loud('wechat.transaction.fail'));
	told('transaction_without_transaction_id', 'TRANSACTION.SUCCESS', without(paid, 'transaction_id'),
		loud('wechat.transaction.success'));
	told('transaction_of_unknown_shape', 'TRANSACTION.SUCCESS', { mchid: MCHID, news: true }, loud('wechat.transaction.success'));
	// The shape decides, not the name.
	v3(out, 'payment_under_another_name', { plain: paid, env: { type: 'TRANSACTION.INDUSTRY_SUCCESS' }, ...accepted });
	v3(out, 'payment_under_an_unknown_name', { plain: paid, env: { type: 'FUTURE.PAYMENT' }, ...accepted });
	told('mall_transaction', 'MALL_TRANSACTION.SUCCESS', { mchid: MCHID, transaction_id: '42', amount: 100, time_end: 'x' },
		other('wechat.mall_transaction.success', { transaction_id: '42' }));
	told('mall_refund', 'MALL_REFUND.SUCCESS', { mchid: MCHID, transaction_id: '42', refund_id: '50', refund_amount: 1 },
		other('wechat.mall_refund.success'));
}

function sharingCases(out) {
	const split = { mchid: '1900000777', transaction_id: '42', order_id: '30000', out_order_no: 'P1',
		receiver: { type: 'MERCHANT_ID', account: MCHID, amount: 5, description: '分账' },
		success_time: '2026-01-01T08:00:03+08:00' };
	const told = other('wechat.transaction.success', { transaction_id: '42', occurred_at: '2026-01-01T00:00:03Z' });
	v3(out, 'profitsharing_event_type_transaction_success', { plain: { ...split, mchid: MCHID }, ...told });
	v3(out, 'profitsharing_to_the_receiver', { plain: split, ...told });
	v3(out, 'profitsharing_partner_to_the_receiver', { plain: { ...without(split, 'mchid'), sp_mchid: '1900000777',
		sub_mchid: '1900000778' }, ...told });
	v3(out, 'profitsharing_of_others', { plain: { ...split, receiver: { ...split.receiver, account: '1900000110' } }, ...foreign });
	v3(out, 'profitsharing_own_name', { plain: split, env: { type: 'PROFITSHARING' }, ...other('wechat.profitsharing') });
	v3(out, 'profitsharing_return', { plain: split, env: { type: 'PROFITSHARING.RETURN', summary: '分账回退' },
		...other('wechat.profitsharing.return') });
	// A receiver in something else does not open the account.
	v3(out, 'receiver_in_a_payment_of_others', { plain: { ...paid, mchid: '1900000777', receiver: { account: MCHID } }, ...foreign });
	v3(out, 'profitsharing_receiver_string', { plain: { ...split, receiver: MCHID }, ...foreign });
}

function retryCases(out) {
	const attempt = (n, env, ago) => v3(out, `retry_${n}`, { plain: paid, env, timestamp: String(1767225605 - ago),
		nonce: `nonceOfAttempt${n}`, ...accepted });
	attempt('1_first_delivery', {}, 60);
	attempt('2_same_body_fresh_signature', {}, 0);
	attempt('3_same_id_reencrypted', { nonce: 'lkjihgfedcba' }, 0);
	attempt('4_new_id_same_transaction', { id: 'EV-2026010108000500002', nonce: 'aaaaaaaaaaaa' }, 0);
}

export function makeV3Shapes(out) {
	plaintextCases(out);
	amountCases(out);
	idCases(out);
	accountCases(out);
	combinedCases(out);
	refundCases(out);
	otherCases(out);
	sharingCases(out);
	retryCases(out);
}
