/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/host/cgroup.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_vm_cgroup_ struct vm_cgroup cg = {0};

	if (vm_cgroup_parse((const char *)data, size, &cg))
		return 0;
	PROMISE(cg.mount && cg.mount[0] != '/');
	PROMISE(cg.group && cg.group[0] == '/');
	PROMISE(!strstr(cg.group, "/../") && !strchr(cg.group, '\n'));
	PROMISE(!cg.has_threads);
	return 0;
}
