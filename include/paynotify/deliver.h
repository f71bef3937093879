/*
 * HTTP push: claims events of each [deliver] endpoint, sends them as Standard
 * Webhooks, settles what came of it. Meets the receiver only in PostgreSQL.
 */
#ifndef PN_DELIVER_H
#define PN_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"

/* What can be wrong with the endpoints of a configuration, with file:line:
 * a secret that is no whsec_ (what a URL is, conf has seen to). 0; -EINVAL;
 * -ENOMEM. */
int pn_deliver_check(
    const struct pn_conf *conf, struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_deliver;

/* Starts the threads; never waits for the database. Borrows dsn, keeps a
 * reference to conf. Without an endpoint *ret_deliver is NULL and nothing runs.
 * pn_net_init() was called. -EINVAL as pn_deliver_check, -ENOMEM, -EAGAIN. Two of
 * them at once are as safe as two hosts: an event is leased to one. */
int pn_deliver_open(const char *dsn, struct pn_conf *conf,
    struct pn_deliver **ret_deliver, struct pn_error *ret_error) PN_MUSTCHECK;
/* Writes URLs and filters to the database once more: another one, of an older
 * configuration, may have written its own over them until it was over. Never
 * waits. Not after a stop, from the thread that stops it. NULL is fine. */
void pn_deliver_register_again(struct pn_deliver *deliver);
/* Stops claiming, and returns: by itself it lets what is in flight end, for at
 * most grace_us, hands back what was not sent, settles, and ends its threads.
 * Once, from the thread that closes it. NULL is fine. */
void pn_deliver_stop(struct pn_deliver *deliver, int64_t grace_us);
/* After a stop: whether closing it will not wait. */
bool pn_deliver_is_over(struct pn_deliver *deliver);
/* Waits for its end and frees it. After a stop, whose grace counts, or without
 * one, with this grace. NULL is fine. */
void pn_deliver_close(struct pn_deliver *deliver, int64_t grace_us);

#endif
