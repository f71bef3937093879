/*
 * Bytes that must not be seen.
 *
 * A copy on the heap, cleansed before it is freed and before it is replaced.
 * There is no printing and no comparing here: comparing is crypto's, in
 * constant time. It does not lock pages: a host that swaps secrets out is the
 * operator's to mend (LimitMEMLOCK, encrypted swap).
 */
#include "paynotify/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
pn_secret_set(struct pn_secret *secret, const void *data, size_t len)
{
	/* One byte at least, so that an empty secret is not a missing one. */
	unsigned char *copy = malloc(len == 0 ? 1 : len);

	if (copy == NULL)
		return -ENOMEM;
	if (len > 0)
		memcpy(copy, data, len);
	pn_secret_done(secret);
	secret->data = copy;
	secret->len = len;
	return 0;
}

void
pn_secret_done(struct pn_secret *secret)
{
	if (secret == NULL)
		return;
	if (secret->data != NULL)
		explicit_bzero(secret->data, secret->len);
	free(secret->data);
	*secret = (struct pn_secret){ NULL, 0 };
}
