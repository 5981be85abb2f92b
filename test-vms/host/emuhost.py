# SPDX-License-Identifier: LGPL-2.1-or-later
"""The emulated multi-node KVM host as a Python object.

    with EmulatedHost("mesh4", progress=print) as host:
        print(host.run("numactl -H").stdout)

run_with_restart() starts over when the host dies under the function it is given.
"""

import contextlib
import os
import shutil
import sys
import time

import image
import machine
from image import SetupError  # noqa: F401 (part of this module's interface)
from machine import CommandFailed, HostDied, HostTimeout  # noqa: F401
from topology import TOPOLOGIES, cpu_range  # noqa: F401

WARM_START_S = 60


def run_root():
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    return os.path.join(base, "numaherd-emuhost-%d" % os.geteuid())


def stderr_progress(text):
    print("emuhost: " + text, file=sys.stderr, flush=True)


def sweep():
    """Removes what killed runs left behind: directories whose machine does not run any more."""
    root = run_root()
    if not os.path.isdir(root):
        return
    for name in os.listdir(root):
        d = os.path.join(root, name)
        try:
            with open(os.path.join(d, "pid")) as f:
                pid, start = f.read().split()
            alive = machine.start_time(int(pid)) == start
        except (OSError, ValueError):
            alive = time.time() - os.stat(d).st_mtime < 60  # perhaps just being made
        if not alive:
            with contextlib.suppress(OSError), open(os.path.join(d, "sockets")) as f:
                shutil.rmtree(f.read().strip(), ignore_errors=True)
            shutil.rmtree(d, ignore_errors=True)


class EmulatedHost:
    """stage: (key, prepare) for machine.ensure_stage(), to start from a further saved state."""

    def __init__(self, topology, name=None, progress=stderr_progress, detach=False, stage=None):
        if topology not in TOPOLOGIES:
            raise SetupError("no topology '%s'; there are: %s"
                             % (topology, ", ".join(sorted(TOPOLOGIES))))
        self.topology = TOPOLOGIES[topology]
        self.name = name or "%s-%d" % (topology, os.getpid())
        self.progress = progress
        self.detach = detach
        self.stage = stage
        self.m = None
        self.seconds_to_ready = None

    def up(self):
        sweep()
        if self.stage:
            image_dir, state = machine.ensure_stage(self.topology, *self.stage, self.progress)
        else:
            image_dir, state = machine.ensure_state(self.topology, self.progress)
        d = os.path.join(run_root(), self.name)
        if os.path.exists(d):
            raise SetupError("an emulated host named '%s' is up already (emuhost down --name %s)"
                             % (self.name, self.name))
        os.makedirs(d, mode=0o700)
        begin = time.monotonic()
        self.m = machine.Machine(self.topology, image_dir, d, self.progress)
        try:
            machine.overlay(os.path.join(state, "ready.qcow2"), os.path.join(d, "disk.qcow2"))
            self.m.launch(os.path.join(d, "disk.qcow2"), os.path.join(state, "ram"), self.detach)
            self.m.resume()
            self.m.connect(WARM_START_S)
            self.m.run("date -s @%d >/dev/null; virsh -q list" % time.time(), timeout=WARM_START_S)
        except BaseException:
            self.down()
            raise
        with open(os.path.join(d, "topology"), "w") as f:
            f.write(self.topology.name + "\n")
        self.seconds_to_ready = time.monotonic() - begin
        self.progress("host '%s' is ready after %.1f s" % (self.topology.name, self.seconds_to_ready))
        return self

    def down(self):
        if self.m:
            self.m.kill()
            shutil.rmtree(self.m.dir, ignore_errors=True)
            self.m = None

    def __enter__(self):
        return self.up()

    def __exit__(self, *exc):
        self.down()

    @property
    def pid(self):
        return self.m.pid

    def run(self, command, **kw):
        return self.m.run(command, **kw)

    def spawn(self, command, log):
        return self.m.spawn(command, log)

    def copy_in(self, sources, target):
        self.m.copy_in(sources, target)

    def copy_out(self, source, target):
        self.m.copy_out(source, target)

    def console_tail(self, n=12):
        return self.m.console_tail(n)

    def check_alive(self):
        self.m.check_alive()


def attach(name):
    """A host that `emuhost up` left running."""
    d = os.path.join(run_root(), name)
    try:
        with open(os.path.join(d, "topology")) as f:
            host = EmulatedHost(f.read().strip(), name, detach=True)
    except FileNotFoundError:
        raise SetupError("no emulated host named '%s' is up" % name) from None
    host.m = machine.Machine(host.topology, image.image_dir(), d, host.progress)
    host.m.attach()
    return host


def names():
    root = run_root()
    return sorted(n for n in os.listdir(root)
                  if os.path.exists(os.path.join(root, n, "topology"))) if os.path.isdir(root) else []


def run_with_restart(topology, fn, tries=3, progress=stderr_progress, name=None, stage=None):
    """fn(host) on a fresh host; when the host dies, says so and starts over."""
    for attempt in range(1, tries + 1):
        try:
            with EmulatedHost(topology, name, progress, stage=stage) as host:
                return fn(host)
        except HostDied as e:
            progress("%s" % e)
            if attempt == tries:
                raise
            progress("starting over (%d of %d)" % (attempt + 1, tries))
