/*
 * A signed request as the template's provider would send it, for `trigger` on
 * test accounts and for tests: pure, so the same sample gives the same bytes.
 */
#include "template_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

int
pn_template_sample(const void *account_pointer, const struct pn_sample *sample,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error)
{
	const struct pn_template *account = account_pointer;
	const char *merchant = account->conf->template.merchant.values[0];
	struct pn_header *headers = pn_arena_alloc(arena, 2 * sizeof(*headers));
	int64_t amount =
	    sample->amount_minor == 0 ? 8888 : sample->amount_minor;
	char time[PN_MOMENT_TEXT_BYTES], hex[2 * PN_SHA256_BYTES + 1];
	unsigned char digest[PN_SHA256_BYTES];
	struct pn_str order = sample->out_trade_no, timestamp, body;
	bool tampered = sample->oddity != NULL;

	if (!pn_str_is(sample->event, "payment.succeeded") ||
	    (tampered && strcmp(sample->oddity, "tampered") != 0))
		return pn_error_set(ret_error, 1,
		    "there is \"payment.succeeded\", and \"tampered\"");
	if (order.len == 0)
		order = pn_arena_printf(arena, "T%" PRIu64, sample->seed);
	pn_moment_format_rfc3339(sample->now_us, time);
	timestamp =
	    pn_arena_printf(arena, "%" PRId64, sample->now_us / PN_SECOND_US);
	body = pn_arena_printf(arena,
	    "{\"id\":\"n-" PN_STR_FMT "\",\"type\":\"payment.succeeded\","
	    "\"merchant\":\"%s\",\"order\":\"" PN_STR_FMT "\","
	    "\"transaction\":\"x-" PN_STR_FMT "\",\"amount\":%" PRId64
	    ",\"currency\":\"CNY\",\"time\":\"%s\"}",
	    PN_STR_ARG(order), merchant, PN_STR_ARG(order), PN_STR_ARG(order),
	    amount, time);
	if (headers == NULL || timestamp.data == NULL || body.data == NULL ||
	    pn_template_hmac(account->secret, timestamp, body, digest) != 0)
		return -ENOMEM;
	digest[0] ^= tampered;
	pn_hex_lower(digest, sizeof(digest), hex);
	headers[0] =
	    (struct pn_header){ PN_STR(PN_TEMPLATE_TIMESTAMP), timestamp };
	headers[1] = (struct pn_header){ PN_STR(PN_TEMPLATE_SIGNATURE),
		pn_arena_copy(arena, pn_str_from(hex)) };
	*ret_request = (struct pn_request){ .method = PN_STR("POST"),
		.path = pn_arena_printf(
		    arena, "/notify/template/%s", account->conf->tenant),
		.headers = headers,
		.header_count = 2,
		.body = body };
	return headers[1].value.data == NULL || ret_request->path.data == NULL
		   ? -ENOMEM
		   : 0;
}
