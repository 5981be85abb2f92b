/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first byte says how many columns a distance line has to have. */
#include "controller/host/nodes.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t row[256];
	struct idset set, again;
	char text[IDSET_MAX * 5];

	if (size == 0)
		return 0;
	nodes_parse_distance((const char *)data + 1, size - 1, data[0] % 64u, row);
	if (idset_parse_list((const char *)data + 1, size - 1, &set) == 0) {
		idset_format(&set, text, sizeof(text));
		PROMISE(idset_parse_list(text, strlen(text), &again) == 0);
		PROMISE(idset_equal(&set, &again));
	}
	return 0;
}
