/*
 * Files that a configuration is made of or names: where they are looked for,
 * who may read and write them, and what they must hold.
 */
#include "conf_files.h"

#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "0123456789abcdef0123456789abcdef"
#define WECHAT         \
	"[wechat a]\n" \
	"mchid = 1\n"  \
	"api_v2_key_file = secret\n"
#define ALIPAY         \
	"[alipay a]\n" \
	"app_id = 1\n" \
	"public_key = key.pem\n"

/* A secret that others can read is no secret. */
static void
test_conf_files__secrets_are_closed_to_others(void **state)
{
	static const unsigned good[] = { 0600, 0400, 0640, 0440 };
	static const unsigned bad[] = { 0644, 0604, 0660, 0601, 0620, 0602 };
	struct folder *folder = *state;

	for (size_t i = 0; i < PN_COUNT(good); i++) {
		folder_write(folder, "secret", SECRET, 0600);
		assert_int_equal(
		    chmod(folder_path(folder, "secret"), good[i]), 0);
		(void)folder_accept(folder, WECHAT);
		(void)remove(folder_path(folder, "secret"));
	}
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		folder_write(folder, "secret", SECRET, bad[i]);
		folder_refuse(folder, WECHAT, "main.conf:3: api_v2_key_file:");
		assert_non_null(strstr(folder->error.text, "chmod 600"));
	}
}

/* Every reload, a refused one too, leaves the admin port's tokens in memory. The
 * sanitizers tell it too. */
static void
test_conf_files__tokens_are_let_go(void **state)
{
	enum { LOADS = 50 };
	struct folder *folder = *state;
	size_t before = 0;

	folder_write(folder, "token", SECRET, 0600);
	for (int i = 0; i < 2 * LOADS; i++) {
		if (i == LOADS)
			before = mallinfo2().uordblks;
		folder_refuse(folder, "[admin]\ntoken_file = token\nx = 1\n",
		    "main.conf:3: ");
		(void)folder_accept(folder, "[admin]\ntoken_file = token\n");
	}
	assert_true(mallinfo2().uordblks < before + LOADS * strlen(SECRET));
}

/* The group that may read must be the daemon's, not just any. */
static void
test_conf_files__the_group_must_be_ours(void **state)
{
	enum { OTHER_GROUP = 54321 };
	struct folder *folder = *state;
	int r;

	if (geteuid() != 0)
		return; /* only root can give a file to another group */
	folder_write(folder, "secret", SECRET, 0640);
	r = chown(folder_path(folder, "secret"), (uid_t)-1, OTHER_GROUP);
	assert_int_equal(r, 0);
	folder_refuse(folder, WECHAT, "others can read");
	/* Root checks for a daemon whose group the main file shows. */
	r = chown(folder_path(folder, "main.conf"), (uid_t)-1, OTHER_GROUP);
	assert_int_equal(r, 0);
	assert_int_equal(folder_load(folder, NULL), 0);
	/* Root's own file with mode 0600 is none that this daemon could read. */
	assert_int_equal(chmod(folder_path(folder, "secret"), 0644), 0);
	assert_int_equal(folder_load(folder, NULL), -EINVAL);
	assert_non_null(strstr(
	    folder->error.text, "(mode 0644): chgrp 54321 and chmod 640"));
}

/* Fails if who runs a command as himself, or has made a file for root alone, is
 * told no more than that it is denied. */
static void
test_conf_files__who_is_denied_is_told(void **state)
{
	enum { OTHER_USER = 54321 };
	struct folder *folder = *state;
	char secret[600];
	int r;

	if (geteuid() != 0)
		return; /* only root becomes another user, and himself again */
	folder_write(folder, "secret", SECRET, 0600);
	folder_write(folder, "main.conf", WECHAT, 0644);
	assert_int_equal(chmod(folder_path(folder, "."), 0755), 0);
	(void)snprintf(
	    secret, sizeof(secret), "%s", folder_path(folder, "secret"));
	assert_int_equal(seteuid(OTHER_USER), 0);
	r = folder_load(folder, NULL);
	assert_int_equal(seteuid(0), 0);
	assert_int_not_equal(r, 0);
	assert_non_null(strstr(folder->error.text,
	    "Permission denied to uid 54321: the daemon's user must"));
	/* It may be read, and by too many: it is not his to close. */
	assert_int_equal(chmod(secret, 0644), 0);
	assert_int_equal(seteuid(OTHER_USER), 0);
	r = folder_load(folder, NULL);
	assert_int_equal(seteuid(0), 0);
	assert_int_not_equal(r, 0);
	assert_non_null(strstr(folder->error.text, " and chmod 640 \""));
	/* It is his. */
	assert_int_equal(chown(secret, OTHER_USER, (gid_t)-1), 0);
	assert_int_equal(seteuid(OTHER_USER), 0);
	r = folder_load(folder, NULL);
	assert_int_equal(seteuid(0), 0);
	assert_int_not_equal(r, 0);
	assert_non_null(strstr(folder->error.text, ": chmod 600 \""));
}

/* Who can write a key, or the configuration, can forge payments. */
static void
test_conf_files__nothing_is_writable_by_others(void **state)
{
	struct folder *folder = *state;

	folder_write(folder, "key.pem", "key", 0444);
	(void)folder_accept(folder, ALIPAY);
	folder_write(folder, "other.pem", "key", 0646);
	folder_refuse(folder,
	    "[alipay a]\napp_id = 1\npublic_key ="
	    " other.pem\n",
	    "main.conf:3: public_key: ");
	assert_non_null(strstr(folder->error.text, "others can write it"));
	assert_int_equal(chmod(folder_path(folder, "main.conf"), 0666), 0);
	assert_int_equal(folder_load(folder, NULL), -EACCES);
	assert_non_null(strstr(folder->error.text, "main.conf: others can"));
}

#define APIV3                        \
	"[wechat a]\n"               \
	"mchid = 1900000001\n"       \
	"api_v3_key_file = secret\n" \
	"public_key = PUB_KEY_ID_01:key\n"

/* A key of the wrong length decrypts nothing, and every refund would fail. */
static void
test_conf_files__keys_of_wechat_have_32_bytes(void **state)
{
	static const char *const good[] = { SECRET, SECRET "\n",
		SECRET "\r\n" };
	static const char *const bad[] = { "", "\n", SECRET "x", SECRET "\n\n",
		"0123456789abcdef0123456789abcde\n", SECRET " " };
	struct folder *folder = *state;

	folder_write(folder, "key", "a public key", 0644);
	for (size_t i = 0; i < PN_COUNT(good); i++) {
		const struct pn_conf *conf;

		folder_write(folder, "secret", good[i], 0600);
		conf = folder_accept(folder, APIV3);
		assert_memory_equal(conf->accounts[0]
					.wechat.api_v3_key_file.files[0]
					.content.data,
		    SECRET, 32);
	}
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		folder_write(folder, "secret", bad[i], 0600);
		folder_refuse(folder, APIV3, " bytes, not 32");
	}
}

/* APIv2 hashes its key, so SDKs' test accounts have others; of a merchant's own
 * it is told, for he has cut it. */
static void
test_conf_files__a_v2_key_of_another_length_is_told(void **state)
{
	struct folder *folder = *state;
	const struct pn_conf *conf;

	folder_write(folder, "secret", "yansongda\n", 0600);
	conf = folder_accept(folder, WECHAT);
	assert_non_null(strstr(conf->warnings,
	    "main.conf:3: [wechat a] api_v2_key_file has 9 bytes"));
	folder_write(folder, "secret", SECRET, 0600);
	conf = folder_accept(folder, WECHAT);
	assert_true(conf->warnings == NULL ||
		    strstr(conf->warnings, "api_v2_key_file") == NULL);
	folder_write(folder, "secret", "\n", 0600);
	folder_refuse(folder, WECHAT, "is empty");
}

/* What cannot be read is told with its line, not when the first payment
 * comes. */
static void
test_conf_files__unreadable_files_are_told(void **state)
{
	struct folder *folder = *state;

	folder_refuse(folder, ALIPAY, "No such file");
	assert_non_null(strstr(folder->error.text, "main.conf:3: "));
	folder_make(folder, "key.pem", 0700);
	folder_refuse(folder, ALIPAY, "no regular file");
	assert_int_equal(rmdir(folder_path(folder, "key.pem")), 0);
	assert_int_equal(mkfifo(folder_path(folder, "key.pem"), 0600), 0);
	folder_refuse(folder, ALIPAY, "no regular file");
	assert_int_equal(unlink(folder_path(folder, "key.pem")), 0);
	folder_write(folder, "key.pem", "", 0600);
	folder_refuse(folder, ALIPAY, "is empty");
	assert_int_equal(unlink(folder_path(folder, "main.conf")), 0);
	assert_int_equal(folder_load(folder, NULL), -ENOENT);
}

/* Rotation: several keys, each with its id, paths from the file's folder. */
static void
test_conf_files__repeated_keys_keep_label_and_place(void **state)
{
	struct folder *folder = *state;
	const struct pn_conf_wechat *wechat;

	folder_write(folder, "secret", SECRET, 0600);
	folder_write(folder, "a:b.pem", "one", 0644);
	folder_write(folder, "two.pem", "two", 0644);
	wechat = &folder_accept(folder,
	    "[wechat a]\nmchid = 1\napi_v3_key_file = secret\n"
	    "public_key = PUB_KEY_ID_01:a:b.pem\n"
	    "public_key = PUB_KEY_ID_02:two.pem\n"
	    "platform_cert = two.pem\n")
		      ->accounts[0]
		      .wechat;
	assert_int_equal(wechat->public_key.count, 2);
	assert_string_equal(wechat->public_key.files[0].label, "PUB_KEY_ID_01");
	assert_string_equal(
	    wechat->public_key.files[0].path, folder_path(folder, "a:b.pem"));
	assert_int_equal(wechat->public_key.files[1].place.line, 5);
	assert_memory_equal(wechat->public_key.files[1].content.data, "two", 3);
	assert_null(wechat->platform_cert.files[0].label);
	folder_refuse(folder,
	    "[wechat a]\nmchid = 1\napi_v3_key_file = secret\n"
	    "public_key = PUB_KEY_ID_01:two.pem\n"
	    "public_key = PUB_KEY_ID_01:two.pem\n",
	    "main.conf:5: public_key: \"PUB_KEY_ID_01\" is given twice");
}

/* systemd hands secrets out in a folder of its own, 0400 or 0440. */
static void
test_conf_files__credentials_of_systemd(void **state)
{
	static const char text[] = "[wechat a]\nmchid = 1\napi_v2_key_file = "
				   "${CREDENTIALS_DIRECTORY}/v2\n";
	struct folder *folder = *state;

	folder_make(folder, "cred", 0700);
	folder_write(folder, "cred/v2", SECRET, 0440);
	if (geteuid() == 0)
		assert_int_equal(
		    chown(folder_path(folder, "cred/v2"), (uid_t)-1, 54321), 0);
	assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
	folder_refuse(folder, text,
	    "main.conf:3: ${CREDENTIALS_DIRECTORY} is"
	    " not set");
	assert_int_equal(
	    setenv("CREDENTIALS_DIRECTORY", folder_path(folder, "cred"), 1), 0);
	(void)folder_accept(folder, text);
	assert_int_equal(chmod(folder_path(folder, "cred/v2"), 0444), 0);
	folder_refuse(folder, text, "others can read");
	assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
	folder_refuse(folder,
	    "[alipay a]\napp_id = 1\npublic_key ="
	    " ${HOME}/x\n",
	    "only ${CREDENTIALS_DIRECTORY}");
}

/* Accounts in files of their own, in an order that does not depend on the
 * folder; their relative paths start where they stand. */
static void
test_conf_files__include_reads_a_folder(void **state)
{
	struct folder *folder = *state;
	const struct pn_conf *conf;

	folder_make(folder, "conf.d", 0755);
	folder_write(folder, "conf.d/key.pem", "key", 0644);
	folder_write(folder, "conf.d/b.conf", ALIPAY, 0644);
	folder_write(
	    folder, "conf.d/a.conf", "[database]\nwriters = 3\n", 0644);
	folder_write(folder, "conf.d/c.txt", "nonsense", 0644);
	conf = folder_accept(folder, "include = conf.d/*.conf\n[server]\n");
	assert_int_equal(conf->database.writers, 3);
	assert_int_equal(conf->account_count, 1);
	assert_string_equal(conf->accounts[0].alipay.public_key.files[0].path,
	    folder_path(folder, "conf.d/key.pem"));
	assert_string_equal(
	    conf->accounts[0].place.file, folder_path(folder, "conf.d/b.conf"));
	folder_refuse(folder, "include = conf.d/*.conf\n[database]\n",
	    "conf.d/a.conf:1: section [database] stands twice, first in");
	folder_write(folder, "conf.d/a.conf", "[server]\nx = 1\n", 0644);
	folder_refuse(folder, "include = conf.d/*.conf\n",
	    "conf.d/a.conf:2: [server] unknown option");
	folder_write(folder, "conf.d/a.conf", "include = x\n", 0644);
	folder_refuse(folder, "include = conf.d/*.conf\n",
	    "conf.d/a.conf:1: include is for the main file only");
}

/* Who can write the include folder can add an account of his own. */
static void
test_conf_files__include_folder_is_closed_to_others(void **state)
{
	struct folder *folder = *state;

	folder_make(folder, "conf.d", 0757);
	(void)folder_write(folder, "conf.d/a.conf", "[server]\n", 0644);
	folder_refuse(folder, "include = conf.d/*.conf\n",
	    "main.conf:1: include: folder");
	assert_int_equal(chmod(folder_path(folder, "conf.d"), 0755), 0);
	(void)folder_accept(folder, "include = conf.d/*.conf\n");
	assert_int_equal(chmod(folder_path(folder, "conf.d/a.conf"), 0646), 0);
	folder_refuse(folder, "include = conf.d/*.conf\n",
	    "conf.d/a.conf: others can write it");
	assert_int_equal(unlink(folder_path(folder, "conf.d/a.conf")), 0);
	(void)folder_accept(folder, "include = conf.d/*.conf\n");
	assert_int_equal(chmod(folder_path(folder, "conf.d"), 0757), 0);
	folder_refuse(folder, "include = conf.d/*.conf\n", "others can");
	folder_refuse(folder, "include = missing/*.conf\n", "No such file");
	folder_refuse(folder, "include = missing.conf\n", "no file");
	folder_refuse(folder, "include =\n", "include names no file");
}

/* Who types the secret in place of its file's name must not find it in the
 * journal; a name that is only misspelt is told. */
static void
test_conf_files__a_secret_in_place_of_a_name_is_not_told(void **state)
{
	static const char *const secrets[] = {
		"Th1sIsTheSecretOfThirtyTwoBytes0",
		"9f86d081884c7d659a2feaa0c55ad015",
		"MIIEvQIBADANBgkqhkiG9w0BAQ/FAASCBKcwggSj/AgEAAoIBAQC7",
		"/IEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj",
		"/IEvQIBADANBgkqhkiG9w0BA/EFAASCBKcwggSj=",
	};
	static const char *const names[] = { "/etc/missing.key", "./missing",
		"keys/missing.key" };
	char text[512];

	folder_make(*state, "keys", 0700);
	for (size_t i = 0; i < PN_COUNT(secrets); i++) {
		(void)snprintf(text, sizeof(text),
		    "[admin]\nlisten = 127.0.0.1:1\ntoken_file = %s\n",
		    secrets[i]);
		folder_refuse(*state, text,
		    "main.conf:3: token_file: there "
		    "is no such file; the name of");
		assert_null(
		    strstr(((struct folder *)*state)->error.text, secrets[i]));
	}
	for (size_t i = 0; i < PN_COUNT(names); i++) {
		(void)snprintf(text, sizeof(text),
		    "[admin]\nlisten = 127.0.0.1:1\ntoken_file = %s\n",
		    names[i]);
		folder_refuse(*state, text, names[i]);
	}
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_conf_files__secrets_are_closed_to_others),
		TEST(test_conf_files__tokens_are_let_go),
		TEST(test_conf_files__the_group_must_be_ours),
		TEST(test_conf_files__who_is_denied_is_told),
		TEST(test_conf_files__nothing_is_writable_by_others),
		TEST(test_conf_files__keys_of_wechat_have_32_bytes),
		TEST(test_conf_files__a_v2_key_of_another_length_is_told),
		TEST(test_conf_files__unreadable_files_are_told),
		TEST(test_conf_files__a_secret_in_place_of_a_name_is_not_told),
		TEST(test_conf_files__repeated_keys_keep_label_and_place),
		TEST(test_conf_files__credentials_of_systemd),
		TEST(test_conf_files__include_reads_a_folder),
		TEST(test_conf_files__include_folder_is_closed_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
