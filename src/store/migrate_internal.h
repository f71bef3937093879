/*
 * The migrations that are compiled in (made by embed.cmake from sql/).
 */
#ifndef PN_STORE_MIGRATE_INTERNAL_H
#define PN_STORE_MIGRATE_INTERNAL_H

#include "paynotify/migrate.h"

enum { PN_PARTITION_MONTHS = 24 }; /* made ahead */

extern const struct pn_migration pn_migrations[];
extern const unsigned pn_migrations_count;

#endif
