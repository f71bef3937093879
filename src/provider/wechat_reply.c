/*
 * The answers WeChat Pay understands, to the byte.
 *
 * APIv3 looks at the status and logs the body; APIv2 looks at the body only,
 * and takes anything but its own XML for "not received". So an APIv2 answer
 * says 200 whatever happened, and neither has a byte before or after it.
 *
 * The message of a failure may quote what a stranger sent: it is cut to what
 * the interface allows (whole characters) and escaped for the format around
 * it. It never carries more than the reason that the caller gives.
 */
#include "wechat_internal.h"

#include <assert.h>
#include <errno.h>

#define WECHAT_V3_SUCCESS "{\"code\":\"SUCCESS\"}"
#define WECHAT_V2_SUCCESS                                     \
	"<xml><return_code><![CDATA[SUCCESS]]></return_code>" \
	"<return_msg><![CDATA[OK]]></return_msg></xml>"

enum {
	/* Each of the 64 bytes as \u00XX or split out of a CDATA section, and
	 * the frame. */
	WECHAT_REPLY_BYTES_MAX = PN_REPLY_MESSAGE_BYTES_MAX * 16 + 256,
};

static const char *const default_messages[PN_OUTCOME_COUNT] = {
	[PN_OUTCOME_SUCCESS] = "OK",
	[PN_OUTCOME_MALFORMED] = "malformed",
	[PN_OUTCOME_UNAUTHENTIC] = "signature not accepted",
	[PN_OUTCOME_NOT_ALLOWED] = "address not allowed",
	[PN_OUTCOME_WRONG_ACCOUNT] = "wrong account",
	[PN_OUTCOME_CONFLICT] = "conflict",
	[PN_OUTCOME_RATE_LIMITED] = "too many requests",
	[PN_OUTCOME_UNDECRYPTABLE] = "cannot decrypt",
	[PN_OUTCOME_UNAVAILABLE] = "try again later",
};

/* At most PN_REPLY_MESSAGE_BYTES_MAX bytes, not ending inside a character. */
static struct pn_str
cut(struct pn_str message)
{
	size_t len = message.len;

	if (len <= PN_REPLY_MESSAGE_BYTES_MAX)
		return message;
	len = PN_REPLY_MESSAGE_BYTES_MAX;
	while (len > 0 && ((unsigned char)message.data[len] & 0xc0) == 0x80)
		len--;
	return (struct pn_str){ message.data, len };
}

static void
add_v3_failure(struct pn_buf *out, struct pn_str message)
{
	pn_buf_add_text(out, "{\"code\":\"FAIL\",\"message\":");
	pn_json_add_string(out, message);
	pn_buf_add_char(out, '}');
}

/* In a CDATA section nothing can be escaped: what XML cannot hold there, and
 * ">" (so that "]]>" never forms), becomes a blank. */
static void
add_v2_failure(struct pn_buf *out, struct pn_str message)
{
	pn_buf_add_text(out, "<xml><return_code><![CDATA[FAIL]]></return_code>"
			     "<return_msg><![CDATA[");
	if (!pn_str_is_utf8(message))
		message = PN_STR("FAIL");
	for (size_t i = 0; i < message.len; i++) {
		unsigned char c = (unsigned char)message.data[i];

		if (c < 0x20 || c == '>' || c == 0x7f)
			c = ' ';
		pn_buf_add_char(out, (char)c);
	}
	pn_buf_add_text(out, "]]></return_msg></xml>");
}

int
pn_wechat_reply(int dialect, enum pn_outcome outcome, const char *message,
    struct pn_arena *arena, struct pn_reply *ret_reply)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf body = pn_buf_init(WECHAT_REPLY_BYTES_MAX);
	bool v2 = dialect == PN_WECHAT_V2;
	struct pn_reply reply = {
		.content_type = v2 ? "text/xml" : "application/json",
		.status_is_200 = v2,
	};

	assert((unsigned)outcome < PN_OUTCOME_COUNT);
	if (outcome == PN_OUTCOME_SUCCESS) {
		reply.body =
		    v2 ? PN_STR(WECHAT_V2_SUCCESS) : PN_STR(WECHAT_V3_SUCCESS);
		*ret_reply = reply;
		return 0;
	}
	if (message == NULL || message[0] == '\0')
		message = default_messages[outcome];
	if (v2)
		add_v2_failure(&body, cut(pn_str_from(message)));
	else
		add_v3_failure(&body, cut(pn_str_from(message)));
	if (pn_buf_failed(&body))
		return -ENOMEM;
	reply.body = pn_arena_copy(arena, pn_buf_str(&body));
	if (reply.body.data == NULL)
		return -ENOMEM;
	*ret_reply = reply;
	return 0;
}
