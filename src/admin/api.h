/*
 * What the routes of the admin port do, and the pages they answer with. Private
 * to src/admin. A route's function runs once, in a worker's thread if its row
 * says that it needs the database, else in the server's.
 */
#ifndef PN_ADMIN_API_H
#define PN_ADMIN_API_H

#include "admin_internal.h"

/* -- input (input.c) ------------------------------------------------------ */

/* A parameter with a NUL behind it; NULL: not given. */
const char *admin_parameter(struct admin_job *job, const char *name);
/* `limit` and `since`, with their defaults. 0, 1. */
int admin_limit(struct admin_job *job, int64_t *ret_limit) PN_MUSTCHECK;
int admin_since(struct admin_job *job, int64_t *ret_us) PN_MUSTCHECK;
/* A parameter that is one of these words; NULL: not given. 0, 1. */
int admin_word(struct admin_job *job, const char *name,
    const char *const *words, const char **ret_word) PN_MUSTCHECK;
/* A positive number in `after`; 0: not given. 0, 1. */
int admin_after_number(struct admin_job *job, int64_t *ret_number) PN_MUSTCHECK;
/* A member of the body that is for the record: UTF-8 without NUL, not empty.
 * *ret_text NULL: not given, which is a problem where it is required. 0, 1. */
int admin_member(struct admin_job *job, const char *name, bool required,
    const char **ret_text) PN_MUSTCHECK;
/* That the body has no other members than these (NULL-terminated). 0, 1. */
int admin_members_check(
    struct admin_job *job, const char *const *names) PN_MUSTCHECK;

/* -- pages (page.c) --------------------------------------------------------------- */

enum {
	ADMIN_LIMIT_DEFAULT = 100,
	ADMIN_LIMIT_MAX = 1000,
	/* Of a key of the guard, as hex: a tenant of 128 bytes, a route and a
	 * key of 255 characters, 2 line ends, NUL. */
	ADMIN_AFTER_BYTES_MAX = 2 * (128 + 2 * 4 * 255 + 2 + 1) + 1,
	ADMIN_PAGE_FULL = 7, /* what a row's function returns to end a list */
};

/* {"items":[...],"next":"..."}: rows are added until the page is full; one row
 * more than fit tells that there is a next. */
struct admin_page {
	struct admin_job *job;
	int64_t limit, count;
	bool more;
	char after[ADMIN_AFTER_BYTES_MAX]; /* behind the last row */
};

void
admin_page_begin(struct admin_page *page, struct admin_job *job, int64_t limit);
/* The buffer to add an item to, or NULL: it is full (return ADMIN_PAGE_FULL). */
struct pn_buf *admin_page_item(struct admin_page *page) PN_MUSTCHECK;
/* r: what the list returned. The answer, or r. */
int admin_page_end(struct admin_page *page, int r) PN_MUSTCHECK;

/* -- what the routes do ------------------------------------------------------------- */

int admin_health(struct admin_job *job);
int admin_ready(struct admin_job *job);
int admin_metrics(struct admin_job *job);
int admin_index(struct admin_job *job);
int admin_events_list(struct admin_job *job);
int admin_events_show(struct admin_job *job);
int admin_receipts_list(struct admin_job *job);
int admin_quarantine_list(struct admin_job *job);
int admin_quarantine_show(struct admin_job *job);
int admin_orders_show(struct admin_job *job);
int admin_consumers_list(struct admin_job *job);
int admin_deliveries_list(struct admin_job *job);
int admin_deliveries_show(struct admin_job *job);
int admin_keys_list(struct admin_job *job);
int admin_keys_show(struct admin_job *job);
int admin_deliveries_redeliver(struct admin_job *job);
int admin_deliveries_skip(struct admin_job *job);
int admin_consumers_pause(struct admin_job *job);
int admin_consumers_resume(struct admin_job *job);
int admin_consumers_remove(struct admin_job *job);
int admin_keys_release(struct admin_job *job);
int admin_keys_forget(struct admin_job *job);
int admin_log_show(struct admin_job *job);
int admin_log_set(struct admin_job *job);

#endif
