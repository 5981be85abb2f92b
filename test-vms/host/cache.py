# SPDX-License-Identifier: LGPL-2.1-or-later
"""The user's cache: where images and states lie, who may make or remove them.

A thing is made beside its place and renamed at the end, under an exclusive lock; a lock file's
shared lock, inherited by QEMU, says that a thing is in use and must not be removed.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import time

from errors import SetupError

IN_USE = "in-use"


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(
        os.environ.get("HOME") or "/root", ".cache")
    return os.path.join(base, "numaherd")


@contextlib.contextmanager
def locked(path, progress=lambda text: None):
    """Holds an exclusive lock; says so every ten seconds when somebody else has it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        said = 0.0
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - said > 10:
                    said = time.monotonic()
                    progress("waiting for another build of the emulated host (%s)" % path)
                time.sleep(0.2)
        yield
    finally:
        os.close(fd)


def hold(directory):
    """A file descriptor that keeps a directory from being removed; None if it is gone already."""
    path = os.path.join(directory, IN_USE)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    fcntl.flock(fd, fcntl.LOCK_SH)
    try:
        if os.stat(path).st_ino == os.fstat(fd).st_ino:
            return fd
    except FileNotFoundError:
        pass
    os.close(fd)
    return None


def remove_unless_held(directory):
    """Removes an image or a state; False if a running host uses it."""
    try:
        fd = os.open(os.path.join(directory, IN_USE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return True
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        trash = "%s.trash-%d" % (directory, os.getpid())
        os.rename(directory, trash)
        remove_tree(trash)
        return True
    finally:
        os.close(fd)


def _mounts_below(path):
    prefix = os.path.realpath(path) + "/"
    with open("/proc/self/mountinfo") as f:
        points = [line.split()[4].replace("\\040", " ") for line in f]
    return sorted((p for p in points if p.startswith(prefix)), reverse=True)


def remove_tree(path):
    """rmtree, but never through what a killed build may have left mounted below (such as /dev)."""
    for point in _mounts_below(path):
        subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL)
    if _mounts_below(path):
        raise SetupError("something is mounted below %s; unmount it, then remove that directory"
                         % path)
    shutil.rmtree(path, ignore_errors=True)


def need_space(mib, what):
    os.makedirs(cache_dir(), mode=0o700, exist_ok=True)
    free = shutil.disk_usage(cache_dir()).free >> 20
    if free < mib:
        raise SetupError("%s has %d MiB free, %s needs %d; make room or set XDG_CACHE_HOME"
                         % (cache_dir(), free, what, mib))


def size_mib(directory):
    """Disk space taken, holes not counted."""
    total = 0
    for parent, _, files in os.walk(directory):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total >> 20
