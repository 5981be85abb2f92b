# SPDX-License-Identifier: LGPL-2.1-or-later
"""The emulated hosts by name: one row each, nothing else to change for a new one.

nodes: (CPUs, MiB) per node; a node without CPUs is memory-only, one with 0 MiB is CPU-only.
distance: the full matrix, row = from.
"""

import collections

Topology = collections.namedtuple("Topology", "name nodes distance what")

TOPOLOGIES = {t.name: t for t in (
    Topology("mesh4", ((2, 1024), (2, 1024), (2, 1024), (2, 1024)),
             ((10, 16, 16, 22), (16, 10, 22, 16), (16, 22, 10, 16), (22, 16, 16, 10)),
             "4 nodes x 2 CPUs x 1 GiB, glueless mesh"),
    Topology("direct2", ((4, 2048), (4, 2048)), ((10, 21), (21, 10)),
             "2 nodes x 4 CPUs x 2 GiB"),
    Topology("memonly", ((4, 1536), (4, 1536), (0, 1024)),
             ((10, 21, 17), (21, 10, 28), (17, 28, 10)),
             "2 nodes with CPUs, one with memory only"),
    Topology("cpuonly", ((3, 1536), (3, 1536), (2, 0)),
             ((10, 21, 16), (21, 10, 21), (16, 21, 10)),
             "2 usual nodes, one with CPUs only"),
)}


def cpu_range(topology, node):
    """(first, last) CPU of a node; None if it has none."""
    first = sum(n[0] for n in topology.nodes[:node])
    count = topology.nodes[node][0]
    return (first, first + count - 1) if count else None


def qemu_args(topology):
    """The part of QEMU's command line that makes the nodes."""
    cpus = sum(n[0] for n in topology.nodes)
    mib = sum(n[1] for n in topology.nodes)
    counts = {n[0] for n in topology.nodes if n[0]}
    cores = counts.pop() if len(counts) == 1 else 1  # one socket a node where that is possible
    args = ["-smp", "%d,sockets=%d,cores=%d,threads=1" % (cpus, cpus // cores, cores),
            "-m", "%dM" % mib]
    for i, (n_cpus, n_mib) in enumerate(topology.nodes):
        numa = "node,nodeid=%d" % i
        if n_mib:
            args += ["-object", "memory-backend-ram,id=m%d,size=%dM" % (i, n_mib)]
            numa += ",memdev=m%d" % i
        if n_cpus:
            numa += ",cpus=%d-%d" % cpu_range(topology, i)
        args += ["-numa", numa]
    for i, row in enumerate(topology.distance):
        for k, d in enumerate(row):
            if i != k:
                args += ["-numa", "dist,src=%d,dst=%d,val=%d" % (i, k, d)]
    return args
