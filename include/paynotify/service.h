/*
 * systemd: readiness, stopping, status text. Everything is a no-op outside a
 * service (no NOTIFY_SOCKET). Main thread.
 */
#ifndef PN_SERVICE_H
#define PN_SERVICE_H

void pn_service_ready(const char *status);
void pn_service_stopping(void);
void pn_service_status(const char *status);

#endif
