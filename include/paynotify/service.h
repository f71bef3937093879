/*
 * systemd: readiness, stopping, status text, sockets. Everything is a no-op
 * outside a service (no NOTIFY_SOCKET, no LISTEN_FDS). Main thread.
 */
#ifndef PN_SERVICE_H
#define PN_SERVICE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

void pn_service_ready(const char *status);
/* Until the next pn_service_ready(). */
void pn_service_reloading(void);
void pn_service_stopping(void);
void pn_service_status(const char *status);

/* What a service that is called alive too seldom is killed by: call it at least
 * this often. 0: nobody asks. */
int64_t pn_service_watchdog_us(void);
void pn_service_alive(void);
/* The next of these signals, which are blocked, SIGHUP after all others; 0 when
 * the time is over, or for no reason. us 0: it never is. */
int pn_service_signal(const sigset_t *signals, int64_t us);

/* The names that FileDescriptorName= gives to the sockets of a service; one of
 * any other name, or of none, is PN_SOCKET_NOTIFY. */
#define PN_SOCKET_NOTIFY "notify"
#define PN_SOCKET_GUARD  "guard"
#define PN_SOCKET_ADMIN  "admin"

/* The descriptors that systemd has passed under this name, at most max of them;
 * how many there are in all. They stay the caller's to close, once. */
size_t pn_service_sockets(const char *name, int *ret_fds, size_t max);

#endif
