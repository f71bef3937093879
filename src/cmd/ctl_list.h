/*
 * Lists of rows on standard output, and the bar of what takes long on standard
 * error. Private to src/cmd.
 */
#ifndef PN_CTL_LIST_H
#define PN_CTL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl.h"

/* ctl_list.c: a table for people, one JSON object a line for programs; printed
 * in blocks, so that a list of millions takes little memory. */
struct ctl_list {
	struct ctl_table *table; /* NULL: JSON */
	struct pn_buf out;
	uint64_t rows;
	int exit; /* != CTL_DONE: told already */
};
/* titles are kept. CTL_DONE, or told; end it in either case. */
int ctl_list_open(struct ctl_list *list, const struct ctl *ctl,
    const char *const *titles, size_t columns) PN_MUSTCHECK;
void ctl_list_done(struct ctl_list *list);
/* How many rows to ask for: --limit, else CTL_LIST_LIMIT, or all as JSON. */
int64_t ctl_list_limit(const struct ctl *ctl);
/* Behind each row: r is what its cells came to (0 for JSON). What a callback of
 * a query returns: 0, or < 0 to end it. */
int ctl_list_added(struct ctl_list *list, int r) PN_MUSTCHECK;
/* Prints what is left. r, error: what the query came to. An exit code. */
int ctl_list_end(struct ctl_list *list, const struct ctl *ctl, int r,
    const struct pn_error *error) PN_MUSTCHECK;
/* "no receipts match" (filtered) or "yet"; "these are the newest 1000". */
void ctl_list_say_how_many(const struct ctl_list *list, const struct ctl *ctl,
    const char *what, const char *which, bool filtered);

/* ctl_progress.c: one line on standard error that is drawn anew, if that is a
 * terminal and nobody asked for JSON; else nothing at all. One thread at a
 * time. */
struct ctl_progress {
	bool on;
	bool drawn; /* there is something to clear */
	bool about; /* total is an estimate */
	const char *what;
	int64_t done, total; /* total 0: nobody knows */
	int64_t started_us, drawn_us;
};
void ctl_progress_start(struct ctl_progress *progress, const struct ctl *ctl,
    const char *what, int64_t total, bool about);
void ctl_progress_set(struct ctl_progress *progress, int64_t done);
/* Takes it away, before something else is printed; the next step draws it. */
void ctl_progress_hide(struct ctl_progress *progress);
/* What the line says after elapsed_us, in at most `columns`. Pure. */
void ctl_progress_add_line(const struct ctl_progress *progress,
    int64_t elapsed_us, size_t columns, struct pn_buf *out);

#endif
