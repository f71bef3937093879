/*
 * The parts of a support bundle. Private to src/cmd; one thread.
 */
#ifndef PN_CTL_BUNDLE_H
#define PN_CTL_BUNDLE_H

#include "ctl.h"

enum {
	BUNDLE_PART_BYTES_MAX = 4 << 20,
	BUNDLE_RECEIPTS = 200,
};

/* What the parts are made from. */
struct bundle {
	struct ctl *ctl; /* conf and query NULL where they could not be had */
	struct pn_error conf_error;     /* why */
	struct pn_error database_error; /* why */
	struct pn_buf secrets; /* texts to be masked, a NUL behind each */
};

/* ctl_bundle_mask.c */

/* Reads the configuration as it is written, included files too, and gives each
 * line with what may be shown of it. Collects passwords on the way. */
void bundle_add_config(struct bundle *bundle, struct pn_buf *out);
/* Every secret that the loaded configuration holds. */
void bundle_collect_secrets(struct bundle *bundle);
/* The text without any of them, and without what looks like one. */
void bundle_add_masked(
    const struct bundle *bundle, struct pn_str text, struct pn_buf *out);

/* ctl_bundle_parts.c: each appends one part; what is not to be had says so in
 * its place. */
struct bundle_part {
	const char *name; /* of the file */
	const char *what;
	void (*add)(struct bundle *bundle, struct pn_buf *out);
};
extern const struct bundle_part bundle_parts[];
size_t bundle_part_count(void);

#endif
