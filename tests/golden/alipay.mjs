// Alipay's golden cases: signed here after Alipay's documents, with the verdict
// and the events stated by hand from DESIGN.md sections 6, 7 and 13.
import { accountCases } from './alipay_account.mjs';
import { eventCases } from './alipay_event.mjs';
import { formCases } from './alipay_form.mjs';
import { hiddenCases } from './alipay_hidden.mjs';
import { keyCases } from './alipay_key.mjs';
import { alipayKey, APP, AT, paid, pairsOf, payment, signed } from './alipay_message.mjs';
import { signCases } from './alipay_sign.mjs';
import { textCases } from './alipay_text.mjs';
import { form, spkiPem, writeCase } from './lib.mjs';

const refusals = ['malformed', 'bad_signature', 'wrong_account', 'unsupported'];

// One case. fields: signed here unless they have `sign` (or sign: null, none).
// wire: changes the pairs behind the signer's back. body: replaces the form.
function define(out) {
	return (name, { fields = paid(), sign = {}, wire = (pairs) => pairs, encoding, body,
		conf = [], files = {}, keys = ['alipay_key'], signType = 'RSA2', apps = [APP],
		target = '/notify/alipay/case', method = 'POST', headers = {}, raw,
		verdict = 'accepted', verified, alarm = false, events = [payment()], note }) => {
		const whole = 'sign' in fields || sign === null ? fields : signed(fields, sign);
		const accept = verdict === 'accepted';
		const verdicts = [verdict].flat();
		if (!accept && verdicts.some((v) => !refusals.includes(v))) {
			throw new Error(`${name}: verdict ${verdict}`);
		}
		writeCase(out, 'alipay', name, {
			conf: ['[alipay case]', ...apps.map((app) => `app_id = ${app}`),
				...keys.map((key) => `public_key = ${key}`), `sign_type = ${signType}`,
				...conf, ''].join('\n'),
			files: { alipay_key: spkiPem(alipayKey().publicKey), ...files },
			raw,
			request: {
				method, target,
				headers: { Host: 'pay.example.test', 'User-Agent': 'Mozilla/4.0',
					'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8',
					...headers },
				body: body ?? form(wire(pairsOf(whole)), encoding),
			},
			expect: { tenant: 'case', at: AT, accept, verdicts, note, alarm,
				verified: verified ?? accept, ...(accept ? { events } : {}) },
		});
	};
}

export function make(out) {
	const add = define(out);
	keyCases(add);
	signCases(add);
	formCases(add);
	textCases(add);
	eventCases(add);
	accountCases(add);
	hiddenCases(add);
}
