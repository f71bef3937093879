/*
 * `support-bundle`: one file to send to who is to help.
 *
 * It is made when things are broken, so it takes what there is: a part that
 * cannot be had says why, in its own file, and the bundle is whole all the same.
 * What leaves the house must hold no secret and nobody's data, so there are two
 * nets. Parts are made of what may be shown (names of options are on a list,
 * receipts come without bodies, numbers and addresses); and whatever a part
 * says passes one filter that takes out every secret of the configuration and
 * what merely looks like one. Still: who sends it is told to look through it.
 *
 * The file is new and readable by its owner alone. libarchive writes it.
 */
#include "ctl_bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "paynotify/moment.h"

#include "load.h"

enum { NAME_BYTES = 64, PATH_BYTES = 256 };

struct writing {
	struct archive *archive;
	char folder[NAME_BYTES]; /* in the archive */
	int64_t now_us;
	int fd;
};

static void
entry_freep(struct archive_entry **entry)
{
	archive_entry_free(*entry); /* NULL is fine */
}

static int
open_archive(struct writing *writing, const char *path)
{
	writing->fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (writing->fd < 0) {
		ctl_complain("cannot make \"%s\": %m%s", path,
		    errno == EEXIST ? "; remove it, or name another with "
				      "--output"
				    : "");
		return CTL_REFUSED;
	}
	writing->archive = archive_write_new();
	if (writing->archive == NULL ||
	    archive_write_add_filter_gzip(writing->archive) != ARCHIVE_OK ||
	    archive_write_set_format_pax_restricted(writing->archive) !=
		ARCHIVE_OK ||
	    archive_write_open_fd(writing->archive, writing->fd) !=
		ARCHIVE_OK) {
		ctl_complain("cannot write \"%s\": %s", path,
		    writing->archive == NULL
			? "out of memory"
			: archive_error_string(writing->archive));
		return CTL_REFUSED;
	}
	return CTL_DONE;
}

static int
add_file(struct writing *writing, const char *name, struct pn_str text)
{
	PN_CLEANUP(entry_freep)
	struct archive_entry *entry = archive_entry_new();
	char path[PATH_BYTES];

	if (entry == NULL)
		return -ENOMEM;
	(void)snprintf(path, sizeof(path), "%s/%s", writing->folder, name);
	archive_entry_set_pathname(entry, path);
	archive_entry_set_size(entry, (la_int64_t)text.len);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0600);
	archive_entry_set_mtime(entry, writing->now_us / PN_SECOND_US, 0);
	if (archive_write_header(writing->archive, entry) != ARCHIVE_OK)
		return -EIO;
	return archive_write_data(writing->archive, text.data, text.len) ==
		       (la_ssize_t)text.len
		   ? 0
		   : -EIO;
}

static int
add_part(struct writing *writing, struct bundle *bundle,
    const struct bundle_part *part)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(BUNDLE_PART_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf masked = pn_buf_init(2 * BUNDLE_PART_BYTES_MAX);

	part->add(bundle, &text);
	bundle_add_masked(bundle, pn_buf_str(&text), &masked);
	if (pn_buf_failed(&masked)) {
		/* Half of it masked is no part to send. */
		pn_buf_reset(&masked);
		pn_buf_add_text(&masked, "too long\n");
	} else if (pn_buf_failed(&text)) {
		pn_buf_add_text(&masked, "\n(cut here)\n");
	}
	return add_file(writing, part->name, pn_buf_str(&masked));
}

static int
write_parts(struct writing *writing, struct bundle *bundle, const char *path)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < bundle_part_count(); i++)
		r = add_part(writing, bundle, &bundle_parts[i]);
	if (r == 0 && archive_write_close(writing->archive) != ARCHIVE_OK)
		r = -EIO;
	if (r == 0 && fsync(writing->fd) != 0)
		r = -errno;
	if (r == 0)
		return CTL_DONE;
	ctl_complain("cannot write \"%s\": %s", path,
	    archive_error_string(writing->archive) != NULL
		? archive_error_string(writing->archive)
		: ctl_fault_text(r));
	return CTL_REFUSED;
}

/* The configuration and the database, as far as they are to be had. */
static void
open_what_there_is(struct bundle *bundle)
{
	struct ctl *ctl = bundle->ctl;
	int r = pn_conf_load(
	    ctl->args.config, NULL, &ctl->conf, &bundle->conf_error);

	if (r < 0) {
		ctl->conf = NULL;
		return;
	}
	r = cmd_check_database(ctl->conf, &bundle->conf_error);
	if (r < 0)
		return;
	ctl->dsn = ctl->conf->database.admin_dsn != NULL
		       ? ctl->conf->database.admin_dsn
		       : ctl->conf->database.dsn;
	if (pn_query_open(ctl->dsn, &ctl->query, &bundle->database_error) < 0)
		ctl->query = NULL;
}

static int
tell(const struct ctl *ctl, const char *path)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

	if (ctl->args.json) {
		pn_buf_add_char(&out, '{');
		ctl_add_member(&out, "file", pn_str_from(path));
		pn_buf_add_text(&out, ",\"parts\":[");
		for (size_t i = 0; i < bundle_part_count(); i++)
			pn_buf_printf(&out, "%s\"%s\"", i == 0 ? "" : ",",
			    bundle_parts[i].name);
		pn_buf_add_text(&out, "]}\n");
		return ctl_flush(&out);
	}
	for (size_t i = 0; i < bundle_part_count(); i++)
		pn_buf_printf(&out, "%-18s %s\n", bundle_parts[i].name,
		    bundle_parts[i].what);
	pn_buf_printf(&out,
	    "\n%s: secrets are taken out, as far as they are known; look "
	    "through it\nbefore you send it (`tar -xzf`).\n",
	    path);
	return ctl_flush(&out);
}

int
ctl_support_bundle(struct ctl *ctl)
{
	struct writing writing = { .now_us = pn_clock_realtime_us(), .fd = -1 };
	struct bundle bundle = { .ctl = ctl,
		.secrets = pn_buf_init(BUNDLE_PART_BYTES_MAX) };
	char at[PN_MOMENT_TEXT_BYTES], usual[NAME_BYTES + 16];
	const char *path = ctl->args.out != NULL ? ctl->args.out : usual;
	int r;

	pn_moment_format_compact(writing.now_us, at);
	(void)snprintf(
	    writing.folder, sizeof(writing.folder), "paynotify-support-%s", at);
	(void)snprintf(usual, sizeof(usual), "%s.tar.gz", writing.folder);
	r = open_archive(&writing, path);
	if (r == CTL_DONE) {
		open_what_there_is(&bundle);
		bundle_collect_secrets(&bundle);
		r = write_parts(&writing, &bundle, path);
	}
	if (r == CTL_DONE)
		r = tell(ctl, path);
	else if (writing.fd >= 0)
		(void)unlink(path); /* a half one would be sent */
	if (writing.archive != NULL)
		(void)archive_write_free(writing.archive);
	if (writing.fd >= 0)
		(void)close(writing.fd);
	pn_buf_done(&bundle.secrets);
	return r;
}
