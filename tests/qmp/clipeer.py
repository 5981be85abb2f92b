# SPDX-License-Identifier: LGPL-2.1-or-later
"""A peer on a UNIX socket that says what a test wants it to say."""

import json
import os
import shutil
import socket
import tempfile
import threading

GREETING = {"QMP": {"version": {"qemu": {"major": 10, "minor": 0, "micro": 0}, "package": ""},
                    "capabilities": []}}
OOB_GREETING = {"QMP": {"version": {}, "capabilities": ["oob"]}}


class Dir:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="qmp-cli-")
        self.path = os.path.join(self.dir, "q")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir)


class Peer(Dir):
    """Listens on a socket and plays `play(peer)` to the one client that comes."""

    def __init__(self, play, backlog=1):
        self.play, self.backlog = play, backlog
        self.got = []  # commands after the negotiation
        self.broke = None
        self.end = threading.Event()

    def __enter__(self):
        super().__enter__()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(self.backlog)
        self.listener.settimeout(30)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.end.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        super().__exit__()

    def serve(self):
        try:
            self.conn, _ = self.listener.accept()
        except OSError:
            return  # nobody came
        with self.conn:
            self.conn.settimeout(30)
            self.lines = self.conn.makefile("rb")
            try:
                self.play(self)
            except (OSError, ValueError) as e:
                self.broke = e
            self.lines.close()

    def send(self, *messages):
        for m in messages:
            raw = m if isinstance(m, bytes) else json.dumps(m).encode() + b"\r\n"
            self.conn.sendall(raw)

    def receive(self):
        line = self.lines.readline()
        if not line:
            raise OSError("the client is gone")
        return json.loads(line)

    def negotiate(self, greeting=None):
        self.send(greeting or GREETING)
        self.capabilities = self.receive()
        self.send({"return": {}, "id": self.capabilities["id"]})

    def command(self):
        c = self.receive()
        self.got.append(c)
        return c

    def stay(self):
        self.end.wait(30)


def event(name, **data):
    return {"event": name, "data": data, "timestamp": {"seconds": 5, "microseconds": 7}}


def answering(reply, before=(), after=()):
    """Plays a monitor that answers one command by `reply`, between events, and closes."""
    def play(peer):
        peer.negotiate()
        c = peer.command()
        peer.send(*before)
        peer.send({**reply, "id": c["id"]})
        peer.send(*after)
    return play


def saying(*messages, stay=False):
    """Plays a monitor that negotiates and says things by itself."""
    def play(peer):
        peer.negotiate()
        peer.send(*messages)
        if stay:
            peer.stay()
    return play
