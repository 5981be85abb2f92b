# SPDX-License-Identifier: LGPL-2.1-or-later
"""The directories of running hosts: console log, sockets, and who they belong to.

host.json names the process that made the directory and QEMU, each by pid and start time. When
neither lives, the directory is what a killed run left behind, and the next start removes it.
"""

import json
import os
import re
import shutil

import cache
import process
from errors import SetupError
from remote import SOCKET_NAME_MAX

PREFIX = "numaherd-emuhost-"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")


def _is_fit(base):
    longest = os.path.join(base, PREFIX + "x" * 40, "ssh")
    return os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK) \
        and len(longest) <= SOCKET_NAME_MAX


def root():
    for base in (os.environ.get("XDG_RUNTIME_DIR"), "/run/user/%d" % os.geteuid()):
        if base and _is_fit(base):
            return base
    return "/tmp"


def path(name):
    if not NAME.match(name):
        raise SetupError("'%s' is no name for a host: letters, digits, '.', '_', '-'" % name)
    return os.path.join(root(), PREFIX + name)


def is_ours(directory):
    try:
        st = os.lstat(directory)
    except FileNotFoundError:
        return False
    return st.st_uid == os.geteuid() and st.st_mode & 0o170077 == 0o040000


def read(directory):
    """What host.json says; {} if there is none (yet)."""
    try:
        if not is_ours(directory):
            return {}
        with open(os.path.join(directory, "host.json")) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def write(directory, **fields):
    known = read(directory)
    known.update(fields)
    new = os.path.join(directory, "host.json.new")
    with open(new, "w") as f:
        json.dump(known, f)
    os.replace(new, os.path.join(directory, "host.json"))


def names():
    """All hosts of this user's, dead ones included."""
    base = root()
    return sorted(n[len(PREFIX):] for n in os.listdir(base)
                  if n.startswith(PREFIX) and NAME.match(n[len(PREFIX):])
                  and read(os.path.join(base, n)))


def is_stale(known):
    return not process.is_alive(known.get("owner")) and not process.is_alive(known.get("qemu"))


def _lock():
    return cache.locked(os.path.join(cache.cache_dir(), "runs.lock"))


def _sweep():
    base = root()
    for name in os.listdir(base):
        directory = os.path.join(base, name)
        # one without host.json was made by a run that was killed before it could say whose it is
        if name.startswith(PREFIX) and is_ours(directory) and is_stale(read(directory)):
            shutil.rmtree(directory, ignore_errors=True)


def sweep():
    """Removes what killed runs left behind."""
    with _lock():
        _sweep()


def create(name):
    """The directory of a new host, or None if there is one of that name."""
    directory = path(name)
    with _lock():
        _sweep()
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            return None
        write(directory, owner=process.identity(os.getpid()))
    return directory


def remove(directory):
    shutil.rmtree(directory, ignore_errors=True)
