/*
 * What a misspelt word was meant to be, by edit distance: for errors that name
 * the right one.
 */
#include "paynotify/nearest.h"

#include <stdint.h>
#include <string.h>

enum {
	WORD_BYTES_MAX = 40, /* longer words are not guessed at */
	DISTANCE_MAX = 2,    /* edits that a slip of the finger makes */
};

/* Edit distance, given up beyond the bound of the row buffers. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[WORD_BYTES_MAX + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > WORD_BYTES_MAX || b_len > WORD_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b_len];
}

const char *
pn_nearest(const char *name, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_distance = DISTANCE_MAX + 1;

	for (size_t i = 0; i < count; i++) {
		size_t d = distance(name, names[i]);

		/* "on" is not a slip for "off": half must be right. */
		if (d < best_distance && d * 2 < strlen(names[i])) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}
