/*
 * Key files as merchants have them, to DER blocks: PEM with any wrapping or
 * none, CRLF, BOM, text around the blocks, "\n" written out by an environment
 * file; bare base64 with any wrapping; base64 of a PEM file; DER itself.
 *
 * Labels are handed on but decide nothing here: what a block is, its content
 * says. OpenSSL's own PEM reader is not used, since it believes the label and
 * refuses lines that are too long or have blanks.
 *
 * All buffers are cleansed: the same reader takes private keys.
 */
#include "crypto_internal.h"

#include <errno.h>

#include "paynotify/encode.h"
#include "paynotify/limits.h"

enum {
	BLOCKS_MAX = 64,     /* a root file has four */
	DER_SEQUENCE = 0x30, /* first byte of every key and certificate */
};

static const char begin_mark[] = "-----BEGIN ";
static const char end_mark[] = "-----END ";
static const char dashes[] = "-----";

void
crypto_blocks_init(struct crypto_blocks *blocks, struct pn_str text)
{
	if (pn_str_starts(text, "\xef\xbb\xbf")) {
		text.data += 3;
		text.len -= 3;
	}
	*blocks = (struct crypto_blocks){
		.rest = text,
		.outer = pn_buf_init(PN_KEY_FILE_BYTES_MAX),
		.base64 = pn_buf_init(PN_KEY_FILE_BYTES_MAX),
		.der = pn_buf_init(PN_KEY_FILE_BYTES_MAX),
	};
}

void
crypto_blocks_done(struct crypto_blocks *blocks)
{
	pn_buf_done(&blocks->outer);
	pn_buf_done(&blocks->base64);
	pn_buf_done(&blocks->der);
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Base64 without its wrapping, decoded into out. 1: not base64. */
static int
decode(struct crypto_blocks *blocks, struct pn_str text, struct pn_buf *out)
{
	struct pn_buf *base64 = &blocks->base64;
	size_t len = 0;
	char *data;
	int r;

	pn_buf_reset(base64);
	pn_buf_reset(out);
	for (size_t i = 0; i < text.len; i++) {
		if (is_space(text.data[i]))
			continue;
		if (text.data[i] == '\\' && i + 1 < text.len &&
		    (text.data[i + 1] == 'n' || text.data[i + 1] == 'r')) {
			i++;
			continue;
		}
		pn_buf_add_char(base64, text.data[i]);
	}
	if (pn_buf_failed(base64))
		return -ENOMEM;
	if (base64->len == 0)
		return 1;
	data = pn_buf_extend(out, PN_BASE64_DECODED_MAX(base64->len) + 1);
	if (data == NULL)
		return -ENOMEM;
	r = pn_base64_decode(pn_buf_str(base64), (unsigned char *)data, &len);
	out->len = r == 0 ? len : 0;
	return r;
}

/* Cuts what is before mark off rest, and the mark. False: not there. */
static bool
cut(struct pn_str *rest, const char *mark, struct pn_str *ret_before)
{
	ptrdiff_t at = pn_str_find(*rest, pn_str_from(mark));
	size_t skip;

	if (at < 0)
		return false;
	*ret_before = (struct pn_str){ rest->data, (size_t)at };
	skip = (size_t)at + strlen(mark);
	rest->data += skip;
	rest->len -= skip;
	return true;
}

static int
next_pem(struct crypto_blocks *blocks, struct crypto_block *ret_block,
    struct pn_error *ret_error)
{
	struct pn_str before, label, body, end;
	int r;

	if (!cut(&blocks->rest, begin_mark, &before))
		return 0;
	if (!cut(&blocks->rest, dashes, &label) ||
	    label.len > CRYPTO_LABEL_BYTES_MAX)
		return pn_error_set(ret_error, -EINVAL,
		    "\"-----BEGIN\" without the dashes behind its label; "
		    "take the file anew, as it was downloaded");
	if (!cut(&blocks->rest, end_mark, &body) ||
	    !cut(&blocks->rest, dashes, &end))
		return pn_error_set(ret_error, -EINVAL,
		    "no \"-----END " PN_STR_FMT "-----\": the file is cut; "
		    "take it anew, as it was downloaded",
		    PN_STR_ARG(label));
	if (pn_str_find(body, PN_STR("ENCRYPTED")) >= 0 &&
	    pn_str_find(body, PN_STR(":")) >= 0)
		return pn_error_set(ret_error, -EINVAL,
		    "the key is encrypted; store it without a passphrase");
	r = decode(blocks, body, &blocks->der);
	if (r > 0)
		return pn_error_set(ret_error, -EINVAL,
		    "what stands below \"-----BEGIN " PN_STR_FMT
		    "-----\" is not base64; take the file anew, as it was "
		    "downloaded",
		    PN_STR_ARG(label));
	if (r < 0)
		return r;
	*ret_block = (struct crypto_block){ label, pn_buf_str(&blocks->der) };
	return 1;
}

/* A text without PEM marks is one block, or a PEM file in base64. */
static int
next_bare(struct crypto_blocks *blocks, struct crypto_block *ret_block,
    struct pn_error *ret_error)
{
	struct pn_str text = pn_str_trim(blocks->rest);
	int r;

	if (blocks->count > 0)
		return 0;
	if (text.len == 0)
		return pn_error_set(ret_error, -EINVAL,
		    "the file is empty; a key or a certificate is wanted");
	if ((unsigned char)*blocks->rest.data == DER_SEQUENCE) {
		*ret_block = (struct crypto_block){ { NULL, 0 }, blocks->rest };
		return 1;
	}
	r = decode(blocks, text, &blocks->outer);
	if (r > 0)
		return pn_error_set(ret_error, -EINVAL,
		    "the file is neither PEM (\"-----BEGIN ...\") nor base64; "
		    "take it anew, as it was downloaded");
	if (r < 0)
		return r;
	if (pn_str_find(pn_buf_str(&blocks->outer), pn_str_from(begin_mark)) >=
	    0) {
		blocks->rest = pn_buf_str(&blocks->outer);
		blocks->bare = false;
		return next_pem(blocks, ret_block, ret_error);
	}
	*ret_block =
	    (struct crypto_block){ { NULL, 0 }, pn_buf_str(&blocks->outer) };
	return 1;
}

int
crypto_blocks_next(struct crypto_blocks *blocks, struct crypto_block *ret_block,
    struct pn_error *ret_error)
{
	int r;

	if (blocks->count == BLOCKS_MAX)
		return pn_error_set(ret_error, -EINVAL,
		    "more than %d keys and certificates in one file",
		    (int)BLOCKS_MAX);
	if (blocks->count == 0)
		blocks->bare =
		    pn_str_find(blocks->rest, pn_str_from(begin_mark)) < 0;
	r = blocks->bare ? next_bare(blocks, ret_block, ret_error)
			 : next_pem(blocks, ret_block, ret_error);
	blocks->count++;
	return r;
}
