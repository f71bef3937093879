/*
 * Text to typed value, one function a type: strict, whole value, in the range
 * of the option's row. What is wrong is told with what would be right.
 *
 * Deliberately nothing here knows an option by name.
 */
#include "conf_internal.h"

#include <assert.h>
#include <stdio.h>

#include "paynotify/moment.h"
#include "paynotify/parse.h"

struct target {
	struct conf_load *load;
	const struct conf_option *option;
	struct pn_conf_place place;
	struct pn_str text;
	void *data;
};

static_assert(sizeof(enum pn_sign_type) == sizeof(unsigned) &&
		  sizeof(enum pn_v2_sign_type) == sizeof(unsigned) &&
		  sizeof(enum pn_guard_unknown) == sizeof(unsigned) &&
		  sizeof(enum pn_guard_after_expiry) == sizeof(unsigned) &&
		  sizeof(enum pn_log_level) == sizeof(unsigned) &&
		  sizeof(enum pn_log_format) == sizeof(unsigned),
    "a word is stored as unsigned, whatever the enum");

static int
refuse(const struct target *target, const char *want)
{
	struct pn_str text = target->text;

	conf_fail(target->load, target->place,
	    "%s: \"" PN_STR_FMT "\" is not %s%s", target->option->key,
	    PN_STR_ARG(text), want, conf_comment_hint(text));
	return 1;
}

static int
in_range(const struct target *target, int64_t value, const char *unit)
{
	const struct conf_option *option = target->option;

	if (value >= option->min && value <= option->max) {
		memcpy(target->data, &value, sizeof(value));
		return 0;
	}
	conf_fail(target->load, target->place,
	    "%s: \"" PN_STR_FMT "\" is not within %lld and %lld%s", option->key,
	    PN_STR_ARG(target->text), (long long)option->min,
	    (long long)option->max, unit);
	return 1;
}

/* As an operator would write it: in the largest unit that it is whole in. */
static struct pn_str
duration_text(const struct target *target, int64_t us)
{
	static const struct {
		const char *unit;
		int64_t us;
	} units[] = {
		{ "y", 365 * 86400 * PN_SECOND_US },
		{ "d", 86400 * PN_SECOND_US },
		{ "h", 3600 * PN_SECOND_US },
		{ "m", 60 * PN_SECOND_US },
		{ "s", PN_SECOND_US },
		{ "ms", PN_MILLISECOND_US },
	};
	size_t i = 0;

	if (us == 0) /* whole in all of them */
		return PN_STR("0s");
	while (i < PN_COUNT(units) - 1 && us % units[i].us != 0)
		i++;
	return pn_arena_printf(target->load->arena, "%lld%s",
	    (long long)(us / units[i].us), units[i].unit);
}

static int
set_number(const struct target *target)
{
	uint64_t value;

	if (pn_parse_uint(target->text, INT64_MAX, &value) != 0)
		return refuse(target, "a number");
	return in_range(target, (int64_t)value, "");
}

static int
set_size(const struct target *target)
{
	uint64_t value;

	if (pn_parse_size_bytes(target->text, INT64_MAX, &value) != 0)
		return refuse(target, "a size such as 64k or 1m");
	return in_range(target, (int64_t)value, " bytes");
}

static int
set_duration(const struct target *target)
{
	const struct conf_option *option = target->option;
	struct pn_str min, max;
	int64_t value;

	if (pn_parse_duration_us(target->text, &value) != 0)
		return refuse(target,
		    "a duration such as 500ms, 15s, 5m, 72h, 90d or 3y");
	if (value >= option->min && value <= option->max) {
		memcpy(target->data, &value, sizeof(value));
		return 0;
	}
	min = duration_text(target, option->min);
	max = duration_text(target, option->max);
	conf_fail(target->load, target->place,
	    "%s: \"" PN_STR_FMT "\" is not within " PN_STR_FMT
	    " and " PN_STR_FMT,
	    option->key, PN_STR_ARG(target->text), PN_STR_ARG(min),
	    PN_STR_ARG(max));
	return 1;
}

static int
set_rate(const struct target *target)
{
	struct pn_str rest = target->text, number;
	const int64_t off = 0;
	uint64_t value;

	if (pn_str_is(target->text, "off")) {
		memcpy(target->data, &off, sizeof(off));
		return 0;
	}
	number = pn_str_split(&rest, '/');
	if (rest.data == NULL || !pn_str_is(rest, "s") ||
	    pn_parse_uint(number, INT64_MAX, &value) != 0)
		return refuse(target, "a rate such as 20/s, or off");
	return in_range(target, (int64_t)value, "/s");
}

/* "now" is refused: it would be another time at every start, and whether it
 * counts depends on which start was the first. */
static int
set_moment(const struct target *target)
{
	char midnight[sizeof("YYYY-MM-DDT00:00:00Z")];
	int64_t us = PN_MOMENT_NONE;
	int r = 0;

	if (target->text.len == strlen("YYYY-MM-DD")) {
		(void)snprintf(midnight, sizeof(midnight),
		    PN_STR_FMT "T00:00:00Z", PN_STR_ARG(target->text));
		r = pn_moment_parse_rfc3339(pn_str_from(midnight), &us);
	} else if (!pn_str_is(target->text, "beginning")) {
		r = pn_moment_parse_rfc3339(target->text, &us);
	}
	if (r != 0 || (us != PN_MOMENT_NONE && us < target->option->min))
		return refuse(target,
		    "\"beginning\", a date such as 2026-03-01 (midnight UTC) or"
		    " a time such as 2026-03-01T10:00:00+08:00");
	memcpy(target->data, &us, sizeof(us));
	return 0;
}

static int
set_bool(const struct target *target)
{
	bool value;

	if (pn_parse_bool(target->text, &value) != 0)
		return refuse(target, "yes or no");
	memcpy(target->data, &value, sizeof(value));
	return 0;
}

static int
find_word(const struct target *target, unsigned *ret_index)
{
	const char *const *words = target->option->words;
	struct pn_str list = { "", 0 };

	for (unsigned i = 0; words[i] != NULL; i++) {
		if (pn_str_is(target->text, words[i])) {
			*ret_index = i;
			return 0;
		}
		list = pn_arena_printf(target->load->arena, PN_STR_FMT "%s%s",
		    PN_STR_ARG(list), i > 0 ? " or " : "", words[i]);
		if (list.data == NULL) {
			target->load->memory_out = true;
			return 1;
		}
	}
	return refuse(target, list.data);
}

static int
set_word(const struct target *target)
{
	unsigned index;

	if (find_word(target, &index) != 0)
		return 1;
	memcpy(target->data, &index, sizeof(index));
	return 0;
}

static int
add_word(const struct target *target)
{
	unsigned index, bits;

	if (find_word(target, &index) != 0)
		return 1;
	memcpy(&bits, target->data, sizeof(bits));
	bits |= 1U << index;
	memcpy(target->data, &bits, sizeof(bits));
	return 0;
}

static int
set_dsn(const struct target *target)
{
	struct conf_text dsn = { .place = target->place };

	if (target->text.len == 0)
		return refuse(target, "a value");
	dsn.text = conf_expand(target->load, target->place, target->text.data);
	if (dsn.text == NULL)
		return 1;
	memcpy(target->data, &dsn, sizeof(dsn));
	return 0;
}

static int
set_url(const struct target *target)
{
	struct conf_text url = { .place = target->place };
	const char *fault = conf_url_fault(target->text);

	/* The URL is not repeated: a password may be in it. */
	if (fault != NULL) {
		conf_fail(target->load, target->place, "%s %s",
		    target->option->key, fault);
		return 1;
	}
	url.text = conf_copy(target->load, target->text);
	if (url.text == NULL)
		return 1;
	memcpy(target->data, &url, sizeof(url));
	return 0;
}

static int
set_route(const struct target *target)
{
	struct conf_text route = { .place = target->place };
	const char *fault = conf_route_fault(target->text);

	if (fault != NULL) {
		conf_fail(target->load, target->place,
		    "%s: \"" PN_STR_FMT "\" %s", target->option->key,
		    PN_STR_ARG(target->text), fault);
		return 1;
	}
	route.text = conf_copy(target->load, target->text);
	if (route.text == NULL)
		return 1;
	memcpy(target->data, &route, sizeof(route));
	return 0;
}

int
conf_value_set(struct conf_load *load, const struct conf_option *option,
    void *base, struct pn_conf_place place, const char *value)
{
	struct target target = {
		.load = load,
		.option = option,
		.place = place,
		.text = pn_str_from(value),
		.data = (char *)base + option->offset,
	};

	switch (option->type) {
	case CONF_NUMBER: return set_number(&target);
	case CONF_SIZE: return set_size(&target);
	case CONF_DURATION: return set_duration(&target);
	case CONF_RATE: return set_rate(&target);
	case CONF_MOMENT: return set_moment(&target);
	case CONF_BOOL: return set_bool(&target);
	case CONF_WORD: return set_word(&target);
	case CONF_WORDS: return add_word(&target);
	case CONF_DSN: return set_dsn(&target);
	case CONF_URL: return set_url(&target);
	case CONF_ROUTE: return set_route(&target);
	case CONF_ID:
	case CONF_TENANT:
	case CONF_EVENT:
	case CONF_HEADER:
	case CONF_STATUS:
	case CONF_LISTEN:
	case CONF_CIDR:
	case CONF_FILE:
	case CONF_LABELLED_FILE:
	case CONF_SECRET_FILE:
		return conf_list_add(load, option, target.data, place, value);
	case CONF_TYPE_COUNT: break;
	}
	assert(!"a row of options.c has a type that does not exist");
	return 1;
}
