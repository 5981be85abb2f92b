/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why every unknown word is an error: a misspelt share="no" that is passed over in silence would
 * take a monitor away from whoever else needs it.
 */
#include "controller/daemon/config.h"

#include <errno.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <string.h>

static void xml_doc_freep(xmlDocPtr *doc)
{
	if (*doc)
		xmlFreeDoc(*doc);
}

static void xml_context_freep(xmlParserCtxtPtr *ctxt)
{
	if (*ctxt)
		xmlFreeParserCtxt(*ctxt);
}

static void filep(FILE **f)
{
	if (*f)
		fclose(*f);
}

struct reading {
	const char *path;
	struct config *c;
	bool has_libvirt; /* there was one already */
	char *why;
};

void config_clear(struct config *c)
{
	for (unsigned i = 0; i < c->n_sources; i++)
		free(c->source[i].pattern);
	free(c->source);
	free(c->libvirt_uri);
	memset(c, 0, sizeof(*c));
}

const char *config_pattern_problem(const char *pattern)
{
	if (pattern[0] != '/')
		return "it must begin with '/'";
	if (strlen(pattern) > 4095)
		return "it is longer than 4095 bytes";
	return NULL;
}

int config_add_source(struct config *c, const char *pattern, bool share)
{
	struct qemu_source *grown;
	char *copy;

	if (c->n_sources == QEMU_SOURCES_MAX)
		return -ENOSPC;
	grown = reallocarray(c->source, c->n_sources + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->source = grown;
	copy = strdup(pattern);
	if (!copy)
		return -ENOMEM;
	c->source[c->n_sources++] = (struct qemu_source){.pattern = copy, .share = share};
	return 0;
}

static int wrong(const struct reading *rd, xmlNodePtr node, const char *what, const char *word,
	const char *want)
{
	snprintf(rd->why, CONFIG_WHY_MAX, "%.200s:%ld: %s '%.60s': expected %s", rd->path,
		xmlGetLineNo(node), what, word, want);
	for (char *c = rd->why; *c; c++)
		if (*c < ' ' && *c >= 0)
			*c = ' ';
	return CONFIG_E_INVALID;
}

/* The attribute's text without a copy: entities are not expanded, so it is one text node. */
static const char *value_of(xmlAttrPtr a)
{
	xmlNodePtr text = a->children;

	return text && text->type == XML_TEXT_NODE && !text->next ? (const char *)text->content
								  : "";
}

/* "a" or "b": 0 or 1 in *ret. */
static int choose(const struct reading *rd, xmlAttrPtr a, const char *const words[2], bool *ret)
{
	char want[80];

	for (unsigned i = 0; i < 2; i++)
		if (strcmp(value_of(a), words[i]) == 0) {
			*ret = i == 1;
			return 0;
		}
	snprintf(want, sizeof(want), "%s=\"%s\" or \"%s\"", (const char *)a->name, words[0],
		words[1]);
	return wrong(rd, a->parent, "wrong value", value_of(a), want);
}

static int read_qemu(const struct reading *rd, xmlNodePtr node)
{
	static const char *const yes_no[] = {"no", "yes"};
	const char *socket = NULL, *problem;
	bool share = true;
	int r = 0;

	for (xmlAttrPtr a = node->properties; a && r == 0; a = a->next) {
		if (strcmp((const char *)a->name, "socket") == 0)
			socket = value_of(a);
		else if (strcmp((const char *)a->name, "share") == 0)
			r = choose(rd, a, yes_no, &share);
		else
			r = wrong(rd, node, "unknown attribute", (const char *)a->name,
				"socket, share");
	}
	if (r != 0)
		return r;
	if (!socket)
		return wrong(rd, node, "incomplete element", "qemu",
			"socket=\"PATH\", a QMP socket or a glob of them");
	problem = config_pattern_problem(socket);
	if (problem)
		return wrong(rd, node, "wrong socket", socket, problem);
	r = config_add_source(rd->c, socket, share);
	return r == -ENOSPC ? wrong(rd, node, "too many elements", "qemu", "at most 64") : r;
}

static int read_libvirt(const struct reading *rd, xmlNodePtr node)
{
	static const char *const monitor[] = {"never", "needed"};
	int r = 0;

	for (xmlAttrPtr a = node->properties; a && r == 0; a = a->next) {
		if (strcmp((const char *)a->name, "monitor") == 0) {
			r = choose(rd, a, monitor, &rd->c->libvirt_monitor);
		} else if (strcmp((const char *)a->name, "uri") == 0 && value_of(a)[0]) {
			free(rd->c->libvirt_uri);
			rd->c->no_libvirt = strcmp(value_of(a), "none") == 0;
			rd->c->libvirt_uri = rd->c->no_libvirt ? NULL : strdup(value_of(a));
			r = rd->c->no_libvirt || rd->c->libvirt_uri ? 0 : -ENOMEM;
		} else {
			r = wrong(rd, node, "unknown or empty attribute", (const char *)a->name,
				"uri, monitor");
		}
	}
	return r;
}

/* An element of ours, with attributes of no namespace: others' words would be taken for our own. */
static int check_namespaces(const struct reading *rd, xmlNodePtr node)
{
	if (!node->ns || strcmp((const char *)node->ns->href, CONFIG_NAMESPACE) != 0)
		return wrong(rd, node, "element of another namespace", (const char *)node->name,
			"those of " CONFIG_NAMESPACE " only");
	for (xmlAttrPtr a = node->properties; a; a = a->next)
		if (a->ns)
			return wrong(rd, node, "attribute of another namespace",
				(const char *)a->name, "none here");
	return 0;
}

static int read_root(struct reading *rd, xmlNodePtr root)
{
	int r = 0;

	if (strcmp((const char *)root->name, "numaherd") != 0)
		return wrong(rd, root, "unknown root element", (const char *)root->name,
			"<numaherd xmlns=\"" CONFIG_NAMESPACE "\">");
	if (!root->ns || strcmp((const char *)root->ns->href, CONFIG_NAMESPACE) != 0)
		return wrong(rd, root, "namespace", root->ns ? (const char *)root->ns->href : "",
			"xmlns=\"" CONFIG_NAMESPACE "\"");
	if (root->properties)
		return wrong(rd, root, "unknown attribute", (const char *)root->properties->name,
			"none here");
	for (xmlNodePtr n = root->children; n && r == 0; n = n->next) {
		if (n->type == XML_TEXT_NODE && !xmlIsBlankNode(n))
			r = wrong(rd, n, "text", (const char *)n->content, "elements only");
		if (n->type != XML_ELEMENT_NODE)
			continue;
		r = check_namespaces(rd, n);
		if (r != 0)
			return r;
		if (strcmp((const char *)n->name, "qemu") == 0)
			r = read_qemu(rd, n);
		else if (strcmp((const char *)n->name, "libvirt") == 0 && rd->has_libvirt)
			r = wrong(rd, n, "second element", "libvirt", "one");
		else if (strcmp((const char *)n->name, "libvirt") == 0)
			r = read_libvirt(rd, n);
		else
			r = wrong(rd, n, "unknown element", (const char *)n->name,
				"<libvirt> or <qemu>");
		rd->has_libvirt |= strcmp((const char *)n->name, "libvirt") == 0;
	}
	return r;
}

static int copy_config(const struct config *from, struct config *ret)
{
	struct config c = {
		.no_libvirt = from->no_libvirt, .libvirt_monitor = from->libvirt_monitor};
	int r = 0;

	c.libvirt_uri = from->libvirt_uri ? strdup(from->libvirt_uri) : NULL;
	if (from->libvirt_uri && !c.libvirt_uri)
		r = -ENOMEM;
	for (unsigned i = 0; i < from->n_sources && r == 0; i++)
		r = config_add_source(&c, from->source[i].pattern, from->source[i].share);
	if (r < 0)
		config_clear(&c);
	else
		*ret = c;
	return r;
}

int config_parse(const char *path, const char *xml, size_t len, struct config *c, char *why)
{
	_cleanup_(xml_context_freep) xmlParserCtxtPtr ctxt = xmlNewParserCtxt();
	_cleanup_(xml_doc_freep) xmlDocPtr doc = NULL;
	struct reading rd = {.path = path, .why = why};
	struct config fresh = {0};
	const xmlError *e;
	int r;

	if (!ctxt)
		return -ENOMEM;
	doc = xmlCtxtReadMemory(ctxt, xml, (int)len, path, NULL,
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (!doc) {
		e = xmlCtxtGetLastError(ctxt);
		snprintf(why, CONFIG_WHY_MAX, "%.200s:%d: not XML: %.200s", path, e ? e->line : 0,
			e && e->message ? e->message : "unknown error");
		why[strcspn(why, "\n")] = '\0';
		return CONFIG_E_INVALID;
	}
	if (xmlGetIntSubset(doc)) {
		snprintf(
			why, CONFIG_WHY_MAX, "%.200s:1: a document type is not allowed here", path);
		return CONFIG_E_INVALID;
	}
	r = copy_config(c, &fresh);
	if (r < 0)
		return r;
	rd.c = &fresh;
	r = read_root(&rd, xmlDocGetRootElement(doc));
	if (r != 0) {
		config_clear(&fresh);
		return r;
	}
	config_clear(c);
	*c = fresh;
	return 0;
}

int config_read(const char *path, struct config *c, char *why)
{
	_cleanup_free_ char *text = malloc(CONFIG_BYTES_MAX + 1);
	_cleanup_(filep) FILE *f = NULL;
	size_t len;

	if (!text)
		return -ENOMEM;
	f = fopen(path, "re");
	if (!f) {
		snprintf(why, CONFIG_WHY_MAX, "%.200s: %s", path, strerror(errno));
		return errno == ENOENT ? CONFIG_E_MISSING : CONFIG_E_UNREADABLE;
	}
	len = fread(text, 1, CONFIG_BYTES_MAX + 1, f);
	if (ferror(f)) {
		snprintf(why, CONFIG_WHY_MAX, "%.200s: cannot be read", path);
		return CONFIG_E_UNREADABLE;
	}
	if (len > CONFIG_BYTES_MAX) {
		snprintf(why, CONFIG_WHY_MAX, "%.200s: longer than 1 MiB", path);
		return CONFIG_E_UNREADABLE;
	}
	return config_parse(path, text, len, c, why);
}
