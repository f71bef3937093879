/*
 * AES as WeChat Pay uses it. Any thread.
 */
#ifndef PN_CIPHER_H
#define PN_CIPHER_H

#include <stddef.h>

#include "paynotify/compiler.h"
#include "paynotify/secret.h"
#include "paynotify/str.h"

enum {
	PN_AES256_KEY_BYTES = 32,
	PN_GCM_NONCE_BYTES = 12,
	PN_GCM_TAG_BYTES = 16,
	PN_AES_BLOCK_BYTES = 16,
};

/* AES-256-GCM, tag behind the ciphertext. ret_plain must have the length of
 * the ciphertext. 0; 1 when it does not decrypt (length, nonce, tag): nothing
 * usable is in ret_plain then. -EINVAL: key not 32 bytes. */
int pn_aes_gcm_decrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len) PN_MUSTCHECK;
/* ret_cipher must have plain.len + PN_GCM_TAG_BYTES. For samples. */
int pn_aes_gcm_encrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str plain,
    unsigned char *ret_cipher, size_t *ret_len) PN_MUSTCHECK;

/* AES-256-ECB with PKCS#7, fully checked: req_info of APIv2. Same returns. */
int pn_aes_ecb_decrypt(const struct pn_secret *key, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len) PN_MUSTCHECK;
/* ret_cipher must have plain.len + PN_AES_BLOCK_BYTES. For samples. */
int pn_aes_ecb_encrypt(const struct pn_secret *key, struct pn_str plain,
    unsigned char *ret_cipher, size_t *ret_len) PN_MUSTCHECK;

#endif
