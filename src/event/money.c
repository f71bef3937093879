/*
 * Money: yuan with two decimals, as Alipay writes it, to fen and back. Digits
 * only; no floating point anywhere near an amount.
 */
#include "paynotify/event.h"

#include <inttypes.h>
#include <stdio.h>

enum { YUAN_DIGITS_MAX = 9, DECIMALS = 2, FEN_PER_YUAN = 100 };

int
pn_money_parse_yuan(struct pn_str text, int64_t *ret_fen)
{
	int64_t fen = 0;
	size_t point;

	if (text.len < 1 + 1 + DECIMALS ||
	    text.len > YUAN_DIGITS_MAX + 1 + DECIMALS)
		return 1;
	point = text.len - 1 - DECIMALS;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (i == point && c == '.')
			continue;
		if (i == point || c < '0' || c > '9')
			return 1;
		fen = fen * 10 + (c - '0');
	}
	*ret_fen = fen;
	return 0;
}

void
pn_money_format_yuan(int64_t fen, char ret_text[32])
{
	/* Through uint64_t: the lowest int64_t has no positive twin. */
	uint64_t magnitude = fen < 0 ? -(uint64_t)fen : (uint64_t)fen;

	(void)snprintf(ret_text, 32, "%s%" PRIu64 ".%02u", fen < 0 ? "-" : "",
	    magnitude / FEN_PER_YUAN, (unsigned)(magnitude % FEN_PER_YUAN));
}
