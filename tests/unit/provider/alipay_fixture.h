/*
 * One Alipay account for unit tests, made in memory: no file, no key in the
 * repository. The same pair of keys signs the samples and verifies them.
 */
#ifndef PN_TEST_ALIPAY_FIXTURE_H
#define PN_TEST_ALIPAY_FIXTURE_H

#include "paynotify/provider.h"

struct alipay_fixture {
	struct pn_conf_account conf;
	struct pn_conf_file public_files[2];
	struct pn_conf_file private_file;
	char *app_ids[2], *seller_ids[1];
	char provider_name[8], tenant[8], file[16], path[16];
	char app_id_texts[2][24], seller_id_text[24];
	const struct pn_provider *provider;
	void *account;
	struct pn_arena *arena;
};

enum { FIXTURE_NOW_S = 1772330406 };
#define FIXTURE_NOW_US ((int64_t)FIXTURE_NOW_S * 1000000)

/* For cmocka's group: *state is the fixture, with an opened account. */
int alipay_fixture_setup(void **state);
int alipay_fixture_teardown(void **state);
/* For each test: an arena of its own. */
int alipay_fixture_arena(void **state);
int alipay_fixture_arena_done(void **state);

/* A sample that must succeed. */
struct pn_request alipay_fixture_sample(
    struct alipay_fixture *fixture, const struct pn_sample *sample);
/* verify() that must not run out of memory. */
struct pn_notification alipay_fixture_verify(
    struct alipay_fixture *fixture, const struct pn_request *request);

#endif
