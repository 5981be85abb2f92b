# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sets a scenario's stage in the emulated host: guests, where their memory lies, where they run."""

import hashlib
import json
import os
import re
import shlex
import time

import guests_libvirt
import guests_qemu
import truth

HERE = os.path.dirname(os.path.abspath(__file__))
# By a scenario's "hypervisor". A kind knows how guests are created, paused, resumed and found; each
# is a module with ROLES, FILES (what it reads, beside its code) and the same functions.
KINDS = {"libvirt": guests_libvirt, "qemu": guests_qemu}


def kind_of(spec):
    return KINDS[spec.get("hypervisor", "libvirt")]


def cpus_of_node(topology, node):
    first = sum(n[0] for n in topology.nodes[:node])
    return list(range(first, first + topology.nodes[node][0]))


def node_of_cpu(topology):
    table = {}
    for node in range(len(topology.nodes)):
        for cpu in cpus_of_node(topology, node):
            table[cpu] = node
    return lambda cpu: table[cpu]


def stage_of(spec, guests, topology, files, progress):
    """(key, prepare) of a saved state in which the stage is set.

    All guests are created and have said that they are ready, their memory lies where the scenario
    says, and they are paused: a guest that runs while a machine is saved may not come back.
    files: paths of the guest's image and of the placer.
    """
    kind = kind_of(spec)
    for g in guests:
        if g.get("role", "herded") not in kind.ROLES:
            raise RuntimeError("guest '%s': guests of this hypervisor cannot be '%s'"
                               % (g["name"], g["role"]))
    h = hashlib.sha256(json.dumps([spec["balancer"], spec["scheduler"], guests],
                                  sort_keys=True).encode())
    # a change in another kind makes no new stage of this one
    for path in (files["guest"], os.path.join(HERE, "placer.c"), os.path.abspath(__file__),
                 kind.__file__, *kind.FILES):
        with open(path, "rb") as f:
            h.update(f.read())

    def prepare(machine):
        machine.copy_in(files["guest"], "/srv/guest.elf")
        machine.copy_in(files["placer"], "/srv/")
        machine.run("echo 0 > /proc/sys/kernel/numa_balancing")
        # before the guests are: a thread takes its first scan period over when it is made
        set_knobs(machine, spec)
        kind.prepare_host(machine)
        made = [Guest(g) for g in guests]
        for i, g in enumerate(made):
            progress("creating guest %d of %d, '%s' (once)" % (i + 1, len(made), g.name))
            kind.create(machine, g.spec, topology)
        wait_ready(machine, made)
        kind.find_threads(machine, made)
        progress("placing their memory (once)")
        place_memory(machine, made)
        kind.pause(machine, made)
        machine.run("sync; sleep 1")

    return h.hexdigest()[:16], prepare


class Guest:
    """A running guest: what the runner knows of it."""

    def __init__(self, spec):
        self.spec = spec
        self.name = spec["name"]
        self.role = spec.get("role", "herded")
        self.pid = None
        self.tids = {}
        self.regions = []
        self.ram_bytes = spec["mib"] << 20

    def oracle_arg(self):
        return "%s:%d:%d:%s" % (
            self.name, self.pid, self.ram_bytes,
            ",".join(str(tid) for _, tid in sorted(self.tids.items()))) + "".join(
            ":%d+%d" % (start, size) for _, start, size in self.regions)


def consoles(host, guests):
    text = host.run("for g in %s; do echo \"=== $g\"; cat /srv/$g.log; done"
                    % " ".join(g.name for g in guests)).stdout
    parts = re.split(r"=== (\S+)\n", text)[1:]
    return dict(zip(parts[::2], (p.replace("\r", "") for p in parts[1::2])))


def wait_ready(host, guests, deadline_s=60):
    """Waits until each guest has said that it is ready, and notes its regions."""
    end = time.monotonic() + deadline_s
    while True:
        logs = consoles(host, guests)
        late = [g.name for g in guests if " ready ms=" not in logs[g.name]]
        if not late:
            break
        for name in late:
            if "error:" in logs[name]:
                raise RuntimeError("guest '%s' says: %s" % (name, logs[name]))
        if time.monotonic() > end:
            raise RuntimeError("guests not ready after %d s: %s" % (deadline_s, ", ".join(late)))
        time.sleep(0.5)
    for g in guests:
        g.regions = truth.regions_of(logs[g.name])


def place_memory(host, guests):
    host.run("set -e\n" + "\n".join("/srv/numaherd-placer %d %d %s" % (
        g.pid, g.ram_bytes, " ".join("%s=%d" % s for s in sorted(g.spec["memory"].items())))
        for g in guests), timeout=240)


def start_guests(host, kind, guests, topology):
    """Lets the paused guests run on, each vCPU first where the scenario says; then it is free."""
    all_cpus = "0-%d" % (sum(n[0] for n in topology.nodes) - 1)
    put, free = [], []
    for g in guests:
        for vcpu, node in enumerate(g.spec["vcpus_on"]):
            cpus = cpus_of_node(topology, node)
            if g.role == "pinned":
                continue
            put.append("taskset -pc %d %d >/dev/null" % (cpus[vcpu % len(cpus)], g.tids[vcpu]))
            free.append("taskset -pc %s %d >/dev/null" % (all_cpus, g.tids[vcpu]))
        if g.role == "placed":
            # its administrator's cgroup keeps it where it is well placed; nobody has pinned a vCPU
            put.append("echo %s > %s/cpuset.cpus" % (
                ",".join(map(str, cpus_of_node(topology, g.spec["vcpus_on"][0]))), kind.cgroup(g)))
    host.run("set -e\n" + "\n".join(put + [kind.resume_command(guests), "sleep 2"] + free))


def set_knobs(host, spec):
    """Time in the emulated host is unreal: what the kernel measures in time is scaled for it."""
    base = "/sys/kernel/debug/sched/"
    host.run("\n".join(
        ["echo %d > %snuma_balancing/%s" % (v, base, k) for k, v in spec["balancer"].items()]
        + ["echo %d > %s%s" % (v, base, k) for k, v in spec["scheduler"].items()]))


def masks(host, guests):
    """{name: [mask of each vCPU thread]} as the kernel has them."""
    out = host.run("\n".join("echo %s $(grep Cpus_allowed_list /proc/%d/task/%d/status)" % (
        shlex.quote(g.name), g.pid, tid) for g in guests for _, tid in sorted(g.tids.items()))).stdout
    result = {}
    for line in out.splitlines():
        name, _, mask = line.split()
        result.setdefault(name, []).append(mask)
    return result
