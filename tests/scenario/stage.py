# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sets a scenario's stage in the emulated host: guests, where their memory lies, where they run."""

import hashlib
import json
import os
import re
import shlex
import time
import xml.sax.saxutils

import truth

HERE = os.path.dirname(os.path.abspath(__file__))
DOMAIN = os.path.join(HERE, "../../test-vms/domains/guest.xml")


def cpus_of_node(topology, node):
    first = sum(n[0] for n in topology.nodes[:node])
    return list(range(first, first + topology.nodes[node][0]))


def node_of_cpu(topology):
    table = {}
    for node in range(len(topology.nodes)):
        for cpu in cpus_of_node(topology, node):
            table[cpu] = node
    return lambda cpu: table[cpu]


def domain_xml(guest, topology):
    pins = ""
    if guest.get("role") == "pinned":
        pins = "<cputune>%s</cputune>" % "".join(
            "<vcpupin vcpu='%d' cpuset='%s'/>" % (
                i, ",".join(map(str, cpus_of_node(topology, node))))
            for i, node in enumerate(guest["vcpus_on"]))
    with open(DOMAIN) as f:
        text = f.read()
    values = {"name": guest["name"], "mib": str(guest["mib"]), "vcpus": str(guest["vcpus"]),
              "cmdline": xml.sax.saxutils.escape(guest["cmdline"]), "pins": pins}
    return re.sub(r"\{(\w+)\}", lambda m: values[m.group(1)], text.split("-->", 2)[2].strip())


def stage_of(spec, guests, topology, files, progress):
    """(key, prepare) of a saved state in which the stage is set.

    All guests are created and have said that they are ready, their memory lies where the scenario
    says, and they are paused: a guest that runs while a machine is saved may not come back.
    files: paths of the guest's image and of the placer.
    """
    h = hashlib.sha256(json.dumps([spec["balancer"], spec["scheduler"], guests],
                                  sort_keys=True).encode())
    for path in (files["guest"], os.path.join(HERE, "placer.c"), os.path.abspath(__file__), DOMAIN):
        with open(path, "rb") as f:
            h.update(f.read())

    def prepare(machine):
        machine.copy_in(files["guest"], "/srv/guest.elf")
        machine.copy_in(files["placer"], "/srv/")
        machine.run("echo 0 > /proc/sys/kernel/numa_balancing")
        # before the guests are: a thread takes its first scan period over when it is made
        set_knobs(machine, spec)
        made = [Guest(g) for g in guests]
        for i, g in enumerate(made):
            progress("creating guest %d of %d, '%s' (once)" % (i + 1, len(made), g.name))
            machine.run("cat > /srv/%s.xml" % g.name, input=domain_xml(g.spec, topology))
            machine.run("virsh -q create /srv/%s.xml" % g.name, timeout=120)
        wait_ready(machine, made)
        find_threads(machine, made)
        progress("placing their memory (once)")
        place_memory(machine, made)
        machine.run("for g in %s; do virsh -q suspend $g; done; sync; sleep 1"
                    % " ".join(g.name for g in made))

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
        return "%s:%d:%d" % (self.name, self.pid, self.ram_bytes) + "".join(
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


def place_memory(host, guests):
    host.run("set -e\n" + "\n".join("/srv/numaherd-placer %d %d %s" % (
        g.pid, g.ram_bytes, " ".join("%s=%d" % s for s in sorted(g.spec["memory"].items())))
        for g in guests), timeout=240)


def start_guests(host, guests, topology):
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
            put.append("echo %s > /sys/fs/cgroup/machine.slice/machine-qemu*x2d%s.scope/cpuset.cpus"
                       % (",".join(map(str, cpus_of_node(topology, g.spec["vcpus_on"][0]))), g.name))
    resume = "for g in %s; do virsh -q resume $g; done" % " ".join(g.name for g in guests)
    host.run("set -e\n" + "\n".join(put + [resume, "sleep 2"] + free))


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
