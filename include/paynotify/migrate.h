/*
 * Schema migrations: sql/NNNN_name.sql, compiled in, applied once each, in
 * order, each in its own transaction under one advisory lock. Never edited after
 * a release: a changed digest of an applied file is refused.
 */
#ifndef PN_MIGRATE_H
#define PN_MIGRATE_H

#include <stddef.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"

struct pn_migration {
	int number;
	const char *name;
	const char *sql;
	const char *sha256; /* hex, at build time */
};
size_t pn_migration_count(void);
const struct pn_migration *pn_migration_at(size_t index);

typedef void (*pn_migrate_report_fn)(const struct pn_migration *migration,
    const char *state, const char *applied_at, void *payload);

/* Applies what is missing and makes partitions ahead. report(state "applied",
 * "already") for each. 0, or < 0 with what failed and what to do. */
int pn_migrate(const char *dsn, pn_migrate_report_fn report, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* report(state "applied", "pending", "changed"). 0 all applied; 1 some are
 * pending or changed; < 0 fault. */
int pn_migrate_status(const char *dsn, pn_migrate_report_fn report,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
