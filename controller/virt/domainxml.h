/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a libvirt domain XML for what placement needs to know. Unknown elements are ignored.
 */
#pragma once

#include "controller/virt/vm.h"

#define DOMAINXML_BYTES_MAX (4u << 20)

enum {
	DOMAINXML_E_INVALID = 1, /* not XML, a document type, too large, or no <domain> */
	DOMAINXML_E_VALUE,       /* a value that cannot be true (no vCPUs, no memory) */
};

/*
 * @xml: @len bytes.
 * @vm: the XML's fields are written (name and uuid too if they are still empty); on a condition
 *   nothing is.
 * @why: text for people on a condition, SNAPSHOT_TEXT_MAX bytes.
 */
int domainxml_parse(const char *xml, size_t len, struct virt_vm *vm, char *why);
