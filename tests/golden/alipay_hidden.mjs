// The boundary attack of DESIGN.md section 13: a genuine message, encoded anew
// so that a value (or a name) swallows the parameters behind it. The signed
// string stays the same.
import { APP, canonical, finished, fund, other, paid, payment, pairsOf, refunded, service,
	signed, waiting } from './alipay_message.mjs';

const refused = { verdict: 'malformed', verified: true };

// Moves `names` into the value of `into`, as they stand in the signed string.
function swallow(fields, into, names) {
	const whole = signed(fields);
	const hidden = names.map((name) => `&${name}=${whole[name]}`).join('');
	return Object.fromEntries(Object.entries({ ...whole, [into]: whole[into] + hidden })
		.filter(([name]) => !names.includes(name)));
}

function attack(add, name, fields, into, names, over = refused) {
	const changed = swallow(fields, into, names);
	if (!canonical(changed, over.rule).equals(canonical(fields, over.rule))) {
		throw new Error(`hidden_${name} breaks the signature`);
	}
	add(`hidden_${name}`, { fields: changed, ...over });
}

export function hiddenCases(add) {
	attack(add, 'refund_fee_in_passback', refunded({ passback_params: 'x' }),
		'passback_params', ['refund_fee']);
	attack(add, 'refund_fee_in_point_amount', { ...refunded(), point_amount: '0.00' },
		'point_amount', ['refund_fee']);
	attack(add, 'refund_fee_in_out_trade_no', refunded(), 'out_trade_no', ['refund_fee']);
	attack(add, 'out_biz_no_in_notify_type', refunded(), 'notify_type', ['out_biz_no']);
	attack(add, 'gmt_refund_in_gmt_payment', refunded(), 'gmt_payment', ['gmt_refund']);
	attack(add, 'gmt_payment_in_gmt_create', finished(), 'gmt_create', ['gmt_payment']);
	attack(add, 'total_amount_in_subject', paid(), 'subject', ['total_amount']);
	attack(add, 'trade_status_in_trade_no', paid(), 'trade_no', ['trade_status']);
	attack(add, 'seller_id_in_seller_email', paid(), 'seller_email', ['seller_id']);
	attack(add, 'app_id_swallowed_many', paid({ agreement_no: '1' }), 'agreement_no',
		['app_id', 'auth_app_id']);
	attack(add, 'auth_app_id_in_app_id', paid(), 'app_id', ['auth_app_id']);
	attack(add, 'merchant_app_id_in_invoice_amount', paid(), 'invoice_amount',
		['merchant_app_id']);
	attack(add, 'notify_time_in_notify_id', paid(), 'notify_id', ['notify_time']);
	attack(add, 'last_parameter', paid({ voucher_detail_list: '[]' }), 'version',
		['voucher_detail_list']);
	attack(add, 'first_of_two', refunded({ passback_params: 'x&y=1' }), 'passback_params',
		['refund_fee']);
	attack(add, 'behind_unknown_one', { ...refunded(), passback_params: 'x', q_new: '1' },
		'passback_params', ['q_new', 'refund_fee']);
	attack(add, 'unsigned_empty_does_not_narrow', refunded({ passback_params: 'x' }),
		'passback_params', ['refund_fee'], refused);
	add('hidden_with_empty_refund_fee', { ...refused, fields: { ...swallow(
		refunded({ passback_params: 'x' }), 'passback_params', ['refund_fee']),
	refund_fee: '', point_amount: '' },
	note: 'empty fields are not signed where the signer drops them' });
	attack(add, 'biz_content_of_msg', fund({ body: 'x' }), 'biz_content', ['body']);
	add('hidden_sign_type_of_v2', { ...refused, fields: (() => {
		const whole = signed(service(), { v2: true });
		whole.service_code += `&sign_type=${whole.sign_type}`;
		delete whole.sign_type;
		return whole;
	})(), note: 'a V2 string read as V1' });

	attack(add, 'unknown_in_trade_no', paid({ trade_no_new: '1' }), 'trade_no',
		['trade_no_new']);
	attack(add, 'unknown_in_out_trade_no', paid({ out_trade_no_new: '1' }), 'out_trade_no',
		['out_trade_no_new']);

	// Boundaries moved into a name: refused by the form already.
	const form = { verdict: 'malformed', verified: false };
	add('hidden_in_name', { ...form, fields: (() => {
		const whole = signed(refunded());
		const name = `refund_fee=${whole.refund_fee}&seller_email`;
		const { refund_fee: fee, seller_email: email, ...rest } = whole;
		return fee ? { ...rest, [name]: email } : rest;
	})() });
	add('hidden_name_with_equals', { ...form, fields: (() => {
		const { subject, ...rest } = signed(paid({ subject: 'a=b' }));
		return { ...rest, 'subject=a': subject.slice(2) };
	})() });
	add('hidden_name_with_ampersand', { fields: signed(paid({ 'a&b': '1' })), ...form });

	// What only looks like it.
	const kept = (name, over) => add(`not_hidden_${name}`, { fields: paid(over),
		events: [payment({ payload: over })] });
	kept('unknown_name', { subject: 'a&size=5&t=1' });
	kept('name_further_up', { subject: 'a&version=2' });
	kept('name_before', { subject: 'a&refund_fee=10.00' });
	kept('next_name_itself', { subject: 'a&total_amount=0.01' });
	kept('own_name', { subject: 'a&subject=b' });
	kept('no_equals', { passback_params: 'a&refund_fee' });
	kept('no_ampersand', { passback_params: 'refund_fee=10.00' });
	kept('longer_name', { passback_params: 'a&pay_amounts=1' });
	kept('encoded', { passback_params: 'a%26pay_amount%3D1' });
	kept('ampersand_last', { subject: 'a&' });
	kept('html', { body: 'a&lt;b&buyer=x' });
	add('not_hidden_msg', { fields: fund({ biz_content: '{"u":"http://x/?a=1&b=2"}' }),
		events: [other('fund.trans.order.changed')] });
	add('not_hidden_pending', { fields: waiting({ subject: 'x & y' }),
		events: [payment({ type: 'payment.pending', occurred_at: '2026-03-01T02:00:00Z',
			key: 'webhook:alipay:T20260301-0001:pending' })] });
	if (pairsOf(paid()).length < 20 || APP.length !== 16) {
		throw new Error('the baseline has shrunk');
	}
}
