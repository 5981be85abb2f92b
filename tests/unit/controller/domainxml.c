/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/virt/domainxml.h"
#include "tests/tap.h"

static int parse(const char *xml, struct virt_vm *vm)
{
	char why[SNAPSHOT_TEXT_MAX] = "";

	memset(vm, 0, sizeof(*vm));
	return domainxml_parse(xml, strlen(xml), vm, why);
}

static void a_plain_domain(struct tap *tap_)
{
	struct virt_vm vm;

	CHECK_INT(
		parse("<domain type='kvm' id='1'><name>a b</name>"
		      "<uuid>ef1a7290-68fb-44f5-8d51-22024f44b939</uuid>"
		      "<memory unit='KiB'>262144</memory><vcpu placement='static'>2</vcpu></domain>",
			&vm),
		0);
	CHECK_STR(vm.name, "a b");
	CHECK_STR(vm.uuid, "ef1a7290-68fb-44f5-8d51-22024f44b939");
	CHECK_INT(vm.max_vcpus, 2);
	CHECK_INT(vm.ram_bytes, 256 << 20);
	CHECK_INT(vm.n_backends, 1);
	CHECK_INT(vm.backend_bytes[0], 256 << 20);
	CHECK(!vm.numatune_strict && !vm.pci_hostdev && !vm.hugepages && !vm.placement_auto);
}

static void guest_cells_and_numatune_D16(struct tap *tap_)
{
	struct virt_vm vm;

	CHECK_INT(parse("<domain><memory>4194304</memory><vcpu>8</vcpu>"
			"<numatune><memory mode='strict' nodeset='0-1'/>"
			"<memnode cellid='0' mode='strict' nodeset='0'/></numatune>"
			"<cpu><numa><cell id='0' cpus='0-3' memory='2' unit='GiB'/>"
			"<cell id='1' memory='2097152'/></numa></cpu></domain>",
			  &vm),
		0);
	CHECK_INT(vm.n_backends, 2);
	CHECK_INT(vm.backend_bytes[0], INT64_C(2) << 30);
	CHECK_INT(vm.backend_bytes[1], INT64_C(2) << 30);
	CHECK(vm.numatune_strict && vm.has_nodeset);
	CHECK_INT(idset_count(&vm.nodeset), 2);
}

static void devices_hugepages_and_auto(struct tap *tap_)
{
	struct virt_vm vm;

	CHECK_INT(parse("<domain><memory unit='M'>512</memory>"
			"<vcpu placement='auto' cpuset='1-4,^3'>2</vcpu>"
			"<memoryBacking><hugepages/></memoryBacking><devices>"
			"<hostdev mode='subsystem' type='usb'/>"
			"<hostdev mode='subsystem' type='pci' managed='yes'/></devices>"
			"<x:policy xmlns:x='urn:other'><x:vcpu>9</x:vcpu></x:policy></domain>",
			  &vm),
		0);
	CHECK(vm.pci_hostdev && vm.hugepages && vm.placement_auto);
	CHECK_STR(vm.vcpu_cpuset, "1-4,^3");
}

static void odd_domains_are_refused(struct tap *tap_)
{
	static const char *const odd[] = {
		"",
		"<",
		"<domain>",
		"<network/>",
		"not xml",
		"<domain><vcpu>2</vcpu></domain>",
		"<domain><memory>0</memory><vcpu>2</vcpu></domain>",
		"<domain><memory unit='furlong'>1</memory><vcpu>2</vcpu></domain>",
		"<domain><memory>99999999999999999999</memory><vcpu>2</vcpu></domain>",
		"<domain><memory>1024</memory><vcpu>0</vcpu></domain>",
		"<domain><memory>1024</memory><vcpu>100000</vcpu></domain>",
		"<!DOCTYPE domain [<!ENTITY a 'b'>]><domain><memory>1024</memory><vcpu>1</vcpu></domain>",
	};
	struct virt_vm vm;

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		int r = parse(odd[i], &vm);

		if (r <= 0)
			printf("# accepted: %s\n", odd[i]);
		CHECK(r > 0);
	}
}

TAP_MAIN(TEST(a_plain_domain), TEST(guest_cells_and_numatune_D16), TEST(devices_hugepages_and_auto),
	TEST(odd_domains_are_refused))
