#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs test layers and counts: every TAP line is one test, a program that ends badly is one more.

A layer's native tests are those of the meson suite of that name; `scenario` runs in the emulated
host. What was skipped is said, and is no pass.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

TAP = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*)$")


def note(text):
    print(text, file=sys.stderr, flush=True)


class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.failures = []

    def add(self, layer, name, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append("%s: %s" % (layer, name))
            note("not ok  %s: %s\n%s" % (layer, name, detail))


def count_tap(layer, program, stdout, returncode, count):
    """Counts the TAP lines of one program. More or fewer than its plan is a failure too."""
    plan, seen, failed = None, 0, 0
    comments = []
    for line in stdout.splitlines():
        m = re.match(r"^1\.\.(\d+)", line)
        if m:
            plan = int(m.group(1))
            continue
        if line.startswith("#"):
            comments.append(line)
            continue
        m = TAP.match(line)
        if not m:
            continue
        seen += 1
        name = "%s: %s" % (program, m.group(2))
        if "# SKIP" in line:
            count.skipped += 1
            note("skipped %s: %s" % (layer, name))
            continue
        failed += bool(m.group(1))
        count.add(layer, name, not m.group(1), "\n".join(comments[-20:]))
        comments = []
    if plan is None or seen != plan:
        count.add(layer, "%s: printed %d of %s results" % (program, seen, plan), False)
    elif returncode != 0 and not failed:
        count.add(layer, "%s: ended with status %d" % (program, returncode), False)


def native(top, build, layer, suite, count):
    r = subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--suite", suite,
                        "--print-errorlogs"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL)
    log = os.path.join(build, "meson-logs/testlog.json")
    if "No suitable tests" in r.stdout or "No tests defined" in r.stdout:
        return
    with open(log) as f:
        for line in f:
            t = json.loads(line)
            program = t["name"].split(" / ")[-1].split(":")[-1].strip()
            before = count.failed
            count_tap(layer, program, t.get("stdout") or "", t.get("returncode") or 0, count)
            if count.failed > before and t.get("stderr"):
                note(t["stderr"][-6000:])


def one_scenario(top, argv):
    """The result of a run, or None if nothing could be measured."""
    r = subprocess.run([sys.executable, os.path.join(top, "tests/scenario/run.py"), "--json",
                        "--build", os.path.join(top, "build/run")] + argv,
                       stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        result = json.loads(r.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return None
    note(json.dumps(result))
    return result


def scenarios(top, count):
    """A run that misses something is made once more, since the emulated host shares its machine with
    others; both results are printed, and the second one counts."""
    with open(os.path.join(top, "tests/scenario/plan.json")) as f:
        plan = json.load(f)
    for argv in plan:
        name = " ".join(argv)
        for attempt in (1, 2):
            result = one_scenario(top, argv)
            if result and all(check["met"] for check in result["requirements"]):
                break
            if attempt == 1:
                note("%s: %s, once more" % (name, "missed: " + ", ".join(
                    c["what"] for c in result["requirements"] if not c["met"])
                    if result else "not measured"))
        if not result:
            count.add("scenario", "%s: not measured" % name, False)
            continue
        for check in result["requirements"]:
            count.add("scenario", "%s: %s" % (name, check["what"]), check["met"])


def host_selftest(top, count):
    path = os.path.join(top, "test-vms/host/selftest")
    r = subprocess.run([path], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    count_tap("scenario", "emulated host", r.stdout, r.returncode, count)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--top", required=True)
    p.add_argument("layers", nargs="+")
    args = p.parse_args()
    count = Count()
    for layer in args.layers:
        begin, before = time.monotonic(), (count.passed, count.failed)
        note("=== %s" % layer)
        if layer == "scenario":
            host_selftest(args.top, count)
            scenarios(args.top, count)
        else:
            native(args.top, os.path.join(args.top, "build/check"), layer, layer, count)
            if layer == "unit":
                native(args.top, os.path.join(args.top, "build/tsan"), "unit (threads)", "threads",
                       count)
        note("=== %s: %d passed, %d failed, %.0f s" % (
            layer, count.passed - before[0], count.failed - before[1], time.monotonic() - begin))
    for f in count.failures:
        note("FAILED  " + f)
    print("%d passed, %d failed%s" % (count.passed, count.failed,
                                      ", %d skipped" % count.skipped if count.skipped else ""))
    return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
