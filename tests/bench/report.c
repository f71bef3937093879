/*
 * What came of the requests: answers counted by kind, status and body, right
 * or wrong; latencies; one line of JSON at the end. An answer is right when the
 * provider would take it for "delivered", or, to a forged request, when it is a
 * refusal, or to a charge, when it is one: a fast server that answers wrong is
 * not fast.
 */
#include "load.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_right(char kind, int status, const char *body, size_t len)
{
	static const char success[] = "{\"code\":\"SUCCESS\"";
	static const char charge[] = "{\"id\":";

	if (islower((unsigned char)kind))
		return status == 401;
	if (kind == 'C')
		return status == 201 && len >= sizeof(charge) &&
		       memcmp(body, charge, sizeof(charge) - 1) == 0;
	if (status != 200)
		return false;
	if (kind == 'A')
		return len == 7 && memcmp(body, "success", 7) == 0;
	return len >= sizeof(success) &&
	       memcmp(body, success, sizeof(success) - 1) == 0;
}

void
load_count(struct load_stats *stats, char kind, int status, const char *body,
    size_t len)
{
	struct load_answer answer = { .status = status, .kind = kind };
	size_t i;

	answer.right = is_right(kind, status, body, len);
	for (i = 0; i < len && i < LOAD_BODY_SHOWN; i++)
		answer.body[i] = isprint((unsigned char)body[i]) &&
					 body[i] != '"' && body[i] != '\\'
				     ? body[i]
				     : '?';
	stats->answered++;
	if (!answer.right)
		stats->wrong++;
	for (i = 0; i < stats->answer_count; i++) {
		struct load_answer *a = &stats->answers[i];

		if (a->status == status && a->kind == kind &&
		    strcmp(a->body, answer.body) == 0)
			break;
	}
	if (i == LOAD_ANSWERS_MAX)
		i--; /* the last one stands for all further ones */
	else if (i == stats->answer_count)
		stats->answers[stats->answer_count++] = answer;
	stats->answers[i].count++;
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The smallest latency that a share of the requests did not exceed. */
static double
percentile_ms(const struct load_stats *stats, double share)
{
	size_t rank = (size_t)(share * (double)stats->measured + 0.999999);

	if (stats->measured == 0)
		return 0;
	if (rank > stats->measured)
		rank = stats->measured;
	return (double)stats->latency_ns[rank == 0 ? 0 : rank - 1] / 1e6;
}

static void
complain(const struct load_stats *stats)
{
	for (size_t i = 0; i < stats->answer_count; i++) {
		const struct load_answer *a = &stats->answers[i];

		if (!a->right)
			(void)fprintf(stderr,
			    "load: %llu wrong: kind %c status %d %s\n",
			    (unsigned long long)a->count, a->kind, a->status,
			    a->body);
	}
	if (stats->answered < stats->sent)
		(void)fprintf(stderr, "load: %llu got no answer\n",
		    (unsigned long long)(stats->sent - stats->answered));
}

int
load_report(struct load_stats *stats, unsigned connections, double rate)
{
	uint64_t wrong = stats->wrong + stats->sent - stats->answered;
	double seconds = (double)(stats->last_ns - stats->first_ns) / 1e9;

	qsort(stats->latency_ns, stats->measured, sizeof(uint64_t), compare);
	(void)printf("{\"c\":%u,\"rate\":%.0f,\"n\":%llu,\"measured\":%zu,"
		     "\"seconds\":%.3f,\"rps\":%.1f,\"p50_ms\":%.3f,"
		     "\"p95_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,"
		     "\"wrong\":%llu,\"broken\":%llu,\"distinct\":%llu,"
		     "\"late_ms_max\":%.3f,\"cpu_us\":%.2f}\n",
	    connections, rate, (unsigned long long)stats->sent, stats->measured,
	    seconds, seconds > 0 ? (double)stats->measured / seconds : 0,
	    percentile_ms(stats, 0.50), percentile_ms(stats, 0.95),
	    percentile_ms(stats, 0.99), percentile_ms(stats, 1.0),
	    (unsigned long long)wrong, (unsigned long long)stats->broken,
	    (unsigned long long)stats->distinct,
	    (double)stats->late_ns_max / 1e6,
	    stats->sent == 0 ? 0 : (double)stats->cpu_us / (double)stats->sent);
	complain(stats);
	return wrong == 0 ? 0 : 2;
}
