/*
 * One WeChat Pay account for unit tests, made in memory: no file, no key in the
 * repository. It speaks both dialects; the same pair of keys signs the samples
 * and verifies them.
 */
#ifndef PN_TEST_WECHAT_FIXTURE_H
#define PN_TEST_WECHAT_FIXTURE_H

#include "paynotify/provider.h"

enum { WECHAT_PUBLIC_KEYS = 2 };

struct wechat_fixture {
	struct pn_conf_account conf;
	struct pn_conf_file public_files[WECHAT_PUBLIC_KEYS]; /* other, own */
	struct pn_conf_file private_file, v3_file, v2_file;
	char *mchids[1], *appids[1];
	char provider_name[8], tenant[8], file[16], path[16];
	char mchid_text[16], appid_text[24], labels[WECHAT_PUBLIC_KEYS][24];
	const struct pn_provider *provider;
	void *account;
	struct pn_arena *arena;
};

enum { WECHAT_NOW_S = 1772330406 };
#define WECHAT_NOW_US ((int64_t)WECHAT_NOW_S * 1000000)

/* For cmocka's group: *state is the fixture, with an opened account. */
int wechat_fixture_setup(void **state);
int wechat_fixture_teardown(void **state);
/* For each test: an arena of its own. */
int wechat_fixture_arena(void **state);
int wechat_fixture_arena_done(void **state);

/* The usual sample of this event. */
struct pn_sample wechat_fixture_sample_of(const char *event);
/* A sample that must succeed. */
struct pn_request wechat_fixture_sample(
    struct wechat_fixture *fixture, const struct pn_sample *sample);
/* verify() that must not run out of memory. */
struct pn_notification wechat_fixture_verify(
    struct wechat_fixture *fixture, const struct pn_request *request);

#endif
