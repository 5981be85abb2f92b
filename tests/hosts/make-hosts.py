#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the hand-made hosts below a directory, from the tables in this file.

Usage: make-hosts.py DIRECTORY [STAMP]

Captured hosts are files beside this script; these here have only what a reader looks at. Each is
named for its shape and says which cases (tests/replay) use it.
"""

import os
import shutil
import sys

NODE = "sys/devices/system/node"
CPU = "sys/devices/system/cpu"
GIB = 1 << 20  # kB


def ids(text):
    """'0-2,8' -> [0, 1, 2, 8]"""
    out = []
    for item in text.split(",") if text else []:
        first, _, last = item.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out


def meminfo(node, total, free):
    prefix = f"Node {node} "
    return "".join(
        f"{prefix}{key}{value}\n"
        for key, value in (
            ("MemTotal:       ", f"{total} kB"),
            ("MemFree:        ", f"{free} kB"),
            ("Active(file):   ", "0 kB"),
            ("HugePages_Total:     ", "0"),
            ("HugePages_Free:      ", "0"),
        )
    )


def distance_line(row, online):
    """As the kernel prints it: a blank before every value whose node id is not 0."""
    return "".join((" " if node else "") + str(d) for node, d in zip(online, row)) + "\n"


def nodes(online, has_cpu, has_memory, cpulists, rows, total=16 * GIB, cpus=None, pools=None):
    """cpulists and rows by position among the online nodes; pools: {kB: (total, free)}"""
    tree = {
        f"{NODE}/online": online,
        f"{NODE}/has_cpu": has_cpu,
        f"{NODE}/has_memory": has_memory,
        f"{CPU}/online": cpus or ",".join(c for c in cpulists if c),
        f"{CPU}/possible": cpus or ",".join(c for c in cpulists if c),
        f"{CPU}/isolated": "",
        "proc/meminfo": "MemTotal: 33554432 kB\nMemFree: 1048576 kB\nHugepagesize:    2048 kB\n",
        "proc/sys/kernel/numa_balancing": "1",
    }
    for node, cpulist, row in zip(ids(online), cpulists, rows):
        memory = total if node in ids(has_memory) else 0
        tree[f"{NODE}/node{node}/cpulist"] = cpulist
        tree[f"{NODE}/node{node}/distance"] = distance_line(row, ids(online))
        tree[f"{NODE}/node{node}/meminfo"] = meminfo(node, memory, memory * 3 // 4)
        for kb, (count, free) in (pools or {}).items():
            pool = f"{NODE}/node{node}/hugepages/hugepages-{kb}kB"
            tree[f"{pool}/nr_hugepages"] = str(count)
            tree[f"{pool}/free_hugepages"] = str(free)
            tree[f"{pool}/surplus_hugepages"] = "0"
    return tree


def flat(n, near=10, far=20):
    return [[near if i == j else far for j in range(n)] for i in range(n)]


def eight_two():
    return [
        [10 if i == j else 16 if i // 4 == j // 4 else 32 for j in range(8)] for i in range(8)
    ]


def gb200():
    online = "0-1,3-9,11-17,19-25,27-33"
    n = len(ids(online))
    rows = flat(n, far=80)
    rows[0][1] = rows[1][0] = 40
    return nodes(online, "0-1", online, ["0-71", "72-143"] + [""] * (n - 2), rows)


def two(**more):
    return nodes("0-1", "0-1", "0-1", ["0-3", "4-7"], [[10, 21], [21, 10]], **more)


STAT_REST = (
    "S 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 4 0 6947 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0\n"
)
SCOPE = "machine.slice/machine-qemu\\x2d1\\x2dvm1.scope"


def process(pid, threads, group):
    """threads: {tid: name}"""
    tree = {f"proc/{pid}/cgroup": group, f"proc/{pid}/comm": threads[pid]}
    for tid, name in threads.items():
        tree[f"proc/{pid}/task/{tid}/comm"] = name
        tree[f"proc/{pid}/task/{tid}/stat"] = f"{tid} ({name}) {STAT_REST}"
    return tree


def groups(mount, file, members):
    """members: {group: [tid...]}"""
    return {
        f"sys/fs/cgroup/{mount}{group}/{file}": "".join(f"{tid}\n" for tid in tids)
        for group, tids in members.items()
    }


def cgroup_v2():
    """D11, D15, D41: pid 1000 has nameless threads, pid 2000 the vCPUs 0, 1, 4, 5; pid 3000 is TCG."""
    other = "machine.slice/machine-qemu\\x2d2\\x2dvm2.scope"
    tree = two()
    tree |= process(
        1000,
        {tid: "qemu-system-x86" for tid in (1000, 1001, 1002, 1003, 1004)},
        f"0::/{SCOPE}/libvirt/emulator",
    )
    tree |= process(
        2000,
        {2000: "qemu-system-x86"}
        | {tid: f"CPU {i}/KVM" for i, tid in ((0, 2001), (1, 2002), (4, 2005), (5, 2006))},
        f"0::/{other}",
    )
    tree |= groups(
        "",
        "cgroup.threads",
        {
            f"{SCOPE}/libvirt/emulator": [1000, 1003, 1004],
            f"{SCOPE}/libvirt/vcpu0": [1001],
            f"{SCOPE}/libvirt/vcpu1": [1002],
            f"{SCOPE}/libvirt/vcpu2": [],
            f"{other}/libvirt/emulator": [2000],
            f"{other}/libvirt/vcpu0": [2001],
            f"{other}/libvirt/vcpu1": [2002],
            f"{other}/libvirt/vcpu4": [2005],
            f"{other}/libvirt/vcpu5": [2006],
            f"{other}/libvirt/iothread1": [2009],
        },
    )
    tree |= process(3000, {3000: "qemu-system-x86", 3001: "ALL CPUs/TCG"}, "0::/user.slice")
    root = "sys/fs/cgroup"
    tree |= {
        f"{root}/cpuset.cpus.effective": "0-7",
        f"{root}/cpuset.mems.effective": "0-1",
        f"{root}/machine.slice/cpuset.cpus": "",
        f"{root}/machine.slice/cpuset.cpus.effective": "0-6",
        f"{root}/machine.slice/cpuset.mems.effective": "0-1",
        f"{root}/{SCOPE}/cpuset.cpus.effective": "0-6",
        f"{root}/{SCOPE}/libvirt/cpuset.cpus.effective": "0-6",
        f"{root}/{SCOPE}/libvirt/cpuset.mems.effective": "0-1",
        # a pin, not a limit
        f"{root}/{SCOPE}/libvirt/vcpu0/cpuset.cpus": "4-6",
        f"{root}/{SCOPE}/libvirt/vcpu0/cpuset.cpus.effective": "4-6",
        f"{root}/{other}/cpuset.mems.effective": "1",
    }
    return tree


def cgroup_v1():
    """D11, D12: six of eight vCPUs are plugged in."""
    tree = two()
    tids = {1010: "qemu-system-x86"} | {1011 + i: f"CPU {i}/KVM" for i in range(6)}
    tree |= process(
        1010,
        tids,
        "12:pids:/machine.slice\n"
        f"5:cpuset:/{SCOPE}/emulator\n"
        f"4:cpu,cpuacct:/{SCOPE}/emulator\n"
        f"1:name=systemd:/{SCOPE}\n"
        "0::/system.slice\n",
    )
    tree |= groups(
        "cpuset/",
        "tasks",
        {f"{SCOPE}/vcpu{i}": [1011 + i] for i in range(6)} | {f"{SCOPE}/emulator": [1010]},
    )
    root = "sys/fs/cgroup/cpuset"
    tree |= {
        f"{root}/cpuset.cpus": "0-7",
        f"{root}/cpuset.mems": "0-1",
        f"{root}/machine.slice/cpuset.cpus": "0-6",
        f"{root}/machine.slice/cpuset.mems": "0-1",
        f"{root}/{SCOPE}/cpuset.cpus": "0-6",
        f"{root}/{SCOPE}/cpuset.mems": "0-1",
    }
    return tree


def gap():
    """D39: also the numa_maps and sched of that case."""
    tree = nodes("0,2", "0,2", "0,2", ["0-3", "4-7"], flat(2))
    tree["proc/1000/numa_maps"] = "7f0000000000 default anon=40 dirty=40 N0=10 N2=30\n"
    tree["proc/1000/task/1001/sched"] = (
        "CPU 0/KVM (1001, #threads: 4)\n"
        "-------------------------------------------------------------------\n"
        "mm->numa_scan_seq                            :                    9\n"
        "numa_pages_migrated                          :                    0\n"
        "numa_preferred_nid                           :                    2\n"
        "total_numa_faults                            :                   40\n"
        "current_node=2, numa_group_id=1001\n"
        "numa_faults node=0 task_private=10 task_shared=0 group_private=10 group_shared=0\n"
        "numa_faults node=2 task_private=30 task_shared=0 group_private=30 group_shared=0\n"
    )
    return tree


def broken_node():
    """One node that is listed and has no files at all, one whose files are odd."""
    rows = [[10, 31, 32], [31, 10, 33], [32, 33, 10]]
    tree = nodes("0-2", "0-2", "0-2", ["0-1", "2-3", "4-5"], rows)
    for path in [p for p in tree if p.startswith(f"{NODE}/node1/")]:
        del tree[path]
    tree[f"{NODE}/node2/cpulist"] = "4-x"
    tree[f"{NODE}/node2/distance"] = "32 10"
    return tree


def uma():
    return {
        f"{CPU}/online": "0-3",
        "proc/meminfo": "MemTotal: 8388608 kB\nMemFree: 4194304 kB\nHugepagesize: 2048 kB\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "16",
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "12",
        "sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages": "0",
    }


POWER9_ROWS = [
    [10, 40, 80, 80, 80, 80],
    [40, 10, 80, 80, 80, 80],
    [80, 80, 10, 80, 80, 80],
    [80, 80, 80, 10, 80, 80],
    [80, 80, 80, 80, 10, 80],
    [80, 80, 80, 80, 80, 10],
]
GARBAGE = [[10, 4294967295], [4294967295, 10]]

HOSTS = {
    "power9": nodes(  # D32 a
        "0,8,252-255", "0,8", "0,8,252-255", ["0-79", "80-159", "", "", "", ""], POWER9_ROWS
    ),
    "power8": nodes(  # D32 b
        "0-1", "0-1", "0", ["0-39", "40-79"], [[10, 40], [40, 10]], total=32 * GIB
    ),
    "lpar": nodes("4-7", "4-7", "4-7", ["0-7", "8-15", "16-23", "24-31"], flat(4)),  # D33
    "threadripper": nodes(  # D34 a
        "0-3", "0-3", "1-2", ["0-7", "8-15", "16-23", "24-31"], flat(4, far=12)
    ),
    "eight-two": nodes(  # D34 b
        "0-7", "0-7", "0,4", [f"{4 * i}-{4 * i + 3}" for i in range(8)], eight_two()
    ),
    "gb200": gb200(),  # D35
    "asymmetric": nodes("0-1", "0-1", "0-1", ["0-3", "4-7"], [[10, 21], [28, 10]]),  # D36
    "slit-garbage": nodes("0-1", "0-1", "0-1", ["0-3", "4-7"], GARBAGE),  # D37 a
    "slit-flat": nodes("0-7", "0-7", "0-7", [str(i) for i in range(8)], flat(8)),  # D37 b
    "slit-ten": nodes("0-1", "0-1", "0-1", ["0-3", "4-7"], flat(2, far=10)),  # D37 c
    "gap": gap(),  # D39
    "offline-cpu": two(cpus="0-2,4-7"),  # D10
    "hugepages": two(pools={1048576: (4, 1), 2048: (512, 128)}),
    "broken-node": broken_node(),
    "uma": uma(),
    "cgroup-v2": cgroup_v2(),
    "cgroup-v1": cgroup_v1(),
}


def main():
    top = sys.argv[1]
    shutil.rmtree(top, ignore_errors=True)
    for host, tree in HOSTS.items():
        for path, text in tree.items():
            full = os.path.join(top, host, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="ascii") as f:
                f.write(text if text.endswith("\n") or path.endswith(".threads") else text + "\n")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="ascii"):
            pass


main()
