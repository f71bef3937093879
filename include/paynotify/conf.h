/*
 * The configuration file as typed options: INI with `include`, one table row an
 * option (src/conf/options.c), all errors found and told with file:line before
 * the daemon starts. Files that options name (keys, secrets) are read here,
 * permissions checked; what is in them is parsed by the provider.
 *
 * A loaded configuration is immutable; any thread may read it. It is counted: a
 * reload has two of them, until nothing needs the old one any more.
 */
#ifndef PN_CONF_H
#define PN_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/conf_values.h"
#include "paynotify/error.h"
#include "paynotify/limits.h"
#include "paynotify/str.h"

struct pn_conf_server {
	struct pn_conf_strings listen; /* host:port, [::]:port, unix:/path */
	int64_t threads;               /* 0: one per core */
	int64_t max_body_bytes;
	int64_t max_connections;
	int64_t max_connections_per_peer;
	int64_t idle_timeout_us;
	int64_t request_timeout_us;
	int64_t commit_timeout_us;
	int64_t rate_limit_per_second; /* 0: off */
	struct pn_conf_cidrs trusted_proxies;
};

struct pn_conf_admin {
	struct pn_conf_strings listen;   /* empty: no admin port */
	struct pn_conf_files token_file; /* any opens; none: local only */
};

struct pn_conf_database {
	char *dsn; /* a place stands behind its text: see CONF_DSN */
	struct pn_conf_place dsn_place;
	char *admin_dsn; /* NULL: dsn */
	struct pn_conf_place admin_dsn_place;
	int64_t writers;
	bool require_sync;
};

/* [deliver NAME]: an endpoint that events are pushed to. */
struct pn_conf_deliver {
	char *name; /* as a tenant's: [a-z0-9_-]{1,32} */
	struct pn_conf_place place;
	char *url;
	struct pn_conf_place url_place;
	struct pn_conf_strings tenants; /* empty: all */
	struct pn_conf_strings types;   /* "payment.*" too; empty: all */
	int64_t start_us; /* of a new endpoint: what was received before is
			   * not pushed; PN_MOMENT_NONE: all is */
	struct pn_conf_files secret_file; /* whsec_...; the first signs first */
	struct pn_conf_files ca_file;     /* 0 or 1; else the system's */
	int64_t timeout_us;               /* of one attempt */
	int64_t max_in_flight;            /* attempts at once, a process */
};

/* [guard]: where the gateway listens. */
struct pn_conf_guard {
	struct pn_conf_strings listen; /* empty: there is no gateway */
	int64_t max_body_bytes;
};

/* What becomes of a key when it is not known whether the work was done. */
enum pn_guard_unknown {
	PN_GUARD_RETRY,   /* when the lease ends, the next request runs */
	PN_GUARD_HOLD,    /* an operator decides */
	PN_GUARD_RELEASE, /* the next request runs at once */
};
enum pn_guard_after_expiry { PN_GUARD_NEW, PN_GUARD_REFUSE };

/* [guard NAME]: a route of the gateway. */
struct pn_conf_guard_route {
	char *name; /* as a tenant's */
	struct pn_conf_place place;
	/* "POST /v1/charges"; behind a final "/" a "*" stands for any rest,
	 * which the upstream gets too. */
	char *path;
	struct pn_conf_place path_place;
	char *upstream; /* http://host:port/path */
	struct pn_conf_place upstream_place;
	struct pn_conf_files ca_file; /* 0 or 1; else the system's */
	/* Whose key it is; exactly one of the three is given. */
	struct pn_conf_strings tenant;        /* 1 value: always this one */
	struct pn_conf_strings tenant_header; /* 1 value: a trusted proxy's */
	struct pn_conf_files api_keys; /* 1 file: lines of "SHA-256 tenant" */
	int64_t timeout_us;            /* of the upstream's answer */
	int64_t wait_us;               /* for who has the key already */
	int64_t lease_us;              /* renewed while the upstream is asked */
	int64_t ttl_us;                /* of an answer */
	enum pn_guard_unknown unknown;
	enum pn_guard_after_expiry after_expiry;
	int64_t attempts_max; /* holders that did not come back */
	int64_t max_in_flight;
	int64_t max_response_bytes;
	struct pn_conf_strings keep_header; /* of the answer, for replays */
	/* "409", "5xx": what an upstream's status says of the work, where it is
	 * not as usual. Whether they contradict each other is not looked at. */
	struct pn_conf_strings keep_status, release_status, unknown_status;
};

enum pn_sign_type { PN_SIGN_RSA2, PN_SIGN_RSA };
enum pn_v2_sign_type { PN_V2_SIGN_MD5, PN_V2_SIGN_HMAC_SHA256 };

struct pn_conf_alipay {
	struct pn_conf_strings app_id;
	struct pn_conf_strings seller_id; /* 0 or 1 value */
	struct pn_conf_files public_key;
	enum pn_sign_type sign_type;
};

enum { PN_WECHAT_KEY_BYTES = 32 }; /* as the merchant platform makes them */

struct pn_conf_wechat {
	struct pn_conf_strings mchid; /* exactly 1 value */
	struct pn_conf_strings appid;
	struct pn_conf_files api_v3_key_file;
	struct pn_conf_files public_key; /* label = PUB_KEY_ID_... */
	struct pn_conf_files platform_cert;
	struct pn_conf_files api_v2_key_file;
	enum pn_v2_sign_type v2_sign_type;
	int64_t timestamp_tolerance_us;
};

struct pn_conf_account {
	char *provider; /* "alipay": which member of the union holds */
	char *tenant;
	struct pn_conf_place place;    /* of its section line */
	struct pn_conf_cidrs allow;    /* empty: from everywhere */
	int64_t rate_limit_per_second; /* 0: off */
	bool test;
	struct pn_conf_files test_private_key; /* 0 or 1 file */
	union {
		struct pn_conf_alipay alipay;
		struct pn_conf_wechat wechat;
		struct pn_conf_template template;
	};
};

struct pn_conf {
	char *path;
	struct pn_conf_server server;
	struct pn_conf_admin admin;
	struct pn_conf_database database;
	struct pn_conf_retention retention;
	struct pn_conf_log log;
	struct pn_conf_account *accounts; /* sorted by provider, tenant */
	size_t account_count;
	struct pn_conf_deliver *delivers; /* sorted by name */
	size_t deliver_count;
	struct pn_conf_guard guard;
	struct pn_conf_guard_route *guard_routes; /* sorted by name */
	size_t guard_route_count;
	const char *warnings; /* with file:line, one a line; NULL: none */
	_Atomic unsigned references_more; /* beyond the first */
};

/* Loads path and what it includes. 0; -EINVAL (or the errno of the file) with
 * file:line in the text: one error a line, as many as fit, the number of the
 * others in the last. only_account NULL: all; "alipay/shop1": only that
 * section is checked and its files read (`verify` needs no more); other
 * sections, also [deliver] and [guard], are still parsed for unknown keys. What
 * is allowed but hardly meant is told in ret_conf's warnings, for the program to
 * log. */
int pn_conf_load(const char *path, const char *only_account,
    struct pn_conf **ret_conf, struct pn_error *ret_error) PN_MUSTCHECK;
/* Adds a warning, while nobody else has the configuration yet. 0 or -ENOMEM. */
int pn_conf_warn(struct pn_conf *conf, struct pn_conf_place place,
    const char *text) PN_MUSTCHECK;
/* Any thread. */
struct pn_conf *pn_conf_ref(struct pn_conf *conf);
/* The last one frees it. NULL is fine. */
void pn_conf_unref(struct pn_conf *conf);
void pn_conf_unrefp(struct pn_conf **conf);

/* NULL when there is none. */
const struct pn_conf_account *pn_conf_account_find(
    const struct pn_conf *conf, struct pn_str provider, struct pn_str tenant);

/* Whether an address is in a block; "" (unix) is in every list but an empty. */
bool
pn_conf_cidrs_match(const struct pn_conf_cidrs *cidrs, struct pn_str address);

#endif
