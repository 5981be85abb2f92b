/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller/daemon/config.h"
#include "tests/tap.h"

#define ROOT(inner) "<numaherd xmlns='urn:numaherd:host:1'>\n" inner "</numaherd>\n"

static int parse(const char *xml, struct config *c, char *why)
{
	why[0] = '\0';
	return config_parse("numaherd.xml", xml, strlen(xml), c, why);
}

static void what_the_file_says_is_taken(struct tap *tap_)
{
	_cleanup_(config_clear) struct config c = {0};
	char why[CONFIG_WHY_MAX];

	REQUIRE(parse(ROOT("<!-- two places -->\n"
			   "<libvirt uri='qemu:///session' monitor='needed'/>\n"
			   "<qemu socket='/run/a/*.qmp'/><qemu socket='/run/b' share='no'/>\n"),
			&c, why) == 0);
	CHECK_STR(c.libvirt_uri, "qemu:///session");
	CHECK(c.libvirt_monitor && !c.no_libvirt);
	REQUIRE(c.n_sources == 2);
	CHECK_STR(c.source[0].pattern, "/run/a/*.qmp");
	CHECK(c.source[0].share && !c.source[1].share);
}

static void an_empty_file_changes_nothing(struct tap *tap_)
{
	_cleanup_(config_clear) struct config c = {0};
	char why[CONFIG_WHY_MAX];

	CHECK_INT(config_add_source(&c, "/run/x", true), 0);
	CHECK_INT(parse(ROOT(""), &c, why), 0);
	CHECK_INT(c.n_sources, 1);
	CHECK_INT(parse(ROOT("<libvirt uri='none'/>"), &c, why), 0);
	CHECK(c.no_libvirt && !c.libvirt_uri);
}

static void what_is_wrong_is_said_with_its_line(struct tap *tap_)
{
	static const struct {
		const char *xml, *why;
	} bad[] = {
		{ROOT("\n<qemus/>\n"), "numaherd.xml:3: unknown element 'qemus'"},
		{ROOT("<qemu/>"), "numaherd.xml:2: incomplete element 'qemu'"},
		{ROOT("<qemu socket='run/x'/>"), "numaherd.xml:2: wrong socket 'run/x'"},
		{ROOT("<qemu socket=''/>"), "numaherd.xml:2: wrong socket ''"},
		{ROOT("<qemu socket='/x' share='maybe'/>"),
			"wrong value 'maybe': expected share=\"no\" or \"yes\""},
		{ROOT("<qemu socket='/x' shared='no'/>"), "unknown attribute 'shared'"},
		{ROOT("<libvirt monitor='yes'/>"), "expected monitor=\"never\" or \"needed\""},
		{ROOT("<libvirt uri=''/>"), "unknown or empty attribute 'uri'"},
		{ROOT("<libvirt/>\n<libvirt uri='none'/>"),
			"numaherd.xml:3: second element 'libvirt'"},
		{ROOT("<x:qemu xmlns:x='urn:x' socket='/x'/>"),
			"element of another namespace 'qemu'"},
		{ROOT("<qemu xmlns:x='urn:x' x:socket='/x'/>"),
			"attribute of another namespace 'socket'"},
		{ROOT("words"), "text ' words'"},
		{"<numaherd/>", "namespace ''"},
		{"<numaherd xmlns='urn:numaherd:host:2'/>", "namespace 'urn:numaherd:host:2'"},
		{"<policy xmlns='urn:numaherd:host:1'/>", "unknown root element 'policy'"},
		{"<numaherd xmlns='urn:numaherd:host:1' a='b'/>", "unknown attribute 'a'"},
		{"<numaherd xmlns='urn:numaherd:host:1'>\n<qemu", "numaherd.xml:2: not XML"},
		{"", "not XML"},
		{"<!DOCTYPE x [<!ENTITY a 'aaaa'>]>\n<numaherd xmlns='urn:numaherd:host:1'/>",
			"a document type is not allowed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_(config_clear) struct config c = {0};
		char why[CONFIG_WHY_MAX];

		config_add_source(&c, "/run/before", false);
		CHECK_INT(parse(bad[i].xml, &c, why), CONFIG_E_INVALID);
		if (!strstr(why, bad[i].why)) {
			tap_->failures++;
			printf("# '%s' is said about it, not '%s'\n", why, bad[i].why);
		}
		/* nothing of a bad file is taken */
		CHECK(c.n_sources == 1 && !c.libvirt_monitor && !c.libvirt_uri);
	}
}

static void there_is_a_greatest_number_of_sources(struct tap *tap_)
{
	_cleanup_(config_clear) struct config c = {0};

	for (unsigned i = 0; i < QEMU_SOURCES_MAX; i++)
		REQUIRE(config_add_source(&c, "/x", true) == 0);
	CHECK(config_add_source(&c, "/x", true) < 0);
	CHECK_INT(c.n_sources, QEMU_SOURCES_MAX);
}

static void files_that_cannot_be_read(struct tap *tap_)
{
	_cleanup_(config_clear) struct config c = {0};
	char why[CONFIG_WHY_MAX];

	CHECK_INT(config_read("/nonexistent/numaherd.xml", &c, why), CONFIG_E_MISSING);
	CHECK(strstr(why, "/nonexistent/numaherd.xml: No such file") != NULL);
	CHECK_INT(config_read("/", &c, why), CONFIG_E_UNREADABLE);
	CHECK_INT(config_read("/dev/zero", &c, why), CONFIG_E_UNREADABLE);
	CHECK(strstr(why, "longer than 1 MiB") != NULL);
}

TAP_MAIN(TEST(what_the_file_says_is_taken), TEST(an_empty_file_changes_nothing),
	TEST(what_is_wrong_is_said_with_its_line), TEST(there_is_a_greatest_number_of_sources),
	TEST(files_that_cannot_be_read))
