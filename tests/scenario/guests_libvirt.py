# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests that are domains of the host's libvirtd. What a kind of guests offers: see stage.KINDS."""

import os
import re
import xml.sax.saxutils

from topology import cpu_range

DOMAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../test-vms/domains/guest.xml")
FILES = (DOMAIN,)
ROLES = ("herded", "placed", "pinned")


def domain_xml(guest, topology):
    pins = ""
    if guest.get("role") == "pinned":
        pins = "<cputune>%s</cputune>" % "".join(
            "<vcpupin vcpu='%d' cpuset='%d-%d'/>" % ((i,) + cpu_range(topology, node))
            for i, node in enumerate(guest["vcpus_on"]))
    with open(DOMAIN) as f:
        text = f.read()
    values = {"name": guest["name"], "mib": str(guest["mib"]), "vcpus": str(guest["vcpus"]),
              "cmdline": xml.sax.saxutils.escape(guest["cmdline"]), "pins": pins}
    return re.sub(r"\{(\w+)\}", lambda m: values[m.group(1)], text.split("-->", 2)[2].strip())


def prepare_host(host):
    """Nothing: libvirtd is there."""


def create(host, guest, topology):
    host.run("cat > /srv/%s.xml" % guest["name"], input=domain_xml(guest, topology))
    host.run("virsh -q create /srv/%s.xml" % guest["name"], timeout=120)


def _each(command, guests):
    return "for g in %s; do virsh -q %s $g; done" % (" ".join(g.name for g in guests), command)


def pause(host, guests):
    host.run(_each("suspend", guests))


def resume_command(guests):
    return _each("resume", guests)


def find_threads(host, guests):
    out = host.run("""for g in %s; do p=$(cat /run/libvirt/qemu/$g.pid); echo "$g $p"
        for t in /proc/$p/task/*; do echo "$g ${t##*/} $(cat $t/comm)"; done; done"""
                   % " ".join(g.name for g in guests)).stdout
    by_name = {g.name: g for g in guests}
    for line in out.splitlines():
        f = line.split()
        if len(f) == 2:
            by_name[f[0]].pid = int(f[1])
        elif len(f) == 4 and f[2] == "CPU":
            by_name[f[0]].tids[int(f[3].partition("/")[0])] = int(f[1])


def cgroup(guest):
    """Pattern of the cgroup that its administrator may confine it with."""
    return "/sys/fs/cgroup/machine.slice/machine-qemu*x2d%s.scope" % guest.name


def begin_run(host):
    """Nothing: libvirtd runs."""
