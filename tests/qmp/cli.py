#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""qmp-cli as a shell meets it: stdout, stderr and exit codes, against a peer that is no QEMU.

cli.py QMP_CLI; prints TAP.
"""

import json
import os
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from clipeer import Dir, GREETING, OOB_GREETING, Peer, answering, event, saying  # noqa: E402

CLI = os.path.abspath(sys.argv[1])
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def run(*argv, stdin=subprocess.DEVNULL, **kw):
    if "input" not in kw:
        kw["stdin"] = stdin
    return subprocess.run([CLI, *argv], capture_output=True, timeout=60,
                          **{"text": True, **kw})


def ask(play, *argv, operands=("query-status",), **kw):
    """Runs qmp-cli against a peer; returns both."""
    with Peer(play) as peer:
        return run(*argv, peer.path, *operands, **kw), peer


def failed(r, code, *says):
    assert r.returncode == code and not r.stdout, r
    assert r.stderr.startswith("qmp-cli: ") and r.stderr.count("\n") == 1, r
    for s in says:
        assert s in r.stderr, (s, r)


@test
def help_and_version():
    r = run("--help")
    assert r.returncode == 0 and r.stdout.startswith("Usage: qmp-cli") and not r.stderr, r
    r = run("-V")
    assert r.returncode == 0 and r.stdout.split()[1][0].isdigit(), r


@test
def wrong_usage_is_2_and_says_what_is_wanted():
    for argv, says in (
            ((), "SOCKET"), (("/s",), "--events"), (("/s", "c", "{}", "x"), "SOCKET COMMAND JSON"),
            (("--timeout=x", "/s", "c"), "0 to 31536000"), (("--timeout=-1", "/s", "c"), "0 to"),
            (("--timeout=", "/s", "c"), "0 to"), (("--timeout=31536001", "/s", "c"), "31536000"),
            (("--events", "--count=0", "/s"), "1 to"), (("--count=1", "/s", "c"), "--events"),
            (("--events=", "/s"), "NAME"), (("--events=A,,B", "/s"), "A,,B"),
            (("--events=A,", "/s"), "A,"), (("--oob", "--events", "/s"), "COMMAND")):
        failed(run(*argv), 2, says)
    r = run("--nonsense", "/s", "c")
    assert r.returncode == 2 and "--help" in r.stderr and not r.stdout, r


@test
def the_return_is_one_line_of_json():
    r, peer = ask(answering({"return": {"status": "running", "running": True, "a": [1, {}]}}))
    assert r.stdout == '{"status":"running","running":true,"a":[1,{}]}\n', r
    assert r.returncode == 0 and not r.stderr, r
    assert peer.got[0]["execute"] == "query-status" and "arguments" not in peer.got[0], peer.got


@test
def null_empty_and_plain_returns():
    for value, line in ((None, "null"), ({}, "{}"), ([], "[]"), ("a/b", '"a/b"'), (7, "7")):
        r, _ = ask(answering({"return": value}))
        assert r.returncode == 0 and r.stdout == line + "\n", r


@test
def numbers_and_texts_come_out_as_they_went_in():
    text = '{"a":18446744073709551615,"b":-9223372036854775808,"c":55.255407407407411,"d":"\u00e4"}'

    def play(peer):
        peer.negotiate()
        peer.send(('{"return": %s, "id": "%s"}\n' % (text, peer.command()["id"])).encode())
    r, _ = ask(play)
    assert r.returncode == 0 and r.stdout == text + "\n", r


@test
def a_large_return_is_whole():
    value = [{"name": "x" * 100, "n": i} for i in range(15000)]
    r, _ = ask(answering({"return": value}))
    assert r.returncode == 0 and json.loads(r.stdout) == value, r.stderr


@test
def nothing_that_a_terminal_obeys():
    value = {"a": "\x1b[2J\x7f\u0085\u009b1m\u00a0"}
    r, _ = ask(answering({"return": value}))
    assert r.returncode == 0 and json.loads(r.stdout) == value, r
    assert not any(c in r.stdout for c in "\x1b\x7f\u0085\u009b"), r
    r, _ = ask(answering({"error": {"class": "A\x1b", "desc": "\x1b[2J\u009b"}}))
    assert r.returncode == 1 and "\x1b" not in r.stderr and "\u009b" not in r.stderr, r


@test
def pretty_is_indented():
    r, _ = ask(answering({"return": {"a": [1]}}), "--pretty")
    assert r.returncode == 0 and r.stdout.count("\n") > 3 and json.loads(r.stdout) == {"a": [1]}, r


@test
def arguments_are_sent():
    want = {"path": "/machine", "n": [1, 2.5, None]}
    for operand, given in ((json.dumps(want), None), ("-", "\n" + json.dumps(want) + " \n")):
        kw = {} if given is None else {"input": given}
        r, peer = ask(answering({"return": {}}), operands=("qom-list", operand), **kw)
        assert r.returncode == 0 and peer.got[0]["arguments"] == want, (r, peer.got)


@test
def options_may_come_last():
    r, _ = ask(answering({"return": {"a": 1}}), operands=("query-status", "--pretty"))
    assert r.returncode == 0 and r.stdout.count("\n") == 3, r


@test
def bad_json_is_2_and_names_the_place():
    for text, says in (
            ("", "line 1, column 1"), ("   ", "line 1, column 4"), ("[1]", "want an object"),
            ("7", "want an object"), ('{"a":}', "line 1, column 6"), ('{"a":1', "does not end"),
            ('{"a":1} x', "line 1, column 9"), ("{'a':1}", "line 1, column 2"),
            ('{"a":NaN}', "line 1, column 6"), ('{"a":-Infinity}', "line 1, column 7"),
            ('{"a":"\n"}', "line 1, column 7"), ('{"a":"\\\\", \'b\':1}', "line 1, column 12"),
            ('{"a":1,}', "line 1, column 8"), ('{\n "a": 1,\n "b": nil\n}', "line 3, column 8"),
            ('{"a":' + "[" * 100, "column"), ('{"a":1}\n{"b":2}', "line 2, column 1")):
        failed(run("/nonexistent", "c", text), 2, "JSON", says)
        failed(run("/nonexistent", "c", "-", input=text), 2, "JSON", says)
    for raw in (b'{"a":"\xff"}', b'{"a":1}\0', b'{"a"\0:1}', b"\0"):
        r = run("/nonexistent", "c", "-", input=raw, text=False)
        assert r.returncode == 2 and b"JSON, line 1" in r.stderr, (raw, r)


@test
def stdin_has_a_limit():
    body = '{"a":"%s"}'
    limit = 1 << 20
    failed(run("/s", "c", "-", input=body % ("x" * limit)), 2, "1048576")
    most = body % ("x" * (limit - len(body) + 2))
    assert len(most) == limit
    failed(ask(answering({"return": {}}), operands=("c", "-"), input=most)[0], 2, "arguments")
    r, peer = ask(answering({"return": {}}), operands=("c", "-"), input=body % ("x" * 900000))
    assert r.returncode == 0 and len(peer.got[0]["arguments"]["a"]) == 900000, r


@test
def an_error_reply_is_1():
    reply = {"error": {"class": "CommandNotFound", "desc": "The command nope has not been found"}}
    r, peer = ask(answering(reply), operands=("nope",))
    failed(r, 1)
    assert r.stderr == ("qmp-cli: %s: nope: CommandNotFound: The command nope has not been found\n"
                        % peer.path), r


@test
def a_socket_that_is_none_is_3():
    with Dir() as d:
        failed(run(d.path, "c"), 3, d.path + ": no such socket", "-qmp unix:")
        failed(run(d.path + "/x", "c"), 3, d.path + "/x: no such socket")
        failed(run(d.dir, "c"), 3, d.dir + ": not a socket")
        with open(d.path, "w"):
            pass
        failed(run(d.path, "c"), 3, d.path + ": not a socket")
        datagram = os.path.join(d.dir, "d")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(datagram)
            failed(run(datagram, "c"), 3, datagram)


@test
def a_path_that_is_too_long_is_3():
    with Dir() as d:
        failed(run(d.dir + "/" + "x" * 107, "c"), 3, d.dir, "107", "directory")


@test
def a_socket_nobody_listens_on_is_3():
    with Dir() as d:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(d.path)
        failed(run(d.path, "c"), 3, d.path + ": nobody listens")


def a_socket_that_is_forbidden_is_3():
    with Dir() as d, socket.socket(socket.AF_UNIX) as s:
        s.bind(d.path)
        s.listen()
        os.chmod(d.path, 0)
        failed(run(d.path, "c"), 3, d.path + ": permission denied", "root")


if os.geteuid() != 0:  # nothing is forbidden to root
    test(a_socket_that_is_forbidden_is_3)


@test
def a_monitor_with_a_full_backlog_is_3():
    with Peer(Peer.stay, backlog=0) as peer:
        others = []
        try:
            for _ in range(64):
                s = socket.socket(socket.AF_UNIX)
                others.append(s)
                s.setblocking(False)
                s.connect(peer.path)
                time.sleep(0.01)
        except BlockingIOError:
            pass
        else:
            raise AssertionError("the backlog has no end")
        try:
            failed(run("--timeout=1", peer.path, "c"), 3, peer.path + ": busy", "libvirt")
        finally:
            for s in others:
                s.close()


@test
def no_greeting_is_4_and_says_why_it_may_be():
    begin = time.monotonic()
    r, peer = ask(Peer.stay, "--timeout=1")
    failed(r, 4, peer.path + ": no greeting in 1 s", "libvirt", "second -qmp")
    assert 0.9 < time.monotonic() - begin < 10


@test
def no_reply_is_4():
    def play(peer):
        peer.negotiate()
        peer.command()
        peer.send(event("A"))
        peer.stay()
    failed(ask(play, "--timeout=1")[0], 4, "query-status: no reply in 1 s")
    failed(ask(play, "--timeout=1", "--events")[0], 4, "query-status: no reply in 1 s")

    def silent(peer):
        peer.send(GREETING)
        peer.stay()
    failed(ask(silent, "--timeout=1")[0], 4, "qmp_capabilities: no reply")


@test
def timeout_0_is_none():
    def play(peer):
        time.sleep(1)
        answering({"return": {}})(peer)
    r, _ = ask(play, "--timeout=0")
    assert r.returncode == 0 and r.stdout == "{}\n", r


@test
def a_peer_that_breaks_the_protocol_is_5():
    def garbage(peer):
        peer.send(b"QEMU 10.0 monitor - type 'help' for more information\r\n(qemu) ")
        peer.stay()

    def refused(peer):
        peer.send(GREETING)
        peer.send({"error": {"class": "GenericError", "desc": "no"}, "id": peer.receive()["id"]})
        peer.stay()
    for play, says in ((garbage, "not a QMP message"), (refused, "refused"),
                       (saying(b"{]}\n", stay=True), "not JSON"),
                       (saying({"odd": 1}, stay=True), "not QMP"),
                       (saying(GREETING, stay=True), "second greeting"),
                       (saying(b'{"event": "\xff"}\n', stay=True), "UTF-8")):
        r, peer = ask(play)
        failed(r, 5, peer.path, says)


@test
def a_peer_that_closes_is_5():
    def half(peer):
        peer.negotiate()
        peer.command()
        peer.send(b'{"return": {"a"')

    def unanswered(peer):
        peer.negotiate()
        peer.command()
    for play, says in ((lambda peer: None, "without a greeting"), (half, "middle"),
                       (unanswered, "closed the connection")):
        r, peer = ask(play)
        failed(r, 5, peer.path, says)


@test
def events_follow_the_reply_even_those_that_came_before():
    r, _ = ask(answering({"return": {}}, before=(event("STOP"),), after=(event("X", a=[1]),)),
               "--events", operands=("stop",))
    stamp = '"timestamp":{"seconds":5,"microseconds":7}}'
    assert r.stdout == ('{}\n{"event":"STOP","data":{},%s\n{"event":"X","data":{"a":[1]},%s\n'
                        % (stamp, stamp)), r
    assert r.returncode == 0 and not r.stderr, r


@test
def without_events_they_are_not_shown():
    r, _ = ask(answering({"return": {}}, before=(event("STOP"),), after=(event("X"),)))
    assert r.returncode == 0 and r.stdout == "{}\n", r


@test
def after_an_error_reply_there_is_nothing_on_stdout():
    reply = {"error": {"class": "GenericError", "desc": "no"}}
    failed(ask(answering(reply, before=(event("A"),)), "--events")[0], 1, "GenericError: no")


@test
def events_alone_until_the_peer_closes():
    r, _ = ask(saying(event("A"), {"event": "B"}, event("C")), "--events", operands=())
    lines = [json.loads(line) for line in r.stdout.splitlines()]
    assert r.returncode == 0 and [e["event"] for e in lines] == ["A", "B", "C"], r
    assert lines[1] == {"event": "B", "timestamp": {"seconds": -1, "microseconds": -1}}, r


@test
def events_by_name():
    play = saying(event("A"), event("AB"), event("B"), event("C"), event("a"))
    r, _ = ask(play, "--events=B,A", operands=())
    assert [json.loads(line)["event"] for line in r.stdout.splitlines()] == ["A", "B"], r
    assert r.returncode == 0, r


@test
def events_up_to_a_count():
    play = saying(event("A"), event("B"), event("A"), event("A"), stay=True)
    r, _ = ask(play, "--events=A", "--count=2", operands=())
    assert r.returncode == 0 and r.stdout.count('"A"') == r.stdout.count("\n") == 2, r
    play = answering({"return": {}}, before=(event("A"), event("A"), event("A")))
    r, _ = ask(play, "--events", "--count=2")
    assert r.returncode == 0 and r.stdout.count("\n") == 3, r


@test
def too_few_events_in_time_are_4():
    r, peer = ask(saying(event("A"), stay=True), "--events", "--count=2", "--timeout=1",
                  operands=())
    assert r.returncode == 4 and r.stdout.count("\n") == 1, r
    assert peer.path + ": 1 of 2 events in 1 s" in r.stderr, r


@test
def the_time_for_events_without_a_count_just_ends():
    r, _ = ask(saying(event("A"), stay=True), "--events", "--timeout=1", operands=())
    assert r.returncode == 0 and r.stdout.count("\n") == 1 and not r.stderr, r


@test
def an_event_that_is_cut_is_5():
    r, _ = ask(saying(event("A"), b'{"event": "B"'), "--events", operands=())
    assert r.returncode == 5 and r.stdout.count("\n") == 1 and "middle" in r.stderr, r


@test
def too_many_events_before_the_reply_are_bounded():
    many = [event("BIG", text="x" * 1000000) for _ in range(8)]
    r, _ = ask(answering({"return": {}}, before=many), "--events")
    assert r.returncode == 0 and r.stdout.startswith("{}\n"), r.stderr
    assert r.stdout.count("\n") == 5 and r.stderr.count("left out") == 1, r.stderr


@test
def out_of_band():
    def play(peer):
        peer.negotiate(OOB_GREETING)
        peer.send({"return": {}, "id": peer.command()["id"]})
    r, peer = ask(play, "--oob", operands=("migrate-pause",))
    assert r.returncode == 0 and peer.got[0]["exec-oob"] == "migrate-pause", (r, peer.got)
    assert peer.capabilities["arguments"] == {"enable": ["oob"]}, peer.capabilities
    r, peer = ask(play)
    assert r.returncode == 0 and "execute" in peer.got[0], peer.got
    assert "arguments" not in peer.capabilities, peer.capabilities
    failed(ask(answering({"return": {}}), "--oob")[0], 1, "no out-of-band", "--oob")


def shell(line, play, **kw):
    with Peer(play) as peer:
        r = subprocess.run(["bash", "-c", line, CLI, peer.path], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=60, **kw)
        return r, peer


@test
def a_reader_that_has_enough_ends_it_quietly():
    ends = "; echo ${PIPESTATUS[0]}"
    r, _ = shell('"$0" "$1" c | true' + ends, answering({"return": ["x" * 50] * 20000}))
    assert r.stdout == "0\n" and not r.stderr, r
    r, _ = shell('"$0" --events "$1" | head -n 1' + ends,
                 saying(event("A"), event("B"), stay=True))
    assert r.stdout.splitlines()[1] == "0" and not r.stderr, r


@test
def a_reader_that_goes_is_seen_without_an_event():
    r, _ = shell('"$0" --events "$1" | sleep 0.2; echo ${PIPESTATUS[0]}', saying(stay=True))
    assert r.stdout == "0\n" and not r.stderr, r


@test
def a_stdout_that_cannot_be_written_is_1():
    r, _ = shell('"$0" "$1" c > /dev/full', answering({"return": {}}))
    failed(r, 1, "stdout", "No space left")
    r, _ = shell('"$0" --events "$1" > /dev/full', saying(event("A"), stay=True))
    failed(r, 1, "stdout")


@test
def a_closed_stdout_is_not_taken_for_the_socket():
    def play(peer):
        answering({"return": {"a": 1}})(peer)
        peer.rest = peer.lines.read()
    r, peer = shell('"$0" "$1" c >&-', play)
    failed(r, 1, "stdout")
    assert peer.rest == b"", peer.rest
    r, peer = shell('"$0" "$1" c >&- 2>&- <&-', play)
    assert r.returncode == 1 and peer.rest == b"", (r, peer.rest)


def main():
    failures = 0
    print("1..%d" % len(TESTS), flush=True)
    for i, fn in enumerate(TESTS):
        try:
            fn()
            ok = True
        except Exception as e:  # a test that breaks has failed, whatever the reason
            ok = False
            failures += 1
            for line in ("%s: %s" % (type(e).__name__, e))[:2000].splitlines():
                print("# " + line)
        print("%sok %d - %s" % ("" if ok else "not ", i + 1, fn.__name__), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
