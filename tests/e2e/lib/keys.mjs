// Test keys, made when the tests run and gone with them.
import crypto from 'node:crypto';

export function rsa() {
  return crypto.generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

// Alipay's console shows a public key as one line of base64 without armour.
export const bare = (pem) => pem.replace(/-----[^-]+-----|\s/g, '');

export const secret = () => crypto.randomBytes(16).toString('hex');
