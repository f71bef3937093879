/*
 * Strict parsing of numbers, durations and sizes.
 *
 * The whole slice is the value or it is refused: no sign where none belongs,
 * no space, no wrap-around, no locale. The loops are bounded by the maximum of
 * the value, not only by the length: once a number has passed its maximum it
 * is refused, but leading zeros may be as many as the caller's slice holds.
 *
 * There is no floating point here and there never will be: amounts are minor
 * units, and their text form belongs to the event layer.
 */
#include "paynotify/parse.h"

#include "paynotify/moment.h"

int
pn_parse_uint(struct pn_str text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0, digit;

	if (text.len == 0)
		return 1;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return 1;
		digit = (uint64_t)(text.data[i] - '0');
		if (digit > max || value > (max - digit) / 10)
			return 1;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return 0;
}

int
pn_parse_int64(struct pn_str text, int64_t *ret_value)
{
	bool negative = text.len > 0 && text.data[0] == '-';
	uint64_t max = INT64_MAX, value;

	if (negative) {
		text.data++;
		text.len--;
		max++; /* INT64_MIN has one more than INT64_MAX */
	}
	if (pn_parse_uint(text, max, &value) != 0)
		return 1;
	if (!negative)
		*ret_value = (int64_t)value;
	else if (value == 0)
		*ret_value = 0;
	else
		*ret_value = -(int64_t)(value - 1) - 1;
	return 0;
}

/* What stands behind the digits *text begins with; *text is cut to them. */
static struct pn_str
take_unit(struct pn_str *text)
{
	struct pn_str unit;
	size_t len = 0;

	while (
	    len < text->len && text->data[len] >= '0' && text->data[len] <= '9')
		len++;
	unit = (struct pn_str){ text->data + len, text->len - len };
	text->len = len;
	return unit;
}

int
pn_parse_duration_us(struct pn_str text, int64_t *ret_us)
{
	static const struct {
		const char *unit;
		int64_t us;
	} units[] = {
		{ "ms", PN_MILLISECOND_US },
		{ "s", PN_SECOND_US },
		{ "m", 60 * PN_SECOND_US },
		{ "h", 3600 * PN_SECOND_US },
		{ "d", 86400 * PN_SECOND_US },
		{ "y", 365 * 86400 * PN_SECOND_US },
	};
	struct pn_str unit;
	uint64_t value;

	if (text.len == 0)
		return 1;
	unit = take_unit(&text);
	if (pn_parse_uint(text, INT64_MAX, &value) != 0)
		return 1;
	if (unit.len == 0 && value == 0) {
		*ret_us = 0;
		return 0;
	}
	for (size_t i = 0; i < PN_COUNT(units); i++) {
		if (!pn_str_is(unit, units[i].unit))
			continue;
		if (value > (uint64_t)(INT64_MAX / units[i].us))
			return 1;
		*ret_us = (int64_t)value * units[i].us;
		return 0;
	}
	return 1;
}

int
pn_parse_size_bytes(struct pn_str text, uint64_t max, uint64_t *ret_bytes)
{
	struct pn_str unit;
	uint64_t value, factor = 1;

	if (text.len == 0)
		return 1;
	unit = take_unit(&text);
	if (pn_str_is(unit, "k"))
		factor = 1024;
	else if (pn_str_is(unit, "m"))
		factor = 1024 * 1024;
	else if (unit.len != 0)
		return 1;
	if (pn_parse_uint(text, max / factor, &value) != 0)
		return 1;
	*ret_bytes = value * factor;
	return 0;
}

int
pn_parse_bool(struct pn_str text, bool *ret_value)
{
	if (pn_str_is(text, "yes") || pn_str_is(text, "on") ||
	    pn_str_is(text, "true")) {
		*ret_value = true;
		return 0;
	}
	if (pn_str_is(text, "no") || pn_str_is(text, "off") ||
	    pn_str_is(text, "false")) {
		*ret_value = false;
		return 0;
	}
	return 1;
}
