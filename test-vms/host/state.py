# SPDX-License-Identifier: LGPL-2.1-or-later
"""Saved machine states: the host after its first boot, and further stages on top of it.

A state is a directory with ready.qcow2 (an overlay over what it was made from, frozen) and ram
(what QEMU migrated into a file). Runs start from both and write to neither.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess

import cache
import image
import machine
import runs
from errors import CommandFailed, HostDied, HostTimeout, SetupError
from remote import Shell

STATE_MIB = 1536
STAGES_KEPT = 6
ATTEMPTS = 3

# First boot: libvirtd's probing of QEMU is what takes long, and its result stays in the image.
READY = """
set -e
i=0
until systemctl is-active -q emuhost-anchor libvirtd.socket; do
    i=$((i + 1)); [ $i -lt 60 ] || { systemctl status emuhost-anchor libvirtd.socket; exit 1; }
    sleep 1
done
virsh -q capabilities >/dev/null
virsh -q domcapabilities --virttype kvm >/dev/null
virsh -q list
for t in /sys/kernel/tracing /sys/kernel/debug; do mountpoint -q $t || mount $t; done
ls /sys/kernel/tracing/events >/dev/null
test -d /sys/kernel/debug/sched/numa_balancing
"""
# Nothing half written, little in memory: what is saved must be loaded again at every start.
QUIET = "sync; echo 3 > /proc/sys/vm/drop_caches; sleep 1; sync"


def _key(topology):
    h = hashlib.sha256()
    for part in (machine.qemu_version(), READY, QUIET, *machine.hardware_args(topology)):
        h.update(part.encode() + b"\0")
    return h.hexdigest()[:12]


def state_dir(image_dir, topology):
    return os.path.join(image_dir, "state-%s-%s" % (topology.name, _key(topology)))


def is_complete(directory):
    return os.path.exists(os.path.join(directory, "ram"))


def _create_overlay(backing, path):
    r = subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", backing, "-F",
                        "raw" if backing.endswith(".raw") else "qcow2", path],
                       capture_output=True, text=True)
    if r.returncode != 0:
        raise SetupError("qemu-img failed: " + r.stderr.strip())


def _boot_and_save(topology, image_dir, tmp, start, prepare, progress):
    """Boots (or loads the state directory start), prepares, and saves into tmp."""
    run_dir = runs.create("build-%s-%d" % (topology.name, os.getpid()))
    if run_dir is None:
        raise SetupError("this process is building '%s' already" % topology.name)
    m = machine.Machine(topology, image_dir, run_dir, progress)
    shell = Shell(m)
    disk = os.path.join(tmp, "ready.qcow2")
    ram = os.path.join(tmp, "ram")
    try:
        if start:
            _create_overlay(os.path.join(start, "ready.qcow2"), disk)
            m.launch(disk, os.path.join(start, "ram"), throw_away=False)
            m.resume()
        else:
            progress("first boot of the emulated host '%s' (once, one to two minutes)"
                     % topology.name)
            _create_overlay(os.path.join(image_dir, "root.raw"), disk)
            m.launch(disk, throw_away=False)
        runs.write(run_dir, qemu=m.who)
        shell.connect(240)
        prepare(shell)
        shell.run(QUIET)
        shell.disconnect()
        progress("saving its state")
        m.save(ram + ".part")
        os.rename(ram + ".part", ram)
    except HostDied:
        with contextlib.suppress(OSError):
            shutil.copy(m.console.path, os.path.join(image_dir, "last-death.log"))
        raise
    finally:
        shell.disconnect()
        m.kill()
        runs.remove(run_dir)


@contextlib.contextmanager
def _work_dir(tmp):
    """A directory that is gone at the end unless it was renamed; held, so nobody clears it away."""
    cache.remove_tree(tmp)
    os.makedirs(tmp, mode=0o700)
    fd = cache.hold(tmp)
    if fd is None:
        raise SetupError("somebody removed %s while it was made" % tmp)
    try:
        yield tmp
    finally:
        os.close(fd)
        cache.remove_tree(tmp)


def _ensure(final, topology, image_dir, start, prepare, progress):
    """Makes the state directory final if it is not there; starts over when the host dies."""
    if is_complete(final):
        return
    with cache.locked(final + ".lock", progress):
        for attempt in range(1, ATTEMPTS + 1):
            if is_complete(final):
                return
            cache.need_space(STATE_MIB, "a saved state")
            try:
                with _work_dir(final + ".tmp") as tmp:
                    _boot_and_save(topology, image_dir, tmp, start, prepare, progress)
                    # the overlay has its backing file's absolute path: renaming keeps it right
                    os.rename(tmp, final)
            except (HostDied, HostTimeout, CommandFailed) as e:
                progress("attempt %d of %d: %s" % (attempt, ATTEMPTS, e))
                if attempt == ATTEMPTS:
                    raise


def _wait_for_libvirt(shell):
    shell.m.progress("it is up; waiting for its libvirtd")
    shell.run(READY, timeout=300)


@contextlib.contextmanager
def ensured(topology, progress, stage=None):
    """(image_dir, state directory, descriptors that keep both); builds what is missing.

    stage: (key, prepare) of a further state, made once by what prepare(shell) does in the host. The
    key must change whenever prepare would do something else. No guest may run in the saved state;
    paused ones are safe.
    """
    with contextlib.ExitStack() as stack:
        image_dir, fd = _held(lambda: image.ensure_image(progress))
        stack.callback(os.close, fd)
        ready = state_dir(image_dir, topology)
        _ensure(ready, topology, image_dir, None, _wait_for_libvirt, progress)
        _drop_useless(image_dir, topology, ready)
        if not stage:
            yield image_dir, ready, (fd,)
            return

        def make_stage():
            final = "%s-stage-%s" % (ready, stage[0])
            _ensure(final, topology, image_dir, ready, stage[1], progress)
            return final

        final, stage_fd = _held(make_stage)
        stack.callback(os.close, stage_fd)
        os.utime(final)
        _drop_old_stages(ready)
        yield image_dir, final, (fd, stage_fd)


def _held(make):
    """Makes a directory and holds it; again if somebody removed it in between."""
    for _ in range(5):
        directory = make()
        fd = cache.hold(directory)
        if fd is not None:
            return directory, fd
    raise SetupError("somebody keeps removing the cache while it is built")


def _drop_useless(image_dir, topology, keep):
    """This topology's states of another QEMU or version of these files; killed builds' rests."""
    prefix = "state-%s-" % topology.name
    for name in os.listdir(image_dir):
        path = os.path.join(image_dir, name)
        if name.startswith(prefix) and os.path.isdir(path) \
                and (not path.startswith(keep) or ".tmp" in name or ".trash" in name):
            cache.remove_unless_held(path)


def _drop_old_stages(ready):
    parent, prefix = os.path.split(ready + "-stage-")
    old = sorted((os.path.join(parent, n) for n in os.listdir(parent)
                  if n.startswith(prefix) and "." not in n), key=os.path.getmtime)
    for path in old[:-STAGES_KEPT]:
        cache.remove_unless_held(path)
