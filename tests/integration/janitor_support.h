/*
 * What the janitor's tests share: stores with a janitor, months that are over,
 * and what was logged.
 */
#ifndef PN_JANITOR_SUPPORT_H
#define PN_JANITOR_SUPPORT_H

#include <stdio.h>

#include "store_support.h"

/* A store with a janitor; what `options` leaves out is as usual. */
struct pn_store *janitor_new(struct pn_store_options options);

/* Makes months() and month() in the database, for the functions below. */
void months_prepare(PGconn *conn);
/* The partition of `parent` for the month that began so many months ago. */
void month_make(PGconn *conn, const char *parent, int ago);
/* Whether there is such a table, attached or not. */
bool month_exists(PGconn *conn, const char *parent, int ago);
/* Waits until there is none. */
void month_wait_gone(PGconn *conn, const char *parent, int ago);
/* How long ago that month ended. */
int64_t month_age_us(PGconn *conn, int ago);

/* stderr goes to a file from begin() to end(). */
struct capture {
	FILE *file;
	int saved;
	char text[1 << 16];
};
void capture_begin(struct capture *capture);
void capture_end(struct capture *capture);
/* Whether that has been logged. */
bool capture_has(struct capture *capture, const char *text);
/* Waits until it is; fails the test, capture ended, after 20 s. */
void capture_wait(struct capture *capture, const char *text);

#endif
