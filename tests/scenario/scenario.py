# SPDX-License-Identifier: LGPL-2.1-or-later
"""One run of a scenario in an emulated host, with the daemon acting or only watching."""

import json
import os
import re
import time

import stage
import truth

MR_SYSCALL, MR_NUMA = 3, 5  # enum migrate_reason of Linux 6.12: move_pages, the balancer
TRACE = "/sys/kernel/tracing/events"
TRACE_ON = """
cd %(t)s
echo 'hist:keys=reason:vals=succeeded' > migrate/mm_migrate_pages/trigger
echo 'hist:keys=pid if nodes != 0' > syscalls/sys_enter_move_pages/trigger
echo 'hist:keys=pid' > syscalls/sys_enter_sched_setaffinity/trigger
""" % {"t": TRACE}
CONFIG = "/srv/numaherd.xml"
SETTLED = re.compile(r"well placed|left alone|staying|idle")


class ScenarioError(Exception):
    """The run itself went wrong: nothing was measured."""


def parse_hist(text, value=None):
    """{key: value or hit count} of a tracefs hist file."""
    result = {}
    for m in re.finditer(r"\{ \w+:\s*(\S+)[^}]*\} hitcount:\s*(\d+)(.*)", text):
        v = re.search(value + r":\s*(\d+)", m.group(3)) if value else None
        result[int(m.group(1), 0)] = int(v.group(1)) if v else int(m.group(2))
    return result


class Run:
    def __init__(self, host, spec, topology_name, binaries, act, progress, length_s=None):
        self.host, self.spec, self.act = host, spec, act
        self.topology = host.topology
        self.kind = stage.kind_of(spec)
        self.binaries = binaries
        self.progress = progress
        self.length_s = length_s  # None: until settled and quiet
        self.guests = [stage.Guest(g) for g in spec["topologies"][topology_name]]
        self.cpu_node = stage.node_of_cpu(self.topology)
        self.statuses = []

    # -- setting up

    def prepare(self):
        h = self.host
        h.copy_in(self.binaries, "/srv/")
        self.kind.begin_run(h)
        stage.wait_ready(h, self.guests)
        self.find_threads()
        self.progress("letting %d guests run" % len(self.guests))
        stage.start_guests(h, self.kind, self.guests, self.topology)
        self.masks_before = stage.masks(h, self.guests)
        if "leave_free_mib" in self.spec:
            self.leave_free(self.spec["leave_free_mib"])
        h.run(TRACE_ON)
        self.counts_before = self.counts()
        self.oracle_pid = h.spawn("/srv/numaherd-oracle 2000 0 %s" % " ".join(
            g.oracle_arg() for g in self.guests), "/srv/oracle.jsonl")
        time.sleep(5)

    def leave_free(self, mib):
        """Takes the nodes' free memory away, all but so much: huge pages that nobody uses."""
        self.host.run("""for n in /sys/devices/system/node/node[0-9]*; do
            free=$(awk '/MemFree/ {print $4}' $n/meminfo)
            pages=$(( (free - %d * 1024) / 2048 ))
            [ $pages -le 0 ] || echo $pages > $n/hugepages/hugepages-2048kB/nr_hugepages
            done""" % mib)

    def find_threads(self):
        self.kind.find_threads(self.host, self.guests)
        for g in self.guests:
            if sorted(g.tids) != list(range(g.spec["vcpus"])):
                raise ScenarioError("guest '%s' has %d vCPUs, found are the threads of: %s"
                                    % (g.name, g.spec["vcpus"], sorted(g.tids)))

    def counts(self):
        return {n: truth.counts_of(t) for n, t in stage.consoles(self.host, self.guests).items()}

    def daemon_argv(self):
        argv = ["/srv/numaherd", "--tick=%d" % self.spec["tick_s"],
                "--cooldown=%d" % self.spec["cooldown_s"], "--log-level=debug"]
        if "daemon_config" in self.spec:
            argv.append("--config=" + CONFIG)
        return argv + self.spec.get("daemon_flags", []) + ([] if self.act else ["--dry-run"])

    def start_daemon(self):
        if "daemon_config" in self.spec:
            self.host.run("cat > " + CONFIG, input="\n".join(self.spec["daemon_config"] + [""]))
        self.host.run("awk '{printf \"%.0f\", $1 * 1e9}' /proc/uptime > /srv/t0; "
                      "echo 1 > /proc/sys/kernel/numa_balancing")
        self.daemon_pid = self.host.spawn(self.daemon_argv(), "/srv/numaherd.log")
        self.t0_ns = int(self.host.run("cat /srv/t0").stdout)

    # -- watching

    def status(self):
        r = self.host.run("/srv/numaherdctl status --json", check=False)
        if r.returncode != 0:
            if self.host.run("kill -0 %d" % self.daemon_pid, check=False).returncode != 0:
                raise ScenarioError("numaherd ended: " + self.host.run(
                    "tail -n 30 /srv/numaherd.log").stdout)
            return None
        s = json.loads(r.stdout)
        self.statuses.append(s)
        return s

    def is_settled(self, s):
        """Nothing under way, nothing wished for."""
        return bool(s["vms"]) and len(s["vms"]) == len(self.guests) and all(
            v["plan"]["kind"] == "hold" and SETTLED.search(v["state"]) for v in s["vms"])

    def say(self, s, begin):
        states = "; ".join("%s: %s" % (v["name"], v["state"]) for v in s["vms"])
        self.progress("%3d s  %d pages moved  %s" % (
            time.monotonic() - begin, sum(v["pages_moved"] for v in s["vms"]), states))

    def watch(self):
        begin = time.monotonic()
        settled_at_tick = None
        while True:
            time.sleep(3)
            s = self.status()
            now = time.monotonic() - begin
            if s:
                self.say(s, begin)
            if self.length_s is not None:
                if now >= self.length_s:
                    break
                continue
            if s and settled_at_tick is not None and self.moves_of(s) != self.settled_counts:
                settled_at_tick = None
            if s and self.is_settled(s):
                if settled_at_tick is None:
                    settled_at_tick = s["daemon"]["ticks"]
                    self.settled_counts = self.moves_of(s)
                if s["daemon"]["ticks"] >= settled_at_tick + self.spec["quiet_ticks"]:
                    break
            if now > self.spec["timeout_s"] + self.spec["quiet_ticks"] * self.spec["tick_s"]:
                break
        self.settled_at_tick = settled_at_tick
        self.watched_s = time.monotonic() - begin

    @staticmethod
    def moves_of(s):
        return {v["name"]: (v["home_changes"], v["pulls"]) for v in s["vms"]}

    def samples(self):
        out = self.host.run("cat /srv/oracle.jsonl").stdout
        return [json.loads(line) for line in out.splitlines() if line.endswith("}")]

    # -- the result

    def finish(self):
        h = self.host
        touches = {n: truth.touches_between(self.counts_before[n], c)
                   for n, c in self.counts().items()}
        self.touched = {g.name: (g.regions, touches[g.name]) for g in self.guests
                        if g.role != "pinned"}
        self.migrated = parse_hist(h.run("cat %s/migrate/mm_migrate_pages/hist" % TRACE).stdout,
                                   "succeeded")
        self.moved_pids = parse_hist(h.run("cat %s/syscalls/sys_enter_move_pages/hist"
                                           % TRACE).stdout)
        self.set_pids = parse_hist(h.run("cat %s/syscalls/sys_enter_sched_setaffinity/hist"
                                         % TRACE).stdout)
        self.masks_after = stage.masks(h, self.guests)
        self.last = self.status() or self.statuses[-1]
        self.monitors_answer = (self.kind.monitors_answer(h, self.guests)
                                if self.spec.get("monitors_shared") else None)
        h.run("kill %d; kill -TERM %d; for i in $(seq 100); do kill -0 %d 2>/dev/null || break; "
              "sleep 0.2; done" % (self.oracle_pid, self.daemon_pid, self.daemon_pid),
              check=False, timeout=60)
        self.ended_cleanly = "stopped" in h.run("tail -n 3 /srv/numaherd.log").stdout
        self.masks_released = stage.masks(h, self.guests)
        self.all_samples = self.samples()
        self.log = h.run("cat /srv/numaherd.log").stdout

    def touched_by_us(self, name):
        g = next(g for g in self.guests if g.name == name)
        return (g.pid in self.moved_pids or any(t in self.set_pids for t in g.tids.values())
                or self.masks_before[name] != self.masks_after[name])

    def touched_role(self, role):
        """None: no guest has it."""
        names = [g.name for g in self.guests if g.role == role]
        return any(self.touched_by_us(n) for n in names) if names else None

    def locality(self, sample):
        return truth.locality_permille(sample, self.touched, self.cpu_node)

    def per_vm(self):
        first, last = self.before_sample(), self.all_samples[-1]
        moves = {v["name"]: v for v in self.last["vms"]}
        return {n: {"locality_before_permille":
                    truth.locality_permille(first, {n: t}, self.cpu_node),
                    "locality_after_permille":
                    truth.locality_permille(last, {n: t}, self.cpu_node),
                    "pages_moved": moves[n]["pages_moved"], "home": moves[n]["home"],
                    "state": moves[n]["state"]}
                for n, t in self.touched.items() if n in moves}

    def before_sample(self):
        return [s for s in self.all_samples if s["ns"] <= self.t0_ns][-1]

    def check_measured(self):
        """A guest of which nothing is known would drop out of the mean, and look well."""
        for s in [self.before_sample()] + self.all_samples[-5:]:
            for name, touched in self.touched.items():
                if truth.locality_permille(s, {name: touched}, self.cpu_node) is None:
                    raise ScenarioError("the oracle does not know how local guest '%s' was" % name)

    def seconds_to(self, permille):
        for s in self.all_samples:
            if s["ns"] > self.t0_ns and (self.locality(s) or 0) >= permille:
                return round((s["ns"] - self.t0_ns) / 1e9, 1)
        return None

    def decision_sample(self):
        first = self.last["daemon"]["first_decision_ns"]
        before = [s for s in self.all_samples if first and s["ns"] <= first]
        return before[-1] if before else self.before_sample()

    def result(self):
        self.check_measured()
        herd = [(g.name, g.spec["vcpus"], g.ram_bytes) for g in self.guests if g.role != "pinned"]
        nodes = [(i, n[0], n[1] << 20) for i, n in enumerate(self.topology.nodes)]
        fixed = {}
        for g in self.guests:
            if g.role == "pinned":
                for node in g.spec["vcpus_on"]:
                    fixed[node] = fixed.get(node, 0) + 1
        best = truth.best_placement(self.decision_sample(), herd, nodes, fixed)
        vms = {v["name"]: v for v in self.last["vms"]}
        after = [self.locality(s) for s in self.all_samples[-5:]]
        return {
            "topology": self.topology.name,
            "locality_before_permille": self.locality(self.before_sample()),
            "locality_after_permille": round(sum(after) / len(after)),
            "locality_best_permille": best[0],
            "seconds_to_900": self.seconds_to(900),
            "seconds_to_950": self.seconds_to(950),
            "pages_moved": self.migrated.get(MR_SYSCALL, 0),
            "pages_moved_by_kernel": self.migrated.get(MR_NUMA, 0),
            "pages_needed": best[1],
            "best_homes": best[2],
            "swaps": self.log.count(": swap with VM") // 2,
            "vcpu_moves": sum(v["vcpu_moves"] for v in vms.values()),
            "home_changes": {n: v["home_changes"] for n, v in sorted(vms.items())},
            "touched_pinned_vm": self.touched_role("pinned"),
            "touched_placed_vm": self.touched_role("placed"),
            "daemon_cpu_ms": self.last["daemon"]["cpu_ns"] // 1000000,
            "daemon_ticks": self.last["daemon"]["ticks"],
            "quiet_ticks": (self.last["daemon"]["ticks"] - self.settled_at_tick
                            if self.settled_at_tick is not None else 0),
            "watched_seconds": round(self.watched_s, 1),
            "pins_released_on_exit": self.masks_released == self.masks_before,
            "ended_cleanly": self.ended_cleanly,
            "monitors_answer_others": self.monitors_answer,
            "memory_only_nodes_empty_of_herd": self.memory_only_ok(),
            "balancer": self.spec["balancer"],
            "scheduler": self.spec["scheduler"],
            "tick_s": self.spec["tick_s"],
            "vms": self.per_vm(),
        }

    def memory_only_ok(self):
        """No herded guest has more memory on a node without CPUs than when the run began.

        None: there are no such nodes.
        """
        if all(n[0] for n in self.topology.nodes):
            return None
        last, first = self.all_samples[-1]["vms"], self.before_sample()["vms"]
        for i, n in enumerate(self.topology.nodes):
            if n[0]:
                continue
            for name in self.touched:
                if last[name]["ram"].get(str(i), 0) > first[name]["ram"].get(str(i), 0):
                    return False
        return True

    def keep_files(self, directory):
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "numaherd.log"), "w") as f:
            f.write(self.log)
        with open(os.path.join(directory, "oracle.jsonl"), "w") as f:
            for s in self.all_samples:
                s["locality_permille"] = self.locality(s)
                s["by_vm"] = {n: truth.locality_permille(s, {n: t}, self.cpu_node)
                              for n, t in self.touched.items()}
                f.write(json.dumps(s) + "\n")
        with open(os.path.join(directory, "status.jsonl"), "w") as f:
            for s in self.statuses:
                f.write(json.dumps(s) + "\n")
