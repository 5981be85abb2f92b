# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the Debian 13 root image of the emulated host into a cache of the user's.

The cache's key is a hash of this file, so whoever changes the image gets a new one. A build happens
beside its place and is renamed at the end; a lock makes a second builder wait; what a killed build
left behind is never taken for an image.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import time

PACKAGES = """systemd-sysv dbus udev kmod iproute2 procps util-linux linux-image-amd64
    libvirt-daemon-system libvirt-clients libvirt-daemon-driver-qemu qemu-system-x86 numactl
    libnuma1 libjson-c5 libxml2 libsmartcols1 libncursesw6 libsystemd0 libpam-systemd polkitd
    openssh-server strace""".split()
TOOLS = {"mmdebstrap": "mmdebstrap", "mkfs.ext4": "e2fsprogs", "ssh-keygen": "openssh-client",
         "qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils"}
FREE_BYTES_NEEDED = 4 << 30
IMAGE_SIZE = "3G"

SSHD_CONFIG = """# the emulated test host: reached from its own machine only
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
HostKey /etc/ssh/ssh_host_ed25519_key
Subsystem sftp internal-sftp
MaxSessions 64
"""

NETWORK_UNIT = """[Unit]
Description=Address of the emulated host
DefaultDependencies=no
After=systemd-modules-load.service
Before=ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'modprobe virtio_net; while :; do d=$(ls /sys/class/net | grep -v -e lo -e virbr | head -n 1); [ -n "$d" ] && break; sleep 0.2; done; ip link set lo up; ip link set "$d" up; ip addr add 10.0.2.15/24 dev "$d"'

[Install]
WantedBy=multi-user.target
"""

# A guest that stays paused for the host's whole life: with it KVM never goes back to "no guest has
# its local APIC off", a transition in which the kernel patches its own code, and multi-threaded
# emulation of a CPU can run such code half patched.
ANCHOR_UNIT = """[Unit]
Description=A paused guest that keeps KVM's static branches from flipping
After=systemd-modules-load.service

[Service]
ExecStart=/usr/bin/qemu-system-x86_64 -accel kvm -m 64 -S -display none -nodefaults -no-user-config -name anchor

[Install]
WantedBy=multi-user.target
"""

FILES = {
    "etc/ssh/sshd_config": SSHD_CONFIG,
    "etc/systemd/system/emuhost-net.service": NETWORK_UNIT,
    "etc/systemd/system/emuhost-anchor.service": ANCHOR_UNIT,
    "etc/modules-load.d/emuhost.conf": "kvm_amd\nvirtio_net\n",
    "etc/sysctl.d/90-emuhost.conf": "kernel.panic_on_oops = 1\nkernel.panic = -1\n",
    "etc/fstab": "/dev/vda / ext4 rw,noatime 0 0\n",
    "etc/hostname": "emuhost\n",
    "etc/hosts": "127.0.0.1 localhost emuhost\n",
    "etc/libvirt/qemu.conf": 'user = "root"\ngroup = "root"\nremember_owner = 0\n'
                             'security_driver = "none"\nmax_core = 0\n',
}
ENABLE = ("emuhost-net.service", "emuhost-anchor.service")
# What costs boot time or makes noise in measurements.
MASK = """serial-getty@ttyS0.service getty@tty1.service apt-daily.timer apt-daily-upgrade.timer
    man-db.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
    libvirt-guests.service systemd-timesyncd.service systemd-networkd.service
    systemd-resolved.service systemd-tmpfiles-clean.timer logrotate.timer ssh.socket
    systemd-networkd-wait-online.service ldconfig.service numad.service""".split()


class SetupError(Exception):
    """Something on this machine is missing; the text says what and how to get it."""


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(
        os.environ.get("HOME") or "/root", ".cache")
    return os.path.join(base, "numaherd")


def image_key():
    with open(os.path.abspath(__file__), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def image_dir():
    return os.path.join(cache_dir(), "host-" + image_key())


@contextlib.contextmanager
def locked(path, progress):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another build of the emulated host")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def check_machine():
    if os.geteuid() != 0:
        raise SetupError("building the emulated host's image needs root (its files belong to root)")
    missing = sorted({pkg for tool, pkg in TOOLS.items() if not shutil.which(
        tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")})
    if missing:
        raise SetupError("missing tools; install them with: apt-get install " + " ".join(missing))
    os.makedirs(cache_dir(), exist_ok=True)
    free = shutil.disk_usage(cache_dir()).free
    if free < FREE_BYTES_NEEDED:
        raise SetupError("%s has %d MiB free, the image needs %d; make room or set XDG_CACHE_HOME"
                         % (cache_dir(), free >> 20, FREE_BYTES_NEEDED >> 20))


def _mirror():
    """The archive that this machine itself installs from; None: the tool's own default."""
    r = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE)",
                        "Origin: Debian"], capture_output=True, text=True)
    for line in sorted(set(r.stdout.splitlines())):
        uri, suite = (line.split() + ["", ""])[:2]
        if suite and "security" not in suite and "security" not in uri:
            return uri
    return None


def _run(argv, log, what, progress):
    begin = time.monotonic()
    progress(what)
    p = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                         cwd="/")
    while True:
        try:
            code = p.wait(timeout=10)
            break
        except subprocess.TimeoutExpired:
            progress("%s (%d s)" % (what, time.monotonic() - begin))
    if code != 0:
        log.flush()
        with open(log.name, errors="replace") as f:
            tail = "".join(f.readlines()[-15:])
        raise SetupError("%s failed (exit %d); is the package archive reachable?\n%s"
                         % (what, code, tail))


def _write_files(root, key_pub):
    for name, text in FILES.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    os.makedirs(os.path.join(root, "root/.ssh"), mode=0o700, exist_ok=True)
    with open(os.path.join(root, "root/.ssh/authorized_keys"), "w") as f:
        f.write(key_pub)
    units = os.path.join(root, "etc/systemd/system")
    wants = os.path.join(units, "multi-user.target.wants")
    os.makedirs(wants, exist_ok=True)
    for unit in ENABLE:
        os.symlink("/etc/systemd/system/" + unit, os.path.join(wants, unit))
    for unit in MASK:
        with contextlib.suppress(FileExistsError):
            os.symlink("/dev/null", os.path.join(units, unit))
    net = os.path.join(root, "etc/libvirt/qemu/networks/autostart/default.xml")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(net)
    for unit in ("default.target",):
        with contextlib.suppress(FileExistsError):
            os.symlink("/lib/systemd/system/multi-user.target", os.path.join(units, unit))


def _build_into(tmp, progress):
    root = os.path.join(tmp, "root")
    with open(os.path.join(tmp, "build.log"), "w") as log:
        hook = ('mkdir -p "$1/etc/initramfs-tools/conf.d"; '
                'echo MODULES=list > "$1/etc/initramfs-tools/conf.d/emuhost"; '
                'echo COMPRESS=cat >> "$1/etc/initramfs-tools/conf.d/emuhost"; '
                'printf "virtio_pci\\nvirtio_blk\\next4\\n" > "$1/etc/initramfs-tools/modules"')
        argv = ["mmdebstrap", "--variant=minbase", "--mode=root",
                '--aptopt=Acquire::Languages "none"', '--aptopt=APT::Install-Recommends "false"',
                "--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/locale/*",
                "--essential-hook=" + hook, "--include=" + ",".join(PACKAGES), "trixie", root]
        mirror = _mirror()
        if mirror:
            argv.append(mirror)
        _run(argv, log, "installing Debian 13 into an image (once, about a minute)", progress)
        key = os.path.join(tmp, "key")
        _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "emuhost", "-f", key], log,
             "making a key for it", lambda text: None)
        with open(key + ".pub") as f:
            _write_files(root, f.read())
        for kind in ("vmlinuz", "initrd.img"):
            found = sorted(n for n in os.listdir(os.path.join(root, "boot"))
                           if n.startswith(kind + "-"))
            shutil.copy(os.path.join(root, "boot", found[-1]), os.path.join(tmp, kind))
        _run(["mkfs.ext4", "-F", "-q", "-d", root, "-L", "root", os.path.join(tmp, "root.raw"),
              IMAGE_SIZE], log, "making its disk", progress)
    shutil.rmtree(root)


def _remove_old(keep):
    for name in os.listdir(cache_dir()):
        path = os.path.join(cache_dir(), name)
        if name.startswith("host-") and path != keep and os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)


def ensure_image(progress):
    """Directory with root.raw, vmlinuz, initrd.img, key."""
    final = image_dir()
    if os.path.exists(os.path.join(final, "root.raw")):
        return final
    check_machine()
    with locked(os.path.join(cache_dir(), "lock"), progress):
        if os.path.exists(os.path.join(final, "root.raw")):
            return final
        tmp = final + ".tmp"
        shutil.rmtree(tmp, ignore_errors=True)
        os.makedirs(tmp, mode=0o700)
        _build_into(tmp, progress)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(tmp, final)
        _remove_old(final)
    return final
