# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the Debian 13 root image of the emulated host into a cache of the user's.

The cache's key is a hash of this file, so whoever changes the image gets a new one. A build happens
beside its place and is renamed at the end; a lock makes a second builder wait; what a killed build
left behind is never taken for an image.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time

import cache
import process
from errors import SetupError

SUITE = "trixie"
PACKAGES = """systemd-sysv dbus udev kmod iproute2 procps util-linux linux-image-amd64
    libvirt-daemon-system libvirt-clients libvirt-daemon-driver-qemu qemu-system-x86 numactl
    libnuma1 libjson-c5 libxml2 libsmartcols1 libncursesw6 libsystemd0 libpam-systemd polkitd
    openssh-server strace""".split()
TOOLS = {"mmdebstrap": "mmdebstrap", "mkfs.ext4": "e2fsprogs", "ssh-keygen": "openssh-client",
         "qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FREE_MIB_NEEDED = 4096
IMAGE_SIZE = "3G"

SSHD_CONFIG = """# the emulated test host: reached from its own machine only
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
GSSAPIAuthentication no
PrintMotd no
PrintLastLog no
X11Forwarding no
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
    "etc/systemd/journald.conf.d/emuhost.conf": "[Journal]\nStorage=volatile\n",
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
    systemd-networkd-wait-online.service ldconfig.service modprobe@drm.service modprobe@configfs.service
    numad.service""".split()


def image_key():
    with open(os.path.abspath(__file__), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def image_dir():
    return os.path.join(cache.cache_dir(), "host-" + image_key())


def is_complete(directory):
    return os.path.exists(os.path.join(directory, "root.raw"))


def check_machine():
    if os.geteuid() != 0:
        raise SetupError("building the emulated host's image needs root (its files belong to root)")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = {pkg for tool, pkg in TOOLS.items() if not shutil.which(tool, path=path)}
    if not os.path.exists(KEYRING):
        missing.add("debian-archive-keyring")
    if missing:
        raise SetupError("missing tools; install them with: apt-get install "
                         + " ".join(sorted(missing)))
    cache.need_space(FREE_MIB_NEEDED, "the image")


def _mirror():
    """The archive that this machine itself installs from; None: the tool's own default."""
    r = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE)",
                        "Origin: Debian"], capture_output=True, text=True)
    for line in sorted(set(r.stdout.splitlines())):
        uri, suite = (line.split() + ["", ""])[:2]
        if suite and "security" not in suite + uri and uri.startswith("http"):
            return uri
    return None


def _run(argv, log, what, progress):
    """Runs a step of the build, with a sign of life every ten seconds."""
    begin = time.monotonic()
    if what:
        progress(what)
    p = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                         cwd="/", preexec_fn=process.die_with_parent())
    try:
        while True:
            try:
                code = p.wait(timeout=10)
                break
            except subprocess.TimeoutExpired:
                progress("%s (%d s)" % (what, time.monotonic() - begin))
    except BaseException:
        p.kill()
        p.wait()
        raise
    if code != 0:
        log.flush()
        with open(log.name, errors="replace") as f:
            text = f.read()
        hint = "; there is no network, or no way to the package archive" if re.search(
            r"resolv|Failed to fetch|Could not connect|Network is unreachable", text) else ""
        raise SetupError("%s failed (exit %d)%s\n%s" % (
            what, code, hint, "\n".join(text.splitlines()[-15:])))


def _in_namespace():
    """Prefix that keeps a build's mounts and processes from outliving it, where that is allowed."""
    prefix = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--"]
    try:
        ok = subprocess.run(prefix + ["true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        ok = False
    return prefix if ok else []


def _install(root, log, progress):
    hook = ('mkdir -p "$1/etc/initramfs-tools/conf.d"; '
            'printf "MODULES=list\\nCOMPRESS=cat\\n" > "$1/etc/initramfs-tools/conf.d/emuhost"; '
            'printf "virtio_pci\\nvirtio_blk\\next4\\n" > "$1/etc/initramfs-tools/modules"')
    argv = _in_namespace() + [
        "mmdebstrap", "--variant=minbase", "--mode=root",
        '--aptopt=Acquire::Languages "none"', '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=APT::Sandbox::User "root"', "--dpkgopt=force-unsafe-io"]
    argv += ["--dpkgopt=path-exclude=/usr/share/%s/*" % d for d in ("doc", "man", "locale")]
    argv += ["--essential-hook=" + hook, "--include=" + ",".join(PACKAGES), SUITE, root]
    what = "installing Debian's '%s' into an image (once, one to two minutes)" % SUITE
    mirror = _mirror()
    if mirror:
        try:
            _run(argv + [mirror], log, what, progress)
            return
        except SetupError as e:
            progress("%s\nthis machine's own archive did not do; trying the default one" % e)
            cache.remove_tree(root)
    _run(argv, log, what, progress)


def _link(target, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    os.symlink(target, path)


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
    for unit in ENABLE:
        _link("/etc/systemd/system/" + unit, os.path.join(units, "multi-user.target.wants", unit))
    for unit in MASK:
        _link("/dev/null", os.path.join(units, unit))
    _link("/lib/systemd/system/multi-user.target", os.path.join(units, "default.target"))
    for name in ("etc/libvirt/qemu/networks/autostart/default.xml",):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(root, name))


def _build_into(tmp, progress):
    root = os.path.join(tmp, "root")
    with open(os.path.join(tmp, "build.log"), "w") as log:
        _install(root, log, progress)
        key = os.path.join(tmp, "key")
        _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "emuhost", "-f", key], log,
             "", progress)
        with open(key + ".pub") as f:
            _write_files(root, f.read())
        for kind in ("vmlinuz", "initrd.img"):
            found = sorted(n for n in os.listdir(os.path.join(root, "boot"))
                           if n.startswith(kind + "-"))
            shutil.copy(os.path.join(root, "boot", found[-1]), os.path.join(tmp, kind))
        _run(["mkfs.ext4", "-F", "-q", "-d", root, "-L", "root", os.path.join(tmp, "root.raw"),
              IMAGE_SIZE], log, "making its disk", progress)
    cache.remove_tree(root)


def _remove_old(keep):
    for name in os.listdir(cache.cache_dir()):
        path = os.path.join(cache.cache_dir(), name)
        if name.startswith("host-") and path != keep and os.path.isdir(path):
            cache.remove_unless_held(path)


def ensure_image(progress):
    """Directory with root.raw, vmlinuz, initrd.img, key."""
    final = image_dir()
    if is_complete(final):
        return final
    check_machine()
    with cache.locked(os.path.join(cache.cache_dir(), "lock"), progress):
        if is_complete(final):
            return final
        tmp = final + ".tmp"
        cache.remove_tree(tmp)
        os.makedirs(tmp, mode=0o700)
        _build_into(tmp, progress)
        cache.remove_tree(final)
        os.rename(tmp, final)
        _remove_old(final)
    return final
