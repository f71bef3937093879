/*
 * A provider: verify, parse, reply, sample. Pure: bytes, keys and a passed-in
 * time; no HTTP, SQL, clock or randomness. One file a provider family and one
 * row in src/provider/registry.c; nothing else changes for a new one.
 *
 * An account is immutable after opening and used from any thread.
 */
#ifndef PN_PROVIDER_H
#define PN_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/event.h"
#include "paynotify/key.h"
#include "paynotify/moment.h"
#include "paynotify/request.h"

/* Order of checks: headers, time window, key, signature, decode, decrypt,
 * account. From PN_VERDICT_UNDECRYPTABLE on a verdict may be of a request whose
 * signature was right: see pn_notification.verified. */
enum pn_verdict {
	PN_VERDICT_ACCEPTED,
	PN_VERDICT_MALFORMED,     /* missing header or signature, bad form */
	PN_VERDICT_BAD_SIGNATURE, /* also signature probes */
	PN_VERDICT_UNKNOWN_KEY,
	PN_VERDICT_STALE,
	PN_VERDICT_UNDECRYPTABLE,
	PN_VERDICT_WRONG_ACCOUNT,
	PN_VERDICT_UNSUPPORTED,
	PN_VERDICT_COUNT
};
/* "accepted", "malformed", ... as `verify --json` prints them. */
const char *pn_verdict_name(enum pn_verdict verdict);

/* What the provider wants to hear in general; http turns it into a status. */
enum pn_outcome {
	PN_OUTCOME_SUCCESS,       /* recorded, or duplicate of a recorded one */
	PN_OUTCOME_MALFORMED,     /* 400, unsupported too */
	PN_OUTCOME_UNAUTHENTIC,   /* 401: signature, key, stale, probe */
	PN_OUTCOME_NOT_ALLOWED,   /* 403: not from this address */
	PN_OUTCOME_WRONG_ACCOUNT, /* 403 */
	PN_OUTCOME_CONFLICT,      /* 422 */
	PN_OUTCOME_RATE_LIMITED,  /* 429 */
	PN_OUTCOME_UNDECRYPTABLE, /* 500: our key is wrong */
	PN_OUTCOME_UNAVAILABLE,   /* 503 */
	PN_OUTCOME_COUNT
};

struct pn_notification {
	enum pn_verdict verdict;
	const char *reason; /* for log, receipt and verify; "" when accepted; in
			     * the arena or static; never reveals keys or
			     * expected values */
	int dialect;        /* provider's own: how to speak in the reply */
	bool verified;      /* the signature was right: never drop it */
	bool probe;         /* WECHATPAY/SIGNTEST/ */
	bool alarm;         /* accepted, yet an operator should look */
	struct pn_str notify_id; /* notify_id, envelope id; "" when unknown */
	struct pn_str out_trade_no; /* if readable, for the receipt */
	int64_t signed_at_us; /* when the provider sent this attempt, as it has
			       * signed; PN_MOMENT_NONE: it did not say */
	const struct pn_public_key *key; /* which verified; NULL for v2 */
	unsigned char key_fingerprint[PN_SHA256_BYTES]; /* v2: of the secret's
							 * SHA-256, see conf */
	struct pn_event *events; /* sealed; in order of recording */
	size_t event_count;
	struct pn_str payload; /* UTF-8 JSON of the provider's fields; also of
				* verified ones that were refused, if readable */
	struct pn_str witness; /* of a verified one that was refused: what is
				* the same when the provider sends it again,
				* for the quarantine's fingerprint. Empty: the
				* payload, else the body */
};

struct pn_reply {
	struct pn_str body;
	const char *content_type;
	bool status_is_200; /* v2: the body decides, whatever the outcome */
};

/* What `trigger` and tests ask a sample to be. Zero means the usual. */
struct pn_sample {
	struct pn_str event;        /* a type of section 7 */
	struct pn_str out_trade_no; /* empty: derived from seed */
	int64_t amount_minor;       /* 0: 8888 */
	int64_t refund_minor;       /* 0: all of it */
	uint64_t seed; /* makes ids, nonces; same seed, same ids. The ids of a
			* trade are made of out_trade_no where it is given, so
			* that samples of one order belong together */
	unsigned attempt; /* 0 first delivery, n the nth retry: signed anew,
			   * new time, same ids */
	int64_t now_us;
	const char *charset; /* Alipay: "GBK", ...; NULL utf-8 */
	const char *dialect; /* wechat: "v3" (default), "v2", "v2-hmac" */
	const char *oddity;  /* see sample_oddities; NULL none */
	const struct pn_private_key *sign_key; /* NULL: the account's own */
};

/* A way in which a sample is odd or wrong. */
struct pn_sample_oddity {
	const char *name; /* NULL: the end of the list */
	const char *what; /* it does, and the status that answers it */
};

/* How long before its end a certificate is warned of. */
#define PN_CERTIFICATE_WARNING_US (30 * 24 * 3600 * PN_SECOND_US)

/* Who is told what is doubtful, where it stands, and what to do. */
struct pn_doubts {
	int64_t now_us; /* realtime */
	int (*visit)(
	    void *payload, const struct pn_conf_place *place, const char *text);
	void *payload;
};

enum { PN_REVERIFY_WRONG = 1, PN_REVERIFY_NO_KEY };

struct pn_provider {
	const char *name; /* "alipay": section name and path component */

	/* Headers that evidence keeps, NULL-terminated. */
	const char *const *evidence_headers;

	/* Parses keys and checks what the option table cannot. Errors carry
	 * file:line. The account keeps what it needs of conf (borrowed: conf
	 * must outlive it). */
	int (*account_open)(const struct pn_conf_account *conf,
	    void **ret_account, struct pn_error *ret_error);
	void (*account_close)(void *account);
	/* The keys it verifies with, for verifying_keys: calls visit for each.
	 * pem NULL for a symmetric key. */
	int (*account_keys)(const void *account,
	    int (*visit)(void *payload, const unsigned char *fingerprint,
		const char *pem),
	    void *payload);

	/* The certificates among them that are believed until their end: calls
	 * visit for each, serial in the account. NULL: it has none. */
	int (*account_certificates)(const void *account,
	    int (*visit)(
		void *payload, const char *serial, int64_t not_after_us),
	    void *payload);

	/* What is allowed in an account and hardly meant, by now: calls visit
	 * for each. 0, or what visit returned. NULL: there is no such thing. */
	int (*account_doubts)(
	    const void *account, const struct pn_doubts *doubts);

	/* Verifies and parses. Always fills *ret_notification with a verdict;
	 * < 0 only when memory is out. now_us: realtime. */
	int (*verify)(const void *account, const struct pn_request *request,
	    int64_t now_us, struct pn_arena *arena,
	    struct pn_notification *ret_notification);

	/* Whether a notification that was verified once, with its evidence
	 * headers, still carries the signature of the key that is on record:
	 * of these bytes and of nothing else, so whatever the time, the
	 * account's keys and its numbers are by now. key NULL: a symmetric one,
	 * of which there is the fingerprint; account, if not NULL, may have it.
	 * 0: it does; PN_REVERIFY_WRONG, and why (in the arena or static);
	 * PN_REVERIFY_NO_KEY: account has not the key; -ENOMEM. */
	int (*reverify)(const struct pn_request *request,
	    struct pn_public_key *key, const void *account,
	    const unsigned char fingerprint[PN_SHA256_BYTES],
	    struct pn_arena *arena, const char **ret_reason);

	/* The dialect of a request that was not verified (over a limit, rate
	 * limited): from its first bytes and headers. */
	int (*dialect_of)(const struct pn_request *request);
	/* The exact bytes. message: short text for a failure (at most
	 * PN_REPLY_MESSAGE_BYTES_MAX are used). */
	int (*reply)(int dialect, enum pn_outcome outcome, const char *message,
	    struct pn_arena *arena, struct pn_reply *ret_reply);

	/* A signed request of the given kind, for test accounts. 0; 1 when
	 * there is no such event or oddity (error lists what there is). */
	int (*sample)(const void *account, const struct pn_sample *sample,
	    struct pn_arena *arena, struct pn_request *ret_request,
	    struct pn_error *ret_error);
	const char *const *sample_events; /* NULL-terminated */
	const struct pn_sample_oddity *sample_oddities;
};

const struct pn_provider *pn_provider_find(struct pn_str name); /* or NULL */
const struct pn_provider *pn_provider_at(size_t index); /* NULL at the end */

#endif
