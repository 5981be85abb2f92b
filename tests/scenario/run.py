#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a scenario in the emulated host and measures it by the oracle.

Progress goes to stderr. With --json the last line of stdout is one object with the result.
Exit status: 0 measured and within the requirements, 1 measured and not, 3 could not be measured.
"""

import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, "../.."))
sys.path[:0] = [HERE, os.path.join(TOP, "test-vms/host"), os.path.join(TOP, "tests")]

import emuhost  # noqa: E402
import inhost  # noqa: E402
import scenario  # noqa: E402
import stage  # noqa: E402

SCENARIOS = os.path.join(TOP, "test-vms/scenarios")


def progress(text):
    print("%s  %s" % (time.strftime("%H:%M:%S"), text), file=sys.stderr, flush=True)


def names():
    return sorted(n[:-5] for n in os.listdir(SCENARIOS) if n.endswith(".json"))


def load(name):
    """A scenario; what it does not say is as in the one that it is "like"."""
    with open(os.path.join(SCENARIOS, name + ".json")) as f:
        spec = json.load(f)
    return {**load(spec["like"]), **spec} if "like" in spec else spec


def binaries(build):
    return [os.path.join(build, p) for p in (
        "controller/numaherd", "controller/numaherdctl", "tests/scenario/numaherd-oracle")]


def one_run(args, spec, act, length_s):
    """A fresh host from the scenario's saved state, one run in it."""
    topology = emuhost.TOPOLOGIES[args.topology]
    guests = spec["topologies"][args.topology]
    files = {"guest": os.path.join(args.build, "test-vms/numaherd-guest.elf"),
             "placer": os.path.join(args.build, "tests/scenario/numaherd-placer")}
    st = stage.stage_of(spec, guests, topology, files, progress)

    def body(host):
        run = scenario.Run(host, spec, args.topology, binaries(args.build), act, progress, length_s)
        run.prepare()
        progress("numaherd %s from now on" % ("acts" if act else "only watches (kernel alone)"))
        run.start_daemon()
        run.watch()
        run.finish()
        if args.keep_files:
            run.keep_files(os.path.join(args.keep_files, "%s-%s-%s" % (
                args.scenario, args.topology, "act" if act else "kernel")))
        r = run.result()
        if act:
            r["in_host_tests"], r["in_host_skipped"] = inhost.run(
                host, args.build, spec.get("in_host_tests", []), progress)
        return r

    if act and args.keep:
        host = emuhost.EmulatedHost(args.topology, "scenario", progress, detach=True, stage=st).up()
        try:
            return body(host)
        finally:
            tool = os.path.relpath(os.path.join(TOP, "test-vms/host/emuhost"))
            progress("the host stays up, numaherd's files are in its /srv; a shell in it: %s shell "
                     "--name scenario; its end: %s down --name scenario" % (tool, tool))
    return emuhost.run_with_restart(args.topology, body, progress=progress, stage=st)


def requirements(r):
    """(what, met) for each that there was occasion for."""
    changes = r["home_changes"]
    rows = [
        ("locality after >= 950", r["locality_after_permille"] >= 950),
        ("pages moved <= 1.10 x needed", r["pages_moved"] <= 1.10 * r["pages_needed"]),
        ("at most one home change per VM", all(n <= 1 for n in changes.values())),
        ("thirty quiet ticks", r["quiet_ticks"] >= 30),
        ("pins given back at exit", r["pins_released_on_exit"] and r["ended_cleanly"]),
    ]
    for what, key, wanted in (
            ("pinned VM untouched", "touched_pinned_vm", False),
            ("well-placed VM untouched", "touched_placed_vm", False),
            ("nothing new on memory-only nodes", "memory_only_nodes_empty_of_herd", True),
            ("monitors answer others", "monitors_answer_others", True)):
        if r[key] is not None:
            rows.append((what, r[key] == wanted))
    return rows + r["in_host_tests"]


def say_result(r):
    progress("result of '%s' on %s:" % (r["scenario"], r["topology"]))
    rows = [("locality before", "%s" % r["locality_before_permille"],
             "%s" % r.get("kernel_only_before_permille", "-")),
            ("locality after", "%s" % r["locality_after_permille"],
             "%s" % r.get("kernel_only_after_permille", "-")),
            ("seconds to 950", "%s" % r["seconds_to_950"],
             "%s" % r.get("kernel_only_seconds_to_950", "-")),
            ("pages by numaherd", "%d (needed %d)" % (r["pages_moved"], r["pages_needed"]), "0"),
            ("pages by the kernel", "%d" % r["pages_moved_by_kernel"],
             "%s" % r.get("kernel_only_pages_moved", "-"))]
    progress("  %-20s %-24s %s" % ("", "with numaherd", "kernel alone"))
    for row in rows:
        progress("  %-20s %-24s %s" % row)
    for what, met in requirements(r):
        progress("  %-4s %s" % ("ok" if met else "NOT", what))


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--scenario", default="scattered")
    p.add_argument("--topology", default="mesh4")
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--json", action="store_true", help="one JSON object on the last line")
    p.add_argument("--keep", action="store_true",
                   help="leave the emulated host (of the run with numaherd) up")
    p.add_argument("--no-kernel-run", action="store_true",
                   help="leave out the run with the kernel's balancer alone")
    p.add_argument("--daemon-flag", metavar="FLAG", action="append", default=[],
                   help="one more flag for numaherd (may be given more than once)")
    p.add_argument("--keep-files", metavar="DIR", help="logs and samples of each run go there")
    return p.parse_args()


def main():
    args = parse_args()
    if args.scenario not in names():
        print("run: no scenario '%s'; there are: %s" % (args.scenario, ", ".join(names())),
              file=sys.stderr)
        return 2
    spec = load(args.scenario)
    spec["daemon_flags"] = spec.get("daemon_flags", []) + args.daemon_flag
    if args.topology not in spec["topologies"]:
        print("run: scenario '%s' is for: %s" % (args.scenario, ", ".join(spec["topologies"])),
              file=sys.stderr)
        return 2
    try:
        r = {"scenario": args.scenario}
        r.update(one_run(args, spec, True, None))
        if not args.no_kernel_run:
            k = one_run(args, spec, False, r["watched_seconds"])
            r.update({"kernel_only_before_permille": k["locality_before_permille"],
                      "kernel_only_after_permille": k["locality_after_permille"],
                      "kernel_only_seconds_to_950": k["seconds_to_950"],
                      "kernel_only_pages_moved": k["pages_moved_by_kernel"]})
    except (emuhost.HostDied, emuhost.HostTimeout, emuhost.CommandFailed, emuhost.SetupError,
            scenario.ScenarioError, RuntimeError) as e:
        progress("not measured: %s" % e)
        return 3
    say_result(r)
    r["requirements"] = [{"what": what, "met": met} for what, met in requirements(r)]
    if args.json:
        print(json.dumps(r))
    return 0 if all(met for _, met in requirements(r)) else 1


if __name__ == "__main__":
    sys.exit(main())
