# SPDX-License-Identifier: LGPL-2.1-or-later
"""The few QMP commands that saving and loading a machine state needs."""

import json
import socket
import time


class Qmp:
    def __init__(self, path, deadline_s=20):
        end = time.monotonic() + deadline_s
        while True:
            self.sock = socket.socket(socket.AF_UNIX)
            try:
                self.sock.connect(path)
                break
            except OSError:
                self.sock.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.sock.settimeout(deadline_s)
        self.file = self.sock.makefile("rw")
        self.file.readline()
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        self.file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            line = self.file.readline()
            if not line:
                raise OSError("QEMU closed its monitor")
            reply = json.loads(line)
            if "return" in reply:
                return reply["return"]
            if "error" in reply:
                raise OSError("QEMU: %s: %s" % (name, reply["error"]["desc"]))

    def close(self):
        self.file.close()
        self.sock.close()
