# SPDX-License-Identifier: LGPL-2.1-or-later
"""The emulated multi-node KVM host as a Python object.

    with EmulatedHost("mesh4", progress=print) as host:
        print(host.run("numactl -H").stdout)

run_with_restart() starts over when the host dies under the function it is given.
"""

import os
import shutil
import time

import cache
import image
import machine
import process
import runs
import state
from errors import (CommandFailed, HostDied, HostTimeout, SetupError,  # noqa: F401 (interface)
                    stderr_progress)
from remote import Shell
from topology import TOPOLOGIES, cpu_range  # noqa: F401 (interface)

WARM_START_S = 90
MEMORY_MIB = 2560
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils", "ssh": "openssh-client",
         "tar": "tar"}


def check_machine(progress):
    tools = dict(TOOLS) if image.is_complete(image.image_dir()) else dict(image.TOOLS, **TOOLS)
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({pkg for tool, pkg in tools.items() if not shutil.which(tool, path=path)})
    if missing:
        raise SetupError("missing tools; install them with: apt-get install " + " ".join(missing))
    with open("/proc/meminfo") as f:
        mib = next((int(line.split()[1]) >> 10 for line in f if line.startswith("MemAvailable")), 0)
    if mib < MEMORY_MIB:
        progress("only %d MiB of memory are available, a host takes about %d" % (mib, MEMORY_MIB))


def build(topology, progress=stderr_progress):
    """Builds the image and the saved state of a topology, if they are not there."""
    check_machine(progress)
    with state.ensured(_topology(topology), progress) as (image_dir, state_dir, _):
        return image_dir, state_dir


def _topology(name):
    if name not in TOPOLOGIES:
        raise SetupError("no topology '%s'; there are: %s" % (name, ", ".join(sorted(TOPOLOGIES))))
    return TOPOLOGIES[name]


class EmulatedHost:
    """A host started from its saved state; every change in it is gone at the end.

    detach: it outlives this process. stage: see state.ensured(). Start it from a thread that lives
    as long as the host: when that thread ends, QEMU is killed.
    """

    def __init__(self, topology, name=None, progress=stderr_progress, detach=False, stage=None):
        self.topology = _topology(topology)
        self.name = name
        self.progress = progress
        self.detach = detach
        self.stage = stage
        self.dir = None
        self.m = None
        self.shell = None
        self.seconds_to_ready = None

    # -- life

    def _make_dir(self):
        if self.name:
            self.dir = runs.create(self.name)
            if not self.dir:
                raise SetupError("there is an emulated host named '%s' already (emuhost down "
                                 "--name %s)" % (self.name, self.name))
            return
        for n in range(100):
            self.name = "%s-%d%s" % (self.topology.name, os.getpid(), "-%d" % n if n else "")
            self.dir = runs.create(self.name)
            if self.dir:
                return
        raise SetupError("too many emulated hosts in one process")

    def up(self):
        check_machine(self.progress)
        with state.ensured(self.topology, self.progress, self.stage) as (image_dir, saved, held):
            self._make_dir()
            try:
                self._start(image_dir, saved, held)
            except HostTimeout as e:
                console = self.console_tail(20)
                self.down()
                raise HostDied("the emulated host did not become ready: %s; last console lines:\n%s"
                               % (e, console)) from None
            except BaseException:
                self.down()
                raise
        return self

    def _start(self, image_dir, saved, held):
        begin = time.monotonic()
        tmp = os.path.join(cache.cache_dir(), "overlays")  # QEMU unlinks what it makes there
        os.makedirs(tmp, mode=0o700, exist_ok=True)
        self.m = machine.Machine(self.topology, image_dir, self.dir, self.progress)
        self.shell = Shell(self.m, self.detach)
        self.m.launch(os.path.join(saved, "ready.qcow2"), os.path.join(saved, "ram"),
                      detach=self.detach, keep_open=held, tmp=tmp)
        runs.write(self.dir, qemu=self.m.who, port=self.m.port, topology=self.topology.name,
                   image=image_dir, since=time.time())
        self.m.resume()
        self.shell.connect(WARM_START_S)
        self.run("date -s @%.2f >/dev/null && virsh -q list" % time.time(), timeout=WARM_START_S)
        self.seconds_to_ready = time.monotonic() - begin
        self.progress("host '%s' is ready after %.1f s"
                      % (self.topology.name, self.seconds_to_ready))

    def down(self):
        if self.m:
            self.m.kill()
            self.shell.disconnect()
        if self.dir:
            runs.remove(self.dir)
        self.m = self.shell = self.dir = None

    def __enter__(self):
        return self.up()

    def __exit__(self, *exc):
        self.down()

    @property
    def pid(self):
        """QEMU's process."""
        return self.m.pid

    def check_alive(self):
        """Raises HostDied if QEMU is gone or the console tells of the kernel's death."""
        self.m.check_alive()

    def console_tail(self, n=12):
        return self.m.console.tail(n)

    # -- use

    def run(self, command, timeout=60, check=True, input=None):
        """A shell string or an argument list; returns returncode, stdout, stderr.

        Raises HostDied, HostTimeout (the command then still runs in the host) and, with check,
        CommandFailed.
        """
        return self.shell.run(command, timeout, check, input)

    def spawn(self, command, log):
        """Starts it in the background, output to the file log in there; returns its pid there."""
        return self.shell.spawn(command, log)

    def copy_in(self, sources, target, timeout=300):
        self.shell.copy_in(sources, target, timeout)

    def copy_out(self, source, target, timeout=300):
        self.shell.copy_out(source, target, timeout)


def attach(name, progress=stderr_progress):
    """A host that `emuhost up` left running."""
    directory = runs.path(name)
    known = runs.read(directory) if os.path.isdir(directory) else {}
    if "topology" not in known:
        raise SetupError("no emulated host named '%s' is up" % name)
    host = EmulatedHost(known["topology"], name, progress, detach=True)
    host.dir = directory
    host.m = machine.Machine(host.topology, known["image"], directory, progress)
    host.m.attach(known["qemu"], known["port"])
    host.shell = Shell(host.m, detach=True)
    return host


def names():
    """Hosts that have been started, dead ones included (see is_up())."""
    return [n for n in runs.names() if "topology" in runs.read(runs.path(n))]


def is_up(name):
    return process.is_alive(runs.read(runs.path(name)).get("qemu"))


def run_with_restart(topology, fn, tries=3, progress=stderr_progress, name=None, stage=None):
    """fn(host) on a fresh host; when the host dies, says so and starts over.

    A host that is found dead after fn has returned, or failed, has died under it: no result.
    """
    for attempt in range(1, tries + 1):
        try:
            with EmulatedHost(topology, name, progress, stage=stage) as host:
                try:
                    result = fn(host)
                except HostDied:
                    raise
                except Exception:
                    host.m.check_alive_soon(1)
                    raise
                host.m.check_alive_soon(0.5)
                return result
        except HostDied as e:
            progress("%s" % e)
            if attempt == tries:
                raise
            progress("starting over (%d of %d)" % (attempt + 1, tries))
