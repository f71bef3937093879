// Signs a body as the npm package standardwebhooks does; for test_examples.py.
//   sign.mjs SECRET ID UNIX_TIME <BODY      prints the header webhook-signature
import fs from 'node:fs';
import { Webhook } from 'standardwebhooks';

const [secret, id, time] = process.argv.slice(2);
process.stdout.write(new Webhook(secret).sign(id, new Date(time * 1000), fs.readFileSync(0, 'utf8')));
