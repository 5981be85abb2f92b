#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# build.sh OUTPUT SOURCES_DIR: builds the test guest. $CC may name the compiler, with arguments.
# CFLAGS and LDFLAGS are not looked at: this program runs on no operating system, so what suits the
# others (sanitizers, hardening, coverage, PIE) does not suit it.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: build.sh OUTPUT SOURCES_DIR" >&2
    exit 2
fi
output=$1
sources=$2
cc=${CC:-cc}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

has_option() {
    # shellcheck disable=SC2086 # $CC may hold arguments
    $cc -Werror "$1" -E -x c /dev/null -o /dev/null 2>/dev/null
}

flags="-std=gnu17 -O2 -m64 -march=x86-64 -ffreestanding -fno-pic -fno-pie -mno-red-zone"
flags="$flags -mgeneral-regs-only -mcmodel=small -fno-stack-protector -fno-strict-aliasing"
flags="$flags -fno-asynchronous-unwind-tables -fno-common -Wall -Wextra -Wshadow"
flags="$flags -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef"
# What only some compilers know: loops in memory.c stay loops, no landing pads, no probes.
for option in -fno-tree-loop-distribute-patterns -fcf-protection=none \
    -fno-stack-clash-protection; do
    if has_option "$option"; then
        flags="$flags $option"
    fi
done
# Sanitizers and LTO that came with $CC are taken back, for the compiler and for the linker.
plain=
for option in -fno-sanitize=all -fno-lto; do
    if has_option "$option"; then
        plain="$plain $option"
    fi
done

objects=
for source in boot.S trampoline.S main.c apic.c clock.c cmdline.c interrupts.c layout.c memory.c \
    pattern.c platform.c report.c serial.c smp.c text.c timer.c vectors.S work.c; do
    object=$work/${source%.*}.o
    # shellcheck disable=SC2086 # lists of words
    $cc $flags $plain -ffile-prefix-map="$sources"=. -I "$sources" \
        -c "$sources/$source" -o "$object"
    objects="$objects $object"
done

# shellcheck disable=SC2086 # lists of words
$cc $plain -m64 -nostdlib -static -Wl,-T,"$sources/guest.ld" -Wl,--build-id=none \
    -Wl,-z,max-page-size=4096 -Wl,-z,noexecstack -Wl,--fatal-warnings -Wl,-s \
    -o "$work/guest" $objects
cp "$work/guest" "$output"
