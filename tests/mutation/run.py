#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does a test fail for each comparison and each threshold of the decision that is changed?

A copy of the project is built once without sanitizers; then one change after the other is made in
it, and the tests of the decision are run until one fails. A change that none of them notices is a
survivor: either a test is missing, or the change makes no difference, which is then said, with the
reason, in equivalent.txt beside this file.

Comparisons: each of < <= > >= becomes its neighbour (the boundary) and its opposite; == becomes
!= and the other way round. Loop conditions over an index are left out: those are no decisions.
Thresholds: each number of settings.h's defaults and each #define of a number, one more and one
less (a value of a minute or of MiB: twice and half).
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FILES = ("advise.c candidate.c candidate-weigh.c decide.c decide-prepare.c faults.c fold.c "
         "history.c load.c plan.c rules.c spread.c spread-give.c spread-parts.c swap.c topology.c "
         "trial.c weight.c wish.c advise.h candidate.h faults.h rules.h settings.h spread-private.h "
         "swap.h topology.h trial.h weight.h").split()
TESTS = ("advise candidate decide explain faults fold gates history load plan rollback rules spread "
         "swap topology trial weight").split()
FLIP = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
        "==": ("!=",), "!=": ("==",)}


def blank(text):
    """The text with comments, strings and preprocessor lines blanked, of the same length."""
    def spaces(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", spaces, text,
                  flags=re.S)
    return re.sub(r"^#[^\n]*", spaces, text, flags=re.M)


def comparisons(name, text):
    code = blank(text)
    for m in re.finditer(r" (<=|>=|==|!=|<|>) ", code):
        line_start = code.rfind("\n", 0, m.start()) + 1
        before = code[line_start:m.start()]
        if re.search(r"\bfor \([^;]*;\s*(?:[^;]*&& )?[a-z_]+$", before) and m.group(1) == "<":
            continue
        for new in FLIP[m.group(1)]:
            yield m.start(1), m.end(1), new


def thresholds(name, text):
    if not name.endswith(".h") and "#define" not in text:
        return
    spans = []
    start = text.find("#define SETTINGS_DEFAULT")
    if start >= 0:
        spans += [(m.start(2), m.end(2)) for m in
                  re.finditer(r"(\.\w+ = (?:UINT64_C\()?)(\d+)", text) if m.start() > start]
    spans += [(m.start(1), m.end(1)) for m in
              re.finditer(r"^#define \w+ (?:UINT64_C\()?(\d+)", text, flags=re.M)]
    for a, b in spans:
        value = int(text[a:b])
        news = (2 * value, value // 2) if value >= 1 << 20 else (value + 1, value - 1)
        for new in news:
            if new >= 0:
                yield a, b, str(new)


def mutants(root, only):
    for name in FILES:
        if only and name not in only:
            continue
        path = os.path.join(root, "policy", name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for kind in (comparisons, thresholds):
            for a, b, new in kind(name, text):
                line = text.count("\n", 0, a) + 1
                src = text.split("\n")[line - 1].strip()
                yield {"file": name, "line": line, "src": src, "old": text[a:b], "new": new,
                       "text": text[:a] + new + text[b:], "path": path, "orig": text,
                       "nth": text[text.rfind("\n", 0, a) + 1:a].count(text[a:b])}


def key(m):
    """What a change is called in equivalent.txt: stable while the line's own text is."""
    return f"{m['file']}: {m['src']} [{m['nth']}: {m['old']} -> {m['new']}]"


def run(cmd, **kw):
    return subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, **kw).returncode


def prepare(work):
    src = os.path.join(work, "src")
    build = os.path.join(work, "build")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(src)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard"],
                            stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if not os.path.exists(os.path.join(ROOT, name)):
            continue
        os.makedirs(os.path.dirname(os.path.join(src, name)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), os.path.join(src, name))
    subprocess.run(["meson", "setup", build, src, "-Dbuildtype=plain", "-Doptimization=1",
                    "-Ddebug=false"], stdout=subprocess.DEVNULL, check=True)
    return src, build


def targets(build):
    out = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], stdout=subprocess.PIPE,
                         check=True).stdout.decode()
    have = {line.split(":")[0] for line in out.splitlines()}
    ret = [f"tests/unit/unit-{t}" for t in TESTS if f"tests/unit/unit-{t}" in have]
    return ret + [t for t in ("tests/property/property-weights", "tests/property/property-decide")
                  if t in have]


def survives(build, programs, jobs, cases):
    """None: noticed; else True. A build that fails counts as noticed, and is said."""
    if run(["ninja", "-C", build, "-j", str(jobs), *programs]):
        return "does not build"
    env = dict(os.environ, NUMAHERD_CASES=str(cases), NUMAHERD_FROM="1")
    for p in programs:
        try:
            if run([os.path.join(build, p)], env=env, timeout=120):
                return os.path.basename(p)
        except subprocess.TimeoutExpired:
            return os.path.basename(p) + " (took too long)"
    return None


def equivalent():
    ret = {}
    path = os.path.join(HERE, "equivalent.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            why = ""
            for line in f:
                line = line.rstrip("\n")
                if line.startswith("# "):
                    why = line[2:]
                elif line:
                    ret[line] = why
    return ret


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", default=os.path.join(ROOT, "build", "mutation"),
                    help="directory to work in; removed first")
    ap.add_argument("--cases", type=int, default=300, help="random hosts per property")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--list", action="store_true", help="only list the changes")
    ap.add_argument("files", nargs="*", help="only these files of policy/")
    args = ap.parse_args()
    if args.list:
        for m in mutants(ROOT, args.files):
            print(key(m))
        return 0
    src, build = prepare(args.build)
    programs = targets(build)
    if survives(build, programs, args.jobs, args.cases):
        print("mutation: the tests fail without any change", file=sys.stderr)
        return 1
    known = equivalent()
    done, alive, said = 0, [], 0
    start = time.monotonic()
    for m in list(mutants(src, args.files)):
        with open(m["path"], "w", encoding="utf-8") as f:
            f.write(m["text"])
        by = survives(build, programs, args.jobs, args.cases)
        with open(m["path"], "w", encoding="utf-8") as f:
            f.write(m["orig"])
        done += 1
        if by is None and key(m) in known:
            said += 1
            by = "makes no difference"
        elif by is None:
            alive.append(key(m))
            by = "SURVIVES"
        print(f"{m['file']}:{m['line']}: {m['old']} -> {m['new']}: {by}", flush=True)
    print(f"mutation: {done} changes in {time.monotonic() - start:.0f} s, "
          f"{done - len(alive) - said} noticed, {said} make no difference, "
          f"{len(alive)} unnoticed")
    for k in alive:
        print(f"  {k}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
