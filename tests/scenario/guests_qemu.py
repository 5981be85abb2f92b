# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests that are QEMU processes without libvirt, laid out as Proxmox VE does. See stage.KINDS.

That is: a monitor and a pid file by name in one directory, and each guest in a scope in qemu.slice.
"""

import json
import os
import shlex
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
MONITOR_TOOL = os.path.join(HERE, "monitor.pl")
FILES = (MONITOR_TOOL,)
ROLES = ("herded",)
RUN = "/run/qemu-server"
# socket-activated: without its sockets it would come back
LIBVIRTD = "libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service"


def argv(guest):
    name = guest["name"]
    # without thread names only the monitor knows which thread is which vCPU
    threads = "on" if guest.get("thread_names", True) else "off"
    return ["systemd-run", "--quiet", "--scope", "--slice=qemu", "--unit=" + name, "--",
            "qemu-system-x86_64", "-name", "%s,debug-threads=%s" % (name, threads),
            "-uuid", str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
            "-machine", "q35", "-accel", "kvm", "-cpu", "host",
            "-smp", str(guest["vcpus"]), "-m", "%dM" % guest["mib"],
            "-nodefaults", "-no-user-config", "-display", "none",
            "-serial", "file:/srv/%s.log" % name,
            "-chardev", "socket,id=qmp,path=%s/%s.qmp,server=on,wait=off" % (RUN, name),
            "-mon", "chardev=qmp,mode=control", "-pidfile", "%s/%s.pid" % (RUN, name),
            "-daemonize", "-kernel", "/srv/guest.elf", "-append", guest["cmdline"]]


def prepare_host(host):
    host.copy_in(MONITOR_TOOL, "/srv/")
    host.run(["mkdir", "-p", RUN])


def create(host, guest, topology):
    host.run(argv(guest), timeout=120)


def _ask_command(command, guests):
    return "perl /srv/monitor.pl %s %s" % (command, " ".join(
        shlex.quote("%s/%s.qmp" % (RUN, g.name)) for g in guests))


def _ask(host, command, guests):
    """What each guest's monitor returns, in their order."""
    out = host.run(_ask_command(command, guests)).stdout
    return [json.loads(line)["return"] for line in out.splitlines()]


def pause(host, guests):
    _ask(host, "stop", guests)


def resume_command(guests):
    return _ask_command("cont", guests) + " >/dev/null"


def find_threads(host, guests):
    pids = host.run("cat " + " ".join("%s/%s.pid" % (RUN, g.name) for g in guests)).stdout.split()
    for g, pid, cpus in zip(guests, pids, _ask(host, "query-cpus-fast", guests), strict=True):
        g.pid = int(pid)
        g.tids = {c["cpu-index"]: c["thread-id"] for c in cpus}


def begin_run(host):
    """Such a host has no libvirtd; the emulated one needs it until it is up."""
    host.run("systemctl stop " + LIBVIRTD)


def monitors_answer(host, guests):
    """Whether others than the daemon get an answer too: a monitor takes one client at a time."""
    return host.run(_ask_command("query-status", guests), check=False).returncode == 0
