/*
 * The flat XML of WeChat Pay APIv2, on libxml2's SAX interface.
 *
 * XML is the attacker's playground (external entities, entity bombs, XInclude,
 * other encodings), and a v2 message is unsigned until it has been parsed. So
 * the document is taken as the little it needs to be: one root with children
 * that hold text. Two lines of defence:
 *
 * A walk over the bytes before libxml2 sees one. The text must be UTF-8 without
 * NUL and without a byte order mark, an XML declaration may name no other
 * encoding, and behind a "<" there is a tag or a CDATA section: no DOCTYPE, no
 * comment, no processing instruction. A tag is at most PN_XML_TAG_BYTES_MAX
 * long, since libxml2 2.9 compares every attribute of a tag with every other.
 *
 * Then libxml2, without any option that loads a file or talks to the network,
 * told to ignore the declared encoding. No tree is built; the callbacks refuse
 * at first sight what the form has no place for, and again a DOCTYPE. Without
 * one only the predefined and numeric entities exist; the others are refused
 * as undeclared.
 *
 * All values share one block as long as the document: unescaping never makes a
 * text longer (the shortest reference, &#9;, gives one byte). Values are not
 * trimmed: what was signed is the text as it stands. Attributes are ignored.
 */
#include "paynotify/xml.h"

#include <assert.h>
#include <errno.h>

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>

#include "fields.h"
#include "paynotify/limits.h"

struct parse {
	struct pn_arena *arena;
	xmlParserCtxtPtr context; /* owned by pn_xml_parse */
	const char *root_name;
	struct pn_form form;
	size_t fields_max; /* room in form.fields */
	char *values;      /* block of the values */
	size_t used, size; /* of values */
	size_t value_start;
	unsigned depth; /* 0 outside, 1 in the root, 2 in a field */
	int r;          /* what the callbacks found: 0, 1, -ENOMEM */
	struct pn_error *error;
};

static_assert(PN_XML_DEPTH_MAX == 2, "the callbacks know a root and fields");

void
pn_xml_init(void)
{
	xmlInitParser();
}

static void
refuse(struct parse *parse, const char *why)
{
	if (parse->r != 0)
		return;
	parse->r = pn_error_set(parse->error, 1, "%s", why);
	xmlStopParser(parse->context);
}

static void
fail_memory(struct parse *parse)
{
	parse->r = pn_error_set(parse->error, -ENOMEM, "out of memory");
	xmlStopParser(parse->context);
}

static void
start_field(struct parse *parse, const char *name)
{
	struct pn_field *field;

	/* Every element has a "<", and those were counted: this is the limit
	 * of fields, or libxml2 and check_tags() disagree about a "<". */
	if (parse->form.count == parse->fields_max) {
		refuse(parse, "too many fields");
		return;
	}
	field = &parse->form.fields[parse->form.count];
	field->name = pn_arena_copy(parse->arena, pn_str_from(name));
	if (field->name.data == NULL) {
		fail_memory(parse);
		return;
	}
	parse->value_start = parse->used;
	parse->form.count++;
}

static void
start_element(void *payload, const xmlChar *local, const xmlChar *prefix,
    const xmlChar *uri, int namespace_count, const xmlChar **namespaces,
    int attribute_count, int defaulted_count, const xmlChar **attributes)
{
	struct parse *parse = payload;
	const char *name = (const char *)local;

	(void)uri;
	(void)namespace_count;
	(void)namespaces;
	(void)attribute_count;
	(void)defaulted_count;
	(void)attributes;
	if (parse->r != 0)
		return;
	parse->depth++;
	if (prefix != NULL)
		refuse(parse, "element with a namespace prefix");
	else if (parse->depth > PN_XML_DEPTH_MAX)
		refuse(parse, "nested elements");
	else if (parse->depth == PN_XML_DEPTH_MAX)
		start_field(parse, name);
	else if (strcmp(name, parse->root_name) != 0)
		refuse(parse, "unexpected root element");
}

static void
end_element(void *payload, const xmlChar *local, const xmlChar *prefix,
    const xmlChar *uri)
{
	struct parse *parse = payload;
	struct pn_field *field;

	(void)local;
	(void)prefix;
	(void)uri;
	if (parse->r != 0)
		return;
	assert(parse->depth >= 1 && parse->depth <= PN_XML_DEPTH_MAX);
	if (parse->depth-- < PN_XML_DEPTH_MAX)
		return;
	assert(parse->form.count > 0);
	field = &parse->form.fields[parse->form.count - 1];
	field->value.data = parse->values + parse->value_start;
	field->value.len = parse->used - parse->value_start;
}

/* Text and CDATA, in as many pieces as libxml2 likes. */
static void
characters(void *payload, const xmlChar *text, int len)
{
	struct parse *parse = payload;
	struct pn_str s = { (const char *)text, (size_t)len };

	assert(len >= 0);
	if (parse->r != 0)
		return;
	if (parse->depth < PN_XML_DEPTH_MAX) {
		if (pn_str_trim(s).len != 0)
			refuse(parse, "text between the fields");
		return;
	}
	assert(s.len <= parse->size - parse->used);
	memcpy(parse->values + parse->used, s.data, s.len);
	parse->used += s.len;
}

static void
internal_subset(void *payload, const xmlChar *name, const xmlChar *external,
    const xmlChar *system)
{
	(void)name;
	(void)external;
	(void)system;
	refuse(payload, "document type declaration");
}

static void
reference(void *payload, const xmlChar *name)
{
	(void)name;
	refuse(payload, "entity reference");
}

static void
processing_instruction(
    void *payload, const xmlChar *target, const xmlChar *data)
{
	(void)target;
	(void)data;
	refuse(payload, "processing instruction");
}

/* libxml2 would print to stderr. What it says may quote the document, so only
 * its number and place are kept, by the context. */
static void
keep_silent(void *payload, xmlErrorPtr error)
{
	(void)payload;
	(void)error;
}

static const xmlSAXHandler handler = {
	.internalSubset = internal_subset,
	.reference = reference,
	.characters = characters,
	.ignorableWhitespace = characters,
	.processingInstruction = processing_instruction,
	.cdataBlock = characters,
	.initialized = XML_SAX2_MAGIC,
	.startElementNs = start_element,
	.endElementNs = end_element,
	.serror = keep_silent,
};

/* An XML declaration may say encoding="UTF-8" or nothing about it. */
static bool
declares_other_encoding(struct pn_str text)
{
	struct pn_str declaration = text, value;
	ptrdiff_t at;

	if (!pn_str_starts(text, "<?xml"))
		return false;
	at = pn_str_find(text, PN_STR("?>"));
	if (at < 0)
		return false; /* not well-formed: libxml2 will say so */
	declaration.len = (size_t)at;
	at = pn_str_find(declaration, PN_STR("encoding"));
	if (at < 0)
		return false;
	declaration.data += at + (ptrdiff_t)strlen("encoding");
	declaration.len -= (size_t)at + strlen("encoding");
	declaration = pn_str_trim(declaration);
	if (declaration.len < 1 || declaration.data[0] != '=')
		return true;
	declaration.data++;
	declaration.len--;
	declaration = pn_str_trim(declaration);
	if (declaration.len < 2 ||
	    (declaration.data[0] != '"' && declaration.data[0] != '\''))
		return true;
	value = (struct pn_str){ declaration.data + 1, declaration.len - 1 };
	value = pn_str_split(&value, declaration.data[0]);
	return !pn_str_equal_fold(value, PN_STR("utf-8")) &&
	       !pn_str_equal_fold(value, PN_STR("utf8"));
}

/* Whether the tag ends in time; a ">" inside quotes does not end it. */
static bool
is_short_tag(struct pn_str rest)
{
	char quote = '\0';

	for (size_t i = 0; i < rest.len && i < PN_XML_TAG_BYTES_MAX; i++) {
		char c = rest.data[i];

		if (quote != '\0')
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '>')
			return true;
	}
	return false;
}

/* Behind a "<" that begins no CDATA section: why it is refused, or NULL. */
static const char *
tag_fault(struct pn_str rest, bool first)
{
	if (pn_str_starts(rest, "!--"))
		return "comment";
	if (pn_str_starts(rest, "!"))
		return "document type declaration";
	if (pn_str_starts(rest, "?") && !(first && pn_str_starts(rest, "?xml")))
		return "processing instruction";
	return is_short_tag(rest) ? NULL : "tag without an end, or too long";
}

/* Counts the tags. It sees the same tags as libxml2, because all that may hold
 * a "<" which is none is skipped (CDATA) or refused (comments, declarations,
 * processing instructions; "<" in an attribute is not well-formed). */
static int
check_tags(struct pn_str text, size_t *ret_count, struct pn_error *ret_error)
{
	struct pn_str rest = text;
	const char *fault;
	size_t count = 0;
	ptrdiff_t at;

	(void)pn_str_split(&rest, '<');
	while (rest.data != NULL) {
		if (pn_str_starts(rest, "![CDATA[")) {
			at = pn_str_find(rest, PN_STR("]]>"));
			if (at < 0)
				return pn_error_set(ret_error, 1,
				    "CDATA section without an end");
			rest.data += at;
			rest.len -= (size_t)at;
		} else {
			fault = tag_fault(rest, rest.data == text.data + 1);
			if (fault != NULL)
				return pn_error_set(ret_error, 1, "%s", fault);
			count++;
		}
		(void)pn_str_split(&rest, '<');
	}
	*ret_count = count;
	return 0;
}

/* What is decided before libxml2 sees a byte. */
static int
check_text(struct pn_str text, struct pn_error *ret_error)
{
	if (text.len == 0)
		return pn_error_set(ret_error, 1, "empty document");
	if (text.len > PN_XML_BYTES_MAX)
		return pn_error_set(
		    ret_error, 1, "larger than %d bytes", PN_XML_BYTES_MAX);
	if (pn_str_starts(text, "\xef\xbb\xbf"))
		return pn_error_set(ret_error, 1, "byte order mark");
	if (!pn_str_is_utf8(text) || memchr(text.data, '\0', text.len) != NULL)
		return pn_error_set(ret_error, 1, "not UTF-8");
	if (declares_other_encoding(text))
		return pn_error_set(
		    ret_error, 1, "declares another encoding than UTF-8");
	return 0;
}

static void
context_freep(xmlParserCtxtPtr *context)
{
	if (*context == NULL)
		return;
	xmlFreeDoc((*context)->myDoc);
	xmlFreeParserCtxt(*context);
}

/* Runs libxml2 over the text. */
static int
run(struct parse *parse, struct pn_str text)
{
	PN_CLEANUP(context_freep) xmlParserCtxtPtr context = NULL;
	xmlSAXHandler copy =
	    handler; /* libxml2 wants it writable, and copies */

	context = xmlCreatePushParserCtxt(&copy, parse, NULL, 0, NULL);
	if (context == NULL)
		return pn_error_set(parse->error, -ENOMEM, "out of memory");
	parse->context = context;
	(void)xmlCtxtUseOptions(context, XML_PARSE_NONET | XML_PARSE_NOERROR |
					     XML_PARSE_NOWARNING |
					     XML_PARSE_IGNORE_ENC);
	(void)xmlParseChunk(context, text.data, (int)text.len, 1);
	parse->context = NULL;
	if (parse->r != 0)
		return parse->r;
	if (context->errNo == XML_ERR_NO_MEMORY)
		return pn_error_set(parse->error, -ENOMEM, "out of memory");
	if (!context->wellFormed || context->errNo != XML_ERR_OK)
		return pn_error_set(parse->error, 1,
		    "not well-formed (libxml2 error %d, line %d)",
		    context->errNo, context->lastError.line);
	assert(parse->depth == 0);
	return 0;
}

int
pn_xml_parse(struct pn_arena *arena, struct pn_str text, const char *root_name,
    struct pn_form *ret_fields, struct pn_error *ret_error)
{
	struct parse parse = {
		.arena = arena, .root_name = root_name, .error = ret_error
	};
	size_t tags = 0;
	int r;

	r = check_text(text, ret_error);
	if (r == 0)
		r = check_tags(text, &tags, ret_error);
	if (r != 0)
		return r;
	parse.fields_max = tags < PN_XML_FIELDS_MAX ? tags : PN_XML_FIELDS_MAX;
	parse.size = text.len;
	parse.form.fields = pn_arena_alloc(
	    arena, parse.fields_max * sizeof(parse.form.fields[0]));
	parse.values = pn_arena_alloc(arena, parse.size);
	if (parse.form.fields == NULL || parse.values == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	r = run(&parse, text);
	if (r == 0)
		r = pn_fields_sort(&parse.form, ret_error);
	if (r != 0)
		return r;
	*ret_fields = parse.form;
	return 0;
}
