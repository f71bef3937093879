/*
 * Values that are lists: each repeat of the key adds one. Words, listening
 * addresses, address blocks, and files, which are read at once: after loading,
 * nothing of a configuration is opened again.
 *
 * A list has no size beside its count: see room().
 */
#include "conf_internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/un.h>

#include "paynotify/parse.h"

enum {
	PORT_MAX = 65535,
	UNIX_PATH_BYTES_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
	NEWLINE_BYTES_MAX = 2,
};

static const char label_prefix[] = "PUB_KEY_ID_";
static const char unix_prefix[] = "unix:";

struct list {
	struct conf_load *load;
	const struct conf_option *option;
	struct pn_conf_place place;
	struct pn_str text;
};

static int
refuse(const struct list *list, const char *want)
{
	conf_fail(list->load, list->place, "%s: \"" PN_STR_FMT "\" is not %s%s",
	    list->option->key, PN_STR_ARG(list->text), want,
	    memchr(list->text.data, ',', list->text.len) != NULL
		? "; for several values repeat the key"
		: conf_comment_hint(list->text));
	return 1;
}

static size_t
values_max(const struct conf_option *option)
{
	if ((option->flags & CONF_REPEATABLE) == 0)
		return 1;
	switch (option->type) {
	case CONF_LISTEN: return PN_LISTEN_MAX;
	case CONF_FILE:
	case CONF_LABELLED_FILE:
	case CONF_SECRET_FILE: return PN_ACCOUNT_KEYS_MAX;
	default: return PN_CONF_REPEAT_MAX;
	}
}

/* Room for one more value: the array doubles when its count is a power of two,
 * so that most lists, of one value, have room for one. NULL after telling
 * why. */
static void *
room(const struct list *list, const void *array, size_t count, size_t bytes)
{
	void *bigger;

	if (count > 0 && (count & (count - 1)) != 0)
		return (void *)(uintptr_t)array;
	bigger = conf_alloc(list->load, (count == 0 ? 1 : 2 * count) * bytes);
	if (bigger != NULL && count > 0)
		memcpy(bigger, array, count * bytes);
	return bigger;
}

static bool
is_full(const struct list *list, size_t count)
{
	size_t max = values_max(list->option);

	if (count < max)
		return false;
	conf_fail(list->load, list->place, "%s: more than %zu values",
	    list->option->key, max);
	return true;
}

static int
strings_add(
    const struct list *list, struct pn_conf_strings *strings, char *value)
{
	char **values;
	struct pn_conf_place *places;

	if (value == NULL || is_full(list, strings->count))
		return 1;
	values = room(list, strings->values, strings->count, sizeof(*values));
	places = room(list, strings->places, strings->count, sizeof(*places));
	if (values == NULL || places == NULL)
		return 1;
	values[strings->count] = value;
	places[strings->count] = list->place;
	strings->values = values;
	strings->places = places;
	strings->count++;
	return 0;
}

static bool
id_is_valid(struct pn_str text)
{
	if (text.len < 1 || text.len > PN_ID_BYTES_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= 0x20 || text.data[i] >= 0x7f ||
		    strchr(",;\"'", text.data[i]) != NULL)
			return false;
	return true;
}

/* "payment.succeeded", or "payment.*" for all that begin with "payment.". */
static bool
event_is_valid(struct pn_str text)
{
	if (text.len > PN_TYPE_BYTES_MAX)
		return false;
	if (text.len >= 2 && memcmp(text.data + text.len - 2, ".*", 2) == 0)
		text.len -= 2;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			c == '.' || c == '_'))
			return false;
	}
	return text.len > 0;
}

static int
word_add(const struct list *list, struct pn_conf_strings *strings,
    bool (*is_valid)(struct pn_str text), const char *want)
{
	if (!is_valid(list->text))
		return refuse(list, want);
	return strings_add(list, strings, conf_copy(list->load, list->text));
}

static int
unix_add(const struct list *list, struct pn_conf_strings *strings)
{
	char *path = conf_path_resolve(
	    list->load, list->place, list->text.data + strlen(unix_prefix));
	struct pn_str whole;

	if (path == NULL)
		return 1;
	if (strlen(path) > UNIX_PATH_BYTES_MAX) {
		conf_fail(list->load, list->place,
		    "%s: \"%s\" is longer than the %d bytes that a socket's"
		    " path may have",
		    list->option->key, path, (int)UNIX_PATH_BYTES_MAX);
		return 1;
	}
	whole = pn_arena_printf(list->load->arena, "%s%s", unix_prefix, path);
	if (whole.data == NULL) {
		list->load->memory_out = true;
		return 1;
	}
	return strings_add(list, strings, conf_copy(list->load, whole));
}

static int
listen_add(const struct list *list, struct pn_conf_strings *strings)
{
	static const char want[] = "host:port, [::]:port or unix:/path";
	struct pn_str text = list->text, host = text, port;
	uint64_t number;

	if (pn_str_starts(text, unix_prefix) && text.len > strlen(unix_prefix))
		return unix_add(list, strings);
	while (host.len > 0 && host.data[host.len - 1] != ':')
		host.len--;
	port = (struct pn_str){ text.data + host.len, text.len - host.len };
	if (host.len < 2 || pn_parse_uint(port, PORT_MAX, &number) != 0)
		return refuse(list, want);
	host.len--;
	if (*host.data == '[') {
		if (host.len < 3 || host.data[host.len - 1] != ']')
			return refuse(list, want);
	} else if (memchr(host.data, ':', host.len) != NULL) {
		return refuse(list, "host:port; IPv6 stands in []");
	}
	for (size_t i = 0; i < host.len; i++)
		if (host.data[i] <= 0x20 || host.data[i] == ',')
			return refuse(list, want);
	return strings_add(list, strings, conf_copy(list->load, text));
}

static int
cidr_add(const struct list *list, struct pn_conf_cidrs *cidrs)
{
	struct pn_conf_cidr block, *blocks;

	/* Of a list that, when it is empty, has nobody in it. */
	if (list->option->min == 0 && pn_str_is(list->text, "none"))
		return 0;
	if (conf_cidr_parse(list->text, &block) != 0)
		return refuse(
		    list, "an address block such as 10.0.0.0/8 or fd00::/8");
	if (is_full(list, cidrs->count))
		return 1;
	blocks = room(list, cidrs->blocks, cidrs->count, sizeof(*blocks));
	if (blocks == NULL)
		return 1;
	cidrs->blocks = blocks;
	cidrs->blocks[cidrs->count++] = block;
	return 0;
}

/* "PUB_KEY_ID_0119...:path" to label and path. The file it names may have a
 * ":" itself, the label never. */
static int
label_split(const struct list *list, const struct pn_conf_files *files,
    char **ret_label, struct pn_str *ret_path)
{
	struct pn_str rest = list->text, label = pn_str_split(&rest, ':');
	size_t prefix = strlen(label_prefix);
	bool valid = pn_str_starts(label, label_prefix) && label.len > prefix &&
		     label.len <= PN_ID_BYTES_MAX && rest.data != NULL &&
		     rest.len > 0;

	for (size_t i = prefix; valid && i < label.len; i++)
		if (!((label.data[i] >= '0' && label.data[i] <= '9') ||
			(label.data[i] >= 'A' && label.data[i] <= 'Z') ||
			(label.data[i] >= 'a' && label.data[i] <= 'z') ||
			label.data[i] == '_'))
			valid = false;
	if (!valid)
		return refuse(list,
		    "PUB_KEY_ID_...:FILE (the merchant platform shows the id"
		    " beside the key)");
	for (size_t i = 0; i < files->count; i++)
		if (pn_str_is(label, files->files[i].label)) {
			conf_fail(list->load, list->place,
			    "%s: \"" PN_STR_FMT "\" is given twice, first in"
			    " line %d",
			    list->option->key, PN_STR_ARG(label),
			    files->files[i].place.line);
			return 1;
		}
	*ret_label = conf_copy(list->load, label);
	*ret_path = pn_str_trim(rest);
	return *ret_label == NULL;
}

/* Editors end a file with a newline; it is no part of a secret. */
static void
newline_strip(struct pn_secret *content)
{
	if (content->len == 0 || content->data[content->len - 1] != '\n')
		return;
	content->len--;
	if (content->len > 0 && content->data[content->len - 1] == '\r')
		content->len--;
}

static int
content_check(const struct list *list, const struct pn_conf_file *file)
{
	const struct conf_option *option = list->option;
	size_t len = file->content.len;

	if (len >= (size_t)option->min && len <= (size_t)option->max)
		return 0;
	if (option->min == option->max)
		conf_fail(list->load, list->place,
		    "%s: \"%s\" has %zu bytes, not %lld", option->key,
		    file->path, len, (long long)option->min);
	else if (len == 0)
		conf_fail(list->load, list->place, "%s: \"%s\" is empty",
		    option->key, file->path);
	else if (len < (size_t)option->min)
		conf_fail(list->load, list->place,
		    "%s: \"%s\" has less than %lld bytes", option->key,
		    file->path, (long long)option->min);
	else
		conf_fail(list->load, list->place,
		    "%s: \"%s\" has more than %lld bytes", option->key,
		    file->path, (long long)option->max);
	return 1;
}

static int
file_add(const struct list *list, struct pn_conf_files *files)
{
	bool secret = list->option->type == CONF_SECRET_FILE;
	/* Of a key that is too long the length is told. */
	size_t bytes_max = list->option->max > PN_KEY_FILE_BYTES_MAX
			       ? (size_t)list->option->max
			       : PN_KEY_FILE_BYTES_MAX;
	struct pn_conf_file file = { .place = list->place }, *bigger;
	struct pn_str path = list->text;
	struct pn_error error;
	int r;

	if (path.len == 0)
		return refuse(list, "a file");
	if (list->option->type == CONF_LABELLED_FILE &&
	    label_split(list, files, &file.label, &path) != 0)
		return 1;
	if (is_full(list, files->count))
		return 1;
	bigger = room(list, files->files, files->count, sizeof(*bigger));
	if (bigger == NULL)
		return 1;
	files->files = bigger;
	file.path = conf_copy(list->load, path);
	if (file.path == NULL)
		return 1;
	file.path = conf_path_resolve(list->load, list->place, file.path);
	if (file.path == NULL)
		return 1;
	r = conf_file_read(list->load, file.path,
	    secret ? CONF_GUARD_READ : CONF_GUARD_WRITE,
	    bytes_max + NEWLINE_BYTES_MAX, &file.content, NULL, &error);
	if (r == -ENOMEM) {
		list->load->memory_out = true;
		return 1;
	}
	if (r < 0 && secret &&
	    !pn_conf_names_file(list->place.file, list->text)) {
		conf_fail(list->load, list->place,
		    "%s: there is no such file; the name of a file belongs "
		    "here. What stands here is not repeated, since it may be "
		    "the secret itself",
		    list->option->key);
		return 1;
	}
	if (r < 0) {
		conf_fail(list->load, list->place, "%s: \"%s\": %s",
		    list->option->key, file.path, error.text);
		return 1;
	}
	if (secret)
		newline_strip(&file.content);
	/* From here on the list owns the content. */
	files->files[files->count++] = file;
	return content_check(list, &files->files[files->count - 1]);
}

int
conf_list_add(struct conf_load *load, const struct conf_option *option,
    void *data, struct pn_conf_place place, const char *value)
{
	struct list list = { load, option, place, pn_str_from(value) };

	switch (option->type) {
	case CONF_ID:
		return word_add(
		    &list, data, id_is_valid, "one id without blanks");
	case CONF_TENANT:
		return word_add(
		    &list, data, conf_name_is_valid, "a tenant such as shop1");
	case CONF_EVENT:
		return word_add(&list, data, event_is_valid,
		    "a type such as payment.succeeded or payment.*");
	case CONF_HEADER:
		return word_add(&list, data, conf_header_is_valid,
		    "the name of one header");
	case CONF_STATUS:
		return word_add(&list, data, conf_status_is_valid,
		    "a status such as 503 (200 to 599) or 5xx (2xx to 5xx)");
	case CONF_LISTEN: return listen_add(&list, data);
	case CONF_CIDR: return cidr_add(&list, data);
	case CONF_FILE:
	case CONF_LABELLED_FILE:
	case CONF_SECRET_FILE: return file_add(&list, data);
	default: break;
	}
	assert(!"not the type of a list");
	return 1;
}
