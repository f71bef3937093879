/*
 * A push as a Standard Webhook (specification 1.0.0): what is signed is
 *
 *   <webhook-id> "." <webhook-timestamp> "." <body>
 *
 * with HMAC-SHA256, and webhook-signature holds one "v1,<base64>" a secret,
 * separated by blanks. During a rotation there are two secrets and so two
 * signatures; the receiver takes the message if it knows either.
 *
 * webhook-id is the id of the event, the same in every attempt, in a
 * redelivery and after a restore: what the receiver remembers to be exactly
 * once. webhook-timestamp is of the attempt, so that a receiver that refuses
 * old messages takes a late retry. The id and the timestamp hold no dot, so no
 * two messages share a signed text.
 *
 * Body and signed text share their bytes: the text is begun with the two, the
 * body is written behind them, and sent is the slice that follows. A body of
 * some megabytes is so neither copied nor hashed piecewise.
 *
 * This does not send, and knows no clock.
 */
#include "webhook.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "paynotify/digest.h"
#include "paynotify/encode.h"

static const char SECRET_PREFIX[] = "whsec_";
enum {
	SECRET_TEXT_BYTES_MAX =
	    PN_BASE64_ENCODED_BYTES(PN_WEBHOOK_SECRET_BYTES_MAX),
	SIGNATURE_TEXT_BYTES = PN_BASE64_ENCODED_BYTES(PN_SHA256_BYTES) + 1,
};

int
pn_webhook_secret_parse(struct pn_str text, struct pn_secret *ret_secret,
    struct pn_error *ret_error)
{
	unsigned char bytes[PN_BASE64_DECODED_MAX(SECRET_TEXT_BYTES_MAX)];
	size_t prefix = sizeof(SECRET_PREFIX) - 1, len = 0;
	int r = 1;

	if (!pn_str_starts(text, SECRET_PREFIX))
		return pn_error_set(ret_error, 1,
		    "a secret begins with \"%s\", this one does not",
		    SECRET_PREFIX);
	text.data += prefix;
	text.len -= prefix;
	if (text.len <= SECRET_TEXT_BYTES_MAX)
		r = pn_base64_decode(text, bytes, &len);
	if (text.len <= SECRET_TEXT_BYTES_MAX && r != 0)
		r = pn_error_set(ret_error, 1,
		    "what follows \"%s\" is not base64 (RFC 4648, padded)",
		    SECRET_PREFIX);
	else if (r != 0 || len < PN_WEBHOOK_SECRET_BYTES_MIN ||
		 len > PN_WEBHOOK_SECRET_BYTES_MAX)
		r = pn_error_set(ret_error, 1,
		    "a secret has %d to %d bytes: make one with "
		    "`echo %s$(openssl rand -base64 32)`",
		    (int)PN_WEBHOOK_SECRET_BYTES_MIN,
		    (int)PN_WEBHOOK_SECRET_BYTES_MAX, SECRET_PREFIX);
	else if ((r = pn_secret_set(ret_secret, bytes, len)) < 0)
		r = pn_error_set(ret_error, r, "out of memory");
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

size_t
pn_webhook_begin(struct pn_buf *text, const struct pn_webhook *webhook)
{
	assert(text->len == 0 && webhook->id.len > 0);
	assert(memchr(webhook->id.data, '.', webhook->id.len) == NULL);
	assert(webhook->sent_at_s >= 0);
	pn_buf_add_str(text, webhook->id);
	pn_buf_printf(text, ".%" PRId64 ".", webhook->sent_at_s);
	return text->len;
}

void
pn_webhook_add_headers(struct pn_buf *out, const struct pn_webhook *webhook,
    struct pn_str signed_text)
{
	unsigned char mac[PN_SHA256_BYTES];
	char signature[SIGNATURE_TEXT_BYTES];

	assert(webhook->secret_count > 0);
	assert(signed_text.len > webhook->id.len);
	pn_buf_add_text(out, "Content-Type: application/json\n"
			     "User-Agent: paynotifyd/" PN_VERSION "\n"
			     "webhook-id: ");
	pn_buf_add_str(out, webhook->id);
	pn_buf_printf(out,
	    "\nwebhook-timestamp: %" PRId64 "\nwebhook-signature:",
	    webhook->sent_at_s);
	for (size_t i = 0; i < webhook->secret_count; i++) {
		pn_hmac_sha256(&webhook->secrets[i], signed_text, mac);
		pn_base64_encode(mac, sizeof(mac), signature);
		pn_buf_printf(out, " v1,%s", signature);
	}
	pn_buf_add_char(out, '\n');
	if (webhook->redelivery)
		pn_buf_add_text(out, "webhook-redelivery: true\n");
}
