/*
 * Files that the configuration is made of or names: opened once, judged by
 * what was opened (never by a second look at the path), read whole.
 *
 * Who are "others"? Everyone who is neither the file's owner nor in a group of
 * ours: 0600 and 0640 are fine for a secret if the group is the daemon's. Root
 * is in no group of the daemon's; when it checks a configuration on the
 * daemon's behalf, the main file's group is taken for the daemon's. What
 * systemd puts into the credentials folder is 0400, or 0440 with an ACL that
 * shows as group bits: there only the bits for everyone count.
 *
 * Owners are not compared: a configuration owned by root, by the daemon or by
 * a deploying user are all in use.
 */
#include "conf_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paynotify/conf_option_doc.h"

enum {
	GROUPS_MAX = 256, /* of the process; more are not ours */
	NAME_BYTES = 64,  /* of a user or a group, in a message */
	ENTRY_BYTES = 4096,
};

static const char credentials[] = "CREDENTIALS_DIRECTORY";
static const char credentials_reference[] = "${CREDENTIALS_DIRECTORY}";

static void
fd_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static bool
group_is_ours(const struct conf_load *load, gid_t group)
{
	gid_t groups[GROUPS_MAX];
	int count;

	if (group == getegid())
		return true;
	if (geteuid() == 0 && load->main_group_known &&
	    group == load->main_group)
		return true;
	count = getgroups(GROUPS_MAX, groups);
	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

static bool
is_credential(const char *path)
{
	const char *folder = getenv(credentials);
	size_t len;

	if (folder == NULL || *folder == '\0')
		return false;
	len = strlen(folder);
	return strncmp(path, folder, len) == 0 && path[len] == '/' &&
	       strstr(path + len, "/../") == NULL;
}

static void
group_name(gid_t group, char ret_name[NAME_BYTES])
{
	struct group entry, *found = NULL;
	char text[ENTRY_BYTES];

	if (getgrgid_r(group, &entry, text, sizeof(text), &found) == 0 &&
	    found != NULL)
		(void)snprintf(ret_name, NAME_BYTES, "%s", found->gr_name);
	else
		(void)snprintf(
		    ret_name, NAME_BYTES, "%lu", (unsigned long)group);
}

static void
user_name(char ret_name[NAME_BYTES])
{
	struct passwd entry, *found = NULL;
	char text[ENTRY_BYTES];

	if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) == 0 &&
	    found != NULL)
		(void)snprintf(ret_name, NAME_BYTES, "%s", found->pw_name);
	else
		(void)snprintf(
		    ret_name, NAME_BYTES, "uid %lu", (unsigned long)geteuid());
}

/* "chmod 600" would lock the daemon out of a file that is not its own, such as
 * one that root has made. */
static int
secret_is_open(const struct conf_load *load, const char *path,
    const struct stat *status, struct pn_error *ret_error)
{
	bool root = geteuid() == 0;
	gid_t group =
	    root && load->main_group_known ? load->main_group : getegid();
	unsigned mode = status->st_mode & 07777;
	char name[NAME_BYTES];

	if (root ? group == 0 : status->st_uid == geteuid())
		return pn_error_set(ret_error, -EACCES,
		    "others can read or write it (mode %04o): chmod 600 \"%s\"",
		    mode, path);
	group_name(group, name);
	return pn_error_set(ret_error, -EACCES,
	    "others can read or write it (mode %04o): chgrp %s and chmod 640"
	    " \"%s\"",
	    mode, name, path);
}

/* 0, or -EACCES with how to mend it. */
static int
mode_check(const struct conf_load *load, const char *path,
    const struct stat *status, enum conf_guard guard,
    struct pn_error *ret_error)
{
	mode_t mode = status->st_mode & 07777, wrong;

	if (guard == CONF_GUARD_READ) {
		wrong = mode & 077;
		if (group_is_ours(load, status->st_gid) || is_credential(path))
			wrong &= ~(mode_t)S_IRGRP;
		if (wrong == 0)
			return 0;
		return secret_is_open(load, path, status, ret_error);
	}
	wrong = mode & (S_IWGRP | S_IWOTH);
	if (group_is_ours(load, status->st_gid))
		wrong &= ~(mode_t)S_IWGRP;
	if (wrong == 0)
		return 0;
	return pn_error_set(ret_error, -EACCES,
	    "others can write it (mode %04o): chmod go-w \"%s\"",
	    (unsigned)mode, path);
}

/* Reads to the end: the size may have changed since fstat(). */
static int
read_all(int fd, size_t bytes_max, struct pn_secret *ret_content,
    struct pn_error *ret_error)
{
	struct pn_secret content = { NULL, 0 };
	unsigned char *data = malloc(bytes_max + 1);
	int r = 0;

	if (data == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	/* Each turn reads at least a byte, up to one more than allowed. */
	while (content.len <= bytes_max) {
		ssize_t n =
		    read(fd, data + content.len, bytes_max + 1 - content.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = pn_error_set(
			    ret_error, -errno, "%s", strerrordesc_np(errno));
		if (n <= 0)
			break;
		content.len += (size_t)n;
	}
	if (r == 0 && content.len > bytes_max)
		r = pn_error_set(ret_error, -EFBIG,
		    "longer than the %zu bytes that are read", bytes_max);
	if (r == 0)
		r = pn_secret_set(ret_content, data, content.len);
	/* What was read is cleansed; to write to the rest would only make pages
	 * of it, a megabyte in each program that starts. */
	content.data = data;
	pn_secret_done(&content);
	return r;
}

/* What is right for the daemon's user is denied to others, who are in the dark
 * then: it says who was meant. */
static int
open_fault(int error, struct pn_error *ret_error)
{
	char name[NAME_BYTES];

	if (error != EACCES)
		return pn_error_set(
		    ret_error, -error, "%s", strerrordesc_np(error));
	user_name(name);
	return pn_error_set(ret_error, -EACCES,
	    "%s to %s: the daemon's user must be able to read it (mode 0640"
	    " with its group), and paynotifyctl is run as that user",
	    strerrordesc_np(error), name);
}

int
conf_file_read(const struct conf_load *load, const char *path,
    enum conf_guard guard, size_t bytes_max, struct pn_secret *ret_content,
    gid_t *ret_group, struct pn_error *ret_error)
{
	/* O_NONBLOCK: a FIFO in place of a file must not hang the start. */
	PN_CLEANUP(fd_close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	int r;

	if (fd < 0)
		return open_fault(errno, ret_error);
	if (fstat(fd, &status) < 0)
		return pn_error_set(
		    ret_error, -errno, "%s", strerrordesc_np(errno));
	if (!S_ISREG(status.st_mode))
		return pn_error_set(ret_error, -EINVAL, "no regular file");
	r = mode_check(load, path, &status, guard, ret_error);
	if (r < 0)
		return r;
	r = read_all(fd, bytes_max, ret_content, ret_error);
	if (r < 0)
		return r;
	if (ret_group != NULL)
		*ret_group = status.st_gid;
	return 0;
}

char *
conf_expand(
    struct conf_load *load, struct pn_conf_place place, const char *text)
{
	const char *folder = getenv(credentials);
	const char *at = strstr(text, credentials_reference);
	struct pn_str expanded;

	if (at == NULL)
		return conf_copy(load, pn_str_from(text));
	if (folder == NULL || *folder == '\0') {
		conf_fail(load, place,
		    "%s is not set: systemd sets it for a service with"
		    " LoadCredential=",
		    credentials_reference);
		return NULL;
	}
	expanded = pn_arena_printf(load->arena, "%.*s%s%s", (int)(at - text),
	    text, folder, at + strlen(credentials_reference));
	if (expanded.data == NULL) {
		load->memory_out = true;
		return NULL;
	}
	return (char *)(uintptr_t)expanded.data;
}

/* The folder of a file, with its "/"; empty for one in the working folder. */
static struct pn_str
folder_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return (struct pn_str){ file,
		slash == NULL ? 0 : (size_t)(slash + 1 - file) };
}

char *
conf_path_resolve(
    struct conf_load *load, struct pn_conf_place place, const char *path)
{
	char *expanded = conf_expand(load, place, path);
	struct pn_str folder = folder_of(place.file), whole;

	if (expanded == NULL || *expanded == '/')
		return expanded;
	if (strstr(expanded, "${") != NULL) {
		conf_fail(load, place, "only %s is expanded in a path: \"%s\"",
		    credentials_reference, path);
		return NULL;
	}
	whole = pn_arena_printf(
	    load->arena, PN_STR_FMT "%s", PN_STR_ARG(folder), expanded);
	if (whole.data == NULL) {
		load->memory_out = true;
		return NULL;
	}
	return (char *)(uintptr_t)whole.data;
}

/* The first folder of the name is enough: the rest may be misspelt. A "/" alone
 * proves nothing, since base64 has it too. */
bool
pn_conf_names_file(const char *file, struct pn_str value)
{
	const size_t reference_len = sizeof(credentials_reference) - 1;
	struct pn_str folder = folder_of(file);
	struct stat status;
	char path[PATH_MAX], *slash;
	int n;

	if (value.len == 0)
		return true;
	if (pn_str_starts(value, credentials_reference))
		return value.len > reference_len &&
		       value.data[reference_len] == '/';
	if (value.data[0] == '/')
		folder.len = 0;
	n = snprintf(path, sizeof(path), PN_STR_FMT PN_STR_FMT,
	    PN_STR_ARG(folder), PN_STR_ARG(value));
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	if (lstat(path, &status) == 0)
		return true;
	slash = strchr(path + folder.len + 1, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The folder that a pattern's files are in must be safe too: who can write it
 * can add accounts. Told once a pattern. */
static bool
folder_check(
    struct conf_load *load, struct pn_conf_place place, const char *file)
{
	struct pn_str folder = folder_of(file);
	const char *path = folder.len == 0 ? "." : conf_copy(load, folder);
	struct pn_error error;
	struct stat status;

	if (path == NULL)
		return false;
	if (stat(path, &status) < 0) {
		conf_fail(load, place, "include: \"%s\": %s", path,
		    strerrordesc_np(errno));
		return false;
	}
	if (mode_check(load, path, &status, CONF_GUARD_WRITE, &error) < 0) {
		conf_fail(load, place, "include: folder \"%s\": %s", path,
		    error.text);
		return false;
	}
	return true;
}

static int
path_compare(const void *a, const void *b)
{
	char *const *left = a, *const *right = b;

	return strcmp(*left, *right);
}

/* The folder of the main file is no pattern, whatever its name. */
static char *
pattern_make(
    struct conf_load *load, struct pn_conf_place place, const char *pattern)
{
	struct pn_str folder = folder_of(place.file);
	size_t bytes = 2 * folder.len + strlen(pattern) + 1, len = 0;
	char *whole = conf_alloc(load, bytes);

	if (whole == NULL)
		return NULL;
	for (size_t i = 0; *pattern != '/' && i < folder.len; i++) {
		if (strchr("*?[]\\", folder.data[i]) != NULL)
			whole[len++] = '\\';
		whole[len++] = folder.data[i];
	}
	memcpy(whole + len, pattern, strlen(pattern) + 1);
	return whole;
}

static void
include_take(
    struct conf_load *load, struct pn_conf_place place, const glob_t *found)
{
	if (found->gl_pathc + load->include_count > PN_CONF_FILES_MAX) {
		conf_fail(load, place, "include: more than %d files",
		    (int)PN_CONF_FILES_MAX);
		return;
	}
	/* glob() sorts by locale: the order must not depend on it. */
	qsort(found->gl_pathv, found->gl_pathc, sizeof(*found->gl_pathv),
	    path_compare);
	for (size_t i = 0; i < found->gl_pathc; i++) {
		const char *path = found->gl_pathv[i];
		struct pn_str folder = folder_of(path);
		bool same = i > 0 && pn_str_equal(folder,
					 folder_of(found->gl_pathv[i - 1]));

		if (!same && !folder_check(load, place, path))
			return;
		load->includes[load->include_count] =
		    conf_copy(load, pn_str_from(path));
		if (load->includes[load->include_count] != NULL)
			load->include_count++;
	}
}

void
conf_include_expand(
    struct conf_load *load, struct pn_conf_place place, const char *pattern)
{
	char *whole = pattern_make(load, place, pattern);
	glob_t found = { 0 };
	int r;

	if (whole == NULL)
		return;
	if (load->includes == NULL)
		load->includes = conf_alloc(
		    load, PN_CONF_FILES_MAX * sizeof(*load->includes));
	if (load->includes == NULL)
		return;
	r = glob(whole, GLOB_ERR | GLOB_NOSORT, NULL, &found);
	if (r == 0)
		include_take(load, place, &found);
	else if (r == GLOB_NOSPACE)
		load->memory_out = true;
	else if (r == GLOB_ABORTED)
		conf_fail(load, place, "include: \"%s\": %s", pattern,
		    strerrordesc_np(errno));
	else if (strpbrk(pattern, "*?[") == NULL)
		conf_fail(load, place, "include: no file \"%s\"", whole);
	else
		(void)folder_check(load, place, whole);
	globfree(&found);
}
