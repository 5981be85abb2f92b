/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line is read twice. The first pass takes everything but the phases, from left to
 * right, a later token overriding an earlier one. The second pass takes the phases, each starting
 * from the parameters of the stage before it: so a base parameter that stands behind a phase still
 * is what that phase starts from.
 */
#include "cmdline.h"
#include "pattern.h"

enum {
	MIB_MAX = 3072, /* the regions end below 4 GiB at any rate */
	PERMILLE_MAX = 1000,
	BURST_MAX = 1000000,
	PAUSE_US_MIN = 50,
	PAUSE_US_MAX = 10000000,
	REPORT_MS_MIN = 100,
	REPORT_MS_MAX = 3600000,
	ROTATE_MAX = 1024,
	PHASE_SECONDS_MAX = 1000000,
	IDLE_PAUSE_US = 1000000,
	MIXED_PERMILLE = 300,
	DEFAULT_PHASE_MS = 20000,
	QUOTE_MAX = 64,
};

/* A part of the command line. */
struct slice {
	const char *chars;
	size_t length;
};

/* A key with its value, and the token that they come from for the messages. */
struct setting {
	struct slice token;
	struct slice key;
	struct slice value;
	bool has_value;
};

enum {
	SETTING_TAKEN = 0,
	SETTING_E_BAD = 1,     /* an error line was added */
	SETTING_E_UNKNOWN = 2, /* not a key of this kind */
};

static const struct {
	const char *name;
	enum pattern pattern;
} pattern_names[] = {
	{"private", PATTERN_PRIVATE},
	{"shared", PATTERN_SHARED},
	{"mixed", PATTERN_MIXED},
	{"idle", PATTERN_IDLE},
	{"phase", PATTERN_PHASE},
};

const char *cmdline_pattern_name(enum pattern pattern)
{
	size_t i;

	for (i = 0; i < sizeof(pattern_names) / sizeof(pattern_names[0]); i++) {
		if (pattern_names[i].pattern == pattern)
			return pattern_names[i].name;
	}
	return "unknown";
}

static bool slice_is(struct slice slice, const char *string)
{
	size_t i;

	for (i = 0; i < slice.length; i++) {
		if (string[i] == '\0' || string[i] != slice.chars[i])
			return false;
	}
	return string[i] == '\0';
}

/* Cuts *rest at the first of `separator`; returns what stands before it. */
static struct slice slice_cut(struct slice *rest, char separator)
{
	struct slice head = {rest->chars, 0};

	while (head.length < rest->length && rest->chars[head.length] != separator)
		head.length++;
	rest->chars += head.length;
	rest->length -= head.length;
	if (rest->length > 0) {
		rest->chars++;
		rest->length--;
	}
	return head;
}

static struct setting setting_split(struct slice token, struct slice assignment)
{
	const size_t whole_length = assignment.length;
	struct setting setting = {.token = token};

	setting.key = slice_cut(&assignment, '=');
	setting.has_value = setting.key.length < whole_length;
	setting.value = assignment;
	return setting;
}

static void add_quoted(struct text *messages, struct slice token)
{
	text_add_input(messages, token.chars, token.length < QUOTE_MAX ? token.length : QUOTE_MAX);
	if (token.length > QUOTE_MAX)
		text_add(messages, "...");
}

static void add_error_start(struct text *messages, struct slice token)
{
	text_add(messages, GUEST_PREFIX "error: ");
	add_quoted(messages, token);
	text_add(messages, ": ");
}

static int fail(struct text *messages, struct slice token, const char *what)
{
	add_error_start(messages, token);
	text_add(messages, what);
	text_add(messages, "\n");
	return SETTING_E_BAD;
}

static int fail_range(struct text *messages, const struct setting *setting, uint64_t min,
	uint64_t max, const char *what)
{
	add_error_start(messages, setting->token);
	add_quoted(messages, setting->key);
	text_add(messages, what);
	text_add(messages, ", allowed are ");
	text_add_number(messages, min);
	text_add(messages, " to ");
	text_add_number(messages, max);
	text_add(messages, "\n");
	return SETTING_E_BAD;
}

/* Returns false if the slice is not a decimal number of 64 bits. */
static bool slice_number(struct slice slice, uint64_t *ret_number)
{
	uint64_t number = 0;
	size_t i;

	if (slice.length == 0)
		return false;
	for (i = 0; i < slice.length; i++) {
		uint64_t digit;

		if (slice.chars[i] < '0' || slice.chars[i] > '9')
			return false;
		digit = (uint64_t)(slice.chars[i] - '0');
		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

static int take_number(const struct setting *setting, uint64_t min, uint64_t max,
	struct text *messages, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!slice_number(setting->value, &number))
		return fail_range(messages, setting, min, max, " is not a whole number");
	if (number < min || number > max)
		return fail_range(messages, setting, min, max, " is out of range");
	*ret_number = number;
	return SETTING_TAKEN;
}

static int take_u32(const struct setting *setting, uint32_t min, uint32_t max,
	struct text *messages, uint32_t *ret_number)
{
	uint64_t number = 0;

	if (take_number(setting, min, max, messages, &number) != SETTING_TAKEN)
		return SETTING_E_BAD;
	*ret_number = (uint32_t)number;
	return SETTING_TAKEN;
}

static int take_pattern(const struct setting *setting, bool in_phase, struct text *messages,
	struct touch_params *params)
{
	size_t i;

	for (i = 0; i < sizeof(pattern_names) / sizeof(pattern_names[0]); i++) {
		if (!slice_is(setting->value, pattern_names[i].name))
			continue;
		if (in_phase && pattern_names[i].pattern == PATTERN_PHASE)
			break;
		params->pattern = pattern_names[i].pattern;
		params->idle = params->pattern == PATTERN_IDLE;
		params->idle_pause_us = IDLE_PAUSE_US;
		params->shared_permille = 0;
		if (params->pattern == PATTERN_SHARED)
			params->shared_permille = PERMILLE_MAX;
		else if (params->pattern == PATTERN_MIXED)
			params->shared_permille = MIXED_PERMILLE;
		return SETTING_TAKEN;
	}
	return fail(messages, setting->token,
		in_phase ? "no such pattern for a phase, allowed are private, shared, mixed, idle"
			 : "no such pattern, allowed are private, shared, mixed, idle, phase");
}

/* Takes the keys that may also stand in a phase. */
static int take_touch(const struct setting *setting, bool in_phase, struct text *messages,
	struct touch_params *params)
{
	int r;

	if (slice_is(setting->key, "pattern"))
		return take_pattern(setting, in_phase, messages, params);
	if (slice_is(setting->key, "shared_permille"))
		return take_u32(setting, 0, PERMILLE_MAX, messages, &params->shared_permille);
	if (slice_is(setting->key, "write_permille"))
		return take_u32(setting, 0, PERMILLE_MAX, messages, &params->write_permille);
	if (slice_is(setting->key, "rotate"))
		return take_u32(setting, 0, ROTATE_MAX, messages, &params->rotate);
	if (slice_is(setting->key, "pause_us"))
		return take_u32(setting, PAUSE_US_MIN, PAUSE_US_MAX, messages,
			params->idle ? &params->idle_pause_us : &params->pause_us);
	if (slice_is(setting->key, "burst")) {
		r = take_u32(setting, 0, BURST_MAX, messages, &params->burst);
		/* Who names a burst behind pattern=idle wants touches after all. */
		if (r == SETTING_TAKEN)
			params->idle = false;
		return r;
	}
	return SETTING_E_UNKNOWN;
}

/* Takes vcpuK.burst, vcpuK.pause_us and vcpuK.shared_permille. */
static int take_override(
	const struct setting *setting, uint32_t vcpus, struct text *messages, struct config *config)
{
	static const char prefix[] = "vcpu";
	struct setting inner = *setting;
	struct vcpu_override *override;
	struct slice number;
	uint64_t vcpu;
	size_t i;
	bool *has;
	uint32_t *value, min = 0, max;

	for (i = 0; i < sizeof(prefix) - 1; i++) {
		if (inner.key.length == 0 || inner.key.chars[0] != prefix[i])
			return SETTING_E_UNKNOWN;
		inner.key.chars++;
		inner.key.length--;
	}
	number = slice_cut(&inner.key, '.');
	if (!slice_number(number, &vcpu))
		return SETTING_E_UNKNOWN;

	/* The number is looked at last, so that an unknown key stays a warning. */
	override = &config->overrides[vcpu < vcpus ? vcpu : 0];
	if (slice_is(inner.key, "burst")) {
		has = &override->has_burst;
		value = &override->burst;
		max = BURST_MAX;
	} else if (slice_is(inner.key, "pause_us")) {
		has = &override->has_pause_us;
		value = &override->pause_us;
		min = PAUSE_US_MIN;
		max = PAUSE_US_MAX;
	} else if (slice_is(inner.key, "shared_permille")) {
		has = &override->has_shared_permille;
		value = &override->shared_permille;
		max = PERMILLE_MAX;
	} else {
		return SETTING_E_UNKNOWN;
	}
	if (vcpu >= vcpus) {
		add_error_start(messages, setting->token);
		text_add(messages, "no such vCPU, allowed are vcpu0 to vcpu");
		text_add_number(messages, vcpus - 1);
		text_add(messages, "\n");
		return SETTING_E_BAD;
	}
	if (take_u32(&inner, min, max, messages, value) != SETTING_TAKEN)
		return SETTING_E_BAD;
	*has = true;
	return SETTING_TAKEN;
}

static int take_base(
	const struct setting *setting, uint32_t vcpus, struct text *messages, struct config *config)
{
	uint32_t *const report_ms = &config->report_ms;
	int r;

	r = take_touch(setting, false, messages, &config->stages[0].params);
	if (r == SETTING_E_UNKNOWN)
		r = take_override(setting, vcpus, messages, config);
	if (r != SETTING_E_UNKNOWN)
		return r;

	if (slice_is(setting->key, "private_mib"))
		return take_u32(setting, 0, MIB_MAX, messages, &config->private_mib);
	if (slice_is(setting->key, "shared_mib"))
		return take_u32(setting, 0, MIB_MAX, messages, &config->shared_mib);
	if (slice_is(setting->key, "seed"))
		return take_number(setting, 0, UINT64_MAX, messages, &config->seed);
	if (slice_is(setting->key, "report_ms")) {
		if (slice_is(setting->value, "0")) {
			*report_ms = 0;
			return SETTING_TAKEN;
		}
		return take_u32(setting, REPORT_MS_MIN, REPORT_MS_MAX, messages, report_ms);
	}
	return SETTING_E_UNKNOWN;
}

/* Reads "20" or "2.5"; returns false if the slice is no such time. */
static bool slice_seconds(struct slice slice, uint32_t *ret_ms)
{
	struct slice rest = slice, whole;
	uint64_t seconds, fraction = 0;
	bool has_point;

	whole = slice_cut(&rest, '.');
	has_point = whole.length < slice.length;
	if (!slice_number(whole, &seconds) || seconds > PHASE_SECONDS_MAX)
		return false;
	if (has_point) {
		if (rest.length > 3 || !slice_number(rest, &fraction))
			return false;
		if (rest.length == 1)
			fraction *= 100;
		else if (rest.length == 2)
			fraction *= 10;
	}
	*ret_ms = (uint32_t)(seconds * 1000 + fraction);
	return true;
}

static void warn_unknown(struct text *messages, struct slice token, const char *where)
{
	text_add(messages, GUEST_PREFIX "warning: ");
	add_quoted(messages, token);
	text_add(messages, where);
	text_add(messages, ", ignored\n");
}

static int take_phase(const struct setting *phase, struct text *messages, struct config *config)
{
	struct slice rest = phase->value, time;
	struct stage *stage;
	int r;

	if (config->stages_n == GUEST_STAGES_MAX)
		return fail(messages, phase->token, "more than 32 phases");

	stage = &config->stages[config->stages_n];
	stage->params = stage[-1].params;
	time = slice_cut(&rest, ':');
	if (!slice_seconds(time, &stage->at_ms))
		return fail(messages, phase->token,
			"no such time, allowed are 0 to 1000000 seconds with up to 3 decimals, "
			"as in phase=20:rotate=1");
	if (config->stages_n > 1 && stage->at_ms <= stage[-1].at_ms)
		return fail(messages, phase->token,
			"not later than the phase before it, phases stand in ascending order");
	if (rest.length == 0)
		return fail(messages, phase->token,
			"changes nothing, a phase looks like phase=20:rotate=1,burst=64");

	while (rest.length > 0) {
		struct slice assignment = slice_cut(&rest, ',');
		struct setting setting = setting_split(phase->token, assignment);

		r = take_touch(&setting, true, messages, &stage->params);
		if (r == SETTING_E_BAD)
			return r;
		if (r == SETTING_E_UNKNOWN)
			warn_unknown(messages, assignment, " is unknown in a phase");
	}
	config->stages_n++;
	return SETTING_TAKEN;
}

/* Reads all tokens, either the phases or all the others. */
static int take_all(
	const char *line, uint32_t vcpus, bool phases, struct text *messages, struct config *config)
{
	const char *p = line;
	int r;

	for (;;) {
		struct slice token;
		struct setting setting;

		while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
			p++;
		if (*p == '\0')
			return SETTING_TAKEN;
		token.chars = p;
		while (*p != '\0' && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\r')
			p++;
		token.length = (size_t)(p - token.chars);

		setting = setting_split(token, token);
		if (slice_is(setting.key, "phase") != phases)
			continue;
		r = phases ? take_phase(&setting, messages, config)
			   : take_base(&setting, vcpus, messages, config);
		if (r == SETTING_E_BAD)
			return r;
		if (r == SETTING_E_UNKNOWN)
			warn_unknown(messages, token,
				setting.has_value ? " is unknown" : " is no known key=value");
	}
}

/* A touch must have a region to go to. */
static int check_regions(const struct config *config, uint32_t vcpus, struct text *messages)
{
	static const struct slice private_mib = {"private_mib=0", 13};
	static const struct slice shared_mib = {"shared_mib=0", 12};
	uint32_t i, v;

	for (i = 0; i < config->stages_n; i++) {
		for (v = 0; v < vcpus; v++) {
			struct vcpu_touch touch = pattern_vcpu_touch(config, i, v);

			if (touch.burst == 0)
				continue;
			if (config->shared_mib == 0 && touch.shared_permille > 0)
				return fail(messages, shared_mib,
					"there are touches to the shared region, allowed with "
					"shared_permille=0 only");
			if (config->private_mib == 0 && touch.shared_permille < PERMILLE_MAX)
				return fail(messages, private_mib,
					"there are touches to the private regions, allowed with "
					"shared_permille=1000 only");
		}
	}
	return SETTING_TAKEN;
}

int cmdline_parse(
	const char *line, uint32_t vcpus, struct config *ret_config, struct text *messages)
{
	struct config config = {
		.private_mib = 16,
		.shared_mib = 16,
		.report_ms = 2000,
		.seed = 1,
		.stages_n = 1,
		.stages[0].params =
			{
				.pattern = PATTERN_PRIVATE,
				.write_permille = 500,
				.burst = 512,
				.pause_us = 16000,
				.idle_pause_us = IDLE_PAUSE_US,
			},
	};
	struct slice whole = {line, 0};
	struct stage *next = &config.stages[1];

	while (whole.length <= CMDLINE_LENGTH_MAX && line[whole.length] != '\0')
		whole.length++;
	if (whole.length > CMDLINE_LENGTH_MAX) {
		(void)fail(messages, whole, "the command line is longer than the 4095 allowed");
		return CMDLINE_E_BAD;
	}
	if (take_all(line, vcpus, false, messages, &config) != SETTING_TAKEN ||
		take_all(line, vcpus, true, messages, &config) != SETTING_TAKEN)
		return CMDLINE_E_BAD;
	if (config.stages[0].params.pattern == PATTERN_PHASE && config.stages_n == 1) {
		next->params = config.stages[0].params;
		next->params.rotate += 1;
		next->at_ms = DEFAULT_PHASE_MS;
		config.stages_n++;
	}
	if (check_regions(&config, vcpus, messages) != SETTING_TAKEN)
		return CMDLINE_E_BAD;
	*ret_config = config;
	return 0;
}
