"""The DAP server with a client: stepping, variables, breakpoints of all kinds, and bad clients."""

from __future__ import annotations

import base64
import json
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.dap_client import Client
from tests.support.debug_sessions import SAXPY

from vc4lab.debug.dap import server as dap_server
from vc4lab.debug.launch import Launch

SAXPY_OPTIONS = {"qpus": 2, "memory": ["x=512", "y=512"], "uniforms": ["x + 64*qpu, y + 64*qpu, 2.0, 128, 4"]}
ENDLESS = "loop: brr -, loop\nnop\nnop\nnop\nnop ; nop ; thrend\nnop\nnop\n"


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    if made.thread.is_alive():
        made.ask("disconnect")
    made.end()


def stopped(client: Client, reason: str) -> int:
    body = client.event("stopped")
    assert body["reason"] == reason, body
    assert body["allThreadsStopped"]
    return int(body["threadId"])


def line_of(client: Client, thread: int) -> int:
    (frame,) = client.get("stackTrace", threadId=thread)["stackFrames"]
    assert frame["source"]["path"] == str(SAXPY)
    return int(frame["line"])


def variables(client: Client, thread: int, scope: str) -> dict[str, dict[str, object]]:
    scopes = client.get("scopes", frameId=thread)["scopes"]
    (reference,) = (one["variablesReference"] for one in scopes if one["name"] == scope)
    found = client.get("variables", variablesReference=reference)["variables"]
    return {one["name"]: one for one in found}


def test_from_the_start_to_the_end(client: Client) -> None:
    client.begin(SAXPY, stopOnEntry=True, **SAXPY_OPTIONS)
    answer = client.get(
        "setBreakpoints", source={"path": str(SAXPY)}, breakpoints=[{"line": 27}, {"line": 999}]
    )
    first, second = answer["breakpoints"]
    assert (first["verified"], first["line"]) == (True, 28)
    assert not second["verified"]
    client.get("configurationDone")
    assert stopped(client, "entry") == 1
    names = [one["name"] for one in client.get("threads")["threads"]]
    assert names == ["QPU 0 (ready)", "QPU 1 (ready)"]
    client.get("continue", threadId=1)
    body = client.event("stopped")
    assert (body["reason"], body["hitBreakpointIds"]) == ("breakpoint", [first["id"]])
    assert line_of(client, 1) == 28
    client.get("next", threadId=1)
    assert stopped(client, "breakpoint") == 2  # the other one has come there meanwhile
    client.get("setBreakpoints", source={"path": str(SAXPY)}, breakpoints=[])
    client.get("stepIn", threadId=2)
    assert stopped(client, "step") == 2
    assert line_of(client, 2) == 29
    client.get("stepBack", threadId=2)
    stopped(client, "step")
    assert line_of(client, 2) == 28
    client.get("continue", threadId=1)
    stopped(client, "pause")
    assert "all programs have ended" in client.event("output")["output"]
    client.get("reverseContinue", threadId=1)
    stopped(client, "entry")
    client.get("continue", threadId=1)
    stopped(client, "pause")
    client.get("continue", threadId=1)
    assert client.event("exited") == {"exitCode": 0}
    client.event("terminated")


def test_variables_expressions_and_memory(client: Client) -> None:
    client.begin(SAXPY, stopOnEntry=True, **SAXPY_OPTIONS)
    client.get("setFunctionBreakpoints", breakpoints=[{"name": "next"}, {"name": "nowhere"}])
    client.get("configurationDone")
    stopped(client, "entry")
    client.get("continue", threadId=1)
    stopped(client, "breakpoint")
    shown = variables(client, 1, "Register file A")
    assert shown["ra4"]["value"] == "0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60"
    lanes = client.get("variables", variablesReference=shown["ra4"]["variablesReference"])["variables"]
    assert lanes[3]["value"] == "12  0x0000000c  1.68156e-44"
    views = client.get("variables", variablesReference=lanes[3]["variablesReference"])["variables"]
    assert [one["name"] for one in views] == ["hex", "int", "uint", "float", "half", "bytes"]
    part = client.get("variables", variablesReference=shown["ra4"]["variablesReference"], start=2, count=1)
    assert [one["name"] for one in part["variables"]] == ["[2]"]
    assert client.get("evaluate", expression="ra2.f[0] + 1", frameId=1)["result"] == "3"
    assert client.get("evaluate", expression="/x ra4[15]", frameId=1)["result"] == "0000003c"
    listing = client.get("evaluate", expression="info registers ra2", context="repl", frameId=1)["result"]
    assert listing == "ra2  40000000 (all lanes)"
    assert not client.ask("evaluate", expression="foo", frameId=1)["success"]
    client.get(
        "setVariable", variablesReference=_reference(client, "Register file A"), name="ra2", value="8.0"
    )
    assert client.get("evaluate", expression="ra2.f[7]", frameId=1)["result"] == "8"
    for scope in ("Flags", "Uniforms", "TMU", "VPM", "Synchronisation", "Memory", "Accumulators"):
        assert variables(client, 1, scope)
    memory = variables(client, 1, "Memory")["y"]
    data = client.get("readMemory", memoryReference=memory["memoryReference"], count=8)["data"]
    assert base64.b64decode(data) == bytes(8)
    written = base64.b64encode(b"\0\0\x80\x3f").decode()
    client.get("writeMemory", memoryReference=memory["memoryReference"], data=written)
    assert client.get("evaluate", expression="memf[y]")["result"] == "1"
    pointer = client.get("stackTrace", threadId=1)["stackFrames"][0]["instructionPointerReference"]
    rows = client.get("disassemble", memoryReference=pointer, instructionOffset=-1, instructionCount=3)
    texts = [row["instruction"] for row in rows["instructions"]]
    assert texts[1:] == ["mov r3, ra4", "add t0s, ra0, r3"]
    assert [row.get("line") for row in rows["instructions"]] == [26, 28, 29]


def _reference(client: Client, scope: str) -> int:
    scopes = client.get("scopes", frameId=1)["scopes"]
    return int(next(one["variablesReference"] for one in scopes if one["name"] == scope))


def test_data_instruction_and_message_breakpoints(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "program.qasm"
    program.write_text(
        "mov ra0, unif\nmov ra1, unif\nmov ra1, unif\n" + ENDLESS.partition("nop\nnop\nnop\n")[2]
    )
    client.begin(program, stopOnEntry=True, uniforms="5, 7", memory="m=64")
    client.get("configurationDone")
    stopped(client, "entry")
    info = client.get(
        "dataBreakpointInfo", variablesReference=_reference(client, "Register file A"), name="ra1"
    )
    data = {"dataId": info["dataId"], "accessType": "write"}
    assert client.get("setDataBreakpoints", breakpoints=[data])["breakpoints"][0]["verified"]
    memory = client.get("dataBreakpointInfo", variablesReference=_reference(client, "Memory"), name="m")
    assert memory["accessTypes"] == ["read", "write", "readWrite"]
    client.get("setInstructionBreakpoints", breakpoints=[{"instructionReference": "0x1000", "offset": 8}])
    client.get(
        "setExceptionBreakpoints",
        filters=[],
        filterOptions=[{"filterId": "messages", "condition": "QPU-062"}],
    )
    reasons = []
    for _ in range(3):
        client.get("continue", threadId=1)
        reasons.append(client.event("stopped")["reason"])
    assert reasons == ["breakpoint", "data breakpoint", "exception"]


def test_pause_and_leaving_while_it_runs(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "endless.qasm"
    program.write_text(ENDLESS)
    client.begin(program, budget=1 << 39)
    client.get("configurationDone")
    assert not client.ask("stackTrace", threadId=1)["success"]
    client.get("pause", threadId=1)
    stopped(client, "pause")
    client.get("stepIn", threadId=1, granularity="instruction")
    stopped(client, "step")
    client.get("continue", threadId=1)
    client.get("disconnect")
    client.thread.join(60)
    assert not client.thread.is_alive()


def test_a_client_that_vanishes_while_it_runs(tmp_path: Path) -> None:
    program = tmp_path / "endless.qasm"
    program.write_text(ENDLESS)
    client = Client()
    client.begin(program, budget=1 << 39)
    client.get("configurationDone")
    client.socket.shutdown(socket.SHUT_RDWR)
    client.end()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"program": 5},
        {"program": "nowhere.qasm"},
        {"program": str(SAXPY), "qpus": 99},
        {"program": str(SAXPY), "memory": ["x"]},
        {"program": str(SAXPY), "uniforms": {"a": 1}},
        {"program": str(SAXPY), "entry": "nowhere"},
        {"program": str(SAXPY), "budget": True},
        {"program": str(SAXPY.parent)},
        {"program": str(SAXPY), "dialect": "foo"},
    ],
)
def test_what_cannot_be_launched(client: Client, arguments: dict[str, object]) -> None:
    client.get("initialize")
    answer = client.ask("launch", **arguments)
    assert not answer["success"]
    assert answer["message"]
    assert answer["body"]["error"]["showUser"]


def test_requests_that_make_no_sense(client: Client) -> None:
    assert "nothing was launched" in client.ask("threads")["message"]
    assert "no request" in client.ask("foo")["message"]
    client.begin(SAXPY, stopOnEntry=True, **SAXPY_OPTIONS)
    client.get("configurationDone")
    stopped(client, "entry")
    r = random.Random(3)
    values = [None, -1, 1 << 40, "x", [], {}, True, 1.5, "0x1000", [{"line": "y"}], [5], [None]]
    names = [
        "threadId",
        "frameId",
        "variablesReference",
        "expression",
        "breakpoints",
        "source",
        "memoryReference",
        "offset",
        "count",
        "data",
        "name",
        "value",
        "filters",
        "filterOptions",
        "instructionCount",
        "start",
    ]
    moving = ("continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "restart")
    left_out = ("disconnect", "terminate", "initialize", *moving)
    quiet = [one for one in dap_server.COMMANDS if one not in left_out]
    for _ in range(400):
        command = r.choice(quiet)
        if command in ("configurationDone", "launch", "attach"):
            continue
        arguments = {name: r.choice(values) for name in r.sample(names, 5)}
        answer = client.ask(command, **arguments)
        assert answer["success"] or "internal error" not in answer["message"], (command, arguments, answer)
    assert client.get("evaluate", expression="1 + 1")["result"] == "2"


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 5\r\n\r\n{{{{{",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 4\r\n\r\nnull",
        b"content-length: 2\r\nfoo: bar\r\n\r\n{}",
    ],
)
def test_messages_that_are_none(client: Client, data: bytes) -> None:
    client.send_bytes(data)
    client.get("initialize")


@pytest.mark.parametrize(
    "data", [b"\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n", b"x" * 5000]
)
def test_streams_that_cannot_be_read_end(data: bytes) -> None:
    client = Client()
    client.send_bytes(data)
    client.end()


def test_half_a_message_and_gone() -> None:
    client = Client()
    client.send_bytes(b"Content-Length: 100\r\n\r\n{")
    client.socket.shutdown(socket.SHUT_WR)
    client.end()


def test_on_standard_input_and_output() -> None:
    requests = [
        ("initialize", {}),
        ("launch", {"stopOnEntry": True}),
        ("configurationDone", {}),
        ("threads", {}),
        ("disconnect", {}),
    ]
    data = b""
    for number, (name, arguments) in enumerate(requests, 1):
        request = {"seq": number, "type": "request", "command": name, "arguments": arguments}
        body = json.dumps(request).encode()
        data += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    command = [sys.executable, "-m", "vc4lab", "debug", SAXPY, "--qpus", "2", "-u", "0, 0, 0, 0, 0"]
    done = subprocess.run(
        [*command, "--dap", "stdio"], input=data, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0
    assert done.stdout.count(b'"success":true') == len(requests)
    assert b'"event":"stopped"' in done.stdout
    assert done.stderr == b""


def test_the_process_ends_though_the_client_keeps_its_end_open() -> None:
    """As dap-python does: a thread still waits for standard input then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "vc4lab", "debug", "--dap", "stdio"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stderr is not None
        for number, name in enumerate(("initialize", "disconnect"), 1):
            request = {"seq": number, "type": "request", "command": name, "arguments": {}}
            body = json.dumps(request).encode()
            process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        process.stdin.flush()
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == b""


def test_one_client_after_the_other_on_a_port() -> None:
    said: list[str] = []
    listening = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        listening.set()

    def serve() -> None:
        for _ in range(2):
            dap_server.serve_port(0, Launch(SAXPY), say, once=True)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    for number in range(2):
        while len(said) <= number:
            listening.wait(60)
            listening.clear()
        port = int(said[number].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            client.sendall(b'Content-Length: 52\r\n\r\n{"seq":1,"type":"request","command":"initialize"}   ')
            assert b"supportsStepBack" in client.recv(4096)
    thread.join(60)
    assert not thread.is_alive()
