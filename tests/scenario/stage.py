# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sets a scenario's stage in the emulated host: guests, where their memory lies, where they run."""

import hashlib
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


def stage_of(guests, topology, balancer, guest_elf, progress):
    """(key, prepare) of a saved state in which all guests are defined, started and paused."""
    h = hashlib.sha256(repr(sorted(balancer.items())).encode())
    xmls = {g["name"]: domain_xml(g, topology) for g in guests}
    for name in sorted(xmls):
        h.update(xmls[name].encode())
    with open(guest_elf, "rb") as f:
        h.update(f.read())

    def prepare(machine):
        machine.copy_in(guest_elf, "/srv/guest.elf")
        # before the guests are: a thread takes its first scan period over when it is made
        set_balancer(machine, balancer)
        for i, name in enumerate(sorted(xmls)):
            progress("creating guest %d of %d, '%s' (once)" % (i + 1, len(xmls), name))
            machine.run("cat > /srv/%s.xml" % name, input=xmls[name])
            machine.run("virsh -q create --paused /srv/%s.xml" % name, timeout=120)
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
        return "%s:%d:%d" % (self.name, self.pid, self.ram_bytes) + "".join(
            ":%d+%d" % (start, size) for _, start, size in self.regions)


def consoles(host, guests):
    text = host.run("for g in %s; do echo \"=== $g\"; cat /srv/$g.log; done"
                    % " ".join(g.name for g in guests)).stdout
    parts = re.split(r"=== (\S+)\n", text)[1:]
    return dict(zip(parts[::2], (p.replace("\r", "") for p in parts[1::2])))


def start_guests(host, guests, progress, deadline_s=60):
    """Lets the paused guests run and waits until each has said that it is ready."""
    host.run("for g in %s; do virsh -q resume $g; done" % " ".join(g.name for g in guests))
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


def place(host, guests, topology, progress):
    """Memory where the scenario says, vCPUs where it says; then vCPUs are free again."""
    all_cpus = "0-%d" % (sum(n[0] for n in topology.nodes) - 1)
    script, free = [], []
    for g in guests:
        shares = " ".join("%s=%d" % s for s in sorted(g.spec["memory"].items()))
        script.append("/srv/numaherd-placer %d %d %s" % (g.pid, g.ram_bytes, shares))
        for vcpu, node in enumerate(g.spec["vcpus_on"]):
            cpus = cpus_of_node(topology, node)
            tid = g.tids[vcpu]
            if g.role == "pinned":
                continue
            script.append("taskset -pc %d %d >/dev/null" % (cpus[vcpu % len(cpus)], tid))
            free.append("taskset -pc %s %d >/dev/null" % (all_cpus, tid))
    progress("placing the guests' memory and vCPUs")
    r = host.run("set -e\n" + "\n".join(script) + "\nsleep 2\n" + "\n".join(free), timeout=180)
    return r.stdout


def set_balancer(host, values):
    host.run("\n".join("echo %d > /sys/kernel/debug/sched/numa_balancing/%s" % (v, k)
                       for k, v in values.items()))


def masks(host, guests):
    """{name: [mask of each vCPU thread]} as the kernel has them."""
    out = host.run("\n".join("echo %s $(grep Cpus_allowed_list /proc/%d/task/%d/status)" % (
        shlex.quote(g.name), g.pid, tid) for g in guests for _, tid in sorted(g.tids.items()))).stdout
    result = {}
    for line in out.splitlines():
        name, _, mask = line.split()
        result.setdefault(name, []).append(mask)
    return result
