# SPDX-License-Identifier: LGPL-2.1-or-later
"""The few QMP commands that saving and loading a machine state needs."""

import json
import socket
import time


class QmpError(Exception):
    """QEMU refused a command, or its monitor is gone."""


class Qmp:
    """A monitor connection. check() is called while waiting for it and may raise."""

    def __init__(self, path, check=lambda: None, deadline_s=30):
        self.sock = _connect(path, check, deadline_s)
        self.sock.settimeout(deadline_s)
        self.file = self.sock.makefile("rw")
        self._line()
        self.command("qmp_capabilities")

    def _line(self):
        try:
            line = self.file.readline()
        except OSError as e:
            raise QmpError("no answer from QEMU's monitor: %s" % e) from None
        if not line:
            raise QmpError("QEMU closed its monitor")
        return json.loads(line)

    def command(self, name, **arguments):
        try:
            self.file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
            self.file.flush()
        except OSError as e:
            raise QmpError("QEMU's monitor is gone: %s" % e) from None
        while True:
            reply = self._line()
            if "return" in reply:
                return reply["return"]
            if "error" in reply:
                raise QmpError("%s: %s" % (name, reply["error"]["desc"]))

    def close(self):
        try:
            self.file.close()
        except OSError:
            pass
        self.sock.close()


def _connect(path, check, deadline_s):
    end = time.monotonic() + deadline_s
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
            return sock
        except OSError as e:
            sock.close()
            check()
            if time.monotonic() > end:
                raise QmpError("no connection to QEMU's monitor: %s" % e) from None
            time.sleep(0.05)
