# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by run, check and .ci/run: says what this machine lacks and installs it.
# shellcheck shell=bash

BUILD_PACKAGES="gcc libc6-dev meson ninja-build pkg-config python3 libjson-c-dev libvirt-dev
    libnuma-dev libsystemd-dev libxml2-dev libsmartcols-dev"
HOST_PACKAGES="mmdebstrap debian-archive-keyring qemu-system-x86 qemu-utils e2fsprogs openssh-client"
CHECK_PACKAGES="libxml2-utils man-db"
DISK_MIB_NEEDED=6144

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# Root, Debian 12 or 13, apt, room on the disk: or a sentence about what is missing.
setup_machine_ok() {
    local id="" version="" free
    [ "$(uname -s)" = Linux ] || die "needs Linux, this is $(uname -s)"
    [ "$(uname -m)" = x86_64 ] || die "needs an x86-64 machine, this is $(uname -m)"
    [ "$(id -u)" = 0 ] || die "needs root (to install packages and to build the emulated host); try: sudo $0"
    if [ -r /etc/os-release ]; then
        id=$(. /etc/os-release; echo "${ID:-}")
        version=$(. /etc/os-release; echo "${VERSION_ID:-}")
    fi
    [ "$id" = debian ] || die "is made for Debian 12 or 13, this is '${id:-unknown}'; in a container or chroot of Debian it works too"
    case "$version" in
        12|13|"") ;;
        *) say "tried on Debian 12 and 13, this is $version: going on" ;;
    esac
    command -v apt-get >/dev/null || die "apt-get is missing; it installs what the build needs"
    free=$(df -Pm "${XDG_CACHE_HOME:-${HOME:-/root}}" 2>/dev/null | awk 'NR==2 {print $4}')
    [ -z "$free" ] || [ "$free" -ge "$DISK_MIB_NEEDED" ] ||
        die "needs $DISK_MIB_NEEDED MiB of free disk for ${XDG_CACHE_HOME:-${HOME:-/root}}, there are $free; make room or set XDG_CACHE_HOME"
}

# setup_packages PACKAGE...: installs those that are missing.
setup_packages() {
    local missing="" p log
    for p in "$@"; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q '^install ok installed' || missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    say "installing:$missing"
    log=$(mktemp)
    # shellcheck disable=SC2086 # a list of package names
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        rm -f "$log"
        die "these packages could not be installed:$missing (see above; is the package archive reachable?)"
    fi
    rm -f "$log"
}

# setup_build DIR MESON_OPTION...: configures once, then builds; quiet unless it fails.
setup_build() {
    local dir=$1 log
    shift
    log=$(mktemp)
    if [ ! -f "$dir/build.ninja" ]; then
        say "configuring $dir"
        if ! meson setup "$dir" "$@" >"$log" 2>&1; then
            tail -n 30 "$log" >&2
            rm -rf "$dir" "$log"
            die "meson could not configure the build (see above)"
        fi
    fi
    say "building in $dir"
    if ! ninja -C "$dir" >"$log" 2>&1; then
        grep -v '^\[' "$log" | tail -n 60 >&2
        rm -f "$log"
        die "the build failed (see above)"
    fi
    rm -f "$log"
}
