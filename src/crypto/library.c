/*
 * Algorithms of OpenSSL, fetched once: a fetch by name costs more than a short
 * digest. They are immutable and live as long as the process, so they are the
 * one piece of shared state here, written before any thread reads it.
 */
#include "crypto_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>

static pthread_once_t fetch_once = PTHREAD_ONCE_INIT;
static struct crypto_library library;

static void
fetch(void)
{
	library.sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
	library.sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	library.md5 = EVP_MD_fetch(NULL, "MD5", NULL);
	library.hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	library.aes_gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	library.aes_ecb = EVP_CIPHER_fetch(NULL, "AES-256-ECB", NULL);
	ERR_clear_error();
}

const struct crypto_library *
crypto_library(void)
{
	if (pthread_once(&fetch_once, fetch) != 0 || library.sha1 == NULL ||
	    library.sha256 == NULL || library.hmac == NULL ||
	    library.aes_gcm == NULL || library.aes_ecb == NULL) {
		fputs("OpenSSL lacks SHA or AES: check openssl.cnf\n", stderr);
		abort();
	}
	return &library;
}
