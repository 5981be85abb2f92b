# SPDX-License-Identifier: LGPL-2.1-or-later
"""One running emulated host: QEMU, its console, and a shell in it over ssh.

Every wait has a deadline and looks at QEMU and the console meanwhile: a host that died raises
HostDied, it never becomes an endless wait or a result.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import image
import topology as topo
from qmp import Qmp

STAGES_KEPT = 6
DEATH = re.compile(r"Oops|Kernel panic|BUG: |kernel BUG|int3: |Unable to handle|general protection")
SSH = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
       "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=10",
       "-o", "ServerAliveCountMax=6", "-c", "aes128-ctr,chacha20-poly1305@openssh.com",
       "-o", "KexAlgorithms=curve25519-sha256"]


class HostDied(Exception):
    """QEMU ended, or the host's kernel died; the text has the last console lines."""


class HostTimeout(Exception):
    """A command exceeded its time although the host lives."""


class CommandFailed(Exception):
    """A command in the host returned non-zero."""


class Result:
    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def _die_with_parent():
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.setsid()


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def qemu_version():
    out = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True)
    m = re.search(r"version (\S+)", out.stdout)
    return m.group(1) if m else "unknown"


class Machine:
    """QEMU and the way into it. dir holds console.log, sockets, the overlay disk."""

    def __init__(self, topology, image_dir, run_dir, progress):
        self.topology, self.image_dir, self.dir = topology, image_dir, run_dir
        self.progress = progress
        self.proc = None
        self.pid = None
        self.port = None
        self.master = None
        # sockets have short names: a UNIX socket's path may have 107 characters
        self.sockets = None

    # -- starting and ending

    def _argv(self, disk):
        d = self.dir
        return ["qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=512",
                "-cpu", "max,+svm,+npt"] + topo.qemu_args(self.topology) + [
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-name", "emuhost-" + self.topology.name,
                "-drive", "file=%s,format=qcow2,if=virtio,cache=unsafe" % disk,
                "-kernel", os.path.join(self.image_dir, "vmlinuz"),
                "-initrd", os.path.join(self.image_dir, "initrd.img"),
                "-append", "console=ttyS0 root=/dev/vda rw panic=-1 oops=panic quiet "
                           "mitigations=off systemd.show_status=0",
                "-serial", "file:" + os.path.join(d, "console.log"),
                "-qmp", "unix:%s/qmp,server=on,wait=off" % self.sockets,
                "-netdev", "user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:%d-:22" % self.port,
                "-device", "virtio-net-pci,netdev=n0", "-device", "virtio-rng-pci"]

    def launch(self, disk, incoming=None, detach=False):
        self.port = _free_port()
        self.sockets = tempfile.mkdtemp(prefix="emuhost-")
        with open(os.path.join(self.dir, "sockets"), "w") as f:
            f.write(self.sockets + "\n")
        argv = self._argv(disk)
        if incoming:
            argv += ["-incoming", "exec:cat '%s'" % incoming]
        log = open(os.path.join(self.dir, "qemu.log"), "w")
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     preexec_fn=os.setsid if detach else _die_with_parent)
        self.pid = self.proc.pid
        log.close()
        with open(os.path.join(self.dir, "pid"), "w") as f:
            f.write("%d %s\n" % (self.pid, start_time(self.pid)))
        with open(os.path.join(self.dir, "port"), "w") as f:
            f.write("%d\n" % self.port)

    def resume(self, deadline_s=60):
        """After launch(incoming=...): lets it run as soon as its state is loaded."""
        q = Qmp(os.path.join(self.sockets, "qmp"))
        end = time.monotonic() + deadline_s
        while q.command("query-status")["status"] == "inmigrate":
            self.check_alive()
            if time.monotonic() > end:
                raise HostTimeout("the saved state was not loaded within %d s" % deadline_s)
            time.sleep(0.1)
        q.command("cont")
        q.close()

    def attach(self):
        """Takes over a machine that another process left running."""
        with open(os.path.join(self.dir, "pid")) as f:
            pid, start = f.read().split()
        if start_time(int(pid)) != start:
            raise HostDied("the host in %s does not run any more" % self.dir)
        self.pid = int(pid)
        with open(os.path.join(self.dir, "port")) as f:
            self.port = int(f.read())
        with open(os.path.join(self.dir, "sockets")) as f:
            self.sockets = f.read().strip()

    def kill(self):
        if self.master:
            self.master.terminate()
            self.master = None
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            if self.proc:
                self.proc.wait()
        if self.sockets:
            shutil.rmtree(self.sockets, ignore_errors=True)
        self.pid = None

    # -- is it well?

    def console_tail(self, n=12):
        try:
            with open(os.path.join(self.dir, "console.log"), errors="replace") as f:
                return "".join(f.readlines()[-n:])
        except FileNotFoundError:
            return ""

    def check_alive(self):
        if self.proc:
            gone = self.proc.poll() is not None
        else:
            gone = not os.path.exists("/proc/%d" % (self.pid or 0))
        tail = self.console_tail(60)
        if gone or DEATH.search(tail):
            why = "QEMU ended" if gone else "its kernel died"
            with contextlib.suppress(OSError):
                with open(os.path.join(self.dir, "qemu.log"), errors="replace") as f:
                    tail += f.read()[-400:]
            raise HostDied("the emulated host died (%s); last console lines:\n%s" % (why, tail))

    def _wait(self, proc, deadline_s, what):
        end = time.monotonic() + deadline_s
        while True:
            try:
                return proc.wait(timeout=0.3)
            except subprocess.TimeoutExpired:
                pass
            self.check_alive()
            if time.monotonic() > end:
                proc.kill()
                proc.wait()
                raise HostTimeout("%s: no end within %d s" % (what, deadline_s))

    # -- ssh

    def _ssh(self):
        return SSH + ["-i", os.path.join(self.image_dir, "key"),
                      "-o", "ControlPath=" + os.path.join(self.sockets, "ssh")]

    def ssh_argv(self, tty=False):
        return ["ssh"] + self._ssh() + (["-t"] if tty else []) + [
            "-p", str(self.port), "root@127.0.0.1"]

    def connect(self, deadline_s=90):
        """One master connection carries all commands, since a handshake is slow under emulation."""
        end = time.monotonic() + deadline_s
        ctl = os.path.join(self.sockets, "ssh")
        said = time.monotonic()
        while True:
            if os.path.exists(ctl) and subprocess.run(
                    ["ssh"] + self._ssh() + ["-O", "check", "x"], capture_output=True).returncode == 0:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(ctl)
            self.master = subprocess.Popen(
                ["ssh"] + self._ssh() + ["-M", "-N", "-p", str(self.port), "root@127.0.0.1"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=_die_with_parent)
            while self.master.poll() is None and time.monotonic() < end:
                if os.path.exists(ctl):
                    return
                self.check_alive()
                time.sleep(0.05)
            self.check_alive()
            if time.monotonic() > end:
                raise HostTimeout("no ssh into the host within %d s" % deadline_s)
            if time.monotonic() > said + 10:
                said = time.monotonic()
                self.progress("waiting for the host's ssh (%d s left)" % (end - said))
            time.sleep(0.3)

    def disconnect(self):
        if self.master:
            self.master.terminate()
            self.master.wait()
            self.master = None
            time.sleep(1)  # its end of the connection winds down too

    def run(self, command, timeout=60, check=True, input=None):
        """Runs a shell command (or an argument list) in the host."""
        self.connect()
        if not isinstance(command, str):
            command = " ".join("'" + a.replace("'", "'\\''") + "'" for a in command)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
                tempfile.TemporaryFile() as inp:
            if input:
                inp.write(input if isinstance(input, bytes) else input.encode())
                inp.seek(0)
            proc = subprocess.Popen(self.ssh_argv() + [command], stdin=inp, stdout=out, stderr=err)
            code = self._wait(proc, timeout, command[:80])
            out.seek(0)
            err.seek(0)
            r = Result(code, out.read().decode(errors="replace"), err.read().decode(errors="replace"))
        if code == 255:
            self.check_alive()
        if check and code != 0:
            raise CommandFailed("in the host, '%s' returned %d: %s"
                                % (command[:120], code, (r.stderr or r.stdout)[-600:]))
        return r

    def spawn(self, command, log):
        """Starts a command in the background of the host; its output goes to the file log there."""
        return int(self.run("setsid sh -c %s >%s 2>&1 </dev/null & echo $!" % (
            "'exec " + command.replace("'", "'\\''") + "'", log)).stdout)

    def copy_in(self, sources, target, timeout=120):
        sources = [sources] if isinstance(sources, str) else list(sources)
        self.connect()
        for src in sources:
            name = os.path.basename(src)
            dst = target.rstrip("/") + "/" + name if target.endswith("/") else target
            with open(src, "rb") as f:
                proc = subprocess.Popen(self.ssh_argv() + [
                    "mkdir -p \"$(dirname '%s')\" && cat >'%s' && chmod %o '%s'"
                    % (dst, dst, os.stat(src).st_mode & 0o777, dst)], stdin=f)
                if self._wait(proc, timeout, "copying " + src) != 0:
                    self.check_alive()
                    raise CommandFailed("copying %s to %s in the host failed" % (src, dst))

    def copy_out(self, source, target, timeout=120):
        self.connect()
        with open(target, "wb") as f:
            proc = subprocess.Popen(self.ssh_argv() + ["cat '%s'" % source], stdout=f,
                                    stdin=subprocess.DEVNULL)
            if self._wait(proc, timeout, "copying " + source) != 0:
                self.check_alive()
                raise CommandFailed("copying %s out of the host failed" % source)


def start_time(pid):
    """Start time of a process in ticks, as text; "" if there is none. With the pid: its identity."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


# -- saved states


def _state_dir(image_dir, topology):
    return os.path.join(image_dir, "state-%s-%s" % (topology.name, qemu_version()))


def overlay(backing, path):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", backing, "-F",
                    "raw" if backing.endswith(".raw") else "qcow2", path], check=True)


def _save(machine, tmp, progress):
    progress("saving its state")
    q = Qmp(os.path.join(machine.sockets, "qmp"))
    q.command("stop")
    q.command("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    q.command("migrate", uri="exec:cat > '%s'" % os.path.join(tmp, "ram"))
    end = time.monotonic() + 120
    while True:
        status = q.command("query-migrate").get("status")
        if status == "completed":
            break
        if status in ("failed", "cancelled") or time.monotonic() > end:
            raise HostDied("the state could not be saved: %s" % status)
        machine.check_alive()
        time.sleep(0.2)
    q.command("quit")
    q.close()
    machine.proc.wait()
    machine.pid = None


READY = """
set -e
for i in $(seq 60); do systemctl is-active -q emuhost-anchor && break; sleep 1; done
systemctl is-active emuhost-anchor
virsh -q capabilities >/dev/null
virsh -q domcapabilities --virttype kvm >/dev/null
virsh -q list
for t in /sys/kernel/tracing /sys/kernel/debug; do mountpoint -q $t || mount $t || true; done
ls /sys/kernel/tracing/events >/dev/null
ls -d /sys/kernel/debug/sched/numa_balancing
sync; echo 3 > /proc/sys/vm/drop_caches; sleep 2
"""


def _prepare_ready(machine):
    machine.run(READY, timeout=240)


def _make_state(topology, image_dir, tmp, start, prepare, progress):
    """Boots (or loads the state directory start), prepares, and saves into tmp."""
    m = Machine(topology, image_dir, tmp, progress)
    disk = os.path.join(tmp, "ready.qcow2")
    overlay(os.path.join(start, "ready.qcow2") if start else os.path.join(image_dir, "root.raw"),
            disk)
    try:
        if not start:
            progress("first boot of the emulated host '%s' (once, about a minute and a half)"
                     % topology.name)
        m.launch(disk, os.path.join(start, "ram") if start else None)
        if start:
            m.resume()
        m.connect(240)
        prepare(m)
        m.disconnect()
        _save(m, tmp, progress)
    finally:
        m.kill()


def _ensure(final, topology, image_dir, start, prepare, progress):
    """Makes the state directory final if it is not there; starts over when the host dies."""
    if os.path.exists(os.path.join(final, "ram")):
        return
    with image.locked(final + ".lock", progress):
        for attempt in range(1, 4):
            if os.path.exists(os.path.join(final, "ram")):
                return
            tmp = final + ".tmp"
            shutil.rmtree(tmp, ignore_errors=True)
            os.makedirs(tmp, mode=0o700)
            try:
                _make_state(topology, image_dir, tmp, start, prepare, progress)
                # the overlay names its backing file by an absolute path, so renaming keeps it right
                os.rename(tmp, final)
            except (HostDied, HostTimeout, CommandFailed) as e:
                progress("attempt %d: %s" % (attempt, e))
                if attempt == 3:
                    raise


def ensure_state(topology, progress):
    """(image_dir, state directory) of the topology; builds what is missing."""
    image_dir = image.ensure_image(progress)
    final = _state_dir(image_dir, topology)
    _ensure(final, topology, image_dir, None, _prepare_ready, progress)
    return image_dir, final


def ensure_stage(topology, key, prepare, progress):
    """A further state on top of the topology's: what prepare(machine) has set up.

    The key must change whenever prepare would do something else. No guest may run in the saved
    state; paused ones are safe.
    """
    image_dir, ready = ensure_state(topology, progress)
    final = "%s-stage-%s" % (ready, key)
    _drop_old_stages(ready, final)
    _ensure(final, topology, image_dir, ready, prepare, progress)
    return image_dir, final


def _drop_old_stages(ready, keep):
    parent, prefix = os.path.split(ready + "-stage-")
    old = sorted((os.path.join(parent, n) for n in os.listdir(parent)
                  if n.startswith(prefix) and "." not in n[len(prefix):]), key=os.path.getmtime)
    for path in old[:-STAGES_KEPT]:
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)
