/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first bytes of an input say how the rest is cut and what time it is, the rest is what the
 * peer sends. "$1" and "$2" in it are the ids of the two commands, since no fuzzer would guess that
 * they have to agree with what was sent.
 *
 * Where no time passes, the same bytes in one piece must come to the same.
 */
#include "qmp/queries.h"
#include "tests/fuzz/target.h"
#include "tests/qmp/peer.h"

#define HEADER 4u
#define CALLS 2u
#define MS UINT64_C(1000000)

/* Bits of the header's third byte; the upper half is `callbacks_left`. */
#define SAYS_HELLO 1u   /* greeting and negotiation are done before the input begins */
#define SMALL_LIMITS 2u /* that an input can reach */
#define HANGS_UP 4u     /* at its end; else it falls silent */

struct session;

struct call {
	struct session *session;
	bool sent;
	unsigned ended;
	char wire_id[32]; /* as JSON */
};

struct session {
	struct qmp *q;
	struct peer peer;
	uint64_t now_ns;
	struct call call[CALLS];
	unsigned callbacks_left; /* before one disconnects; 0: none does */
	uint64_t digest;         /* of all that came out */
};

/* Every answer may be given to every question. */
static void parse_all(struct json_object *ret)
{
	struct qmp_error err;

#define PARSE(name, type)                                                         \
	do {                                                                      \
		struct type v = {0};                                              \
		int r = qmp_parse_##name(ret, &v, &err);                          \
		PROMISE(r == 0 || r == QMP_E_SHAPE);                              \
		PROMISE(r == 0 || memcmp(&v, &(struct type){0}, sizeof(v)) == 0); \
	} while (0)
#define PARSE_OWNED(name, type, list)                                     \
	do {                                                              \
		struct type v = {0};                                      \
		int r = qmp_parse_##name(ret, &v, &err);                  \
		PROMISE(r == 0 || r == QMP_E_SHAPE);                      \
		PROMISE(r == 0 ? v.n <= QMP_ITEMS_MAX : !v.n && !v.list); \
		type##_clear(&v);                                         \
		type##_clear(&v);                                         \
	} while (0)
	PARSE(status, qmp_status);
	PARSE(version, qmp_version);
	PARSE(kvm, qmp_kvm);
	PARSE(name, qmp_name);
	PARSE(uuid, qmp_uuid);
	PARSE(balloon, qmp_balloon);
	PARSE(migrate, qmp_migrate);
	PARSE_OWNED(cpus_fast, qmp_cpus, cpu);
	PARSE_OWNED(hotpluggable_cpus, qmp_cpu_slots, slot);
	PARSE_OWNED(memdev, qmp_memdevs, memdev);
	PARSE_OWNED(memory_devices, qmp_memory_devices, device);
	PARSE_OWNED(iothreads, qmp_iothreads, iothread);
	PARSE_OWNED(stats, qmp_stats, vcpu);
}

static void maybe_leave(struct session *s)
{
	if (s->callbacks_left && --s->callbacks_left == 0)
		qmp_disconnect(s->q);
}

static void add_text(struct session *s, const char *text)
{
	do {
		s->digest = (s->digest ^ (unsigned char)*text) * UINT64_C(1099511628211);
	} while (*text++);
}

static void add_json(struct session *s, struct json_object *object)
{
	add_text(s, json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
}

static void check_text(const char *text, size_t size)
{
	PROMISE(strnlen(text, size) < size);
	for (const char *c = text; *c; c++)
		PROMISE(*c >= ' ' && *c <= '~');
}

static void on_event(void *userdata, struct qmp *q, const struct qmp_event *event)
{
	check_text(event->name, 64);
	PROMISE(event->name[0]);
	PROMISE(event->time_us >= -1);
	parse_all(event->data);
	add_text(userdata, event->name);
	add_json(userdata, event->data);
	maybe_leave(userdata);
}

static void on_state(void *userdata, struct qmp *q, enum qmp_state state)
{
	PROMISE(state == qmp_state_of(q));
	PROMISE(state != QMP_BROKEN || qmp_last_error(q)->code);
	add_text(userdata, qmp_state_name(state));
	add_text(userdata, qmp_result_name(qmp_last_error(q)->code));
}

static void on_reply(void *userdata, struct qmp *q, int result, struct json_object *ret,
	const struct qmp_error *err)
{
	struct call *call = userdata;

	PROMISE(call->sent && !call->ended);
	call->ended++;
	PROMISE(result >= 0 && result < QMP_RESULTS);
	PROMISE((result == 0) == (err == NULL));
	if (err) {
		PROMISE(err->code == result && !ret);
		check_text(err->text, sizeof(err->text));
		check_text(err->class_name, sizeof(err->class_name));
	} else {
		parse_all(ret);
	}
	add_text(call->session, call == call->session->call ? "1" : "2");
	add_text(call->session, qmp_result_name(result));
	add_json(call->session, ret);
	maybe_leave(call->session);
}

static void execute(struct session *s, struct call *call)
{
	struct json_object *command, *id = NULL;
	char *line;

	call->session = s;
	call->sent = true; /* before: it must not end within this call, and then we see that */
	call->sent =
		qmp_execute(s->q, "c", NULL, 3000 * MS, s->now_ns, 0, on_reply, call, NULL) == 0;
	PROMISE(!call->ended);
	while ((line = peer_next_line(&s->peer))) {
		command = json_tokener_parse(line);
		PROMISE(command);
		if (json_object_object_get_ex(command, "id", &id))
			snprintf(call->wire_id, sizeof(call->wire_id), "%s",
				json_object_to_json_string_ext(id, 0));
		json_object_put(command);
		free(line);
	}
}

static void process(struct session *s)
{
	enum qmp_state state;
	bool open;

	PROMISE(peer_process(&s->peer, s->q, s->now_ns) == 0);
	state = qmp_state_of(s->q);
	open = state == QMP_GREETING || state == QMP_NEGOTIATING || state == QMP_READY;
	PROMISE(open || state == QMP_BROKEN || state == QMP_DISCONNECTED);
	PROMISE(open == (qmp_fd(s->q) >= 0) && open == (qmp_wanted(s->q) != 0));
	PROMISE(qmp_deadline_ns(s->q) > s->now_ns);
	for (unsigned i = 0; i < CALLS && state == QMP_READY; i++)
		if (!s->call[i].sent)
			execute(s, &s->call[i]);
}

/* @size bytes of the input, with the ids in their places. */
static void say(struct session *s, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool id = data[i] == '$' && i + 1 < size &&
			  (data[i + 1] == '1' || data[i + 1] == '2');

		if (!id) {
			peer_say(&s->peer, (const char *)data + i, 1);
			continue;
		}
		i++;
		peer_say(&s->peer, s->call[data[i] - '1'].wire_id,
			strlen(s->call[data[i] - '1'].wire_id));
	}
}

static void begin(struct session *s, unsigned flags)
{
	static const char hello[] = "{\"QMP\": {\"capabilities\": [\"oob\"]}}{\"return\": {}}";
	struct qmp_config config = {.on_event = on_event, .on_state = on_state, .userdata = s};
	struct qmp_transport t;

	if (flags & SMALL_LIMITS) {
		config.message_bytes_max = 200;
		config.depth_max = 5;
	}
	peer_init(&s->peer);
	t = peer_transport(&s->peer);
	if (qmp_new(&config, &s->q) < 0)
		abort();
	PROMISE(qmp_connect_transport(s->q, &t, s->now_ns) == 0);
	if (flags & SAYS_HELLO) {
		peer_say(&s->peer, hello, strlen(hello));
		process(s);
		PROMISE(qmp_state_of(s->q) == QMP_READY);
	}
}

static void end(struct session *s, unsigned flags)
{
	if (flags & HANGS_UP)
		s->peer.hung_up = true;
	process(s);
	if (flags & HANGS_UP)
		PROMISE(qmp_fd(s->q) < 0);
	s->now_ns += 3000 * MS;
	process(s);
	for (unsigned i = 0; i < CALLS; i++)
		PROMISE(s->call[i].ended == (s->call[i].sent ? 1 : 0));
	qmp_free(s->q);
	for (unsigned i = 0; i < CALLS; i++)
		PROMISE(s->call[i].ended == (s->call[i].sent ? 1 : 0));
	PROMISE(s->peer.closed == 1);
	peer_deinit(&s->peer);
}

static uint64_t run(const uint8_t *data, size_t size, bool whole)
{
	struct session s = {.now_ns = 1000000 * MS, .callbacks_left = data[2] >> 4};
	size_t chunk[2] = {data[0] + 1u, data[1] + 1u};
	unsigned turn = 0;

	begin(&s, data[2]);
	for (size_t at = HEADER; at < size; turn++) {
		size_t n = whole ? size : chunk[turn % 2];

		if (n > size - at)
			n = size - at;
		/* an id stays in one piece, or it is none */
		while (n < size - at && data[at + n - 1] == '$')
			n++;
		say(&s, data + at, n);
		process(&s);
		at += n;
		s.now_ns += data[3] * 10 * MS;
	}
	end(&s, data[2]);
	return s.digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t digest;

	if (size < HEADER)
		return 0;
	digest = run(data, size, /* whole= */ false);
	if ((data[2] & SAYS_HELLO) && data[3] == 0)
		PROMISE(digest == run(data, size, /* whole= */ true));
	return 0;
}
