/*
 * Times: parsing and printing of the four text forms, and the two clocks.
 *
 * The calendar is arithmetic on days (proleptic Gregorian), not libc's
 * timegm(): libc takes 31 April for 1 May, and its zone depends on the
 * environment. Years are counted from March, so that the leap day is the last
 * day of its year and the length of a month is a linear formula.
 *
 * Beijing has been UTC+8 without daylight saving since 1991, before any of
 * these messages existed, so the offset is a constant and no zone file is read.
 *
 * Every parser gives a time between 1970 and 9999, UTC: what PostgreSQL and
 * the four-digit text form can both hold. A leap second (":60") is refused:
 * neither provider sends one, and int64_t of POSIX time has no place for it.
 *
 * A database holds times that have no such text ("infinity", the year 294276),
 * and who wrote them is not who prints them. So every formatter takes any: what
 * is outside is told as the nearest end, which is as good as any word for it.
 */
#include "paynotify/moment.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "paynotify/parse.h"

static const int64_t DAY_US = 86400 * PN_SECOND_US;
static const int64_t BEIJING_US = 8 * 3600 * PN_SECOND_US;
/* 9999-12-31T23:59:59.999999Z */
static const int64_t MOMENT_MAX = INT64_C(253402300799999999);

struct civil {
	int64_t year;
	unsigned month, day, hour, minute, second, fraction_us;
};

static int64_t
clock_us(clockid_t id)
{
	struct timespec now;
	int r = clock_gettime(id, &now);

	assert(r == 0);
	return (int64_t)now.tv_sec * PN_SECOND_US + now.tv_nsec / 1000;
}

int64_t
pn_clock_realtime_us(void)
{
	return clock_us(CLOCK_REALTIME);
}

int64_t
pn_clock_monotonic_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

/* Days since 1970-01-01. An era is the 400 years after which the calendar
 * repeats: 146097 days; 719468 days lie between 0000-03-01 and 1970-01-01. */
static int64_t
days_from_civil(int64_t year, unsigned month, unsigned day)
{
	int64_t era, year_of_era, day_of_year, day_of_era;

	assert(year >= 1 && month >= 1 && month <= 12);
	if (month <= 2)
		year--;
	era = year / 400;
	year_of_era = year % 400;
	day_of_year =
	    (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
		     day_of_year;
	return era * 146097 + day_of_era - 719468;
}

static void
civil_from_days(int64_t days, struct civil *ret_civil)
{
	int64_t era, day_of_era, year_of_era, day_of_year, month;

	assert(days >= 0);
	days += 719468;
	era = days / 146097;
	day_of_era = days % 146097;
	year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
			  day_of_era / 146096) /
		      365;
	day_of_year = day_of_era -
		      (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	month = (5 * day_of_year + 2) / 153; /* 0 is March */
	ret_civil->day = (unsigned)(day_of_year - (153 * month + 2) / 5 + 1);
	ret_civil->month = (unsigned)(month < 10 ? month + 3 : month - 9);
	ret_civil->year =
	    year_of_era + era * 400 + (ret_civil->month <= 2 ? 1 : 0);
}

static unsigned
month_days(int64_t year, unsigned month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31,
		30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	assert(month >= 1 && month <= 12);
	return days[month - 1] + (month == 2 && leap ? 1U : 0U);
}

/* Takes exactly count digits (at most 9) from the front of *text. */
static bool
take_digits(struct pn_str *text, size_t count, unsigned *ret_value)
{
	unsigned value = 0;

	assert(count >= 1 && count <= 9);
	if (text->len < count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (text->data[i] < '0' || text->data[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text->data[i] - '0');
	}
	text->data += count;
	text->len -= count;
	*ret_value = value;
	return true;
}

/* A separator of '\0' takes nothing: the compact form has none. */
static bool
take_char(struct pn_str *text, char c)
{
	if (c == '\0')
		return true;
	if (text->len == 0 || text->data[0] != c)
		return false;
	text->data++;
	text->len--;
	return true;
}

/* A point and 1 to digits_max digits, if there is a point. Digits behind the
 * sixth are dropped. */
static bool
take_fraction(struct pn_str *text, size_t digits_max, unsigned *ret_us)
{
	unsigned value = 0, digit;
	size_t count = 0;

	*ret_us = 0;
	if (!take_char(text, '.'))
		return true;
	while (count < digits_max && take_digits(text, 1, &digit)) {
		if (count < 6)
			value = value * 10 + digit;
		count++;
	}
	if (count == 0)
		return false;
	for (; count < 6; count++)
		value *= 10;
	*ret_us = value;
	return true;
}

/* yyyy MM dd HH mm ss with these separators, and a date that exists. */
static bool
take_civil(struct pn_str *text, char date, char middle, char clock,
    struct civil *ret_civil)
{
	struct civil c = { 0 };
	unsigned year;

	if (!take_digits(text, 4, &year) || !take_char(text, date) ||
	    !take_digits(text, 2, &c.month) || !take_char(text, date) ||
	    !take_digits(text, 2, &c.day) || !take_char(text, middle) ||
	    !take_digits(text, 2, &c.hour) || !take_char(text, clock) ||
	    !take_digits(text, 2, &c.minute) || !take_char(text, clock) ||
	    !take_digits(text, 2, &c.second))
		return false;
	if (year < 1969 || c.month < 1 || c.month > 12 || c.day < 1 ||
	    c.day > month_days(year, c.month) || c.hour > 23 || c.minute > 59 ||
	    c.second > 59)
		return false;
	c.year = year;
	*ret_civil = c;
	return true;
}

/* The time of a civil date at an offset east of UTC; 1 when out of range. */
static int
finish(const struct civil *c, int64_t offset_us, int64_t *ret_us)
{
	int64_t seconds = (int64_t)c->hour * 3600 + c->minute * 60 + c->second;
	int64_t us = days_from_civil(c->year, c->month, c->day) * DAY_US +
		     seconds * PN_SECOND_US + c->fraction_us - offset_us;

	if (us < 0 || us > MOMENT_MAX)
		return 1;
	*ret_us = us;
	return 0;
}

int
pn_moment_parse_beijing(struct pn_str text, int64_t *ret_us)
{
	struct civil c;

	if (!take_civil(&text, '-', ' ', ':', &c) ||
	    !take_fraction(&text, 6, &c.fraction_us) || text.len != 0)
		return 1;
	return finish(&c, BEIJING_US, ret_us);
}

int
pn_moment_parse_compact(struct pn_str text, int64_t *ret_us)
{
	struct civil c;

	if (!take_civil(&text, '\0', '\0', '\0', &c) || text.len != 0)
		return 1;
	return finish(&c, BEIJING_US, ret_us);
}

int
pn_moment_parse_rfc3339(struct pn_str text, int64_t *ret_us)
{
	unsigned hours = 0, minutes = 0;
	int64_t offset_us;
	struct civil c;
	bool west;

	if (!take_civil(&text, '-', 'T', ':', &c) ||
	    !take_fraction(&text, 9, &c.fraction_us))
		return 1;
	if (take_char(&text, 'Z'))
		return text.len != 0 ? 1 : finish(&c, 0, ret_us);
	west = take_char(&text, '-');
	if (!west && !take_char(&text, '+'))
		return 1;
	if (!take_digits(&text, 2, &hours) || !take_char(&text, ':') ||
	    !take_digits(&text, 2, &minutes) || text.len != 0 || hours > 23 ||
	    minutes > 59)
		return 1;
	offset_us = ((int64_t)hours * 60 + minutes) * 60 * PN_SECOND_US;
	return finish(&c, west ? -offset_us : offset_us, ret_us);
}

int
pn_moment_parse_since(struct pn_str text, int64_t now_us, int64_t *ret_us)
{
	char full[sizeof("YYYY-MM-DDT00:00:00Z")];
	int64_t back_us;

	if (pn_moment_parse_rfc3339(text, ret_us) == 0)
		return 0;
	if (text.len == sizeof("YYYY-MM-DD") - 1) {
		(void)snprintf(full, sizeof(full), PN_STR_FMT "T00:00:00Z",
		    PN_STR_ARG(text));
		if (pn_moment_parse_rfc3339(pn_str_from(full), ret_us) == 0)
			return 0;
	}
	if (pn_parse_duration_us(text, &back_us) != 0 || back_us > now_us)
		return 1;
	*ret_us = now_us - back_us;
	return 0;
}

/* The time at an offset east of UTC, brought to where a text can be. */
static int64_t
shifted(int64_t us, int64_t offset_us)
{
	if (us < 0)
		us = 0;
	if (us > MOMENT_MAX - offset_us)
		us = MOMENT_MAX - offset_us;
	return us + offset_us;
}

static struct civil
civil_at(int64_t us)
{
	struct civil c = { 0 };
	unsigned seconds;

	assert(us >= 0 && us <= MOMENT_MAX);
	civil_from_days(us / DAY_US, &c);
	seconds = (unsigned)(us % DAY_US / PN_SECOND_US);
	c.hour = seconds / 3600;
	c.minute = seconds / 60 % 60;
	c.second = seconds % 60;
	c.fraction_us = (unsigned)(us % PN_SECOND_US);
	return c;
}

/* Milliseconds where they are whole, as both providers write them. */
static void
format(int64_t us, char middle, const char *zone,
    char ret_text[PN_MOMENT_TEXT_BYTES])
{
	struct civil c = civil_at(us);
	char fraction[16] = "";

	if (c.fraction_us % 1000 != 0)
		(void)snprintf(
		    fraction, sizeof(fraction), ".%06u", c.fraction_us);
	else if (c.fraction_us != 0)
		(void)snprintf(
		    fraction, sizeof(fraction), ".%03u", c.fraction_us / 1000);
	(void)snprintf(ret_text, PN_MOMENT_TEXT_BYTES,
	    "%04d-%02u-%02u%c%02u:%02u:%02u%s%s", (int)c.year, c.month, c.day,
	    middle, c.hour, c.minute, c.second, fraction, zone);
}

void
pn_moment_format_rfc3339(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES])
{
	format(shifted(us, 0), 'T', "Z", ret_text);
}

void
pn_moment_format_beijing(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES])
{
	format(shifted(us, BEIJING_US), ' ', "", ret_text);
}

void
pn_moment_format_compact(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES])
{
	struct civil c = civil_at(shifted(us, BEIJING_US));

	(void)snprintf(ret_text, PN_MOMENT_TEXT_BYTES,
	    "%04d%02u%02u%02u%02u%02u", (int)c.year, c.month, c.day, c.hour,
	    c.minute, c.second);
}

void
pn_moment_format_rfc3339_beijing(
    int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES])
{
	format(shifted(us, BEIJING_US), 'T', "+08:00", ret_text);
}
