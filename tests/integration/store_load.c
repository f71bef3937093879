/*
 * store_load: how many notifications a second the store commits, and what a
 * lone one waits. Not a test; for profiling (tests/bench measures the daemon).
 *
 *   store_load [-n IN_FLIGHT] [-t SECONDS] [-w WRITERS] [-d DUP_PERCENT] DSN
 *
 * Each notification has one event, 1.5 kB of body, 0.9 kB of payload and 0.5 kB
 * of headers, as WeChat's have. A notification is submitted again, as another,
 * as soon as it is released: a closed loop. Prints one line of JSON; cpu_us is
 * this process, postgres_cpu_us the server's processes (from /proc).
 */
#include <dirent.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "paynotify/digest.h"
#include "paynotify/migrate.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"
#include "paynotify/store.h"

enum { IN_FLIGHT_MAX = 4096, LATENCIES_MAX = 1 << 22 };

struct flight {
	struct pn_submission submission;
	struct pn_event event;
	char key[64], trade[40], transaction[40];
	char body[1500], payload[900], headers[500];
	int64_t began_us;
};

static struct {
	struct pn_store *store;
	struct flight *flights;
	uint64_t base;
	_Atomic uint64_t serial;
	unsigned dup_percent;
	int64_t end_us;
	_Atomic uint64_t done, verdicts[PN_STORE_UNAVAILABLE + 1];
	_Atomic unsigned live;
	_Atomic uint64_t latency_count;
	uint32_t latencies[LATENCIES_MAX];
	pthread_mutex_t lock;
	pthread_cond_t over;
} load = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.over = PTHREAD_COND_INITIALIZER };

static void
fill(struct flight *f)
{
	uint64_t n = load.serial++;
	struct pn_submission *s = &f->submission;

	if (n > 1000 && n * 2654435761u % 100 < load.dup_percent)
		n -= 997;
	n += load.base;
	(void)snprintf(
	    f->trade, sizeof(f->trade), "ORD%018llu", (unsigned long long)n);
	(void)snprintf(f->transaction, sizeof(f->transaction), "4200002%021llu",
	    (unsigned long long)n);
	(void)snprintf(
	    f->key, sizeof(f->key), "webhook:wechat:%s", f->transaction);
	f->event = (struct pn_event){
		.type = PN_STR("payment.succeeded"),
		.key = pn_str_from(f->key),
		.provider = PN_STR("wechat"),
		.tenant = PN_STR("shop1"),
		.route = PN_STR("notify/wechat"),
		.livemode = true,
		.account = PN_STR("1900000001"),
		.merchant = PN_STR("1900000001"),
		.out_trade_no = pn_str_from(f->trade),
		.transaction_id = pn_str_from(f->transaction),
		.amount = { 100, true },
		.order_amount = { 100, true },
		.currency = PN_STR("CNY"),
		.occurred_at_us = 1767225600 * PN_SECOND_US,
	};
	pn_event_seal(&f->event);
	pn_random_bytes(s->request_id, sizeof(s->request_id));
	uint64_t ms = (uint64_t)(pn_clock_realtime_us() / 1000);
	for (int i = 0; i < 6; i++)
		s->request_id[i] = (unsigned char)(ms >> (40 - 8 * i));
	f->began_us = pn_clock_monotonic_us();
}

static void
on_done(struct pn_submission *s, enum pn_store_verdict verdict, void *payload)
{
	struct flight *f = payload;
	uint64_t at = load.latency_count++;

	(void)s;
	load.verdicts[verdict]++;
	load.done++;
	if (at < LATENCIES_MAX)
		load.latencies[at] =
		    (uint32_t)(pn_clock_monotonic_us() - f->began_us);
}

static void
on_release(struct pn_submission *s, void *payload)
{
	struct flight *f = payload;

	if (pn_clock_monotonic_us() < load.end_us) {
		fill(f);
		if (pn_store_submit(load.store, s) == 0)
			return;
	}
	if (--load.live == 0) {
		pthread_mutex_lock(&load.lock);
		pthread_cond_signal(&load.over);
		pthread_mutex_unlock(&load.lock);
	}
}

static void
init(struct flight *f)
{
	struct pn_submission *s = &f->submission;

	memset(f->body, 'b', sizeof(f->body));
	memset(f->payload, 'p', sizeof(f->payload));
	f->payload[0] = f->payload[sizeof(f->payload) - 1] = '"';
	memset(f->headers, 'h', sizeof(f->headers));
	s->provider = PN_STR("wechat");
	s->tenant = PN_STR("shop1");
	s->route = PN_STR("notify/wechat");
	s->peer = PN_STR("101.226.103.15");
	s->notify_id = PN_STR("EV-2018022511223320873");
	s->events = &f->event;
	s->event_count = 1;
	s->headers = (struct pn_str){ f->headers, sizeof(f->headers) };
	s->body = (struct pn_str){ f->body, sizeof(f->body) };
	s->payload = (struct pn_str){ f->payload, sizeof(f->payload) };
	s->success_body = PN_STR("{\"code\":\"SUCCESS\"}");
	s->done = on_done;
	s->release = on_release;
	s->payload_pointer = f;
}

/* Field n (from 3, the state) of /proc/<pid>/stat; 0 when it is not there. */
static uint64_t
stat_field(const char *pid, int from, int to)
{
	char path[300], line[1024] = "";
	uint64_t value, sum = 0;
	struct pn_str rest, word;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	(void)fclose(file);
	if (strrchr(line, ')') == NULL)
		return 0;
	rest = pn_str_from(strrchr(line, ')') + 2);
	for (int i = 3; i <= to; i++) {
		word = pn_str_split(&rest, ' ');
		if (i >= from && pn_parse_uint(word, INT64_MAX, &value) == 0)
			sum += value;
	}
	return sum;
}

/* The server's first process: the parent of a backend. */
static uint64_t
postmaster(const char *dsn)
{
	PGconn *conn = PQconnectdb(dsn);
	char pid[16];
	uint64_t parent;

	(void)snprintf(pid, sizeof(pid), "%d", PQbackendPID(conn));
	parent = stat_field(pid, 4, 4);
	PQfinish(conn);
	return parent;
}

/* CPU of the server's processes so far, ended ones included. */
static int64_t
postgres_cpu_us(uint64_t parent)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char self[16];
	uint64_t ticks;

	(void)snprintf(self, sizeof(self), "%llu", (unsigned long long)parent);
	ticks = stat_field(self, 14, 17); /* utime stime cutime cstime */
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
		    stat_field(entry->d_name, 4, 4) == parent)
			ticks += stat_field(entry->d_name, 14, 15);
	if (dir != NULL)
		(void)closedir(dir);
	return (int64_t)ticks * (1000000 / sysconf(_SC_CLK_TCK));
}

static int64_t
own_cpu_us(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned
number(const char *text, uint64_t max)
{
	uint64_t value;

	if (pn_parse_uint(pn_str_from(text), max, &value) != 0) {
		(void)fprintf(stderr, "store_load: not a number: %s\n", text);
		exit(2);
	}
	return (unsigned)value;
}

static void
run(unsigned in_flight)
{
	struct flight *flights = calloc(in_flight, sizeof(*flights));

	if (flights == NULL)
		abort();
	load.live = in_flight;
	for (unsigned i = 0; i < in_flight; i++) {
		init(&flights[i]);
		fill(&flights[i]);
		if (pn_store_submit(load.store, &flights[i].submission) != 0)
			abort();
	}
	pthread_mutex_lock(&load.lock);
	while (load.live > 0)
		pthread_cond_wait(&load.over, &load.lock);
	pthread_mutex_unlock(&load.lock);
	load.flights = flights; /* freed when the store is closed */
}

int
main(int argc, char **argv)
{
	struct pn_store_options options = { .writers = 1,
		.commit_timeout_us = 10 * PN_SECOND_US,
		.key_hot_us = 72 * 3600 * PN_SECOND_US };
	unsigned in_flight = 64, seconds = 5;
	struct pn_error error = { { 0 } };
	int64_t began_us, cpu_us, server_us;
	double took_s, done;
	uint64_t n, parent;
	int o;

	while ((o = getopt(argc, argv, "n:t:w:d:")) != -1)
		switch (o) {
		case 'n': in_flight = number(optarg, IN_FLIGHT_MAX); break;
		case 't': seconds = number(optarg, 3600); break;
		case 'w': options.writers = number(optarg, 16); break;
		case 'd': load.dup_percent = number(optarg, 100); break;
		default: return 2;
		}
	if (optind >= argc)
		return 2;
	options.dsn = argv[optind];
	if (pn_migrate(options.dsn, NULL, NULL, &error) < 0 ||
	    pn_store_open(&options, &load.store, &error) < 0) {
		(void)fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	pn_store_wait_first(load.store, 5 * PN_SECOND_US);
	load.base = (uint64_t)pn_clock_realtime_us();
	parent = postmaster(options.dsn);
	server_us = postgres_cpu_us(parent);
	cpu_us = own_cpu_us();
	began_us = pn_clock_monotonic_us();
	load.end_us = began_us + seconds * PN_SECOND_US;
	run(in_flight);
	took_s = (double)(pn_clock_monotonic_us() - began_us) / 1e6;
	cpu_us = own_cpu_us() - cpu_us;
	server_us = postgres_cpu_us(parent) - server_us;
	done = (double)load.done;
	n = load.latency_count < LATENCIES_MAX ? load.latency_count
					       : LATENCIES_MAX;
	qsort(load.latencies, n, sizeof(load.latencies[0]), compare);
	(void)printf("{\"per_s\":%.0f,\"p50_us\":%u,\"p99_us\":%u,"
		     "\"cpu_us\":%.1f,\"postgres_cpu_us\":%.1f,"
		     "\"recorded\":%llu,\"duplicate\":%llu,"
		     "\"unavailable\":%llu}\n",
	    done / took_s, load.latencies[n / 2], load.latencies[n * 99 / 100],
	    (double)cpu_us / done, (double)server_us / done,
	    (unsigned long long)load.verdicts[PN_STORE_RECORDED],
	    (unsigned long long)load.verdicts[PN_STORE_DUPLICATE],
	    (unsigned long long)load.verdicts[PN_STORE_UNAVAILABLE]);
	pn_store_close(load.store, PN_SECOND_US);
	free(load.flights);
	return 0;
}
