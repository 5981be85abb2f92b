# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands and files in the emulated host, over one ssh connection that all of them share."""

import contextlib
import os
import shlex
import subprocess
import tempfile
import time

import process
from errors import CommandFailed, HostDied, HostTimeout

# A handshake is slow under emulation, so one master connection carries everything.
OPTIONS = ["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
           "-o", "GlobalKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
           "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "ConnectTimeout=20",
           "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=6",
           "-o", "PreferredAuthentications=publickey", "-o", "GSSAPIAuthentication=no",
           "-o", "KexAlgorithms=curve25519-sha256", "-o", "HostKeyAlgorithms=ssh-ed25519"]
CIPHERS = "aes128-ctr,chacha20-poly1305@openssh.com"
LOST = 255  # ssh's own code for "no connection"
GENUINE = "emuhost: the command itself returned 255"
PROBE_S = 30
# ssh makes the control socket under a temporary name with 17 more characters
SOCKET_NAME_MAX = 107 - 17


class Result:
    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def shell_string(command):
    return command if isinstance(command, str) else shlex.join(command)


def _short(command):
    text = " ".join(command.split())
    return text if len(text) <= 120 else text[:117] + "..."


def _is_one_command(text):
    """Whether a shell would run just one program, so that `exec env` before it is right."""
    try:
        words = list(shlex.shlex(text, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return "\n" not in text and not any(set(w) <= set(";|&()") for w in words if w)


class Shell:
    """The way into a Machine."""

    def __init__(self, machine, detach=False):
        self.m = machine
        self.detach = detach
        self.master = None
        self.checked = False
        self.control = os.path.join(machine.dir, "ssh")

    # -- the connection

    def _options(self):
        return OPTIONS + ["-c", CIPHERS, "-i", os.path.join(self.m.image_dir, "key"),
                          "-o", "ControlPath=" + self.control]

    def argv(self, tty=False):
        return ["ssh"] + self._options() + (["-t"] if tty else []) + [
            "-p", str(self.m.port), "root@127.0.0.1"]

    def _is_connected(self):
        if not os.path.exists(self.control):
            return False
        if self.master:
            return self.master.poll() is None
        if not self.checked:  # somebody else's master, perhaps
            self.checked = subprocess.run(
                ["ssh"] + self._options() + ["-O", "check", "x"],
                stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
        return self.checked

    def connect(self, deadline_s=90):
        end = time.monotonic() + deadline_s
        said = time.monotonic()
        while not self._is_connected():
            self._start_master()
            while self.master.poll() is None and not os.path.exists(self.control):
                self.m.check_alive()
                if time.monotonic() > end:
                    raise HostTimeout("no ssh into the host within %d s" % deadline_s)
                if time.monotonic() > said + 10:
                    said = time.monotonic()
                    self.m.progress("waiting for the host's ssh (%d s left)" % (end - said))
                time.sleep(0.03)
            if self.master.poll() is not None:  # refused: sshd is not there yet
                self.m.check_alive()
                if time.monotonic() > end:
                    raise HostTimeout("no ssh into the host within %d s" % deadline_s)
                time.sleep(0.3)

    def _start_master(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.control)
        self.checked = False
        self.master = subprocess.Popen(
            ["ssh"] + self._options() + ["-M", "-N", "-p", str(self.m.port), "root@127.0.0.1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=os.setsid if self.detach else process.die_with_parent())

    def disconnect(self):
        if self.master:
            self.master.terminate()
            self.master.wait()
            self.master = None
        elif os.path.exists(self.control):
            subprocess.run(["ssh"] + self._options() + ["-O", "exit", "x"],
                           stdin=subprocess.DEVNULL, capture_output=True)
        self.checked = False

    # -- commands

    def _session(self, command, timeout, what, stdin, stdout, stderr):
        self.connect()
        proc = subprocess.Popen(self.argv() + [command], stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            return self.m.wait(proc, timeout, what)
        except HostTimeout:
            if self._answers():
                raise
            raise HostDied("the emulated host does not answer (nothing within %d s after '%s' took "
                           "too long); last console lines:\n%s" % (
                               PROBE_S, what, self.m.console.tail(40))) from None

    def _answers(self):
        """Whether the host as a whole still runs commands."""
        proc = subprocess.Popen(self.argv() + ["true"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return self.m.wait(proc, PROBE_S, "a probe") == 0
        except HostTimeout:
            return False

    def run(self, command, timeout=60, check=True, input=None):
        """Runs a shell command (or an argument list) in the host."""
        command = shell_string(command)
        wrapped = "(\n%s\n); r=$?; [ $r -ne %d ] || echo '%s' >&2; exit $r" % (
            command, LOST, GENUINE)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
                tempfile.TemporaryFile() as inp:
            if input:
                inp.write(input if isinstance(input, bytes) else input.encode())
                inp.seek(0)
            code = self._session(wrapped, timeout, _short(command), inp, out, err)
            out.seek(0)
            err.seek(0)
            r = Result(code, *(f.read().decode(errors="replace") for f in (out, err)))
        if code == LOST:
            r.stderr = self._genuine(r.stderr, command)
        if check and code != 0:
            raise CommandFailed("in the host, '%s' returned %d: %s" % (
                _short(command), code, (r.stderr or r.stdout)[-600:]), code, r.stdout, r.stderr)
        return r

    def _genuine(self, stderr, command):
        """stderr of a command whose code is 255; raises if that was for want of a connection."""
        if stderr.endswith(GENUINE + "\n"):
            return stderr[:-len(GENUINE) - 1]
        self.m.check_alive_soon()
        if self._answers():  # then a signal ended the command's own shell
            return stderr
        raise HostDied("the connection into the emulated host broke during '%s': %s\nlast console "
                       "lines:\n%s" % (_short(command), stderr[-300:], self.m.console.tail(20)))

    def passthrough(self, command, timeout, stdin=None):
        """Runs a command on this process's own stdin, stdout and stderr; its return code."""
        code = self._session(shell_string(command), timeout, "the command", stdin, None, None)
        if code == LOST:
            self.m.check_alive_soon()
        return code

    def spawn(self, command, log):
        """Starts a command in the background of the host; its output goes to the file log there.

        Returns its pid there (of a compound command: of its shell), which leads a process group.
        """
        text = shell_string(command)
        r = self.run("setsid sh -c %s >%s 2>&1 </dev/null & echo $!" % (
            shlex.quote("exec env " + text if _is_one_command(text) else text), shlex.quote(log)))
        return int(r.stdout)

    # -- files

    def copy_in(self, sources, target, timeout=300):
        """One file to a name or into a directory; several, or a directory, into a directory."""
        sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
        paths = [os.path.abspath(s) for s in sources]
        for path in paths:
            os.stat(path)
        if len(paths) == 1 and not os.path.isdir(paths[0]):
            self._copy_file_in(paths[0], target, timeout)
        else:
            self._copy_tree_in(paths, target, timeout)

    def _copy_file_in(self, path, target, timeout):
        quoted = shlex.quote(target)
        script = "d=%s; [ ! -d \"$d\" ] || d=$d/%s; mkdir -p \"$(dirname \"$d\")\" " \
            "&& rm -f \"$d\" && cat > \"$d\" && chmod %o \"$d\"" % (
                quoted, shlex.quote(os.path.basename(path)), os.stat(path).st_mode & 0o7777)
        if target.endswith("/"):
            script = "mkdir -p %s; %s" % (quoted, script)
        with open(path, "rb") as f:
            self._transfer(script, f, None, timeout, "copying %s into the host" % path)

    def _copy_tree_in(self, paths, target, timeout):
        argv = ["tar", "-cf", "-"]
        for path in paths:
            argv += ["-C", os.path.dirname(path), os.path.basename(path)]
        quoted = shlex.quote(target)
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as tar:
            try:
                self._transfer("mkdir -p %s && tar --no-same-owner -xf - -C %s" % (quoted, quoted),
                               tar.stdout, None, timeout, "copying into the host")
            finally:
                tar.stdout.close()
        if tar.returncode != 0:
            raise CommandFailed("tar could not read all of: " + " ".join(paths))

    def copy_out(self, source, target, timeout=300):
        """A file to a name or into a directory; a directory (all of it) becomes target."""
        if os.path.isdir(target):
            target = os.path.join(target, os.path.basename(source.rstrip("/")))
        part = "%s.part-%d" % (target, os.getpid())
        quoted = shlex.quote(source)
        is_dir = 77
        try:
            with open(part, "wb") as f:
                code = self._transfer("[ ! -d %s ] || exit %d; cat %s" % (quoted, is_dir, quoted),
                                      subprocess.DEVNULL, f, timeout,
                                      "copying %s out of the host" % source, {0, is_dir})
            if code == 0:
                os.replace(part, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
        if code == is_dir:
            self._copy_tree_out(quoted, target, timeout)

    def _copy_tree_out(self, quoted, target, timeout):
        os.makedirs(target, exist_ok=True)
        with subprocess.Popen(["tar", "-xf", "-", "-C", target], stdin=subprocess.PIPE) as tar:
            try:
                self._transfer("tar -cf - -C %s ." % quoted, subprocess.DEVNULL, tar.stdin, timeout,
                               "copying %s out of the host" % quoted)
            finally:
                tar.stdin.close()
        if tar.returncode != 0:
            raise CommandFailed("tar could not write all of %s" % target)

    def _transfer(self, script, stdin, stdout, timeout, what, good=(0,)):
        with tempfile.TemporaryFile() as err:
            code = self._session(script, timeout, what, stdin, stdout or subprocess.DEVNULL, err)
            err.seek(0)
            text = err.read().decode(errors="replace")
        if code == LOST:
            self._genuine(text, what)
        if code not in good:
            raise CommandFailed("%s failed: %s" % (what, text[-400:].strip()), code, "", text)
        return code
