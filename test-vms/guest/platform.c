/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The vCPUs are counted by the MADT, in whose order QEMU numbers them too. A machine without ACPI
 * (libvirt: a domain without <acpi/>) only tells their number, by fw_cfg; then the APIC IDs are
 * taken for 0, 1, 2, ..., which holds for sockets with a power of two of cores and threads.
 */
#include "platform.h"
#include "cpu.h"
#include "memory.h"

enum {
	RAM_USABLE = 1,
	MADT_HEADER = 44,
	MADT_LAPIC = 0,
	MADT_X2APIC = 9,
	MADT_LAPIC_LENGTH = 8,
	MADT_X2APIC_LENGTH = 16,
	MADT_ENABLED = 1,
	ACPI_HEADER = 36,
	ACPI_TABLE_MAX = 1 << 20,

	FW_CFG_SELECT = 0x510,
	FW_CFG_DATA = 0x511,
	FW_CFG_SIGNATURE = 0,
	FW_CFG_NB_CPUS = 5,
};

#define START_INFO_MAGIC 0x336ec578u
#define ADDRESS_MAX 0x100000000u

/* These two are laid out by the PVH boot protocol. */
struct hvm_start_info {
	uint32_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t modules_n;
	uint64_t modules;
	uint64_t cmdline;
	uint64_t rsdp;
	uint64_t memmap; /* since version 1 */
	uint32_t memmap_n;
	uint32_t reserved;
};

struct hvm_memmap_entry {
	uint64_t start;
	uint64_t bytes;
	uint32_t type;
	uint32_t reserved;
};

/* Tables lie at any address. */
static uint32_t get32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* Returns the table at `address` if it can be one, else NULL. */
static const uint8_t *acpi_table(uint64_t address, const char *signature)
{
	const uint8_t *table = (const uint8_t *)(uintptr_t)address;
	uint32_t length;

	if (address == 0 || address >= ADDRESS_MAX - ACPI_HEADER)
		return NULL;
	if (memcmp(table, signature, 4) != 0)
		return NULL;
	length = get32(table + 4);
	if (length < ACPI_HEADER || length > ACPI_TABLE_MAX || length > ADDRESS_MAX - address)
		return NULL;
	return table;
}

static const uint8_t *find_madt(uint64_t rsdp_address)
{
	const uint8_t *rsdp = (const uint8_t *)(uintptr_t)rsdp_address, *root = NULL;
	uint32_t entry_size = 8, offset;

	if (rsdp_address == 0 || rsdp_address >= ADDRESS_MAX - ACPI_HEADER)
		return NULL;
	if (memcmp(rsdp, "RSD PTR ", 8) != 0)
		return NULL;
	if (rsdp[15] >= 2)
		root = acpi_table(get64(rsdp + 24), "XSDT");
	if (root == NULL) {
		root = acpi_table(get32(rsdp + 16), "RSDT");
		entry_size = 4;
	}
	if (root == NULL)
		return NULL;
	for (offset = ACPI_HEADER; offset + entry_size <= get32(root + 4); offset += entry_size) {
		const uint8_t *entry = root + offset;
		const uint8_t *madt;

		madt = acpi_table(entry_size == 8 ? get64(entry) : get32(entry), "APIC");
		if (madt != NULL)
			return madt;
	}
	return NULL;
}

static int add_vcpu(struct platform *platform, uint32_t apic_id, struct text *messages)
{
	if (platform->vcpus == GUEST_VCPUS_MAX) {
		text_add(messages, GUEST_PREFIX "error: more vCPUs than the 64 allowed\n");
		return PLATFORM_E_TOO_MANY_VCPUS;
	}
	if (apic_id >= BOOT_NO_VCPU) {
		text_add(messages, GUEST_PREFIX "error: a vCPU has APIC ID ");
		text_add_number(messages, apic_id);
		text_add(messages, ", allowed are 0 to 254\n");
		return PLATFORM_E_APIC_ID;
	}
	platform->apic_ids[platform->vcpus++] = (uint8_t)apic_id;
	return 0;
}

static int read_madt(const uint8_t *madt, struct platform *platform, struct text *messages)
{
	uint32_t length = get32(madt + 4), offset;
	int r = 0;

	for (offset = MADT_HEADER; r == 0 && offset + 2 <= length; offset += madt[offset + 1]) {
		const uint8_t *entry = madt + offset;
		uint32_t left = length - offset;

		if (entry[1] < 2 || entry[1] > left)
			break;
		/* Entries that are not enabled are room for hot-plugging. */
		if (entry[0] == MADT_LAPIC && entry[1] >= MADT_LAPIC_LENGTH) {
			if ((get32(entry + 4) & MADT_ENABLED) != 0)
				r = add_vcpu(platform, entry[3], messages);
		} else if (entry[0] == MADT_X2APIC && entry[1] >= MADT_X2APIC_LENGTH) {
			if ((get32(entry + 8) & MADT_ENABLED) != 0)
				r = add_vcpu(platform, get32(entry + 4), messages);
		}
	}
	return r;
}

/* Returns the number of vCPUs, or 0 if there is no fw_cfg. */
static uint32_t fw_cfg_vcpus(void)
{
	static const char signature[] = {'Q', 'E', 'M', 'U'};
	uint32_t count;
	size_t i;

	cpu_out16(FW_CFG_SELECT, FW_CFG_SIGNATURE);
	for (i = 0; i < sizeof(signature); i++) {
		if (cpu_in8(FW_CFG_DATA) != signature[i])
			return 0;
	}
	cpu_out16(FW_CFG_SELECT, FW_CFG_NB_CPUS);
	count = cpu_in8(FW_CFG_DATA);
	return count | (uint32_t)cpu_in8(FW_CFG_DATA) << 8;
}

static int read_vcpus(
	uint64_t rsdp, uint32_t boot_apic_id, struct platform *platform, struct text *messages)
{
	const uint8_t *madt = find_madt(rsdp);
	uint32_t i;
	int r = 0;

	platform->vcpus = 0;
	if (madt != NULL) {
		r = read_madt(madt, platform, messages);
	} else {
		uint32_t count = fw_cfg_vcpus();

		for (i = 0; r == 0 && i < count; i++)
			r = add_vcpu(platform, i, messages);
	}
	if (r != 0)
		return r;

	for (i = 0; i < platform->vcpus && platform->apic_ids[i] != boot_apic_id; i++)
		continue;
	if (i == platform->vcpus) {
		text_add(messages, GUEST_PREFIX "warning: neither ACPI nor fw_cfg knows this vCPU, "
						"using no other\n");
		platform->vcpus = 0;
		return add_vcpu(platform, boot_apic_id, messages);
	}
	/* The vCPU that boots is vCPU 0 by all that QEMU does; keep it so in any case. */
	platform->apic_ids[i] = platform->apic_ids[0];
	platform->apic_ids[0] = (uint8_t)boot_apic_id;
	return 0;
}

int platform_read(const struct hvm_start_info *info, uint32_t boot_apic_id,
	struct platform *ret_platform, struct text *messages)
{
	const char *cmdline = (const char *)(uintptr_t)info->cmdline;
	const struct hvm_memmap_entry *memmap;
	uint32_t i;

	if (info->magic != START_INFO_MAGIC || info->version < 1 || info->memmap == 0) {
		text_add(messages, GUEST_PREFIX
			"error: no PVH start info with a memory map, "
			"allowed is a start by QEMU's -kernel with up to 4095 characters of "
			"-append\n");
		return PLATFORM_E_START_INFO;
	}

	for (i = 0; cmdline != NULL && cmdline[i] != '\0'; i++) {
		if (i == sizeof(ret_platform->cmdline) - 1)
			break;
		ret_platform->cmdline[i] = cmdline[i];
	}
	ret_platform->cmdline[i] = '\0';

	memmap = (const struct hvm_memmap_entry *)(uintptr_t)info->memmap;
	ret_platform->ram_n = 0;
	for (i = 0; i < info->memmap_n && ret_platform->ram_n < PLATFORM_RAM_MAX; i++) {
		if (memmap[i].type != RAM_USABLE)
			continue;
		ret_platform->ram[ret_platform->ram_n].start = memmap[i].start;
		ret_platform->ram[ret_platform->ram_n].bytes = memmap[i].bytes;
		ret_platform->ram_n++;
	}
	return read_vcpus(info->rsdp, boot_apic_id, ret_platform, messages);
}
