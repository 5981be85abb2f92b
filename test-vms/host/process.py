# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes that end with the one that started them, and that can be told from later ones."""

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def start_time(pid):
    """Start time of a process in ticks, as text, "" if there is none; with the pid its identity."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def identity(pid):
    return [pid, start_time(pid)]


def is_alive(who):
    """Whether the process of an identity() still runs; a later one of its pid does not count."""
    return bool(who) and who[1] != "" and start_time(who[0]) == who[1]


def kill(who):
    if is_alive(who):
        try:
            os.kill(who[0], signal.SIGKILL)
        except ProcessLookupError:
            pass


def die_with_parent():
    """For Popen(preexec_fn=...): the kernel kills the child when its parent is gone.

    The parent is the thread that started it: start hosts from a thread that lives as long as they.
    """
    parent = os.getpid()

    def in_child():
        os.setsid()
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before the line above
            os._exit(1)

    return in_child
