// APIv2: XML, sign, req_info, and which events the fields make.
import crypto from 'node:crypto';
import { APPID, certAccount, ecb, MCHID, reqInfoKey, V2_KEY, v2, v2Account, v2Sign, xml } from './wechat_make.mjs';

const OTHER_KEY = 'golden0api0v2key0of0032bytes0002';
const paid = [
	['appid', APPID],
	['attach', '支付测试'],
	['bank_type', 'CFT'],
	['cash_fee', '90'],
	['fee_type', 'CNY'],
	['is_subscribe', 'Y'],
	['mch_id', MCHID],
	['nonce_str', '5d2b6c2a8db53831f7eda20af46e531c'],
	['openid', 'oGoldenOpenid'],
	['out_trade_no', 'GOLD20260101000001'],
	['result_code', 'SUCCESS'],
	['return_code', 'SUCCESS'],
	['time_end', '20260101080003'],
	['total_fee', '100'],
	['trade_type', 'JSAPI'],
	['transaction_id', '4200002026010100000000000001'],
];
const event = {
	type: 'payment.succeeded',
	key: 'webhook:wechat:4200002026010100000000000001',
	provider: 'wechat',
	tenant: 'case',
	account: '1900000109',
	livemode: true,
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
const refused = { verdict: 'malformed', verified: false, events: [] };
const forged = { verdict: 'bad_signature', verified: false, events: [] };
const foreign = { verdict: 'wrong_account', verified: true, events: [] };

// Fields changed by name; undefined removes, unknown names are added.
function change(fields, over) {
	const rest = { ...over };
	const list = fields.map(([name, value]) => {
		const now = name in rest ? rest[name] : value;
		delete rest[name];
		return [name, now];
	});
	return [...list, ...Object.entries(rest)].filter(([, value]) => value !== undefined);
}

const signed = (fields, how) => [...fields, ['sign', v2Sign(fields, how)]];
const hmac = { type: 'HMAC-SHA256' };
const hmacAccount = v2Account({ signType: 'HMAC-SHA256' });

function signCases(out) {
	v2(out, 'md5_success', { body: xml(signed(paid)), ...accepted,
		events: [{ ...event, payload: { attach: '支付测试', total_fee: '100' } }] });
	v2(out, 'hmac_sha256_without_sign_type', { body: xml(signed(paid, hmac)), to: hmacAccount, ...accepted });
	const withType = (type) => [...paid, ['sign_type', type]];
	v2(out, 'hmac_sha256_with_sign_type', { body: xml(signed(withType('HMAC-SHA256'), hmac)), to: hmacAccount, ...accepted });
	v2(out, 'md5_with_sign_type_element', { body: xml(signed(withType('MD5'))), ...accepted });
	v2(out, 'sign_type_empty', { body: xml([...signed(paid), ['sign_type', '']]), ...accepted });
	v2(out, 'sign_type_added_unsigned', { body: xml([...signed(paid), ['sign_type', 'MD5']]), ...forged });
	v2(out, 'sign_type_says_md5_but_hmac_used', { body: xml(signed(withType('MD5'), hmac)), to: hmacAccount, ...forged });
	v2(out, 'sign_type_says_hmac_to_md5_account', { body: xml(signed(withType('HMAC-SHA256'), hmac)), ...forged });
	v2(out, 'sign_type_unknown', { body: xml(signed(withType('SHA1'))), ...forged });
	v2(out, 'sign_type_lower_case', { body: xml(signed(withType('md5'))), ...forged });
	v2(out, 'md5_sign_for_hmac_tenant', { body: xml(signed(paid)), to: hmacAccount, ...forged });
	v2(out, 'hmac_sign_for_md5_tenant', { body: xml(signed(paid, hmac)), ...forged });
	v2(out, 'sign_lower_case', { body: xml([...paid, ['sign', v2Sign(paid).toLowerCase()]]), ...forged });
	v2(out, 'sign_cut', { body: xml([...paid, ['sign', v2Sign(paid).slice(0, 31)]]), ...forged });
	v2(out, 'sign_longer', { body: xml([...paid, ['sign', `${v2Sign(paid)}0`]]), ...forged });
	v2(out, 'wrong_key', { body: xml(signed(paid, { key: OTHER_KEY })), ...forged });
	const two = v2Account({ more: ['api_v2_key_file = other.key'], files: { 'other.key': OTHER_KEY } });
	v2(out, 'two_keys_second_used', { body: xml(signed(paid, { key: OTHER_KEY })), to: two, ...accepted });
	v2(out, 'two_keys_first_used', { body: xml(signed(paid)), to: two, ...accepted });
	// The platform makes keys of 32 bytes; SDKs' tests have others.
	for (const key of ['k', 'yansongda', 'x'.repeat(128)]) {
		const to = v2Account({ files: { 'v2.key': key } });
		v2(out, `key_of_${key.length}_bytes`, { body: xml(signed(paid, { key })), to, ...accepted });
	}
	v2(out, 'missing_sign', { body: xml(paid), ...refused });
	v2(out, 'empty_sign', { body: xml([...paid, ['sign', '']]), ...refused });
	v2(out, 'missing_sign_and_return_code', { body: xml(change(paid, { return_code: undefined })), ...refused });
	v2(out, 'extra_field_added', { body: xml([...signed(paid), ['extra', '1']]), ...forged });
	v2(out, 'field_removed', { body: xml(change(signed(paid), { attach: undefined })), ...forged });
	v2(out, 'amount_changed', { body: xml(change(signed(paid), { total_fee: '1' })), ...forged });
	v2(out, 'without_v2_key', { body: xml(signed(paid)), to: certAccount(), verdict: 'unsupported', verified: false });
	v2(out, 'doctype_without_v2_key', { body: `<!DOCTYPE xml>${xml(signed(paid))}`, to: certAccount(), verdict: 'unsupported' });
	const both = certAccount({ more: ['api_v2_key_file = v2.key'], files: { 'v2.key': V2_KEY } });
	v2(out, 'account_of_both_dialects', { body: xml(signed(paid)), to: both, ...accepted });
	// sign_type of the account is MD5 where it says nothing.
	v2(out, 'default_is_md5', { body: xml(signed(paid)), ...accepted,
		to: { conf: `[wechat case]\nmchid = ${MCHID}\napi_v2_key_file = v2.key\n`, files: { 'v2.key': `${V2_KEY}\n` } } });
}

function valueCases(out) {
	const value = (name, over, write, expect = accepted) => v2(out, name, { body: xml(signed(change(paid, over)), 'xml', write),
		...expect });
	const plain = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
	const attach = (text) => ({ ...accepted, events: [{ ...event, payload: { attach: text } }] });
	value('coupon_indexed_fields', { coupon_fee: '10', coupon_count: '11', coupon_fee_0: '1', coupon_fee_1: '1', coupon_fee_2: '1',
		coupon_fee_10: '1', coupon_id_0: '10000', coupon_type_0: 'CASH' });
	value('ascii_sort_case_and_underscore', { Zeta: '1', _x: '2', a_b: '3', aB: '4', a1: '5', 'a-b': '6' });
	value('fee_type_foreign', { fee_type: 'HKD' }, undefined, { ...accepted, events: [{ ...event, currency: 'HKD' }] });
	value('fee_type_absent', { fee_type: undefined });
	value('fee_type_lower_case', { fee_type: 'cny' }, undefined, kept);
	value('emoji', { attach: '红包🧧' }, undefined, attach('红包🧧'));
	value('special_chars_in_cdata', { attach: 'a&b<c>"d\'=%' }, undefined, attach('a&b<c>"d\'=%'));
	value('special_chars_entity_escaped', { attach: 'a&b<c>' }, plain, attach('a&b<c>'));
	value('numeric_references', { attach: '支 &' }, (text, name) => (name === 'attach' ? '&#25903;&#x20;&#38;' : text), attach('支 &'));
	value('split_cdata', { attach: 'a]]>b' }, (text, name) => (name === 'attach' ?
	    '<![CDATA[a]]]]><![CDATA[>b]]>' : `<![CDATA[${text}]]>`), attach('a]]>b'));
	value('cdata_and_text_mixed', { attach: 'one two' }, (text, name) => (name === 'attach' ? 'one<![CDATA[ t]]>wo' : text),
		attach('one two'));
	value('value_with_spaces_not_trimmed', { attach: '  a  ' }, undefined, attach('  a  '));
	value('value_of_spaces_is_not_empty', { attach: ' ' }, undefined, attach(' '));
	value('newline_in_value', { attach: 'a\nb' }, undefined, attach('a\nb'));
	value('zero_is_not_empty', { attach: '0', cash_fee: '0' }, undefined, attach('0'));
	value('cdata_and_empty_elements', { attach: '', device_info: '', sub_openid: '' }, (text, name) => ({ attach: '<![CDATA[]]>',
		device_info: '' }[name] ?? text));
	value('numbers_without_cdata', {}, (text) => text);
	v2(out, 'empty_element_short_form', { body: xml(signed(change(paid, { attach: '' }))).replace(/<attach>.*<\/attach>/, '<attach/>'),
		...accepted });
	v2(out, 'newlines_between_elements', { body: xml(signed(paid)).replace(/(<\/\w+>)</g, '$1\n\t<'), ...accepted });
	v2(out, 'attributes_ignored', { body: xml(signed(paid)).replace('<attach>', '<attach type="x">'), ...accepted });
	v2(out, 'declaration_utf8', { body: `<?xml version="1.0" encoding="UTF-8"?>\n${xml(signed(paid))}\n`, ...accepted });
	v2(out, 'content_type_says_nothing', { body: xml(signed(paid)), headers: { 'Content-Type': 'application/json; charset=gbk' },
		...accepted });
}

function xmlCases(out) {
	const body = xml(signed(paid));
	const bad = (name, text) => v2(out, name, { body: text, ...refused });
	const entity = xml(signed(change(paid, { attach: 'hello' }))).replace('<![CDATA[hello]]>', '&e;');
	bad('doctype_without_entities', `<!DOCTYPE xml>${body}`);
	bad('doctype_after_declaration', `<?xml version="1.0"?><!DOCTYPE xml []>${body}`);
	bad('doctype_valid_sign_via_internal_entity', `<!DOCTYPE xml [<!ENTITY e "hello">]>${entity}`);
	bad('xxe_file', `<!DOCTYPE xml [<!ENTITY e SYSTEM "file:///etc/passwd">]>${entity}`);
	bad('xxe_http', `<!DOCTYPE xml [<!ENTITY e SYSTEM "http://127.0.0.1:1/x">]>${entity}`);
	bad('xxe_parameter_entity_oob', `<!DOCTYPE xml [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x.dtd"> %p;]>${entity}`);
	bad('xxe_external_dtd', `<!DOCTYPE xml SYSTEM "http://127.0.0.1:1/x.dtd">${body}`);
	bad('xxe_utf7', '<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE xml+AD4-<xml/>');
	bad('xxe_utf16_declared', `<?xml version="1.0" encoding="UTF-16"?>${body}`);
	bad('xinclude', body.replace('<attach>', '<attach xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include parse="text" href="/etc/passwd"/>'));
	bad('billion_laughs', `<!DOCTYPE xml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">
<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;">]>${entity}`);
	bad('quadratic_blowup', `<!DOCTYPE xml [<!ENTITY e "${'a'.repeat(15000)}">]><xml><attach>${'&e;'.repeat(3000)}</attach></xml>`);
	bad('undeclared_entity', entity);
	bad('processing_instruction', body.replace('<attach>', '<?php x?><attach>'));
	bad('stylesheet_instruction', `<?xml-stylesheet href="http://127.0.0.1:1/x"?>${body}`);
	bad('gbk_declared', Buffer.from(`<?xml version="1.0" encoding="GBK"?>${body}`));
	bad('invalid_utf8', Buffer.from(body.replace('支付测试', '\xd6\xa7\xb8\xb6'), 'latin1'));
	bad('control_char_in_cdata', body.replace('支付测试', 'a\u0010b'));
	bad('nul_byte', body.replace('支付测试', 'a\u0000b'));
	bad('nul_reference', body.replace('<![CDATA[支付测试]]>', 'a&#0;b'));
	bad('truncated', body.slice(0, body.length / 2));
	bad('unclosed_root', body.replace('</xml>', ''));
	bad('mismatched_tags', body.replace('</attach>', '</attach2>'));
	bad('two_roots', body + body);
	bad('trailing_garbage', `${body}x`);
	bad('wrong_root', xml(signed(paid), 'root'));
	bad('root_upper_case', xml(signed(paid), 'XML'));
	bad('nested_elements', body.replace('<![CDATA[支付测试]]>', '<b>1</b>'));
	bad('deep_nesting', `<xml>${'<a>'.repeat(5000)}${'</a>'.repeat(5000)}</xml>`);
	bad('text_between_elements', body.replace('<attach>', 'text<attach>'));
	bad('duplicate_element', body.replace('<attach>', '<total_fee>1</total_fee><attach>'));
	bad('duplicate_sign', body.replace('<attach>', '<sign>0</sign><attach>'));
	bad('empty_root', '<xml></xml>');
	bad('only_an_angle', '<');
	bad('html', '<html><body>challenge</body></html>');
	bad('too_many_elements', xml(signed(Array.from({ length: 600 }, (_, i) => [`f${i}`, '1']))));
	bad('too_large', xml(signed(change(paid, { attach: 'x'.repeat(65536) }))).slice(0));
	// Not "<" first: the dialect is APIv3, and there no header is.
	bad('bom_prefix', `\ufeff${body}`);
	bad('leading_newline', `\n${body}`);
	bad('xxe_utf16_bom', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`<!DOCTYPE xml>${body}`, 'utf16le')]));
	bad('empty_body', '');
	bad('json_body', '{"return_code":"SUCCESS"}');
	bad('body_in_json_string', JSON.stringify(body));
	bad('form_body', 'return_code=SUCCESS&total_fee=100');
}

function eventCases(out) {
	const say = (name, over, expect) => v2(out, name, { body: xml(signed(change(paid, over))), ...expect });
	say('other_mch_id', { mch_id: '1900000110' }, foreign);
	say('mch_id_absent', { mch_id: undefined }, accepted);
	const appid = (...ids) => v2Account({ more: ids.map((id) => `appid = ${id}`) });
	v2(out, 'appid_configured', { body: xml(signed(paid)), to: appid('wx0', APPID), ...accepted });
	v2(out, 'other_appid', { body: xml(signed(paid)), to: appid('wx0'), ...foreign });
	v2(out, 'appid_absent', { body: xml(signed(change(paid, { appid: undefined }))), to: appid('wx0'), ...accepted });
	say('partner', { sub_mch_id: '1900007777', sub_appid: 'wx7', sub_openid: 'o2' },
		{ verified: true, events: [{ ...event, account: '1900007777' }] });
	const failed = { type: 'payment.failed', key: 'webhook:wechat:order:GOLD20260101000001:failed',
		out_trade_no: 'GOLD20260101000001', transaction_id: '4200002026010100000000000001', amount: 100, order_amount: 100,
		currency: 'CNY', refund: null };
	say('result_code_fail', { result_code: 'FAIL', err_code: 'SYSTEMERROR', err_code_des: '系统错误' },
		{ verified: true, events: [failed] });
	say('result_code_fail_bare', { result_code: 'FAIL', transaction_id: undefined, total_fee: undefined, time_end: undefined },
		{ verified: true, events: [{ ...failed, transaction_id: null, amount: null, order_amount: null, occurred_at: null }] });
	say('result_code_fail_odd_out_trade_no', { result_code: 'FAIL', out_trade_no: '单:1' },
		{ verified: true, events: [{ ...failed, out_trade_no: '单:1', key: 'webhook:wechat:order:%E5%8D%95%3A1:failed' }] });
	say('result_code_fail_without_out_trade_no', { result_code: 'FAIL', out_trade_no: undefined }, kept);
	say('result_code_fail_bad_amount', { result_code: 'FAIL', total_fee: '1.00' }, kept);
	say('result_code_absent', { result_code: undefined }, kept);
	say('result_code_unknown', { result_code: 'MAYBE' }, kept);
	v2(out, 'return_code_fail_unsigned', { ...refused,
		body: '<xml><return_code><![CDATA[FAIL]]></return_code><return_msg><![CDATA[签名失败]]></return_msg></xml>' });
	say('return_code_fail_signed', { return_code: 'FAIL' }, kept);
	say('return_code_absent_signed', { return_code: undefined }, kept);
	say('transaction_id_missing', { transaction_id: undefined }, kept);
	say('transaction_id_empty', { transaction_id: '' }, kept);
	say('transaction_id_too_long', { transaction_id: '4'.repeat(129) }, kept);
	say('out_trade_no_missing', { out_trade_no: undefined }, kept);
	say('out_trade_no_too_long', { out_trade_no: 'x'.repeat(129) }, kept);
	for (const [name, fee] of [['missing', undefined], ['empty', ''], ['decimal', '1.00'], ['negative', '-100'], ['plus', '+100'],
		['space', ' 100'], ['exponent', '1e2'], ['above_int64', '9223372036854775808'], ['text', 'abc']]) {
		say(`total_fee_${name}`, { total_fee: fee }, kept);
	}
	say('total_fee_zero', { total_fee: '0' }, { verified: true, events: [{ ...event, amount: 0, order_amount: 0 }] });
	say('time_end_unreadable', { time_end: '2026' }, { verified: true, events: [{ ...event, occurred_at: null }] });
	noticeCases(out);
}

// The id of a notice: what it says, without what a retry makes anew.
function noticeKey(fields) {
	const text = fields.filter(([name]) => !['sign', 'sign_type', 'nonce_str'].includes(name))
	    .sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${Buffer.byteLength(value)}:${value}`).join('');
	return `webhook:wechat:notify:${crypto.createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

function noticeCases(out) {
	const contract = [
		['change_type', 'ADD'], ['contract_code', 'C1'], ['contract_id', '200001'], ['mch_id', MCHID], ['nonce_str', 'a1'],
		['openid', 'o1'], ['operate_time', '2026-01-01 08:00:00'], ['plan_id', '7'], ['result_code', 'SUCCESS'],
		['return_code', 'SUCCESS'],
	];
	const notice = (fields) => ({ verified: true, alarm: false, events: [{ type: 'wechat.v2.notice', key: noticeKey(fields),
		amount: null, order_amount: null, refund: null }] });
	v2(out, 'contract_signed', { body: xml(signed(contract)), ...notice(contract) });
	const again = change(contract, { nonce_str: 'b2' });
	v2(out, 'contract_signed_retry', { body: xml(signed(again)), ...notice(contract) });
	const ended = change(contract, { change_type: 'DELETE' });
	v2(out, 'contract_ended', { body: xml(signed(ended)), ...notice(ended) });
	const failed = change(contract, { result_code: 'FAIL' });
	v2(out, 'contract_failed', { body: xml(signed(failed)), ...notice(failed) });
	// A deduction tells failure with result_code SUCCESS.
	const deduction = [...paid, ['trade_state', 'PAY_FAIL']].sort(([a], [b]) => (a < b ? -1 : 1));
	v2(out, 'deduction_failed', { body: xml(signed(deduction)), ...notice(deduction), alarm: true });
	v2(out, 'deduction_succeeded', { body: xml(signed([...paid, ['trade_state', 'SUCCESS']])), ...accepted });
}

const inner = [
	['out_refund_no', 'RF20260101000001'],
	['out_trade_no', 'GOLD20260101000001'],
	['refund_account', 'REFUND_SOURCE_RECHARGE_FUNDS'],
	['refund_fee', '60'],
	['refund_id', '50300002026010100000000000001'],
	['refund_recv_accout', '支付用户零钱'],
	['refund_request_source', 'API'],
	['refund_status', 'SUCCESS'],
	['settlement_refund_fee', '60'],
	['settlement_total_fee', '100'],
	['success_time', '2026-01-01 08:00:03'],
	['total_fee', '100'],
	['transaction_id', '4200002026010100000000000001'],
];
const outer = [['return_code', 'SUCCESS'], ['appid', APPID], ['mch_id', MCHID], ['nonce_str', 'TeqClE3i0mvn3DrK']];
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
	const around = (info, over = {}) => xml(change([...outer, ['req_info', Buffer.isBuffer(info) ? info.toString('base64') : info]], over));
	const of = (fields, how) => ecb(xml(fields, 'root'), how);
	const refund = (name, over, expect, outerOver) => v2(out, `refund_${name}`, { body: around(of(change(inner, over)), outerOver), ...expect });
	const one = (made) => ({ verified: true, alarm: false, events: [made] });
	const locked = { verdict: 'undecryptable', verified: false, events: [] };
	refund('req_info', {}, one(refundEvent('refund.succeeded', 'SUCCESS',
	    { payload: { refund_recv_accout: '支付用户零钱', return_code: 'SUCCESS', req_info: null } })));
	refund('change', { refund_status: 'CHANGE', success_time: undefined },
		one(refundEvent('refund.abnormal', 'ABNORMAL', { occurred_at: null })));
	refund('refundclose', { refund_status: 'REFUNDCLOSE', success_time: undefined },
		one(refundEvent('refund.closed', 'CLOSED', { occurred_at: null })));
	const status = change(inner, { refund_status: 'PROCESSING' });
	refund('processing', { refund_status: 'PROCESSING' }, { verified: true,
		events: [{ type: 'wechat.v2.notice', key: noticeKey(status) }] });
	refund('partner', {}, one(refundEvent('refund.succeeded', 'SUCCESS', { account: '1900007777' })), { sub_mch_id: '1900007777' });
	refund('foreign_currency', { fee_type: 'HKD' }, one(refundEvent('refund.succeeded', 'SUCCESS', { currency: 'HKD' })));
	refund('other_mch_id', {}, foreign, { mch_id: '1900000110' });
	refund('return_code_fail', {}, refused, { return_code: 'FAIL' });
	refund('return_code_absent', {}, refused, { return_code: undefined });
	for (const name of ['refund_id', 'transaction_id', 'out_trade_no', 'refund_status', 'refund_fee', 'total_fee']) {
		refund(`without_${name}`, { [name]: undefined }, kept);
	}
	refund('fee_negative', { refund_fee: '-60' }, kept);
	v2(out, 'refund_other_appid', { body: around(of(inner)), to: v2Account({ more: ['appid = wx0'] }), ...foreign });
	v2(out, 'refund_hmac_account', { body: around(of(inner)), to: hmacAccount, ...one(refundEvent('refund.succeeded', 'SUCCESS')) });
	v2(out, 'refund_fail_no_req_info', { body: xml([['return_code', 'FAIL'], ['return_msg', '参数错误']]), ...refused });
	v2(out, 'refund_no_req_info', { body: xml(outer), ...refused });
	const info = (name, bytes, expect) => v2(out, `refund_req_info_${name}`, { body: around(bytes), ...expect });
	info('empty', '', refused);
	info('wrong_key', of(inner, { key: OTHER_KEY }), locked);
	info('not_base64', '%%%', locked);
	info('not_block_multiple', of(inner).subarray(0, -5), locked);
	info('last_block_lost', of(inner).subarray(0, -16), locked);
	const padded = (last) => {
		const text = Buffer.from(xml(inner, 'root'));
		return ecb(Buffer.concat([text, Buffer.alloc(16 - text.length % 16, last)]), { padded: true });
	};
	info('bad_padding_zero', padded(0), locked);
	info('bad_padding_255', padded(255), locked);
	info('bad_padding_17', padded(17), locked);
	info('garbage_text', ecb('just some text'), locked);
	info('json', ecb(JSON.stringify(Object.fromEntries(inner))), locked);
	info('invalid_utf8', ecb(Buffer.from(xml(inner, 'root').replace('支付用户零钱', '\xff\xfe'), 'latin1')), locked);
	info('root_is_xml', ecb(xml(inner, 'xml')), refused);
	info('xxe_inside', ecb(`<!DOCTYPE root [<!ENTITY e SYSTEM "file:///etc/passwd">]><root><refund_id>&e;</refund_id></root>`), refused);
	info('doctype_inside', ecb(`<!DOCTYPE root>${xml(inner, 'root')}`), refused);
	info('nested_inside', ecb('<root><a><b>1</b></a></root>'), refused);
	info('duplicate_inside', ecb(xml([...inner, ['refund_fee', '1']], 'root')), refused);
	const accidental = accidentalPadding(of(inner));
	v2(out, 'refund_req_info_wrong_key_padding_accidentally_ok', { body: around(of(inner)), ...locked,
		to: v2Account({ files: { 'v2.key': accidental } }) });
	const zero = keyWithMd5('00');
	v2(out, 'refund_req_info_md5_with_leading_zeros', { body: around(of(inner, { key: zero })),
		to: v2Account({ files: { 'v2.key': zero } }), ...one(refundEvent('refund.succeeded', 'SUCCESS')) });
	v2(out, 'refund_two_keys_second_used', { body: around(of(inner, { key: OTHER_KEY })),
		to: v2Account({ more: ['api_v2_key_file = other.key'], files: { 'other.key': OTHER_KEY } }),
		...one(refundEvent('refund.succeeded', 'SUCCESS')) });
	mixedCases(out, of(inner).toString('base64'), locked, one);
}

// req_info never stands in for the sign of a payment.
function mixedCases(out, info, locked, one) {
	v2(out, 'payment_unsigned_with_garbage_req_info', { body: xml([...paid, ['req_info', 'AAAA']]), ...locked });
	v2(out, 'payment_unsigned_with_captured_req_info', { body: xml([...change(paid, { transaction_id: '42forged' }), ['req_info', info]]),
		...one(refundEvent('refund.succeeded', 'SUCCESS')) });
	v2(out, 'payment_wrong_sign_with_captured_req_info', { body: xml([...paid, ['req_info', info], ['sign', '0'.repeat(32)]]), ...forged });
	v2(out, 'payment_signed_with_req_info', { body: xml(signed([...paid, ['req_info', info]])), ...accepted });
	v2(out, 'refund_signed_too', { body: xml(signed([...outer, ['req_info', info]])), ...one(refundEvent('refund.succeeded', 'SUCCESS')) });
	v2(out, 'refund_signed_but_undecryptable', { body: xml(signed([...outer, ['req_info', 'AAAA']])), ...locked, verified: true });
}

function keyWithMd5(prefix) {
	for (let i = 0; ; i++) {
		const key = `golden0api0v2key0${String(i).padStart(15, '0')}`;
		if (reqInfoKey(key).startsWith(prefix)) {
			return key;
		}
	}
}

// A wrong key that gives legal padding all the same: one in about 256.
function accidentalPadding(cipher) {
	for (let i = 0; ; i++) {
		const key = `wrong00api0v2key0${String(i).padStart(15, '0')}`;
		try {
			const decipher = crypto.createDecipheriv('aes-256-ecb', reqInfoKey(key), null);
			decipher.update(cipher);
			decipher.final();
			return key;
		} catch {
			// illegal padding, as it should be
		}
	}
}

export function makeV2(out) {
	signCases(out);
	valueCases(out);
	xmlCases(out);
	eventCases(out);
	refundCases(out);
}
