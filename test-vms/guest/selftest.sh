#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# selftest.sh [IMAGE]: boots the test guest under QEMU and checks what it prints. Without IMAGE it
# builds one. $QEMU names the emulator. Prints TAP; KVM is tried and skipped where it is missing.
set -u

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
qemu=${QEMU:-qemu-system-x86_64}
work=$(mktemp -d)
console=$work/console
snapshot=$work/snapshot
image=${1:-$work/guest}
machine_pid=
checks=0
failures=0

if ! command -v "$qemu" >/dev/null; then
    echo "1..0 # SKIP no $qemu"
    exit 0
fi

# Invoked by the trap.
# shellcheck disable=SC2317
cleanup() {
    stop_machine
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

# check NAME STATUS: prints the TAP line, and on failure the console.
check() {
    checks=$((checks + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $checks - $1"
    else
        failures=$((failures + 1))
        echo "not ok $checks - $1"
        sed 's/^/# /' "$console" "$work/log" 2>/dev/null | cut -c 1-400 | tail -n 30
    fi
}

# start_machine CMDLINE QEMU-ARGUMENTS...; the monitor reads from file descriptor 3. The timeout is
# for the case that this script dies unexpectedly.
start_machine() {
    local cmdline=$1

    shift
    rm -f "$console" "$work/monitor"
    : >"$console"
    mkfifo "$work/monitor"
    exec 3<>"$work/monitor"
    timeout 120 "$qemu" -nodefaults -display none -m 256 -kernel "$image" -append "$cmdline" \
        -serial "file:$console" -monitor stdio "$@" <"$work/monitor" >"$work/log" 2>&1 &
    machine_pid=$!
}

monitor() {
    echo "$1" >&3
}

stop_machine() {
    if [ -n "$machine_pid" ]; then
        kill "$machine_pid" 2>/dev/null
        wait "$machine_pid" 2>/dev/null
        machine_pid=
        exec 3>&-
    fi
}

# take_snapshot: the whole lines that the console has now; all checks look there.
take_snapshot() {
    cp "$console" "$snapshot"
    if [ -n "$(tail -c 1 "$snapshot")" ]; then
        sed -i '$d' "$snapshot"
    fi
}

# wait_lines COUNT PATTERN [SECONDS]: waits until that many lines match.
wait_lines() {
    local deadline=$((SECONDS + ${3:-30}))

    take_snapshot
    while [ "$(grep -c "$2" "$snapshot")" -lt "$1" ]; do
        if [ $SECONDS -ge $deadline ] || ! kill -0 "$machine_pid" 2>/dev/null; then
            return 1
        fi
        sleep 0.1
        take_snapshot
    done
}

# seen PATTERN: how many lines of the snapshot match.
seen() {
    grep -c "$1" "$snapshot"
}

# field N KEY: the value of KEY in the Nth counts line, negative N counting from the last; 0 if it
# is not there.
field() {
    local line

    if [ "$1" -gt 0 ]; then
        line=$(grep ': counts ' "$snapshot" | sed -n "$1p")
    else
        line=$(grep ': counts ' "$snapshot" | tail -n "$((-$1))" | head -n 1)
    fi
    line=$(tr ' ' '\n' <<<"$line" | sed -n "s/^${2//./\\.}=//p")
    echo "${line:-0}"
}

# grown KEY: by how much a count grew from the second counts line to the last.
grown() {
    echo $(($(field -1 "$1") - $(field 2 "$1")))
}

# is_about VALUE EXPECTED TOLERANCE
is_about() {
    [ "$1" -ge $(($2 - $3)) ] && [ "$1" -le $(($2 + $3)) ]
}

check_regions() {
    local vcpus=$1 private=$2 shared=$3 v

    {
        for ((v = 0; v < vcpus; v++)); do
            printf 'numaherd-guest: region private%d start 0x%x bytes %d\n' "$v" \
                $((0x1000000 + v * private)) "$private"
        done
        printf 'numaherd-guest: region shared start 0x%x bytes %d\n' \
            $((0x1000000 + vcpus * private)) "$shared"
    } >"$work/expected"
    grep ': region ' "$snapshot" | tr -d '\r' | cmp -s - "$work/expected"
}

# Shares and growth of all vCPUs, for shared_permille=300.
check_mixed() {
    local vcpus=$1 v private shared

    for ((v = 0; v < vcpus; v++)); do
        private=$(grown "v$v.private$v")
        shared=$(grown "v$v.shared")
        [ "$private" -gt 0 ] && [ "$shared" -gt 0 ] || return 1
        is_about $((shared * 1000 / (private + shared))) 300 30 || return 1
    done
}

test_machine() {
    local name=$1 vcpus=$2

    shift 2
    start_machine "pattern=mixed private_mib=4 shared_mib=8 report_ms=500" -smp "$vcpus" "$@"
    wait_lines 1 ': ready ms='
    check "$name, $vcpus vCPUs: ready" $?
    grep -q "^numaherd-guest: version 1" "$snapshot" &&
        grep -q "^numaherd-guest: vcpus $vcpus\$" "$snapshot" &&
        check_regions "$vcpus" $((4 << 20)) $((8 << 20))
    check "$name, $vcpus vCPUs: their number and the regions" $?
    wait_lines 5 ': counts ' && check_mixed "$vcpus"
    check "$name, $vcpus vCPUs: all touch memory, 30 % of it shared" $?
    stop_machine
}

test_patterns() {
    start_machine "report_ms=500" -machine q35 -accel tcg -smp 2
    wait_lines 4 ': counts ' && [ "$(grown v0.private0)" -gt 0 ] &&
        [ "$(field -1 v0.shared)" -eq 0 ] &&
        [ "$(field -1 v1.private0)" -eq 0 ]
    check "private: each vCPU its own" $?
    stop_machine

    start_machine "pattern=shared report_ms=500 vcpu1.burst=128" -machine q35 -accel tcg -smp 2
    wait_lines 4 ': counts ' && [ "$(grown v0.shared)" -gt 0 ] &&
        [ "$(field -1 v0.private0)" -eq 0 ]
    check "shared: no private touches" $?
    is_about $(($(grown v1.shared) * 1000 / ($(grown v0.shared) + 1))) 250 50
    check "vcpu1.burst=128: a quarter of the touches" $?
    stop_machine

    start_machine "pattern=idle report_ms=500" -machine q35 -accel tcg -smp 2
    wait_lines 4 ': counts ' &&
        grep -q 'v0.private0=0 v0.shared=0 v1.private1=0 v1.shared=0' "$snapshot"
    check "idle: no touches" $?
    stop_machine
}

test_phases() {
    local ms

    start_machine "report_ms=500 phase=1.5:rotate=1 phase=3:pattern=shared" \
        -machine q35 -accel tcg -smp 2
    wait_lines 2 ': phase ms=' && wait_lines 9 ': counts '
    check "phases: two phase lines" $?
    ms=$(sed -n 's/.*: phase ms=\([0-9]*\) rotate=1 .*/\1/p' "$snapshot" | head -n 1)
    is_about "${ms:-0}" 1550 50
    check "phases: the first one in time (${ms:-none} ms)" $?
    [ "$(field 5 v0.private0)" -gt 0 ] && [ "$(field 5 v0.private1)" -gt 0 ] &&
        [ "$(field 5 v1.private0)" -gt 0 ] &&
        is_about "$(field 5 v0.private0)" "$(field 4 v0.private0)" 0 &&
        [ "$(field 5 v0.private1)" -gt "$(field 4 v0.private1)" ]
    check "phases: after rotate=1 each vCPU touches its neighbour's region" $?
    [ "$(field -1 v1.shared)" -gt "$(field -2 v1.shared)" ] &&
        is_about "$(field -1 v1.private0)" "$(field -2 v1.private0)" 0
    check "phases: after pattern=shared only the shared one" $?
    stop_machine
}

# test_error NAME CMDLINE PATTERN [QEMU-ARGUMENTS...]: QEMU ends by isa-debug-exit with 3.
test_error() {
    local name=$1 cmdline=$2 pattern=$3 deadline=$((SECONDS + 30)) status

    shift 3
    start_machine "$cmdline" -machine q35 -accel tcg -smp 2 \
        -device isa-debug-exit,iobase=0xf4,iosize=4 "$@"
    while kill -0 "$machine_pid" 2>/dev/null && [ $SECONDS -lt $deadline ]; do
        sleep 0.1
    done
    kill "$machine_pid" 2>/dev/null
    wait "$machine_pid"
    status=$?
    machine_pid=
    exec 3>&-
    take_snapshot
    [ $status -eq 3 ] && [ "$(seen '^numaherd-guest: error: ')" -eq 1 ] &&
        grep -q "^numaherd-guest: error: $pattern" "$snapshot" && ! grep -q ': ready' "$snapshot"
    check "refused: $name" $?
}

test_errors() {
    test_error "a burst that is no number" "burst=many" \
        "burst=many: burst is not a whole number, allowed are 0 to 1000000"
    test_error "a vCPU that is not there" "vcpu2.burst=1" "vcpu2.burst=1: no such vCPU"
    test_error "a phase without a change" "phase=3" "phase=3: changes nothing"
    test_error "regions larger than memory" "private_mib=200" \
        "private_mib, shared_mib: the regions of 2 vCPUs end at"
    test_error "more vCPUs than 64" "" "more vCPUs than the 64" -smp 65
    test_error "a command line that is too long" "$(printf 'seed=1 %.0s' {1..600})" \
        ".*4095"

    start_machine "console=ttyS0" -machine q35 -accel tcg -smp 2
    wait_lines 1 ': ready ms=' && grep -q '^numaherd-guest: warning: console=ttyS0' "$snapshot"
    check "an unknown key is a warning" $?
    stop_machine
}

test_monitor() {
    local before

    start_machine "report_ms=500" -machine q35 -accel tcg -smp 4
    wait_lines 2 ': counts '
    monitor system_reset
    wait_lines 2 ': ready ms=' && wait_lines 4 ': counts '
    check "system_reset: ready again" $?
    before=$(seen ': counts ')
    wait_lines $((before + 2)) ': counts ' &&
        [ "$(field -1 v3.private3)" -gt "$(field -2 v3.private3)" ]
    check "system_reset: counts grow again" $?
    grep -A 20 ': ready' "$snapshot" | grep ': counts' | sed -n 3p | grep -q ' ms=5[0-9][0-9] '
    check "system_reset: time and counts start from 0" $?

    monitor stop
    sleep 1
    take_snapshot
    before=$(seen ': counts ')
    sleep 2
    take_snapshot
    [ "$(seen ': counts ')" -eq "$before" ]
    check "stop: silence" $?
    monitor cont
    wait_lines $((before + 3)) ': counts ' 10 &&
        [ "$(field -1 v3.private3)" -gt "$(field -2 v3.private3)" ]
    check "cont: all goes on" $?

    before=$(seen ': counts ')
    monitor nmi
    wait_lines $((before + 3)) ': counts ' 10
    check "nmi: ignored" $?
    stop_machine
}

if [ $# -eq 0 ]; then
    "$sources/build.sh" "$image" "$sources" >"$work/log" 2>&1
    check "build.sh" $?
fi
if [ ! -e "$image" ]; then
    echo "Bail out! no image"
    exit 1
fi

for machine in q35 pc; do
    for vcpus in 1 2 4 8; do
        test_machine "$machine, tcg" $vcpus -machine $machine -accel tcg
    done
done
test_machine "q35 without ACPI" 2 -machine q35,acpi=off -accel tcg
test_machine "q35, APIC IDs with gaps" 6 -machine q35 -accel tcg \
    -smp 6,sockets=2,cores=3,threads=1
test_patterns
test_phases
test_errors
test_monitor

if [ -w /dev/kvm ]; then
    test_machine "q35, kvm" 2 -machine q35 -accel kvm -cpu host
    test_machine "pc, kvm" 4 -machine pc -accel kvm -cpu host
else
    checks=$((checks + 1))
    echo "ok $checks - kvm # SKIP no access to /dev/kvm"
fi

echo "1..$checks"
[ $failures -eq 0 ]
