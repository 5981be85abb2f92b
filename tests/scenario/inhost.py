# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test programs that need a KVM host: they run in the emulated one, after a scenario's run.

A scenario's "in_host_tests" names them: {"program": path below the build directory, "args": [...],
"timeout_s": N}. Each of their TAP lines is one requirement of the run.
"""

import os
import shlex

import report
from errors import HostTimeout

OUTPUT = "/srv/inhost"


class Rows:
    """What report.count_tap() counts, as requirements."""

    def __init__(self, progress):
        self.progress = progress
        self.rows = []
        self.skipped = 0

    def add(self, layer, name, ok, detail=""):
        self.rows.append((name, ok))
        if not ok and detail:
            self.progress("%s:\n%s" % (name, detail))


def _run_one(host, build, test, rows):
    path = os.path.join(build, test["program"])
    name = os.path.basename(path)
    if not os.path.exists(path):
        rows.add("scenario", "%s: it is not in the build directory" % test["program"], False)
        return
    host.copy_in(path, "/srv/")
    # the program is ended in the host, so that what it printed until then is not lost
    limit = test["timeout_s"]
    command = "cd /srv; timeout -k 5 %d %s >%s.tap 2>%s.err </dev/null" % (
        limit, shlex.join(["/srv/" + name] + test.get("args", [])), OUTPUT, OUTPUT)
    try:
        status = host.run(command, timeout=limit + 60, check=False).returncode
    except HostTimeout as e:
        rows.add("scenario", "%s: %s" % (name, e), False)
        return
    before = len(rows.rows)
    report.count_tap("scenario", name, host.run("cat %s.tap" % OUTPUT).stdout, status, rows)
    if status == 124:
        rows.add("scenario", "%s: not at its end after %d s" % (name, limit), False)
    if not all(ok for _, ok in rows.rows[before:]):
        rows.progress("%s said on stderr:\n%s" % (
            name, host.run("tail -c 4000 %s.err" % OUTPUT).stdout))


def run(host, build, tests, progress):
    """([(what, met)], number of skipped tests) of the programs."""
    rows = Rows(progress)
    for test in tests:
        progress("running %s in the host" % test["program"])
        _run_one(host, build, test, rows)
    return rows.rows, rows.skipped
