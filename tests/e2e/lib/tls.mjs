// Two authorities and, from the first, a certificate for "localhost": made by
// openssl when the tests run, gone with them.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-batch'];

export function authorities() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'pn-e2e-tls.'));
  const openssl = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] });
  const read = (name) => fs.readFileSync(path.join(dir, name), 'utf8');
  try {
    for (const ca of ['ca', 'foreign']) {
      openssl('req', '-x509', ...EC, '-days', '2', '-subj', `/CN=${ca}`, '-keyout', `${ca}.key`,
        '-out', `${ca}.pem`, '-addext', 'basicConstraints=critical,CA:TRUE');
    }
    openssl('req', ...EC, '-subj', '/CN=localhost', '-keyout', 'server.key', '-out', 'server.csr');
    fs.writeFileSync(path.join(dir, 'names'), 'subjectAltName=DNS:localhost\n');
    openssl('x509', '-req', '-in', 'server.csr', '-days', '2', '-CAcreateserial', '-CA', 'ca.pem',
      '-CAkey', 'ca.key', '-extfile', 'names', '-out', 'server.pem');
    return { ca: read('ca.pem'), foreign: read('foreign.pem'),
      server: { key: read('server.key'), cert: read('server.pem') } };
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
}
