"""A real headless Chromium for tests, spoken to by WebDriver over plain HTTP; Debian's packages have it."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--force-device-scale-factor=1",
]  # fmt: skip
SECONDS = 60.0


def lacking() -> str:
    """What is not installed, as a sentence; "" if nothing is."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    packages = "apt-get install chromium chromium-driver"
    return f"{' and '.join(missing)} not installed: {packages}" if missing else ""


class Browser:
    """One window."""

    def __init__(self, port: int, profile: str, size: tuple[int, int]) -> None:
        self._http = HTTPConnection("127.0.0.1", port, timeout=120)
        arguments = [*FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"]
        options = {"args": arguments, "binary": shutil.which("chromium")}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self._path = ""
        made = self._do("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._path = f"/session/{made['sessionId']}"
        self.command("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                     deviceScaleFactor=1, mobile=False)  # fmt: skip

    def _do(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body)
        self._http.request(method, self._path + path, data, {"Content-Type": "application/json"})
        answer = self._http.getresponse()
        value = json.loads(answer.read())["value"]
        if answer.status != 200:
            raise AssertionError(f"{path}: {value['error']}: {value['message'][:500]}")
        return value

    def go(self, url: str) -> None:
        """Open a page."""
        self._do("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript: what it returns, also the value of a promise."""
        return self._do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript until it returns something true."""
        end = time.monotonic() + SECONDS
        while True:
            found = self.run(script, *arguments)
            if found:
                return found
            assert time.monotonic() < end, f"{script}: {found!r} after {SECONDS} s"
            time.sleep(0.02)

    def command(self, name: str, **values: Any) -> Any:
        """Run a command of the DevTools protocol."""
        return self._do("POST", "/goog/cdp/execute", {"cmd": name, "params": values})

    def click(self, x: float, y: float) -> None:
        """Press and release the left button at a place of the window."""
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}
        press, release = ({"type": f"pointer{what}", "button": 0} for what in ("Down", "Up"))
        pointer = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}
        self._do("POST", "/actions", {"actions": [{**pointer, "actions": [move, press, release]}]})

    def keys(self, *names: str) -> None:
        """Press and release keys: characters."""
        made = [{"type": f"key{what}", "value": name} for name in names for what in ("Down", "Up")]
        self._do("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": made}]})

    def picture(self) -> bytes:
        """The window as a PNG file."""
        return base64.b64decode(self._do("GET", "/screenshot"))

    def errors(self) -> list[str]:
        """What the page has complained about since the last call."""
        found = self._do("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in found if one["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        """Close the window."""
        self._do("DELETE", "")
        self._http.close()


@contextmanager
def chromium(size: tuple[int, int] = (1280, 800)) -> Iterator[Browser]:
    """A window of `size` pixels."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            end = time.monotonic() + SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert driver.poll() is None, "chromedriver has ended"
                    assert time.monotonic() < end, "chromedriver does not answer"
                    time.sleep(0.02)
            browser = Browser(port, profile, size)
            try:
                yield browser
            finally:
                browser.close()
        finally:
            driver.terminate()
            driver.wait()
