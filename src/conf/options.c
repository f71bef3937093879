/*
 * The option table: one row an option, and loops over it do everything else:
 * setting, defaults, ranges, the hint for a misspelt key, the sample file and
 * the man page (through pn_conf_option_doc) and the test that both say the
 * same. A new option is a row here and a member in conf.h.
 *
 * A default is text, as an operator would write it, and goes through the same
 * parser: what is documented is what is done. A list may have several.
 */
#include "conf_internal.h"

#include <assert.h>

#define SERVER(member)    offsetof(struct pn_conf, server.member)
#define ADMIN(member)     offsetof(struct pn_conf, admin.member)
#define DATABASE(member)  offsetof(struct pn_conf, database.member)
#define RETENTION(member) offsetof(struct pn_conf, retention.member)
#define LOG(member)       offsetof(struct pn_conf, log.member)
#define ACCOUNT(member)   offsetof(struct pn_conf_account, member)
#define DELIVER(member)   offsetof(struct pn_conf_deliver, member)
#define GUARD(member)     offsetof(struct pn_conf, guard.member)
#define ROUTE(member)     offsetof(struct pn_conf_guard_route, member)

#define SECOND_US      INT64_C(1000000)
#define MINUTE_US      (60 * SECOND_US)
#define HOUR_US        (60 * MINUTE_US)
#define DAY_US         (24 * HOUR_US)
#define YEAR_US        (365 * DAY_US)
#define MILLISECOND_US INT64_C(1000)

enum {
	THREADS_MAX = 256, /* more only wait for each other */
	RATE_MAX = 1000000,
	BODY_BYTES_MIN = 1024, /* below the smallest real notification */
	/* The merchant platform makes 32; the algorithm takes any. */
	WECHAT_V2_KEY_BYTES_MAX = 128,
	TOKEN_BYTES_MIN = 16, /* 128 bits, if each were random */
	TOKEN_BYTES_MAX = 1024,
	WEBHOOK_SECRET_BYTES_MAX = 1024, /* a usual one has 50 */
	RESPONSE_BYTES_MIN = 1024,
	RESPONSE_BYTES_MAX = 8 << 20, /* a row of the database holds it */
};

static const struct conf_kind kinds[] = {
	{ .name = "server", .section = "server" },
	{ .name = "admin", .section = "admin", .optional = true },
	{ .name = "database", .section = "database" },
	{ .name = "retention", .section = "retention" },
	{ .name = "log", .section = "log", .reloadable = true },
	{ .name = "alipay",
	    .section = "alipay",
	    .family = CONF_ACCOUNT,
	    .reloadable = true,
	    .check = conf_check_alipay },
	{ .name = "wechat",
	    .section = "wechat",
	    .family = CONF_ACCOUNT,
	    .reloadable = true,
	    .check = conf_check_wechat },
#ifdef PN_TEMPLATE_PROVIDER
	{ .name = "template",
	    .section = "template",
	    .family = CONF_ACCOUNT,
	    .reloadable = true },
#endif
	{ .name = "deliver",
	    .section = "deliver",
	    .family = CONF_ENDPOINT,
	    .reloadable = true,
	    .check = conf_check_deliver },
	{ .name = "guard", .section = "guard", .optional = true },
	{ .name = "guard",
	    .section = "guard NAME",
	    .family = CONF_GUARDED,
	    .check = conf_check_guard_route },
};

static const char *const sign_types[] = {
	[PN_SIGN_RSA2] = "RSA2",
	[PN_SIGN_RSA] = "RSA",
	NULL,
};

static const char *const v2_sign_types[] = {
	[PN_V2_SIGN_MD5] = "MD5",
	[PN_V2_SIGN_HMAC_SHA256] = "HMAC-SHA256",
	NULL,
};

static const char *const unknown_words[] = {
	[PN_GUARD_RETRY] = "retry",
	[PN_GUARD_HOLD] = "hold",
	[PN_GUARD_RELEASE] = "release",
	NULL,
};

static const char *const after_expiry_words[] = {
	[PN_GUARD_NEW] = "new",
	[PN_GUARD_REFUSE] = "refuse",
	NULL,
};

/* clang-format off */

/* What every account has, whoever its provider is. */
#define ACCOUNT_OPTIONS(provider) \
	{ provider, "allow", CONF_CIDR, CONF_REPEATABLE, ACCOUNT(allow), \
	  1, PN_CONF_REPEAT_MAX, NULL, NULL, \
	  "an address block that notifications are accepted from, behind" \
	  " trusted_proxies; others are answered 403; without any, from" \
	  " everywhere" }, \
	{ provider, "rate_limit", CONF_RATE, 0, \
	  ACCOUNT(rate_limit_per_second), \
	  1, RATE_MAX, NULL, "off", \
	  "requests per second of this account that fail verification, from" \
	  " all addresses together, N/s; beyond it 429" }, \
	{ provider, "test", CONF_BOOL, 0, ACCOUNT(test), \
	  0, 1, NULL, "no", \
	  "a test account: its events have livemode false, and trigger may" \
	  " sign for it" }, \
	{ provider, "test_private_key", CONF_SECRET_FILE, 0, \
	  ACCOUNT(test_private_key), \
	  1, PN_KEY_FILE_BYTES_MAX, NULL, NULL, \
	  "test accounts: a file with the private key that trigger signs" \
	  " with" }

static const struct conf_option options[] = {
	{ "server", "listen", CONF_LISTEN, CONF_REPEATABLE, SERVER(listen),
	  1, PN_LISTEN_MAX, NULL, "127.0.0.1:8600",
	  "where notifications are received: host:port, [::]:port or"
	  " unix:/path" },
	{ "server", "threads", CONF_NUMBER, 0, SERVER(threads),
	  0, THREADS_MAX, NULL, "0",
	  "threads that read and verify; 0 is one per core" },
	{ "server", "max_body", CONF_SIZE, 0, SERVER(max_body_bytes),
	  BODY_BYTES_MIN, PN_BODY_BYTES_MAX, NULL, "64k",
	  "the longest body that is read; a longer one is answered 413" },
	{ "server", "max_connections", CONF_NUMBER, 0, SERVER(max_connections),
	  1, PN_CONNECTIONS_MAX, NULL, "4096",
	  "open connections in all" },
	{ "server", "max_connections_per_peer", CONF_NUMBER, 0,
	  SERVER(max_connections_per_peer),
	  1, PN_CONNECTIONS_MAX, NULL, "256",
	  "open connections of one address; loopback and trusted proxies are"
	  " exempt" },
	{ "server", "idle_timeout", CONF_DURATION, 0, SERVER(idle_timeout_us),
	  MILLISECOND_US, HOUR_US, NULL, "15s",
	  "a connection on which nothing moves is closed after this" },
	{ "server", "request_timeout", CONF_DURATION, 0,
	  SERVER(request_timeout_us),
	  MILLISECOND_US, HOUR_US, NULL, "10s",
	  "a request must have arrived whole by then; an answer be read, with"
	  " a second more for each 64k of it" },
	{ "server", "commit_timeout", CONF_DURATION, 0,
	  SERVER(commit_timeout_us),
	  MILLISECOND_US, MINUTE_US, NULL, "2s",
	  "what is not committed by then is answered as a failure, and the"
	  " provider sends it again; WeChat Pay waits 5 s (3 s overseas)" },
	{ "server", "rate_limit", CONF_RATE, 0, SERVER(rate_limit_per_second),
	  1, RATE_MAX, NULL, "off",
	  "requests per second and address that fail verification, N/s;"
	  " beyond it 429" },
	{ "server", "trusted_proxies", CONF_CIDR, CONF_REPEATABLE,
	  SERVER(trusted_proxies),
	  0, PN_CONF_REPEAT_MAX, NULL, "127.0.0.0/8",
	  "an address block whose X-Forwarded-For is believed; \"none\""
	  " believes no one" },

	{ "admin", "listen", CONF_LISTEN, CONF_REPEATABLE, ADMIN(listen),
	  1, PN_LISTEN_MAX, NULL, "127.0.0.1:8601",
	  "where health, metrics and the API are served; without [admin],"
	  " nowhere" },
	{ "admin", "token_file", CONF_SECRET_FILE, CONF_REPEATABLE,
	  ADMIN(token_file),
	  TOKEN_BYTES_MIN, TOKEN_BYTES_MAX, NULL, NULL,
	  "a file with a token that whoever asks must show; without one the"
	  " port is on loopback or a unix socket only; several are"
	  " as good as each other; read at a start only" },

	{ "database", "dsn", CONF_DSN, 0, DATABASE(dsn),
	  1, PN_CONF_LINE_BYTES_MAX, NULL,
	  "host=/run/postgresql dbname=paynotify",
	  "the database, as libpq takes it; several hosts and"
	  " target_session_attrs for failover" },
	{ "database", "admin_dsn", CONF_DSN, 0, DATABASE(admin_dsn),
	  1, PN_CONF_LINE_BYTES_MAX, NULL, NULL,
	  "the database as its owner, for migrations, for the commands and for"
	  " dropping what is past its retention; without it dsn" },
	{ "database", "writers", CONF_NUMBER, 0, DATABASE(writers),
	  1, PN_WRITERS_MAX, NULL, "1",
	  "connections that commit; more help where a standby is far" },
	{ "database", "require_sync", CONF_BOOL, 0, DATABASE(require_sync),
	  0, 1, NULL, "no",
	  "refuse to receive unless a synchronous standby is configured" },

	{ "retention", "key_hot", CONF_DURATION, 0, RETENTION(key_hot_us),
	  MILLISECOND_US, 3650 * DAY_US, NULL, "72h",
	  "how long a key stays in the hot tier before it moves to the"
	  " permanent one; providers retry for 25 h" },
	{ "retention", "receipts", CONF_DURATION, 0, RETENTION(receipts_us),
	  DAY_US, 100 * YEAR_US, NULL, "90d",
	  "how long receipts and attempts of deliveries are kept" },
	{ "retention", "evidence", CONF_DURATION, 0, RETENTION(evidence_us),
	  DAY_US, 100 * YEAR_US, NULL, "3y",
	  "how long evidence and the payload of events are kept; events and"
	  " keys are kept for ever" },

	{ "log", "level", CONF_WORD, 0, LOG(level),
	  0, PN_LOG_LEVEL_COUNT - 1, pn_log_level_names, "info",
	  "lines up to this level are written: err, warning, notice, info or"
	  " debug" },
	{ "log", "format", CONF_WORD, 0, LOG(format),
	  0, PN_LOG_FORMAT_COUNT - 1, pn_log_format_names, "logfmt",
	  "logfmt or json, on stderr; the journal gets fields of its own" },
	{ "log", "debug", CONF_WORDS, CONF_REPEATABLE, LOG(debug),
	  0, PN_LOG_CATEGORY_COUNT - 1, pn_log_category_names, NULL,
	  "a category whose debug lines are written whatever the level:"
	  " store, ingest, http, net, deliver, guard, ..." },

	{ "alipay", "app_id", CONF_ID, CONF_REPEATABLE | CONF_REQUIRED,
	  ACCOUNT(alipay.app_id),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "an application whose notifications are accepted" },
	{ "alipay", "seller_id", CONF_ID, 0, ACCOUNT(alipay.seller_id),
	  1, 1, NULL, NULL,
	  "the seller (2088...); required with several app_ids" },
	{ "alipay", "public_key", CONF_FILE, CONF_REPEATABLE | CONF_REQUIRED,
	  ACCOUNT(alipay.public_key),
	  1, PN_KEY_FILE_BYTES_MAX, NULL, NULL,
	  "a file with Alipay's public key or certificate (not the"
	  " application's own): PEM, bare base64, PKCS#1 or X.509; several"
	  " during a rotation" },
	{ "alipay", "sign_type", CONF_WORD, 0, ACCOUNT(alipay.sign_type),
	  0, 1, sign_types, "RSA2",
	  "RSA2 (SHA-256) or RSA (SHA-1); the message never chooses" },
	ACCOUNT_OPTIONS("alipay"),

	{ "wechat", "mchid", CONF_ID, CONF_REQUIRED, ACCOUNT(wechat.mchid),
	  1, 1, NULL, NULL,
	  "the merchant number; a service provider's sp_mchid" },
	{ "wechat", "appid", CONF_ID, CONF_REPEATABLE, ACCOUNT(wechat.appid),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "an application whose notifications are accepted; without any, all"
	  " of the merchant's" },
	{ "wechat", "api_v3_key_file", CONF_SECRET_FILE, CONF_REPEATABLE,
	  ACCOUNT(wechat.api_v3_key_file),
	  PN_WECHAT_KEY_BYTES, PN_WECHAT_KEY_BYTES, NULL, NULL,
	  "a file with the 32-byte APIv3 key; several while it is reset" },
	{ "wechat", "public_key", CONF_LABELLED_FILE, CONF_REPEATABLE,
	  ACCOUNT(wechat.public_key),
	  1, PN_KEY_FILE_BYTES_MAX, NULL, NULL,
	  "WeChat Pay's public key, PUB_KEY_ID_...:FILE" },
	{ "wechat", "platform_cert", CONF_FILE, CONF_REPEATABLE,
	  ACCOUNT(wechat.platform_cert),
	  1, PN_KEY_FILE_BYTES_MAX, NULL, NULL,
	  "a file with a platform certificate; its serial is read from it" },
	{ "wechat", "api_v2_key_file", CONF_SECRET_FILE, CONF_REPEATABLE,
	  ACCOUNT(wechat.api_v2_key_file),
	  1, WECHAT_V2_KEY_BYTES_MAX, NULL, NULL,
	  "a file with the APIv2 key, most often of 32 bytes; enables APIv2" },
	{ "wechat", "v2_sign_type", CONF_WORD, 0, ACCOUNT(wechat.v2_sign_type),
	  0, 1, v2_sign_types, "MD5",
	  "MD5 or HMAC-SHA256; the message never chooses" },
	{ "wechat", "timestamp_tolerance", CONF_DURATION, 0,
	  ACCOUNT(wechat.timestamp_tolerance_us),
	  SECOND_US, 36500 * DAY_US, NULL, "5m",
	  "how far Wechatpay-Timestamp may be from now, both ways" },
	ACCOUNT_OPTIONS("wechat"),

#ifdef PN_TEMPLATE_PROVIDER
	{ "template", "merchant", CONF_ID, CONF_REQUIRED,
	  ACCOUNT(template.merchant),
	  1, 1, NULL, NULL, "the merchant number" },
	{ "template", "secret_file", CONF_SECRET_FILE, CONF_REQUIRED,
	  ACCOUNT(template.secret_file),
	  16, WEBHOOK_SECRET_BYTES_MAX, NULL, NULL,
	  "a file with the secret that notifications are signed with" },
	{ "template", "test", CONF_BOOL, 0, ACCOUNT(test),
	  0, 1, NULL, "no", "a test account: trigger may sign for it" },
#endif

	{ "deliver", "url", CONF_URL, CONF_REQUIRED, DELIVER(url),
	  1, PN_CONF_LINE_BYTES_MAX, NULL, NULL,
	  "where events are sent: https://host:port/path; http:// for this"
	  " host or a network that is yours" },
	{ "deliver", "tenants", CONF_TENANT, CONF_REPEATABLE, DELIVER(tenants),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "a tenant whose events are sent; without any, all" },
	{ "deliver", "types", CONF_EVENT, CONF_REPEATABLE, DELIVER(types),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "a type of events that are sent, such as payment.succeeded or"
	  " payment.*; without any, all" },
	{ "deliver", "start", CONF_MOMENT, 0, DELIVER(start_us),
	  0, INT64_MAX, NULL, "beginning",
	  "of an endpoint whose name is new: what was received before this date"
	  " is not sent" },
	{ "deliver", "secret_file", CONF_SECRET_FILE,
	  CONF_REPEATABLE | CONF_REQUIRED, DELIVER(secret_file),
	  1, WEBHOOK_SECRET_BYTES_MAX, NULL, NULL,
	  "a file with a secret that signs, whsec_ and base64; several during"
	  " a rotation" },
	{ "deliver", "ca_file", CONF_FILE, 0, DELIVER(ca_file),
	  1, PN_CA_FILE_BYTES_MAX, NULL, NULL,
	  "a PEM file with the authorities that the endpoint's certificate is"
	  " checked against; without it the system's" },
	{ "deliver", "timeout", CONF_DURATION, 0, DELIVER(timeout_us),
	  100 * MILLISECOND_US, 5 * MINUTE_US, NULL, "10s",
	  "an attempt must have been answered by then, or it has failed" },
	{ "deliver", "max_in_flight", CONF_NUMBER, 0, DELIVER(max_in_flight),
	  1, PN_IN_FLIGHT_MAX, NULL, "64",
	  "attempts at the same time, of each process" },

	{ "guard", "listen", CONF_LISTEN, CONF_REPEATABLE, GUARD(listen),
	  1, PN_LISTEN_MAX, NULL, "127.0.0.1:8602",
	  "where the gateway is served: host:port, [::]:port or unix:/path;"
	  " without [guard], nowhere" },
	{ "guard", "max_body", CONF_SIZE, 0, GUARD(max_body_bytes),
	  BODY_BYTES_MIN, PN_BODY_BYTES_MAX, NULL, "1m",
	  "the longest body of a request; a longer one is answered 413" },

	{ "guard NAME", "path", CONF_ROUTE, CONF_REQUIRED, ROUTE(path),
	  1, PN_CONF_LINE_BYTES_MAX, NULL, NULL,
	  "what is guarded: POST, PUT, PATCH or DELETE, a blank and a path;"
	  " /* at its end stands for any rest" },
	{ "guard NAME", "upstream", CONF_URL, CONF_REQUIRED, ROUTE(upstream),
	  1, PN_CONF_LINE_BYTES_MAX, NULL, NULL,
	  "where it is done: http://host:port/path; of a path with /* the rest"
	  " is put behind it" },
	{ "guard NAME", "ca_file", CONF_FILE, 0, ROUTE(ca_file),
	  1, PN_CA_FILE_BYTES_MAX, NULL, NULL,
	  "a PEM file with the authorities that the upstream's certificate is"
	  " checked against; without it the system's" },
	{ "guard NAME", "tenant", CONF_TENANT, 0, ROUTE(tenant),
	  1, 1, NULL, NULL,
	  "whose the keys are: always this tenant's; one of tenant,"
	  " tenant_header and api_keys is required" },
	{ "guard NAME", "tenant_header", CONF_HEADER, 0, ROUTE(tenant_header),
	  1, 1, NULL, NULL,
	  "whose the keys are: the header that names the tenant, believed of"
	  " [server] trusted_proxies only" },
	{ "guard NAME", "api_keys", CONF_FILE, 0, ROUTE(api_keys),
	  1, PN_CA_FILE_BYTES_MAX, NULL, NULL,
	  "whose the keys are: a file with a line an API key, its SHA-256 in"
	  " hex and its tenant" },
	{ "guard NAME", "timeout", CONF_DURATION, 0, ROUTE(timeout_us),
	  100 * MILLISECOND_US, 10 * MINUTE_US, NULL, "30s",
	  "the upstream must have answered by then, or it is unknown whether"
	  " the work was done" },
	{ "guard NAME", "wait", CONF_DURATION, 0, ROUTE(wait_us),
	  0, 5 * MINUTE_US, NULL, "10s",
	  "how long a request waits for the answer to the same one before it;"
	  " then 409" },
	{ "guard NAME", "lease", CONF_DURATION, 0, ROUTE(lease_us),
	  SECOND_US, HOUR_US, NULL, "30s",
	  "how long the key of a process that died stays taken" },
	{ "guard NAME", "ttl", CONF_DURATION, 0, ROUTE(ttl_us),
	  SECOND_US, 400 * DAY_US, NULL, "24h",
	  "how long an answer is kept and replayed" },
	{ "guard NAME", "unknown", CONF_WORD, 0, ROUTE(unknown),
	  0, PN_GUARD_RELEASE, unknown_words, "retry",
	  "when it is unknown whether the work was done: retry (at the lease's"
	  " end), hold (for an operator) or release (at once)" },
	{ "guard NAME", "after_expiry", CONF_WORD, 0, ROUTE(after_expiry),
	  0, PN_GUARD_REFUSE, after_expiry_words, "new",
	  "a key that comes again past its ttl: new (the work is done again)"
	  " or refuse (422)" },
	{ "guard NAME", "attempts_max", CONF_NUMBER, 0, ROUTE(attempts_max),
	  1, 1000, NULL, "10",
	  "when so many leases of one key have run out, it is set aside for an"
	  " operator" },
	{ "guard NAME", "max_in_flight", CONF_NUMBER, 0, ROUTE(max_in_flight),
	  1, PN_IN_FLIGHT_MAX, NULL, "256",
	  "requests to the upstream at the same time, of each process" },
	{ "guard NAME", "max_response", CONF_SIZE, 0, ROUTE(max_response_bytes),
	  RESPONSE_BYTES_MIN, RESPONSE_BYTES_MAX, NULL, "1m",
	  "the longest body of an answer; of a longer one the outcome is"
	  " unknown" },
	{ "guard NAME", "keep_header", CONF_HEADER, CONF_REPEATABLE,
	  ROUTE(keep_header),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "a header of the answer that replays have too; one that is given"
	  " replaces all defaults" },
	{ "guard NAME", "keep_status", CONF_STATUS, CONF_REPEATABLE,
	  ROUTE(keep_status),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "a status (503 or 5xx) that is an answer to be kept and replayed" },
	{ "guard NAME", "release_status", CONF_STATUS, CONF_REPEATABLE,
	  ROUTE(release_status),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "a status that says that nothing was done: the key is free" },
	{ "guard NAME", "unknown_status", CONF_STATUS, CONF_REPEATABLE,
	  ROUTE(unknown_status),
	  1, PN_CONF_REPEAT_MAX, NULL, NULL,
	  "a status that leaves it unknown whether the work was done" },
};
/* clang-format on */

static const char *const type_names[CONF_TYPE_COUNT] = {
	[CONF_NUMBER] = "number",
	[CONF_SIZE] = "size",
	[CONF_DURATION] = "duration",
	[CONF_RATE] = "rate",
	[CONF_MOMENT] = "date",
	[CONF_BOOL] = "yes or no",
	[CONF_WORD] = "word",
	[CONF_WORDS] = "word",
	[CONF_DSN] = "text",
	[CONF_URL] = "url",
	[CONF_ROUTE] = "method and path",
	[CONF_ID] = "id",
	[CONF_TENANT] = "tenant",
	[CONF_EVENT] = "event type",
	[CONF_HEADER] = "header",
	[CONF_STATUS] = "status",
	[CONF_LISTEN] = "address",
	[CONF_CIDR] = "address block",
	[CONF_FILE] = "file",
	[CONF_LABELLED_FILE] = "id:file",
	[CONF_SECRET_FILE] = "secret file",
};

static_assert(PN_COUNT(options) <= CONF_ROWS_MAX,
    "conf_section.given has an element each");

const struct conf_option *
conf_option_at(size_t index)
{
	assert(index < PN_COUNT(options));
	return &options[index];
}

const char *const *
conf_option_defaults(const struct conf_option *option)
{
	return option->type == CONF_WORD || option->type == CONF_WORDS
		   ? NULL
		   : option->words;
}

size_t
conf_option_find(const struct conf_kind *kind, const char *key)
{
	for (size_t i = 0; i < PN_COUNT(options); i++)
		if (strcmp(options[i].section, kind->section) == 0 &&
		    strcmp(options[i].key, key) == 0)
			return i;
	return PN_COUNT(options);
}

const struct conf_kind *
conf_kind_at(size_t index)
{
	return index < PN_COUNT(kinds) ? &kinds[index] : NULL;
}

const char *
conf_type_name(enum conf_type type)
{
	assert(type < CONF_TYPE_COUNT);
	return type_names[type];
}

size_t
pn_conf_option_count(void)
{
	return PN_COUNT(options);
}

static bool
is_reloadable(const struct conf_option *option)
{
	for (size_t i = 0; i < PN_COUNT(kinds); i++)
		if (strcmp(kinds[i].section, option->section) == 0)
			return kinds[i].reloadable;
	assert(!"each option belongs to a kind of sections");
	return false;
}

struct pn_conf_option_doc
pn_conf_option_doc(size_t index)
{
	const struct conf_option *option = conf_option_at(index);

	return (struct pn_conf_option_doc){
		.section = option->section,
		.key = option->key,
		.type = conf_type_name(option->type),
		.default_value = option->default_value,
		.default_values = conf_option_defaults(option),
		.repeatable = (option->flags & CONF_REPEATABLE) != 0,
		.required = (option->flags & CONF_REQUIRED) != 0,
		.reloadable = is_reloadable(option),
		.doc = option->doc,
	};
}
