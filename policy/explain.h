/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record of a decision as people read it.
 */
#pragma once

#include "policy/decide.h"

/*
 * One sentence on VM @vm of the plan: what is done, or why nothing is.
 * @s: the snapshot that was decided on (names and node ids).
 * @ret: REASON_TEXT_MAX bytes. Returns @ret.
 */
const char *explain_text(const struct snapshot *s, const struct plan *plan, unsigned vm, char *ret);
