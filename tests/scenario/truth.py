# SPDX-License-Identifier: LGPL-2.1-or-later
"""The oracle: true locality from what the guests touched, where pages lie and where vCPUs ran.

Nothing here comes from the daemon. A sample is one line of numaherd-oracle, a touch count comes from
a guest's console.
"""

import itertools
import re

COUNT = re.compile(r"v(\d+)\.([a-z]+\d*)=(\d+)")
REGION = re.compile(r"region (\S+) start (0x[0-9a-f]+|\d+) bytes (\d+)")


def regions_of(console):
    """[(name, start, bytes)] in the order of the console."""
    return [(n, int(s, 0), int(b)) for n, s, b in REGION.findall(console)]


def counts_of(console):
    """{(vcpu, region): touches} of the last whole counts line."""
    last = {}
    for line in console.split("\n")[:-1]:
        if " counts " in line:
            last = {(int(v), r): int(n) for v, r, n in COUNT.findall(line)}
    return last


def touches_between(before, after):
    return {k: n - before.get(k, 0) for k, n in after.items() if n > before.get(k, 0)}


def node_shares(by, node_of):
    """Normalised weights by node of a {label: count}, where node_of maps a label to a node."""
    total = sum(by.values())
    shares = {}
    for label, n in by.items():
        node = node_of(int(label))
        shares[node] = shares.get(node, 0) + n / total
    return shares


def vm_locality(vm, regions, touches, cpu_node):
    """Share of touches that are local, as (local, total) in touches; vm is a sample's entry."""
    index = {name: i for i, (name, _, _) in enumerate(regions)}
    local = total = 0.0
    for (vcpu, region), n in touches.items():
        pages = vm["regions"][index[region]]
        seen = vm["vcpus"].get(str(vcpu))
        if not pages or not seen:
            continue
        at = node_shares(seen, cpu_node)
        lies = node_shares(pages, int)
        local += n * sum(share * lies.get(node, 0) for node, share in at.items())
        total += n
    return local, total


def locality_permille(sample, guests, cpu_node):
    """Over the given guests: {name: (regions, touches)}; every guest weighs the same."""
    parts = []
    for name, (regions, touches) in guests.items():
        vm = sample["vms"][name]
        if vm.get("gone"):
            continue
        local, total = vm_locality(vm, regions, touches, cpu_node)
        if total:
            parts.append(local / total)
    return round(1000 * sum(parts) / len(parts)) if parts else None


def placements(guests, nodes, fixed_vcpus):
    """All assignments of guests to one CPU-bearing node each that fit.

    guests: [(name, vcpus, ram_bytes)]; nodes: [(id, cpus, bytes)]; fixed_vcpus: {node: vcpus of
    guests that do not move}. vCPUs may share CPUs as far as the whole host has too few of them.
    """
    homes = [n for n in nodes if n[1]]
    vcpus = sum(g[1] for g in guests) + sum(fixed_vcpus.values())
    over = max(1, -(-vcpus // sum(n[1] for n in homes)))
    for pick in itertools.product(homes, repeat=len(guests)):
        used = {n[0]: [fixed_vcpus.get(n[0], 0), 0] for n in homes}
        for g, n in zip(guests, pick):
            used[n[0]][0] += g[1]
            used[n[0]][1] += g[2]
        if all(used[n[0]][0] <= n[1] * over and used[n[0]][1] <= n[2] for n in homes):
            yield {g[0]: n[0] for g, n in zip(guests, pick)}


def best_placement(sample, guests, nodes, fixed_vcpus):
    """(locality permille, fewest pages that must move, homes) over all placements.

    With a home of one node each and all of its memory there, every guest is wholly local, so the
    best placements differ only in what must be copied.
    """
    best = None
    for homes in placements(guests, nodes, fixed_vcpus):
        pages = 0
        for name, home in homes.items():
            ram = sample["vms"][name].get("ram", {})
            pages += sum(n for node, n in ram.items() if int(node) != home)
        if best is None or pages < best[1]:
            best = (1000, pages, homes)
    return best
