/*
 * What may be shown of a configuration, and what must be taken out of any text.
 *
 * The configuration is read as it is written, since it may be what is wrong. A
 * line is shown only if its option is one there is; of a connection string and a
 * URL only what cannot hold a credential; comments and what is no option are
 * left out, since people write passwords there. Secrets proper are in files,
 * of which there is the name; what stands in its place and names no file is
 * taken for the secret.
 *
 * The filter takes out every secret that was read, wherever it stands, and then
 * by form: credentials in URLs, signing secrets, bearer tokens, PEM blocks of
 * private keys, and the values of names that are known for holding some.
 */
#include "ctl_bundle.h"

#include <glob.h>
#include <string.h>

#include "paynotify/conf_option_doc.h"

enum {
	SECRET_BYTES_MIN = 6, /* shorter ones would tear other text apart */
	INCLUDES_MAX = PN_CONF_FILES_MAX,
};

#define MASKED "(masked)"

/* -- the configuration ------------------------------------------------------- */

static bool
is_option(struct pn_str key)
{
	if (pn_str_is(key, "include"))
		return true;
	for (size_t i = 0; i < pn_conf_option_count(); i++)
		if (pn_str_is(key, pn_conf_option_doc(i).key))
			return true;
	return false;
}

/* Of any section: the option may stand in the wrong one. */
static bool
is_secret_file(struct pn_str key)
{
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		struct pn_conf_option_doc doc = pn_conf_option_doc(i);

		if (pn_str_is(key, doc.key) &&
		    strcmp(doc.type, "secret file") == 0)
			return true;
	}
	return false;
}

static void
add_secret(struct bundle *bundle, struct pn_str text)
{
	text = pn_str_trim(text);
	if (text.len < SECRET_BYTES_MIN ||
	    memchr(text.data, '\0', text.len) != NULL)
		return;
	pn_buf_add_str(&bundle->secrets, text);
	pn_buf_add_char(&bundle->secrets, '\0');
}

/* Between "user:" and the last "@" of a URI; behind "password=" of either
 * form. */
static void
collect_password(struct bundle *bundle, struct pn_str dsn)
{
	ptrdiff_t start = pn_str_find(dsn, PN_STR("://"));
	ptrdiff_t at = -1, colon;
	struct pn_str rest = dsn;

	for (size_t i = 0; start >= 0 && i < dsn.len; i++)
		if (dsn.data[i] == '@')
			at = (ptrdiff_t)i;
	if (at > start && start >= 0) {
		struct pn_str user = { dsn.data + start + 3,
			(size_t)(at - start - 3) };

		colon = pn_str_find(user, PN_STR(":"));
		if (colon >= 0)
			add_secret(
			    bundle, (struct pn_str){ user.data + colon + 1,
					user.len - (size_t)colon - 1 });
	}
	while ((colon = pn_str_find(rest, PN_STR("password"))) >= 0) {
		size_t n = 0;

		rest.data += colon + 8;
		rest.len -= (size_t)colon + 8;
		rest = pn_str_trim(rest);
		if (rest.len == 0 || rest.data[0] != '=')
			continue;
		rest =
		    pn_str_trim((struct pn_str){ rest.data + 1, rest.len - 1 });
		if (rest.len > 0 && rest.data[0] == '\'') {
			rest = (struct pn_str){ rest.data + 1, rest.len - 1 };
			while (n < rest.len && rest.data[n] != '\'')
				n++;
		} else {
			while (n < rest.len && rest.data[n] != ' ' &&
			       rest.data[n] != '&')
				n++;
		}
		add_secret(bundle, (struct pn_str){ rest.data, n });
	}
}

/* Scheme and host; a path of a URL is often as good as a password. */
static void
add_url(struct pn_buf *out, struct pn_str url)
{
	ptrdiff_t start = pn_str_find(url, PN_STR("://"));
	struct pn_str rest, authority;
	size_t from = 0;

	if (start < 0) {
		pn_buf_add_text(out, MASKED);
		return;
	}
	rest = (struct pn_str){ url.data + start + 3,
		url.len - (size_t)start - 3 };
	authority = pn_str_split(&rest, '/');
	authority = pn_str_split(&authority, '?');
	for (size_t i = 0; i < authority.len; i++)
		if (authority.data[i] == '@')
			from = i + 1;
	pn_buf_add(out, url.data, (size_t)start + 3);
	pn_buf_add(out, authority.data + from, authority.len - from);
	pn_buf_add_text(out, "/...");
}

/* Whether the whole URL holds a credential further on is nobody's guess. */
static bool
is_url(struct pn_str key)
{
	return pn_str_is(key, "url") || pn_str_is(key, "upstream") ||
	       pn_str_is(key, "forward");
}

/* path: of the file that the line is in. */
static void
add_option_line(struct bundle *bundle, const char *path, struct pn_str line,
    struct pn_buf *out)
{
	struct pn_str value = line, key = pn_str_split(&value, '=');
	ptrdiff_t comment;

	key = pn_str_trim(key);
	if (value.data == NULL || !is_option(key)) {
		pn_buf_add_text(out, MASKED ": not an option\n");
		return;
	}
	comment = pn_str_find(value, PN_STR(" ;"));
	if (comment >= 0)
		value.len = (size_t)comment;
	value = pn_str_trim(value);
	ctl_add_clean(out, key);
	pn_buf_add_text(out, " = ");
	if (pn_str_is(key, "dsn") || pn_str_is(key, "admin_dsn")) {
		PN_CLEANUP(pn_buf_done)
		struct pn_buf text = pn_buf_init(PN_CONF_LINE_BYTES_MAX * 4);
		PN_CLEANUP(pn_buf_done)
		struct pn_buf shown = pn_buf_init(PN_CONF_LINE_BYTES_MAX * 4);

		collect_password(bundle, value);
		pn_buf_add_str(&text, value);
		pn_buf_add_char(&text, '\0');
		if (!pn_buf_failed(&text))
			ctl_dsn_redact(text.data, &shown);
		pn_buf_add_str(out, pn_buf_str(&shown));
	} else if (is_url(key)) {
		add_url(out, value);
	} else if (is_secret_file(key) && !pn_conf_names_file(path, value)) {
		add_secret(bundle, value);
		pn_buf_add_text(out, MASKED ": there is no such file");
	} else {
		ctl_add_clean(out, value);
	}
	pn_buf_add_char(out, '\n');
}

/* includes: the values of its include lines, a NUL behind each. */
static void
add_config_file(struct bundle *bundle, const char *path,
    struct pn_buf *includes, struct pn_buf *out)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf bytes = pn_buf_init(PN_CONF_FILE_BYTES_MAX);
	int r = ctl_file_read(path, PN_CONF_FILE_BYTES_MAX, &bytes);
	struct pn_str rest = pn_buf_str(&bytes);

	pn_buf_add_text(out, "; file ");
	ctl_add_clean(out, pn_str_from(path));
	pn_buf_add_char(out, '\n');
	if (r != 0) {
		pn_buf_printf(out, "; cannot be read: %s\n",
		    r > 0 ? "it is too long" : ctl_fault_text(r));
		return;
	}
	while (rest.len > 0) {
		struct pn_str line = pn_str_trim(pn_str_split(&rest, '\n'));
		struct pn_str value = line;
		struct pn_str key = pn_str_trim(pn_str_split(&value, '='));

		if (line.len == 0 || line.data[0] == ';' || line.data[0] == '#')
			continue;
		if (line.data[0] == '[') {
			ptrdiff_t end = pn_str_find(line, PN_STR("]"));

			line.len = end < 0 ? 0 : (size_t)end + 1;
			ctl_add_clean(out, line);
			pn_buf_add_char(out, '\n');
			continue;
		}
		add_option_line(bundle, path, line, out);
		if (pn_str_is(key, "include") && value.len > 0) {
			pn_buf_add_str(includes, pn_str_trim(value));
			pn_buf_add_char(includes, '\0');
		}
	}
}

void
bundle_add_config(struct bundle *bundle, struct pn_buf *out)
{
	const char *path = bundle->ctl->args.config;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf includes = pn_buf_init(PN_CONF_FILE_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf ignored = pn_buf_init(PN_CONF_FILE_BYTES_MAX);
	size_t from = 0;

	add_config_file(bundle, path, &includes, out);
	for (; from < includes.len; from += strlen(includes.data + from) + 1) {
		PN_CLEANUP(pn_buf_done)
		struct pn_buf pattern = pn_buf_init(2 * PN_CONF_LINE_BYTES_MAX);
		const char *slash = strrchr(path, '/');
		glob_t found = { 0 };

		if (includes.data[from] != '/' && slash != NULL)
			pn_buf_add(&pattern, path, (size_t)(slash - path) + 1);
		pn_buf_add_text(&pattern, includes.data + from);
		pn_buf_add_char(&pattern, '\0');
		if (!pn_buf_failed(&pattern) &&
		    glob(pattern.data, 0, NULL, &found) == 0)
			for (size_t i = 0;
			     i < found.gl_pathc && i < INCLUDES_MAX; i++)
				add_config_file(
				    bundle, found.gl_pathv[i], &ignored, out);
		globfree(&found);
	}
}

/* -- secrets ----------------------------------------------------------------- */

static void
collect_files(struct bundle *bundle, const struct pn_conf_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		struct pn_str rest = pn_conf_file_text(&files->files[i]);

		/* Keys are printed line by line, if at all. */
		while (rest.len > 0)
			add_secret(bundle, pn_str_split(&rest, '\n'));
	}
}

void
bundle_collect_secrets(struct bundle *bundle)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf ignored = pn_buf_init(BUNDLE_PART_BYTES_MAX);
	const struct pn_conf *conf = bundle->ctl->conf;

	bundle_add_config(bundle, &ignored);
	if (conf == NULL)
		return;
	for (size_t i = 0; i < conf->account_count; i++) {
		const struct pn_conf_account *account = &conf->accounts[i];

		collect_files(bundle, &account->test_private_key);
		if (strcmp(account->provider, "wechat") != 0)
			continue;
		collect_files(bundle, &account->wechat.api_v3_key_file);
		collect_files(bundle, &account->wechat.api_v2_key_file);
	}
	collect_files(bundle, &conf->admin.token_file);
	for (size_t i = 0; i < conf->deliver_count; i++)
		collect_files(bundle, &conf->delivers[i].secret_file);
}

/* -- the filter -------------------------------------------------------------- */

/* Bytes of a secret that was read and stands at the beginning of text; 0. */
static size_t
known_secret(const struct bundle *bundle, struct pn_str text)
{
	const struct pn_buf *secrets = &bundle->secrets;
	size_t longest = 0, n;

	for (size_t at = 0; at < secrets->len; at += n + 1) {
		n = strlen(secrets->data + at);
		if (n > longest && n <= text.len &&
		    memcmp(text.data, secrets->data + at, n) == 0)
			longest = n;
	}
	return longest;
}

static bool
ends_value(char c)
{
	return c == '"' || c == '\'' || c == ' ' || c == ',' || c == ';' ||
	       c == '&' || c == '}' || c == '\n' || c == '\r' || c == '<';
}

static size_t
value_bytes(struct pn_str text)
{
	size_t n = 0;

	while (n < text.len && !ends_value(text.data[n]))
		n++;
	return n;
}

/* name, then an "=" or ":" with quotes or blanks about, at the beginning of
 * text: bytes up to the value. */
static size_t
named_value(struct pn_str text)
{
	static const char *const names[] = { "password", "passwd", "secret",
		"token", "openid", "open_id", "buyer_id", "buyer_logon_id",
		"logon_id", "uid", "mobile", "phone", "id_card" };

	for (size_t i = 0; i < PN_COUNT(names); i++) {
		size_t n = strlen(names[i]);
		bool separated = false;

		if (text.len < n || strncasecmp(text.data, names[i], n) != 0)
			continue;
		while (n < text.len &&
		       memchr("\"'=: \\", text.data[n], 6) != NULL) {
			separated = separated || text.data[n] == '=' ||
				    text.data[n] == ':';
			n++;
		}
		if (separated)
			return n;
	}
	return 0;
}

/* Something that begins here and is to be masked: *keep bytes are shown, then
 * `bytes` are not. False: there is none. */
static bool
looks_secret(struct pn_str text, size_t *ret_keep, size_t *ret_bytes)
{
	static const char *const marks[] = { "whsec_", "Bearer ", "bearer " };
	static const char pem[] = "-----BEGIN ";
	size_t n;

	for (size_t i = 0; i < PN_COUNT(marks); i++)
		if (pn_str_starts(text, marks[i])) {
			*ret_keep = strlen(marks[i]);
			*ret_bytes = value_bytes((struct pn_str){
			    text.data + *ret_keep, text.len - *ret_keep });
			return *ret_bytes > 0;
		}
	if (pn_str_starts(text, pem)) {
		ptrdiff_t end = pn_str_find(text, PN_STR("-----END "));

		*ret_keep = 0;
		*ret_bytes = end < 0 ? text.len : (size_t)end;
		return true;
	}
	if (pn_str_starts(text, "://")) {
		for (n = 3; n < text.len && !ends_value(text.data[n]) &&
			    text.data[n] != '/';
		     n++)
			if (text.data[n] == '@') {
				*ret_keep = 3;
				*ret_bytes = n - 3;
				return n > 3;
			}
		return false;
	}
	n = named_value(text);
	if (n == 0)
		return false;
	*ret_keep = n;
	*ret_bytes =
	    value_bytes((struct pn_str){ text.data + n, text.len - n });
	return *ret_bytes > 0;
}

void
bundle_add_masked(
    const struct bundle *bundle, struct pn_str text, struct pn_buf *out)
{
	while (text.len > 0) {
		size_t keep = 0, bytes = known_secret(bundle, text);

		if (bytes == 0 && !looks_secret(text, &keep, &bytes)) {
			pn_buf_add_char(out, text.data[0]);
			text.data++;
			text.len--;
			continue;
		}
		pn_buf_add(out, text.data, keep);
		pn_buf_add_text(out, MASKED);
		text.data += keep + bytes;
		text.len -= keep + bytes;
	}
}
