/*
 * Key and certificate files. A public key that is accepted has the size of an
 * RSA key, prints as a PEM that is the same key again, and does not take an
 * empty or an all-zero signature. What is refused says why.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/arena.h"
#include "paynotify/key.h"
#include "paynotify/limits.h"
#include "paynotify/moment.h"

enum {
	SIGNATURE_BYTES_MIN = 1024 / 8,
	SIGNATURE_BYTES_MAX = 16384 / 8,
	SIGN_ARENA_BYTES = 64 << 10,
};

static void
check_serial(const struct pn_public_key *key)
{
	const char *serial = pn_public_key_serial(key);

	assert((serial == NULL) ==
	       (pn_public_key_not_before_us(key) == PN_MOMENT_NONE));
	if (serial == NULL)
		return;
	assert(strlen(serial) % 2 == 0);
	assert(strspn(serial, "0123456789ABCDEF") == strlen(serial));
}

static void
check_public(struct pn_public_key *key)
{
	static const char zeros[SIGNATURE_BYTES_MAX];
	size_t bytes = pn_public_key_signature_bytes(key);
	struct pn_public_key *again = NULL;
	struct pn_error error;
	int r;

	assert(bytes >= SIGNATURE_BYTES_MIN && bytes <= SIGNATURE_BYTES_MAX);
	check_serial(key);
	assert(!pn_public_key_verify(key, PN_RSA_SHA256, PN_STR("message"),
	    (struct pn_str){ zeros, bytes }));
	assert(!pn_public_key_verify(
	    key, PN_RSA_SHA1, PN_STR("message"), (struct pn_str){ NULL, 0 }));
	r = pn_public_key_parse(
	    pn_str_from(pn_public_key_pem(key)), &again, &error);
	/* Numbers that are no key's pass OpenSSL's check (by random bases) once,
	 * and not the next time. */
	assert(r == 0 || r == -ENOMEM || strstr(error.text, "damaged") != NULL);
	if (r < 0)
		return;
	assert(memcmp(pn_public_key_fingerprint(key),
		   pn_public_key_fingerprint(again), PN_SHA256_BYTES) == 0);
	assert(pn_public_key_serial(again) == NULL);
	pn_public_key_unref(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pn_str text = { (const char *)data, size };
	struct pn_private_key *private = NULL;
	struct pn_public_key *public = NULL;
	struct pn_error error = { "" };
	int r;

	if (size > PN_KEY_FILE_BYTES_MAX)
		return 0;
	r = pn_public_key_parse(text, &public, &error);
	assert(r <= 0);
	if (r == 0)
		check_public(public);
	else
		assert(public == NULL && error.text[0] != '\0');
	pn_public_key_unref(public);

	error.text[0] = '\0';
	r = pn_private_key_parse(text, &private, &error);
	assert(r <= 0);
	assert(r == 0 || (private == NULL && error.text[0] != '\0'));
	if (r == 0) {
		struct pn_arena *arena = pn_arena_new(SIGN_ARENA_BYTES);
		struct pn_str signature;

		/* The numbers may be no key at all: only that it ends. */
		if (arena != NULL)
			(void)!pn_private_key_sign(private, PN_RSA_SHA256,
			    PN_STR("message"), arena, &signature);
		pn_arena_free(arena);
	}
	pn_private_key_free(private);
	return 0;
}
