# SPDX-License-Identifier: LGPL-2.1-or-later
"""What can go wrong with the emulated host, and the small word for telling how it goes."""

import sys


class SetupError(Exception):
    """Something on this machine is missing; the text says what and how to get it."""


class HostDied(Exception):
    """QEMU ended, or the host's kernel died; the text has the last console lines."""


class HostTimeout(Exception):
    """A command exceeded its time although the host lives."""


class CommandFailed(Exception):
    """A command in the host returned non-zero. returncode, stdout and stderr are its own."""

    def __init__(self, text, returncode=None, stdout="", stderr=""):
        super().__init__(text)
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def stderr_progress(text):
    print("emuhost: " + text, file=sys.stderr, flush=True)
