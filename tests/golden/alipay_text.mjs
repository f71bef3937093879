// Values that receivers have broken, and charsets that are told, not told or
// told wrongly.
import { closed, other, agreement, paid, payment, signature, waiting } from './alipay_message.mjs';

const hex = (text) => Buffer.from(text.replace(/ /g, ''), 'hex');
const gbk = hex('b2e2 cad4 c9cc c6b7 a3ac d6d0 cec4'); // 测试商品，中文
const utf8 = '测试商品，中文';

function valueCases(add) {
	const subject = (name, text, shown = text) => add(name, {
		fields: paid({ subject: text }), events: [payment({ payload: { subject: shown } })] });
	subject('subject_plus', '会员+1 +2');
	subject('subject_percent', '100%');
	subject('subject_percent_encoded', '%E4%BD%A0%2B');
	subject('subject_plus_percent_amp_equals', '5% + 5 & a=b & c == d');
	subject('subject_leading_at', '@home');
	subject('subject_leading_trailing_space', ' foobar ');
	subject('subject_literal_amp_quot', 'a &quot;b&quot; &amp; c');
	subject('subject_emoji', '生日🎂蛋糕 ❤️');
	subject('subject_crlf_tab', 'line1\r\nline2\tend');
	subject('subject_quotes_and_backslashes', 'a "b" \\ \'c\' \\" /');
	subject('subject_control_bytes', '\u0001\u001f\u007f');
	subject('subject_nul', 'abc\0def', 'abc\ufffddef');
	subject('subject_only_nul', '\0', '\ufffd');
	subject('subject_html', '<script>alert(1)</script>');
	subject('subject_noncharacters', '\uffff\u{10ffff}\ufeff');
	subject('subject_bad_utf8', hex('ff fe 80 61 62 63'), '\ufffd\ufffd\ufffdabc');
	subject('subject_utf8_cut', hex('61 e4 bd'), 'a\ufffd');
	subject('subject_surrogate_in_utf8', hex('ed a0 80 41'), '\ufffd\ufffd\ufffdA');
	subject('subject_overlong_slash', hex('c0 af'), '\ufffd\ufffd');
	const quoted = '[{"amount":"88.88","fundChannel":"ALIPAYACCOUNT"}]';
	add('fund_bill_list_html_escaped', { verdict: 'bad_signature',
		wire: (pairs) => pairs.map(([n, v]) =>
			[n, n === 'fund_bill_list' ? v.replace(/"/g, '&quot;') : v]) });
	add('fund_bill_list_slashes_added', { verdict: 'bad_signature',
		wire: (pairs) => pairs.map(([n, v]) =>
			[n, n === 'fund_bill_list' ? v.replace(/"/g, '\\"') : v]) });
	add('literal_quot_unescaped', { fields: paid({ subject: '"b"',
		sign: signature(paid({ subject: '&quot;b&quot;' })) }), verdict: 'bad_signature' });
	add('plus_decoded_twice', { fields: paid({ subject: 'a b',
		sign: signature(paid({ subject: 'a+b' })) }), verdict: 'bad_signature' });
	add('trimmed_value', { fields: paid({ subject: 'foobar',
		sign: signature(paid({ subject: 'foobar ' })) }), verdict: 'bad_signature' });
	add('passback_encoded_once', { fields: paid({ passback_params: 'tpdp_id=17' }),
		events: [payment({ payload: { passback_params: 'tpdp_id=17',
			fund_bill_list: quoted } })] });
	add('passback_double_encoded', { fields: paid({ charset: 'UTF-8',
		passback_params: 'merchantBizType%3d3C%26merchantBizNo%3d2016010101111' }),
	events: [payment({ payload: {
		passback_params: 'merchantBizType%3d3C%26merchantBizNo%3d2016010101111' } })] });
	add('passback_malformed_percent', { fields: paid({ passback_params: '%zz%' }) });
	add('fund_bill_list_8k', { fields: paid({ fund_bill_list:
		`[${Array(160).fill(quoted.slice(1, -1)).join(',')}]` }) });
	add('value_60k', { fields: paid({ body: 'x'.repeat(60000) }) });
	add('fields_400', { fields: { ...paid(), ...Object.fromEntries(
		Array.from({ length: 400 }, (_, i) => [`x${i}`, '1'])) } });
}

function charsetCases(add) {
	const shown = (text) => ({ events: [payment({ payload: { subject: text } })] });
	const as = (charset, subject) => ({ fields: paid({ charset, subject }) });
	for (const charset of ['GBK', 'gbk', 'GB2312', 'gb2312', 'GB18030', 'gb18030']) {
		add(`charset_${charset === charset.toUpperCase() ? 'upper' : 'lower'}_` +
		    charset.toLowerCase(), { ...as(charset, gbk), ...shown(utf8) });
	}
	add('charset_upper_utf_8', { ...as('UTF-8', utf8), ...shown(utf8) });
	add('charset_gb18030_4byte', { ...as('GB18030', hex('65 94 39 fc 36 21')),
		...shown('e😀!') });
	add('charset_gbk_4byte', { ...as('GBK', hex('65 94 39 fc 36 21')), ...shown('e😀!') });
	add('charset_gbk_trail_is_ascii', { ...as('GBK', hex('81 5c 41')), ...shown('乗A') });
	add('charset_gbk_cut', { ...as('GBK', hex('b2 e2 ca')), ...shown('测\ufffd') });
	add('charset_gbk_signed_as_utf8', { fields: paid({ charset: 'GBK', subject: gbk,
		sign: signature(paid({ charset: 'GBK', subject: utf8 })) }),
	verdict: 'bad_signature' });
	add('charset_gbk_transcoded_on_the_way', { fields: paid({ charset: 'GBK', subject: utf8,
		sign: signature(paid({ charset: 'GBK', subject: gbk })) }),
	verdict: 'bad_signature' });
	add('charset_gbk_but_bytes_are_utf8', { ...as('GBK', '€5 测试订'), ...shown('€5 测试订'),
		note: 'the gateway assumed GBK; the bytes are no GB18030' });
	add('charset_utf8_but_bytes_are_gbk', { ...as('utf-8', hex('b2e2 41')),
		events: [payment()] });
	add('charset_absent_utf8', { ...as(undefined, utf8), ...shown(utf8) });
	add('charset_absent_gbk', { ...as(undefined, gbk), ...shown(utf8),
		headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
	add('charset_only_in_content_type', { ...as(undefined, gbk), ...shown(utf8),
		headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=GBK' } });
	add('charset_content_type_wrong', { ...as('GBK', gbk), ...shown(utf8),
		note: 'the signed one wins' });
	add('charset_content_type_gbk_form_utf8', { ...as('utf-8', utf8), ...shown(utf8),
		headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=GBK' } });
	add('charset_unknown', { ...as('x-klingon', utf8), ...shown(utf8) });
	add('charset_empty', { ...as('', utf8), ...shown(utf8) });
	add('charset_gbk_pending', { fields: waiting({ charset: 'GBK', subject: gbk }),
		events: [payment({ type: 'payment.pending', occurred_at: '2026-03-01T02:00:00Z',
			key: 'webhook:alipay:T20260301-0001:pending' })] });
	add('charset_gbk_closed', { fields: closed({ charset: 'GBK', subject: gbk }),
		events: [payment({ type: 'payment.closed', occurred_at: '2026-03-01T02:15:06Z',
			key: 'webhook:alipay:T20260301-0001:closed' })] });
	add('charset_gbk_other', { fields: agreement({ charset: 'GBK', login_token: gbk }),
		events: [other('dut_user_sign', { payload: { login_token: utf8 } })] });
}

export function textCases(add) {
	valueCases(add);
	charsetCases(add);
}
