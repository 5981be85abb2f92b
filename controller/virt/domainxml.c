/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why the XML and not more API calls: one RPC says all of it, and captured files can be tests. The
 * XML comes from libvirtd, but parts of it were written by whoever defined the VM: no network, no
 * entities, no document type, a size limit.
 */
#include "controller/virt/domainxml.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <string.h>

static void xml_doc_freep(xmlDocPtr *doc)
{
	if (*doc)
		xmlFreeDoc(*doc);
}

static void xml_char_freep(xmlChar **s)
{
	if (*s)
		xmlFree(*s);
}
#define _cleanup_xml_doc_ _cleanup_(xml_doc_freep)
#define _cleanup_xml_char_ _cleanup_(xml_char_freep)

static xmlNodePtr child(xmlNodePtr parent, const char *name)
{
	for (xmlNodePtr n = parent ? parent->children : NULL; n; n = n->next)
		if (n->type == XML_ELEMENT_NODE && !n->ns &&
			strcmp((const char *)n->name, name) == 0)
			return n;
	return NULL;
}

static xmlNodePtr next_named(xmlNodePtr n)
{
	const xmlChar *name = n->name;

	for (n = n->next; n; n = n->next)
		if (n->type == XML_ELEMENT_NODE && !n->ns && xmlStrEqual(n->name, name))
			return n;
	return NULL;
}

static bool parse_number(const xmlChar *text, uint64_t *ret)
{
	uint64_t v = 0;
	const xmlChar *p = text;

	while (p && (*p == ' ' || *p == '\n' || *p == '\t'))
		p++;
	if (!p || *p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	while (*p == ' ' || *p == '\n' || *p == '\t')
		p++;
	if (*p)
		return false;
	*ret = v;
	return true;
}

/* libvirt's units of memory; KiB without one. */
static uint64_t unit_bytes(const xmlChar *unit)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} units[] = {
		{"b", 1},
		{"bytes", 1},
		{"KB", 1000},
		{"k", 1024},
		{"KiB", 1024},
		{"MB", 1000000},
		{"M", UINT64_C(1) << 20},
		{"MiB", UINT64_C(1) << 20},
		{"GB", 1000000000},
		{"G", UINT64_C(1) << 30},
		{"GiB", UINT64_C(1) << 30},
		{"TB", UINT64_C(1000000000000)},
		{"T", UINT64_C(1) << 40},
		{"TiB", UINT64_C(1) << 40},
	};

	if (!unit)
		return 1024;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp((const char *)unit, units[i].name) == 0)
			return units[i].bytes;
	return 0;
}

static bool scaled(const xmlChar *text, const xmlChar *unit, uint64_t *ret)
{
	uint64_t v, scale = unit_bytes(unit);

	return scale && parse_number(text, &v) && !__builtin_mul_overflow(v, scale, ret);
}

static bool read_memory(xmlNodePtr domain, struct virt_vm *vm)
{
	xmlNodePtr memory = child(domain, "memory");
	_cleanup_xml_char_ xmlChar *text = memory ? xmlNodeGetContent(memory) : NULL;
	_cleanup_xml_char_ xmlChar *unit = memory ? xmlGetNoNsProp(memory, BAD_CAST "unit") : NULL;
	xmlNodePtr cell;

	if (!text || !scaled(text, unit, &vm->ram_bytes) || !vm->ram_bytes)
		return false;
	cell = child(child(child(domain, "cpu"), "numa"), "cell");
	for (; cell && vm->n_backends < VIRT_CELLS_MAX; cell = next_named(cell)) {
		_cleanup_xml_char_ xmlChar *m = xmlGetNoNsProp(cell, BAD_CAST "memory");
		_cleanup_xml_char_ xmlChar *u = xmlGetNoNsProp(cell, BAD_CAST "unit");
		uint64_t bytes;

		if (m && scaled(m, u, &bytes) && bytes)
			vm->backend_bytes[vm->n_backends++] = bytes;
	}
	if (!vm->n_backends)
		vm->backend_bytes[vm->n_backends++] = vm->ram_bytes;
	return true;
}

static bool read_vcpus(xmlNodePtr domain, struct virt_vm *vm)
{
	xmlNodePtr vcpu = child(domain, "vcpu");
	_cleanup_xml_char_ xmlChar *text = vcpu ? xmlNodeGetContent(vcpu) : NULL;
	_cleanup_xml_char_ xmlChar *cpuset = vcpu ? xmlGetNoNsProp(vcpu, BAD_CAST "cpuset") : NULL;
	_cleanup_xml_char_ xmlChar *placement =
		vcpu ? xmlGetNoNsProp(vcpu, BAD_CAST "placement") : NULL;
	uint64_t n;

	if (!text || !parse_number(text, &n) || n == 0 || n > SNAPSHOT_VCPUS_MAX)
		return false;
	vm->max_vcpus = (unsigned)n;
	if (cpuset)
		snprintf(vm->vcpu_cpuset, sizeof(vm->vcpu_cpuset), "%s", (const char *)cpuset);
	vm->placement_auto = placement && strcmp((const char *)placement, "auto") == 0;
	return true;
}

static void read_numatune(xmlNodePtr domain, struct virt_vm *vm)
{
	xmlNodePtr numatune = child(domain, "numatune");
	xmlNodePtr memory = child(numatune, "memory");
	xmlNodePtr memnode = child(numatune, "memnode");

	if (memory) {
		_cleanup_xml_char_ xmlChar *mode = xmlGetNoNsProp(memory, BAD_CAST "mode");
		_cleanup_xml_char_ xmlChar *set = xmlGetNoNsProp(memory, BAD_CAST "nodeset");
		_cleanup_xml_char_ xmlChar *placement =
			xmlGetNoNsProp(memory, BAD_CAST "placement");

		/* strict is libvirt's default mode */
		vm->numatune_strict = !mode || strcmp((const char *)mode, "strict") == 0;
		vm->numatune_restrictive = mode && strcmp((const char *)mode, "restrictive") == 0;
		vm->placement_auto |= placement && strcmp((const char *)placement, "auto") == 0;
		/* the live XML has plain ranges; anything else counts as "there is a nodeset" */
		if (set && idset_parse_list(
				   (const char *)set, strlen((const char *)set), &vm->nodeset) == 0)
			vm->has_nodeset = !idset_empty(&vm->nodeset);
	}
	for (; memnode; memnode = next_named(memnode)) {
		_cleanup_xml_char_ xmlChar *mode = xmlGetNoNsProp(memnode, BAD_CAST "mode");

		vm->numatune_strict |= !mode || strcmp((const char *)mode, "strict") == 0;
	}
}

static void read_devices(xmlNodePtr domain, struct virt_vm *vm)
{
	xmlNodePtr dev = child(child(domain, "devices"), "hostdev");

	for (; dev; dev = next_named(dev)) {
		_cleanup_xml_char_ xmlChar *type = xmlGetNoNsProp(dev, BAD_CAST "type");

		vm->pci_hostdev |= type && (strcmp((const char *)type, "pci") == 0 ||
						   strcmp((const char *)type, "mdev") == 0);
	}
	vm->hugepages = child(child(domain, "memoryBacking"), "hugepages") != NULL;
}

static void read_name(xmlNodePtr domain, const char *element, char *ret, size_t size)
{
	xmlNodePtr n = child(domain, element);
	_cleanup_xml_char_ xmlChar *text = n ? xmlNodeGetContent(n) : NULL;

	if (text && !ret[0])
		snprintf(ret, size, "%s", (const char *)text);
}

int domainxml_parse(const char *xml, size_t len, struct virt_vm *vm, char *why)
{
	_cleanup_xml_doc_ xmlDocPtr doc = NULL;
	struct virt_vm v = *vm;
	xmlNodePtr domain;

	if (len > DOMAINXML_BYTES_MAX) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "its XML has %zu bytes, the limit is %u", len,
			DOMAINXML_BYTES_MAX);
		return DOMAINXML_E_INVALID;
	}
	doc = xmlReadMemory(xml, (int)len, "domain.xml", NULL,
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	domain = doc ? xmlDocGetRootElement(doc) : NULL;
	if (!domain || xmlGetIntSubset(doc) || strcmp((const char *)domain->name, "domain") != 0) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "libvirt's XML of it is not a domain");
		return DOMAINXML_E_INVALID;
	}
	v.n_backends = 0;
	read_name(domain, "name", v.name, sizeof(v.name));
	read_name(domain, "uuid", v.uuid, sizeof(v.uuid));
	if (!read_vcpus(domain, &v)) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "its XML has no usable <vcpu> (1 to %u)",
			SNAPSHOT_VCPUS_MAX);
		return DOMAINXML_E_VALUE;
	}
	if (!read_memory(domain, &v)) {
		snprintf(why, SNAPSHOT_TEXT_MAX, "its XML has no usable <memory>");
		return DOMAINXML_E_VALUE;
	}
	read_numatune(domain, &v);
	read_devices(domain, &v);
	*vm = v;
	return 0;
}
