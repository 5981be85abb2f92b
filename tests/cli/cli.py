#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The two programs as a user meets them: exit codes, messages, tables, and a daemon that is up.

cli.py NUMAHERD NUMAHERDCTL SOURCE_ROOT; prints TAP. NUMAHERD_GOLDEN=write writes the golden files
anew (look at the difference before committing it).
"""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NUMAHERD, CTL, ROOT = sys.argv[1:4]
HERE = os.path.join(ROOT, "tests/cli")
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def run(*argv, **kw):
    return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60, **kw)


def ctl(*argv):
    return run(CTL, *argv)


class Daemon:
    """A numaherd of our own, with its own socket."""

    def __init__(self, *args, wait=True):
        self.dir = tempfile.mkdtemp(prefix="numaherd-cli-")
        self.said = None
        self.socket = os.path.join(self.dir, "control.sock")
        self.log = open(os.path.join(self.dir, "log"), "w+")
        self.proc = subprocess.Popen([NUMAHERD, "--socket=" + self.socket, "--tick=1", *args],
                                     stderr=self.log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while wait and time.monotonic() < end and self.proc.poll() is None:
            s = self.status()
            if s and s["daemon"]["ticks"] > 0:
                break
            time.sleep(0.1)

    def status(self):
        r = ctl("--socket=" + self.socket, "--json")
        return json.loads(r.stdout) if r.returncode == 0 else None

    def text(self):
        return ctl("--socket=" + self.socket).stdout

    def logged(self):
        if self.said is not None:
            return self.said
        with open(self.log.name) as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            self.proc.wait(timeout=30)
        self.log.flush()
        self.said = self.logged()
        self.log.close()
        shutil.rmtree(self.dir)


TEST_DRIVER = "--connect=test:///default"


@test
def help_and_version():
    for program in (NUMAHERD, CTL):
        r = run(program, "--help")
        assert r.returncode == 0 and "Usage:" in r.stdout and not r.stderr, r
        r = run(program, "--version")
        assert r.returncode == 0 and r.stdout.split()[1][0].isdigit(), r


@test
def wrong_usage_is_2_and_says_what_is_wanted():
    for argv, says in (
            ((NUMAHERD, "--tick=0"), "1 to 3600"), ((NUMAHERD, "--tick=1x"), "--tick=1x"),
            ((NUMAHERD, "--on-exit=maybe"), "restore keep"), ((NUMAHERD, "--nonsense"), "--help"),
            ((NUMAHERD, "vm1"), "'vm1'"), ((CTL, "--color=blue"), "auto, always or never"),
            ((CTL, "nonsense"), "'nonsense'"), ((CTL, "status", "a", "b"), "'b'"),
            ((CTL, "--nonsense"), "--help")):
        r = run(*argv)
        assert r.returncode == 2 and says in r.stderr and not r.stdout, (argv, r)


@test
def without_a_daemon_it_is_3():
    r = ctl("--socket=/nonexistent/sock")
    assert r.returncode == 3 and "not running" in r.stderr and "/nonexistent/sock" in r.stderr, r


@test
def golden_tables():
    files = sorted(glob.glob(os.path.join(HERE, "*.json")))
    assert files
    for path in files:
        r = ctl("--from=" + path, "--color=never")
        assert r.returncode == 0, (path, r)
        golden = path[:-5] + ".txt"
        if os.environ.get("NUMAHERD_GOLDEN") == "write":
            with open(golden, "w") as f:
                f.write(r.stdout)
        with open(golden) as f:
            want = f.read()
        assert r.stdout == want, "%s:\n%s\nwant:\n%s" % (path, r.stdout, want)


@test
def one_vm_and_unknown_vm():
    path = os.path.join(HERE, "mesh4.json")
    r = ctl("--from=" + path, "status", "private")
    assert r.returncode == 0 and "private" in r.stdout and "shared" not in r.stdout, r
    r = ctl("--from=" + path, "status", "nobody")
    assert r.returncode == 4 and "'nobody'" in r.stderr and not r.stdout, r


@test
def a_broken_saved_status_is_an_error():
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write("{")
        f.flush()
        r = ctl("--from=" + f.name)
        assert r.returncode == 1 and f.name in r.stderr, r


@test
def a_vm_without_a_process_is_said_and_the_rest_goes_on():
    with Daemon(TEST_DRIVER) as d:
        s = d.status()
        assert s["libvirt"]["connected"] and len(s["vms"]) == 1, s
        assert "QEMU process was not found" in s["vms"][0]["state"], s["vms"][0]
        text = d.text()
        assert "libvirt connected" in text and "left alone" in text, text
    assert d.proc.returncode == 0 and "stopped" in d.logged(), d.logged()


@test
def no_libvirtd_is_said_and_it_goes_on():
    with Daemon("--connect=qemu+unix:///system?socket=/nonexistent/libvirt-sock") as d:
        s = d.status()
        assert not s["libvirt"]["connected"] and s["libvirt"]["error"], s["libvirt"]
        assert s["nodes"], "nodes are shown all the same"
        text = d.text()
        assert "NOT CONNECTED" in text and "/nonexistent/libvirt-sock" in text, text
    assert d.proc.returncode == 0
    assert d.logged().count("cannot connect to libvirt") == 1, d.logged()


@test
def a_captured_host_with_its_oddities():
    with Daemon(TEST_DRIVER, "--root=" + os.path.join(ROOT, "tests/hosts/debian13-4node")) as d:
        s = d.status()
        assert s["daemon"]["mode"] == "dry-run" and len(s["nodes"]) == 4, s
        assert s["host"]["topology"] == "mesh", s["host"]


@test
def a_root_that_is_none():
    with Daemon(TEST_DRIVER, "--root=/nonexistent") as d:
        d.proc.wait(timeout=20)
    assert d.proc.returncode == 1 and "/nonexistent" in d.logged(), d.logged()


@test
def a_root_without_proc_is_trouble_not_death():
    with tempfile.TemporaryDirectory() as empty, \
            Daemon(TEST_DRIVER, "--root=" + empty, wait=False) as d:
        end = time.monotonic() + 20
        s = None
        while time.monotonic() < end and not (s and (s["daemon"]["trouble"] or s["nodes"])):
            time.sleep(0.2)
            s = d.status()
        assert d.proc.poll() is None and s, d.logged()
        assert s["daemon"]["trouble"] or len(s["nodes"]) == 1, s


@test
def one_instance_for_one_socket():
    with Daemon(TEST_DRIVER) as d:
        r = run(NUMAHERD, TEST_DRIVER, "--socket=" + d.socket)
        assert r.returncode == 1 and "another numaherd" in r.stderr, r
        assert d.status()
        path = d.socket
        d.proc.send_signal(signal.SIGTERM)
        d.proc.wait(timeout=30)
        assert not os.path.exists(path)
        with open(path, "w") as f:
            f.write("precious")
        r = run(NUMAHERD, TEST_DRIVER, "--socket=" + path)
        assert r.returncode == 1 and "is no socket" in r.stderr, r
        with open(path) as f:
            assert f.read() == "precious"


def raw(path, data, shut=True):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        try:
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
            return s.recv(65536)
        except OSError:
            return b""


@test
def bad_clients_harm_nobody():
    with Daemon(TEST_DRIVER) as d:
        for data in (b"", b"\0", b"x\0", b"{\0", b"[1]\0", b"{" * 100000 + b"\0", b"a" * (3 << 20),
                     b'{"method":"a"', bytes(range(256)) * 10):
            raw(d.socket, data)
        assert b"InterfaceNotFound" in raw(d.socket, b'{"method":"a.b"}\0')
        assert b"MethodNotFound" in raw(d.socket, b'{"method":"org.numaherd.Control.Nope"}\0')
        many = []
        for _ in range(40):  # more than it serves at once
            s = socket.socket(socket.AF_UNIX)
            s.connect(d.socket)
            many.append(s)
        time.sleep(0.3)
        for s in many:
            s.close()
        time.sleep(0.3)
        assert d.status(), d.logged()
    assert d.proc.returncode == 0, d.logged()


def main():
    failed = 0
    print("1..%d" % len(TESTS), flush=True)
    for i, fn in enumerate(TESTS):
        try:
            fn()
            ok = True
        except Exception as e:  # a test that breaks has failed, whatever the reason
            ok = False
            failed += 1
            for line in ("%s: %s" % (type(e).__name__, e)).splitlines():
                print("# " + line)
        print("%sok %d - %s" % ("" if ok else "not ", i + 1, fn.__name__), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
