"""The server of `vc4lab view`: whom it answers, and that nothing brings it down."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.viewer.inside.conftest import TRI, _known
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.viewer.inside.first import first_picture
from vc4lab.viewer.inside.questions import QUESTIONS, Desk
from vc4lab.viewer.inside.server import JSON, MOST_BODY, SCRIPTS, Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(lambda: Desk(_known(TRI)), 0, lambda: first_picture(TRI)) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def asked(server, path, method="GET", body=None, **headers):
    """Status, headers and bytes of a request with a path after the token."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    given = {"Host": f"127.0.0.1:{server.server_port}", **headers}
    connection.request(method, path, body, given)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, answer.headers, data


def edited(server, body, **headers):
    return asked(server, f"/{server.token}/edit", "POST", body, **{"Content-Type": JSON, **headers})


def test_the_page_has_all_its_files_and_asks_nothing_elsewhere(server):
    status, headers, page = asked(server, f"/{server.token}/")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    text = page.decode()
    for name in SCRIPTS:
        assert f'src="{name}"' in text
        status, _headers, script = asked(server, f"/{server.token}/{name}")
        assert status == 200
        assert b"https:" not in script
    assert asked(server, f"/{server.token}/style.css")[1]["Content-Type"].startswith("text/css")


def test_the_first_picture_is_read_from_the_file(server):
    status, headers, data = asked(server, f"/{server.token}/first.png")
    assert (status, headers["Content-Type"]) == (200, "image/png")
    assert data == first_picture(TRI)
    assert first_picture(TRI, 99) is None


@pytest.mark.parametrize(
    "path", ["/", "/x/", "/{short}/", "//", "/{token}x/ask/capture", "/ask/capture", "*"]
)
def test_without_the_token_nothing_is_told(server, path):
    path = path.format(token=server.token, short=server.token[:-1])
    status, _headers, data = asked(server, path)
    assert status == 403
    assert "token" in json.loads(data)["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://example.org"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_other_hosts_and_origins_are_refused(server, headers):
    for path, body in (("ask/capture", None), ("edit", "{}")):
        method = "GET" if body is None else "POST"
        status, _headers, _data = asked(
            server, f"/{server.token}/{path}", method, body, **{"Content-Type": JSON, **headers}
        )
        assert status == 403


def test_the_page_itself_may_ask(server):
    origin = f"http://127.0.0.1:{server.server_port}"
    status, headers, data = asked(server, f"/{server.token}/ask/capture", Origin=origin)
    assert (status, headers["Content-Type"]) == (200, JSON)
    assert "Access-Control-Allow-Origin" not in headers
    assert json.loads(data)["name"] == TRI.name


@pytest.mark.parametrize(
    "path", ["nothing", "../server.py", "%2e%2e/server.py", "page/app.js", "ask", "ask/", "app.js/"]
)
def test_other_paths_are_not_there(server, path):
    status, _headers, data = asked(server, f"/{server.token}/{path}")
    assert status in (404, 422)
    assert json.loads(data)["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("{}", {"Content-Type": "text/plain"}, 415),
        ("{", {}, 400),
        ("[" * 100_000, {}, 400),
        ("{}", {"Content-Length": "-1"}, 413),
        ("", {"Content-Length": str(MOST_BODY + 1)}, 413),
        ("", {"Content-Length": "9" * 400}, 413),
        ("{}", {}, 422),
    ],
    ids=["kind", "json", "deep", "negative", "large", "long", "empty"],
)
def test_edits_that_are_none_get_a_sentence(server, body, headers, status):
    found, _headers, data = edited(server, body, **headers)
    assert found == status
    assert json.loads(data)["error"]


PATHS = st.one_of(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60),
    st.builds(
        lambda name, values: f"ask/{name}?" + "&".join(f"{key}={value}" for key, value in values.items()),
        st.sampled_from(list(QUESTIONS)),
        st.dictionaries(
            st.sampled_from(["frame", "edition", "job", "draw", "x", "y", "touch", "view", "first", "level"]),
            st.one_of(st.integers(-5, 70), st.integers(), st.sampled_from(["", "a", "%00", "1e9", "%ff"])),
        ),
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PATHS)
def test_any_path_gets_an_answer(server, path):
    status, _headers, data = asked(server, f"/{server.token}/{path}")
    assert status in (200, 403, 404, 414, 422)
    if status != 200:
        assert json.loads(data)["error"]
        assert "Traceback" not in data.decode()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EDITS = VALUES | st.fixed_dictionaries(
    {"frame": st.just(1), "edition": st.just(0), "job": st.just(1)},
    optional={
        "view": st.integers(-1, 9) | VALUES,
        "line": st.integers(-1, 20) | VALUES,
        "text": st.text(max_size=40) | VALUES,
        "file": st.text(max_size=20),
        "png": st.text(max_size=20),
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDITS)
def test_any_json_gets_an_answer(server, value):
    status, _headers, data = edited(server, json.dumps(value))
    assert status in (200, 422)
    assert ("edition" if status == 200 else "error") in json.loads(data)


NO_HTTP = [
    b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 70_000, b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200,
]  # fmt: skip


@pytest.mark.parametrize("data", NO_HTTP)
def test_what_is_no_http_ends_its_connection_only(server, data, capfd):
    with socket.create_connection(("127.0.0.1", server.server_port), 10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    assert asked(server, f"/{server.token}/")[0] == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["none.vc4cap", "text.vc4cap", "x" * 300])
def test_what_is_no_capture_is_refused_at_once(tmp_path, name):
    (tmp_path / "text.vc4cap").write_text("text")
    result = CliRunner().invoke(app, ["view", str(tmp_path / name)])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert name in result.output
    assert "http:" not in result.output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_a_sentence(number, code):
    command = [sys.executable, "-m", "vc4lab", "view", str(TRI)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline()
    assert address.startswith("http://127.0.0.1:")
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (code, "")
    assert errors.endswith("ended: the page is no longer served\n")
    assert "Traceback" not in errors
