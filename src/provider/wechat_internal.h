/*
 * What the files of the WeChat Pay provider share. No other folder, and no
 * other provider, includes this.
 *
 *   wechat.c           account, dispatch by dialect, the provider row
 *   wechat_v3.c        APIv3: headers, window, key, signature, decrypt, account
 *   wechat_v3_event.c  the decrypted JSON to events, by its shape
 *   wechat_v2.c        APIv2: XML, sign, req_info, account
 *   wechat_v2_event.c  the fields to events
 *   wechat_event.c     what both dialects must make equal: keys, ids, amounts
 *   wechat_reply.c     the answers
 *   wechat_sample*.c   signed requests for test accounts
 */
#ifndef PN_WECHAT_INTERNAL_H
#define PN_WECHAT_INTERNAL_H

#include "paynotify/json.h"
#include "paynotify/provider.h"
#include "paynotify/xml.h"

/* pn_notification.dialect. */
enum pn_wechat_dialect {
	PN_WECHAT_V3,
	PN_WECHAT_V2,
};

/* One key that WeChat Pay signs APIv3 with. */
struct pn_wechat_key {
	struct pn_str serial; /* an opaque name: PUB_KEY_ID_... or hex digits */
	struct pn_public_key *key;
	int64_t not_after_us; /* PN_MOMENT_NONE: never ends */
};

/* One APIv2 key, with what is derived from it. */
struct pn_wechat_v2_key {
	const struct pn_secret *secret; /* borrowed from the configuration */
	struct pn_secret req_info_key;  /* lower-case hex of its MD5 */
	unsigned char fingerprint[PN_SHA256_BYTES];
};

struct pn_wechat_account {
	const struct pn_conf_account *conf; /* borrowed */
	const struct pn_conf_wechat *options;
	struct pn_str tenant, mchid;
	struct pn_wechat_key keys[PN_ACCOUNT_KEYS_MAX];
	size_t key_count;
	struct pn_wechat_v2_key v2_keys[PN_ACCOUNT_KEYS_MAX];
	size_t v2_key_count;
	struct pn_private_key *sign_key; /* test accounts; may be NULL */
};

/* One verification: what every step of it needs. */
struct pn_wechat_job {
	const struct pn_wechat_account *account;
	const struct pn_request *request;
	int64_t now_us;
	struct pn_arena *arena;
	struct pn_notification *notification;
};

/* The positive outcome of every step below: refused, the notification says
 * why; 0 goes on; -ENOMEM. */
enum { PN_WECHAT_REFUSED = 1 };

/* Sets verdict and reason (static text) and returns PN_WECHAT_REFUSED. */
void pn_wechat_refusal_set(const struct pn_wechat_job *job,
    enum pn_verdict verdict, const char *reason);

/* Here, so that the compiler sees that it is never 0. */
static inline int
pn_wechat_refuse(const struct pn_wechat_job *job, enum pn_verdict verdict,
    const char *reason)
{
	pn_wechat_refusal_set(job, verdict, reason);
	return PN_WECHAT_REFUSED;
}

int pn_wechat_v3_verify(struct pn_wechat_job *job);
int pn_wechat_v2_verify(struct pn_wechat_job *job);

/* Whether the signature is still right, by this key: 0, or refused. Of job only
 * request, arena and notification are used, of v2 account as well. */
int pn_wechat_v3_reverify(
    const struct pn_wechat_job *job, const struct pn_public_key *key);
int pn_wechat_v2_reverify(
    struct pn_wechat_job *job, const struct pn_wechat_v2_key *key);

/* The sign of APIv2 over the fields (sorted by name): upper-case hex, with a
 * NUL. -ENOMEM. */
enum { PN_WECHAT_SIGN_TEXT_BYTES = 2 * PN_SHA256_BYTES + 1 };
int pn_wechat_v2_sign(struct pn_arena *arena, const struct pn_form *fields,
    enum pn_v2_sign_type type, const struct pn_secret *secret,
    char ret_hex[PN_WECHAT_SIGN_TEXT_BYTES]);

/* What APIv3 tells outside of the encrypted part; strings in the arena. */
struct pn_wechat_envelope {
	struct pn_str id, event_type;
	int64_t create_time_us;
};

/* Fills events of the notification from the decrypted object. */
int pn_wechat_v3_events(struct pn_wechat_job *job,
    const struct pn_wechat_envelope *envelope, const json_t *plain);
/* Whether it is the notice of a split to a receiver (not a payment). */
bool pn_wechat_v3_is_profit_sharing(const json_t *plain);
/* The same from signed fields: a payment or any other notice. */
int
pn_wechat_v2_events(struct pn_wechat_job *job, const struct pn_form *fields);
/* inner: the decrypted req_info; outer: the message around it. */
int pn_wechat_v2_refund_events(struct pn_wechat_job *job,
    const struct pn_form *outer, const struct pn_form *inner);

/* An id of a JSON object, copied to the arena. Absent, null and "" are data
 * NULL. Refused: another JSON type, NUL inside, over PN_ID_BYTES_MAX. */
int pn_wechat_json_id(const struct pn_wechat_job *job, const json_t *object,
    const char *name, struct pn_str *ret_id);
/* The same where nothing depends on it: what is unusable counts as absent.
 * Another product may mean something else by the name. */
int pn_wechat_json_hint(const struct pn_wechat_job *job, const json_t *object,
    const char *name, struct pn_str *ret_id);
/* The same of a field of APIv2; borrowed, the fields are in the arena. */
int pn_wechat_field_id(const struct pn_wechat_job *job,
    const struct pn_form *fields, const char *name, struct pn_str *ret_id);

/* What a payment or refund tells, whichever dialect it came in. */
struct pn_wechat_facts {
	struct pn_str account;  /* mchid or sub_mchid; absent: the account's */
	struct pn_str merchant; /* mchid or sp_mchid; absent: the account's */
	struct pn_str out_trade_no, transaction_id;
	struct pn_amount amount, order_amount;
	struct pn_str currency; /* absent: CNY */
	struct pn_str refund_id, out_refund_no;
	int64_t occurred_at_us;
};

/* Room for count events in the notification, none filled. */
int pn_wechat_events_reserve(struct pn_wechat_job *job, size_t count);
/* Each appends one sealed event; facts must hold what the key needs. */
int pn_wechat_add_payment(
    struct pn_wechat_job *job, const struct pn_wechat_facts *facts);
int pn_wechat_add_failed(
    struct pn_wechat_job *job, const struct pn_wechat_facts *facts);
/* status as WeChat writes it, in either dialect; see pn_wechat_refund_kind. */
int pn_wechat_add_refund(struct pn_wechat_job *job,
    const struct pn_wechat_facts *facts, struct pn_str status);
/* type without "wechat."; notify_id what the key is made of. */
int pn_wechat_add_other(struct pn_wechat_job *job,
    const struct pn_wechat_facts *facts, struct pn_str type,
    struct pn_str notify_id);

/* Whether a refund status is a final one that has an event of its own. */
bool pn_wechat_refund_status_known(struct pn_str status);
/* Three capital letters. */
bool pn_wechat_currency_valid(struct pn_str currency);

int pn_wechat_reply(int dialect, enum pn_outcome outcome, const char *message,
    struct pn_arena *arena, struct pn_reply *ret_reply);

int pn_wechat_sample(const void *account, const struct pn_sample *sample,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error);
extern const char *const pn_wechat_sample_events[];
extern const struct pn_sample_oddity pn_wechat_sample_oddities[];

#endif
