// node generate.mjs OUT: writes OUT/<provider>/<case>/ for every provider.
// OUT appears at once and whole, or not at all; if it is there already and was
// made by these very files, nothing is done.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const providers = ['alipay', 'wechat'];
const out = process.argv[2];

if (out === undefined) {
	console.error('usage: node generate.mjs OUT');
	process.exit(2);
}

const sources = fs.readdirSync(here).filter((name) => name.endsWith('.mjs')).sort();
const hash = crypto.createHash('sha256');
for (const name of sources) {
	hash.update(fs.readFileSync(path.join(here, name)));
}
const stamp = hash.digest('hex');
const stampFile = path.join(out, 'stamp');
if (fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === stamp) {
	process.exit(0);
}

const draft = `${out}.${process.pid}`;
fs.mkdirSync(draft, { recursive: true });
try {
	for (const provider of providers) {
		if (!sources.includes(`${provider}.mjs`)) {
			continue;
		}
		const { make } = await import(`./${provider}.mjs`);
		await make(draft);
		const count = fs.readdirSync(path.join(draft, provider)).length;
		console.log(`${provider}: ${count} cases`);
	}
	fs.writeFileSync(path.join(draft, 'stamp'), stamp);
	fs.rmSync(out, { recursive: true, force: true });
	fs.renameSync(draft, out);
} finally {
	fs.rmSync(draft, { recursive: true, force: true });
}
