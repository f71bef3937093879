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

// The captures once more, in one folder, each different one once: seeds of the
// fuzz target. Long ones only slow a fuzzer down.
function copySeeds(provider, cases) {
	const seeds = path.join(draft, 'fuzz', `fuzz_${provider}`);
	const seen = new Set();
	fs.mkdirSync(seeds, { recursive: true });
	for (const name of cases) {
		const raw = fs.readFileSync(path.join(draft, provider, name, 'request.http'));
		const digest = crypto.createHash('sha256').update(raw).digest('hex');
		if (raw.length <= 8192 && !seen.has(digest)) {
			seen.add(digest);
			fs.writeFileSync(path.join(seeds, name), raw);
		}
	}
}

fs.mkdirSync(draft, { recursive: true });
try {
	for (const provider of providers) {
		if (!sources.includes(`${provider}.mjs`)) {
			continue;
		}
		const { make } = await import(`./${provider}.mjs`);
		await make(draft);
		const cases = fs.readdirSync(path.join(draft, provider));
		console.log(`${provider}: ${cases.length} cases`);
		copySeeds(provider, cases);
	}
	fs.writeFileSync(path.join(draft, 'stamp'), stamp);
	fs.rmSync(out, { recursive: true, force: true });
	fs.renameSync(draft, out);
} finally {
	fs.rmSync(draft, { recursive: true, force: true });
}
