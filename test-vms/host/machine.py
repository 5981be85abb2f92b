# SPDX-License-Identifier: LGPL-2.1-or-later
"""One QEMU process that is an emulated host, and its console.

Every wait has a deadline and looks at QEMU and the console meanwhile: a host that died raises
HostDied, it never becomes an endless wait or a result.
"""

import os
import re
import shlex
import socket
import subprocess
import time

import process
import topology as topo
from errors import HostDied, HostTimeout, SetupError
from qmp import Qmp, QmpError

QEMU = "qemu-system-x86_64"
# Lockup warnings are no death (the machine below may just be busy), and the watchdogs are off.
DEATH = re.compile(r"Oops|Kernel panic|kernel BUG at|BUG: (?!soft lockup|workqueue lockup)|int3: ")
LAST_WORDS_S = 3
# What udev would load for nothing.
NO_MODULES = ("aesni_intel,ata_generic,ata_piix,configfs,crc32_pclmul,crct10dif_pclmul,drm,"
              "efi_pstore,evdev,floppy,ghash_clmulni_intel,i2c_piix4,joydev,pcspkr,powernow_k8,"
              "psmouse,sha1_ssse3,sha256_ssse3,sha512_ssse3,vmw_vsock_vmci_transport,"
              "vsock_loopback")
KERNEL_ARGS = ("console=ttyS0 root=/dev/vda rw panic=-1 oops=panic quiet nowatchdog "
               "workqueue.watchdog_thresh=0 mitigations=off systemd.show_status=0 "
               "module_blacklist=" + NO_MODULES)


def qemu_version():
    try:
        out = subprocess.run([QEMU, "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise SetupError("QEMU is missing; install it with: apt-get install qemu-system-x86") \
            from None
    m = re.search(r"version (.*)", out)
    return m.group(1) if m else "unknown"


def hardware_args(topology):
    """The part of the command line that a saved state depends on."""
    return (["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,+svm,+npt"]
            + topo.qemu_args(topology)
            + ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
               "-device", "virtio-blk-pci,drive=root",
               "-device", "virtio-net-pci,netdev=n0,romfile=", "-device", "virtio-rng-pci",
               "-append", KERNEL_ARGS])


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _comma(path):
    """A path inside one of QEMU's option lists."""
    return path.replace(",", ",,")


class Console:
    """The serial console's log, searched once for the words of a dying kernel."""

    def __init__(self, path):
        self.path = path
        self.offset = 0
        self.partial = ""
        self.death = None

    def scan(self):
        """The line that told of the kernel's death, or None."""
        try:
            with open(self.path, "rb") as f:
                f.seek(self.offset)
                new = f.read()
        except FileNotFoundError:
            return None
        self.offset += len(new)
        lines = (self.partial + new.decode(errors="replace")).split("\n")
        self.partial = lines[-1][-4096:]
        for line in lines:
            if self.death is None and DEATH.search(line):
                self.death = line.strip()
        return self.death

    def tail(self, n):
        try:
            with open(self.path, "rb") as f:
                f.seek(max(0, os.fstat(f.fileno()).st_size - 300 * n))
                text = f.read().decode(errors="replace").replace("\r", "")
        except FileNotFoundError:
            return ""
        return "\n".join(text.rstrip("\n").split("\n")[-n:])


class Machine:
    """QEMU. dir holds console.log, qemu.log and the sockets."""

    def __init__(self, topology, image_dir, run_dir, progress):
        self.topology, self.image_dir, self.dir = topology, image_dir, run_dir
        self.progress = progress
        self.proc = None
        self.who = None
        self.port = None
        self.console = Console(os.path.join(run_dir, "console.log"))

    @property
    def pid(self):
        return self.who[0] if self.who else None

    # -- starting and ending

    def _argv(self, drive, incoming):
        argv = [QEMU] + hardware_args(self.topology) + [
            "-name", "emuhost-" + self.topology.name,
            "-drive", drive + ",if=none,id=root",
            "-kernel", os.path.join(self.image_dir, "vmlinuz"),
            "-initrd", os.path.join(self.image_dir, "initrd.img"),
            "-serial", "file:" + os.path.join(self.dir, "console.log"),
            "-qmp", "unix:%s,server=on,wait=off" % _comma(self._qmp_path()),
            "-netdev", "user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:%d-:22" % self.port]
        return argv + (["-incoming", "exec:cat " + shlex.quote(incoming)] if incoming else [])

    def _qmp_path(self):
        return os.path.join(self.dir, "qmp")

    def launch(self, disk, incoming=None, throw_away=True, detach=False, keep_open=(), tmp=None):
        """Starts QEMU on a disk, whose changes are thrown away at its end or kept in it.

        incoming: file of a saved state, waits for resume(). keep_open: descriptors it inherits.
        """
        drive = "file=%s,format=qcow2,cache=unsafe,discard=unmap" % _comma(disk)
        drive += ",snapshot=on" if throw_away else ""
        for attempt in range(5):
            self.port = _free_port()
            with open(os.path.join(self.dir, "qemu.log"), "wb") as log:
                self.proc = subprocess.Popen(
                    self._argv(drive, incoming), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    pass_fds=keep_open, env=dict(os.environ, TMPDIR=tmp) if tmp else None,
                    preexec_fn=os.setsid if detach else process.die_with_parent())
            self.who = process.identity(self.proc.pid)
            try:
                self.qmp().close()
                return
            except HostDied:
                # somebody else may have taken the port in between
                if "forward" not in self._qemu_log() or attempt == 4:
                    raise SetupError("QEMU could not be started: " + self._qemu_log()) from None

    def attach(self, who, port):
        """Takes over a machine that another process left running."""
        self.who, self.port = who, port

    def qmp(self):
        try:
            return Qmp(self._qmp_path(), self.check_alive)
        except QmpError as e:
            raise self._gone_or(HostTimeout("%s" % e)) from None

    def resume(self, deadline_s=60):
        """After launch(incoming=...): lets it run as soon as its state is loaded."""
        q = self.qmp()
        end = time.monotonic() + deadline_s
        try:
            while q.command("query-status")["status"] == "inmigrate":
                self.check_alive()
                if time.monotonic() > end:
                    raise HostTimeout("the saved state was not loaded within %d s" % deadline_s)
                time.sleep(0.05)
            q.command("cont")
        except QmpError as e:
            raise self._gone_or(HostTimeout("%s" % e)) from None
        finally:
            q.close()

    def save(self, path, deadline_s=180):
        """Stops it and writes its state to a file; QEMU ends."""
        q = self.qmp()
        try:
            q.command("stop")
            q.command("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
            q.command("migrate", uri="exec:cat > " + shlex.quote(path))
            end = time.monotonic() + deadline_s
            while True:
                status = q.command("query-migrate").get("status")
                if status == "completed":
                    break
                if status in ("failed", "cancelled") or time.monotonic() > end:
                    raise HostTimeout("the state could not be saved: %s" % status)
                self.check_alive()
                time.sleep(0.1)
            q.command("quit")
        except QmpError as e:
            raise self._gone_or(HostTimeout("%s" % e)) from None
        finally:
            q.close()
        self.proc.wait()
        self.who = None

    def kill(self):
        process.kill(self.who)
        if self.proc:
            self.proc.wait()
        end = time.monotonic() + LAST_WORDS_S
        while process.is_alive(self.who) and time.monotonic() < end:
            time.sleep(0.02)
        self.proc = self.who = None

    # -- is it well?

    def lives(self):
        return self.proc.poll() is None if self.proc else process.is_alive(self.who)

    def _qemu_log(self):
        try:
            with open(os.path.join(self.dir, "qemu.log"), errors="replace") as f:
                return f.read()[-800:]
        except FileNotFoundError:
            return ""

    def check_alive(self):
        """Raises HostDied if QEMU is gone or the console tells of the kernel's death."""
        lives = self.lives()
        if lives and not self.console.scan():
            return
        end = time.monotonic() + LAST_WORDS_S
        while lives and time.monotonic() < end:  # an oops takes a moment to be printed
            time.sleep(0.1)
            lives = self.lives()
        why = self.console.scan() or "QEMU ended"
        raise HostDied("the emulated host died (%s); last console lines:\n%s\n%s" % (
            why, self.console.tail(40), self._qemu_log()))

    def check_alive_soon(self, grace_s=2):
        """check_alive() for one that has a reason to think it is just dying."""
        end = time.monotonic() + grace_s
        while time.monotonic() < end:
            self.check_alive()
            time.sleep(0.1)

    def _gone_or(self, error):
        try:
            self.check_alive_soon()
        except HostDied as died:
            return died
        return error

    def wait(self, proc, deadline_s, what):
        """Waits for a local process that talks to the host; its return code."""
        end = time.monotonic() + deadline_s
        while True:
            try:
                return proc.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
            try:
                self.check_alive()
                if time.monotonic() > end:
                    raise HostTimeout("%s: no end within %g s" % (what, deadline_s))
            except BaseException:
                proc.kill()
                proc.wait()
                raise
