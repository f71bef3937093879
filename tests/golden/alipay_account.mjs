// Whose notification it is.
import { APP, agreement, other, paid, SELLER } from './alipay_message.mjs';

const wrong = { verdict: 'wrong_account', verified: true };
const malformed = { verdict: 'malformed', verified: true };
const seller = [`seller_id = ${SELLER}`];

export function accountCases(add) {
	add('other_app_id', { apps: ['2021000000000002'], ...wrong });
	add('other_app_id_prefix', { apps: [`${APP}1`], ...wrong });
	add('other_app_id_not_trade', { fields: agreement(), apps: ['2021000000000002'],
		...wrong });
	add('other_app_id_bad_signature', { apps: ['2021000000000002'], verdict: 'bad_signature',
		wire: (pairs) => pairs.map(([n, v]) => [n, n === 'subject' ? 'x' : v]),
		note: 'the signature comes first' });
	add('app_id_absent', { fields: paid({ app_id: undefined }), ...malformed });
	add('app_id_empty', { fields: paid({ app_id: '' }), ...malformed });
	add('app_id_blank_added', { fields: paid({ app_id: ` ${APP}` }), ...malformed });
	add('two_app_ids_and_seller_id', { apps: ['2021000000000002', APP], conf: seller });
	add('seller_id_right', { conf: seller });
	add('seller_id_wrong', { conf: ['seller_id = 2088000000000009'], ...wrong });
	add('seller_id_absent', { conf: seller, fields: agreement(),
		events: [other('dut_user_sign')] });
	add('seller_id_empty', { conf: seller, fields: paid({ seller_id: '' }) });
	add('seller_id_not_configured', { fields: paid({ seller_id: '2088000000000009' }),
		events: [{ type: 'payment.succeeded', account: '2088000000000009' }] });
	add('isv_auth_app_id', { conf: seller, fields: paid({ auth_app_id: '2021000000000077',
		merchant_app_id: '2021000000000077' }),
	note: 'app_id is the ISV, auth_app_id the merchant' });
	add('mapi_no_app_id', { fields: { discount: '0.00', payment_type: '1', subject: 'x',
		trade_no: '2014040311001004370000361525', buyer_email: 'a@example.test',
		gmt_create: '2014-04-03 22:22:55', notify_type: 'trade_status_sync', quantity: '1',
		out_trade_no: '1', seller_id: SELLER, notify_time: '2014-04-03 22:22:57',
		trade_status: 'WAIT_BUYER_PAY', is_total_fee_adjust: 'Y', total_fee: '0.01',
		notify_id: 'ac05099524730693a8b330c5ecf72da978', use_coupon: 'N', price: '0.01',
		sign_type: 'RSA2' }, ...malformed,
	note: 'the old gateway: no app_id, so no account' });
}
