/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "layout.h"

void layout_place(const struct config *config, uint32_t vcpus, struct layout *ret_layout)
{
	uint64_t next = LAYOUT_START;
	uint32_t i;

	ret_layout->vcpus = vcpus;
	ret_layout->end = next;
	for (i = 0; i <= vcpus; i++) {
		struct region *region = &ret_layout->regions[i];

		region->start = next;
		region->bytes = (i < vcpus ? config->private_mib : config->shared_mib) * LAYOUT_MIB;
		ret_layout->end = region->start + region->bytes;
		next = (ret_layout->end + LAYOUT_ALIGN - 1) & ~(LAYOUT_ALIGN - 1);
	}
}

int layout_check(const struct layout *layout, const struct ram_range *ranges, uint32_t ranges_n,
	struct text *messages)
{
	uint64_t have_end = LAYOUT_START;
	uint32_t i;

	for (i = 0; i < ranges_n; i++) {
		const struct ram_range *range = &ranges[i];

		if (range->start > LAYOUT_START || range->bytes > UINT64_MAX - range->start)
			continue;
		if (range->start + range->bytes > have_end)
			have_end = range->start + range->bytes;
	}
	if (have_end > LAYOUT_END_MAX)
		have_end = LAYOUT_END_MAX;
	if (layout->end <= have_end)
		return 0;

	text_add(messages, GUEST_PREFIX "error: private_mib, shared_mib: the regions of ");
	text_add_number(messages, layout->vcpus);
	text_add(messages, " vCPUs end at ");
	text_add_hex(messages, layout->end);
	text_add(messages, ", allowed is up to ");
	text_add_hex(messages, have_end);
	text_add(messages, " with this much memory\n");
	return LAYOUT_E_NO_ROOM;
}

void layout_add_name(const struct layout *layout, uint32_t region, struct text *text)
{
	if (region == layout->vcpus) {
		text_add(text, "shared");
		return;
	}
	text_add(text, "private");
	text_add_number(text, region);
}
