/*
 * The load generator's parts: prepared requests (records.c), what came of them
 * (report.c), the connections and the clock (load.c). One thread.
 */
#ifndef PN_LOAD_H
#define PN_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LOAD_CONNECTIONS_MAX = 1024,
	LOAD_REPLY_BYTES_MAX = 16384, /* head and body */
	LOAD_ANSWERS_MAX = 32,        /* kinds of answer that are told apart */
	LOAD_BODY_SHOWN = 100,        /* bytes of a body that are */
};

/* One prepared request. kind: A Alipay, W WeChat Pay, C a charge under an
 * Idempotency-Key; in lower case a forged one, which must be refused. Requests
 * of one trade, or under one key, share its number. */
struct load_record {
	const char *data;
	uint32_t len, trade;
	char kind;
};

/* Maps the file that gen.mjs or charges.py wrote: records "R <bytes> <kind> <trade> LF" and
 * the bytes. Ends the program when it is not such a file. */
struct load_record *
load_records(const char *path, size_t skip, size_t max, size_t *ret_count);

/* A kind of answer, and how many there were. */
struct load_answer {
	int status;
	char kind;
	bool right;
	char body[LOAD_BODY_SHOWN + 1];
	uint64_t count;
};

struct load_stats {
	struct load_answer answers[LOAD_ANSWERS_MAX];
	size_t answer_count;
	uint64_t *latency_ns; /* of the measured requests */
	size_t measured;
	uint64_t sent, answered, wrong, broken, distinct;
	uint64_t first_ns, last_ns; /* first measured sent, last answer */
	uint64_t late_ns_max;       /* how long a due request had to wait */
	uint64_t cpu_us;            /* of this program */
};

/* Counts an answer; status 0 when the connection broke instead. */
void load_count(struct load_stats *stats, char kind, int status,
    const char *body, size_t len);
/* One line of JSON; what was wrong on stderr. Returns the exit status. */
int load_report(struct load_stats *stats, unsigned connections, double rate);

/* Ends the program: "load: what: errno". */
void load_die(const char *what) __attribute__((noreturn));

#endif
