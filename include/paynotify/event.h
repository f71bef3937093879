/*
 * The normalised business event of DESIGN.md section 7: one row in
 * paynotify.events. Pure; strings are UTF-8 and live in the request's arena.
 */
#ifndef PN_EVENT_H
#define PN_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/arena.h"
#include "paynotify/buf.h"
#include "paynotify/compiler.h"
#include "paynotify/digest.h"
#include "paynotify/limits.h"
#include "paynotify/str.h"

/* An amount in minor units that may be absent (null). */
struct pn_amount {
	int64_t minor;
	bool present;
};

/* What a refund tells: null unless present. */
struct pn_refund {
	bool present;
	struct pn_str id; /* WeChat refund_id */
	struct pn_str out_refund_no;
	struct pn_amount refunded_total; /* Alipay refund_fee, cumulative */
};

struct pn_event {
	struct pn_str type; /* "payment.succeeded" */
	struct pn_str key;  /* "webhook:alipay:..." escaped */
	struct pn_str provider, tenant,
	    route; /* "alipay" "shop1" "notify/alipay" */
	bool livemode;
	struct pn_str account;  /* seller_id, mchid, or sub_mchid */
	struct pn_str merchant; /* seller_id, mchid or sp_mchid: hashed */
	struct pn_str out_trade_no, transaction_id;
	struct pn_amount amount, order_amount;
	struct pn_str currency; /* "CNY" */
	struct pn_refund refund;
	int64_t occurred_at_us; /* PN_MOMENT_NONE when not told */
	/* Filled in by pn_event_seal(). */
	unsigned char request_hash[PN_SHA256_BYTES]; /* fingerprint */
	unsigned char key_digest[PN_SHA256_BYTES];   /* route LF key */
	unsigned char
	    id[16]; /* first half of SHA-256(tenant LF route LF key) */
};

enum { PN_EVENT_ID_TEXT_BYTES = sizeof("evt_") + 32 };

/* Fills request_hash, key_digest and id. The fingerprint is the SHA-256 of the
 * canonical form: one line a field, `name=value LF`, fields in the fixed order
 * type, tenant, merchant, out_trade_no, transaction_id, order_amount, currency,
 * refund.id, refund.out_refund_no; absent ones left out; "%" and control bytes
 * in a value percent-encoded, so that no two events share a form. */
void pn_event_seal(struct pn_event *event);
/* The same id of any scope: a key of the guard has one too. */
void pn_event_scope_id(struct pn_str tenant, struct pn_str route,
    struct pn_str key, unsigned char ret_id[16]);
void pn_event_id_text(
    const unsigned char id[16], char ret_text[PN_EVENT_ID_TEXT_BYTES]);

/* Key building: component is percent-encoded ("%", ":" and bytes outside
 * 0x21..0x7e) onto out. */
void pn_event_key_add(struct pn_buf *out, struct pn_str component);

/* The JSON object of section 7 on one line. seq < 0 and received_at_us ==
 * PN_MOMENT_NONE print null; payload and order_check are given as they are in
 * the row ("off", "matched", "unknown"); flags is a JSON array text or empty. */
struct pn_event_row {
	const struct pn_event *event;
	int64_t seq;
	int64_t received_at_us;
	struct pn_str order_check;
	struct pn_str flags;
	struct pn_str payload; /* JSON text; empty prints null */
};
void pn_event_add_json(struct pn_buf *out, const struct pn_event_row *row);

/* Money: `[0-9]{1,9}\.[0-9]{2}` yuan to fen (Alipay). 0, or 1: not that form. */
int pn_money_parse_yuan(struct pn_str text, int64_t *ret_fen) PN_MUSTCHECK;
void pn_money_format_yuan(int64_t fen, char ret_text[32]);

#endif
