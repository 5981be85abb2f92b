/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Built on this machine, run in the emulated host: the libraries of both must fit together. */
#include <json-c/json.h>
#include <libvirt/libvirt.h>
#include <numa.h>
#include <stdio.h>

int main(void)
{
	struct json_object *out = json_object_new_object();
	virConnectPtr conn = virConnectOpen("qemu:///system");
	virNodeInfo info;

	if (!conn || virNodeGetInfo(conn, &info) < 0)
		return 1;
	json_object_object_add(out, "numa", json_object_new_int(numa_available()));
	json_object_object_add(out, "max_node", json_object_new_int(numa_max_node()));
	json_object_object_add(out, "cpus", json_object_new_int((int)info.cpus));
	puts(json_object_to_json_string_ext(out, JSON_C_TO_STRING_PLAIN));
	json_object_put(out);
	virConnectClose(conn);
	return 0;
}
