/*
 * A capture: one raw HTTP/1.1 request in a file (request line, headers, empty
 * line, body bytes). Pure.
 *
 * Lines end with LF or CRLF. The body is everything behind the empty line; when
 * a Content-Length says less than there is, or more, or the header is repeated
 * or comes with Transfer-Encoding, the capture is refused: what would be
 * verified is not what was signed. One exception: a body that is shorter than
 * Content-Length is kept (a connection that was cut), for the verdict to tell.
 */
#ifndef PN_CAPTURE_H
#define PN_CAPTURE_H

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/request.h"

/* 0; 1 when it is not a request (error says where); -ENOMEM. The request
 * borrows from raw, which must stay. */
int pn_capture_parse(struct pn_arena *arena, struct pn_str raw,
    struct pn_request *ret_request, struct pn_error *ret_error) PN_MUSTCHECK;
#endif
