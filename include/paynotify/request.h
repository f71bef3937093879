/*
 * One HTTP request as every layer sees it: bytes, no socket. The http layer
 * builds it from libmicrohttpd, `verify` from a capture file.
 */
#ifndef PN_REQUEST_H
#define PN_REQUEST_H

#include <stddef.h>

#include "paynotify/str.h"

struct pn_header {
	struct pn_str name, value; /* value without surrounding white space */
};

struct pn_request {
	struct pn_str method; /* "POST" */
	struct pn_str path;   /* target up to "?" */
	struct pn_str query;  /* behind "?", data NULL when there is none */
	const struct pn_header *headers;
	size_t header_count;
	struct pn_str body; /* the bytes as received */
	struct pn_str peer; /* address of the client, or empty */
};

/* How many headers have this name (case-insensitive), the first one's value in
 * *ret_value (data NULL when 0). Pure. */
size_t pn_request_header(const struct pn_request *request, const char *name,
    struct pn_str *ret_value);

#endif
