"""Headless Chromium by chromedriver, over the WebDriver protocol (W3C 2018)."""

import json
import re
import shutil
import subprocess
import urllib.request

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
DRIVER = shutil.which("chromedriver")

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update"
).split()
# Pages have to do without a network.
OPTIONS.append("--host-resolver-rules=MAP * ~NOTFOUND")


class Browser:
    """One window; `address` is that of its session."""

    def __init__(self, server: str, profile: Path):
        chrome = {"binary": CHROMIUM, "args": [*OPTIONS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        self.address = server
        session = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.address = f"{server}/session/{session['sessionId']}"

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def _command(self, name: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def open(self, page: str, width: int) -> None:
        """Load a page at a width in pixels; narrow windows are emulated, as of a phone."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", **size)
        self._post("/url", {"url": page})

    def run(self, script: str) -> Any:
        """Return what a script returns in the page."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def complaints(self) -> list[str]:
        """Return the errors and warnings of the console since the last call."""
        entries = self._post("/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        request = urllib.request.Request(self.address, method="DELETE")
        urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it."""
    command = [str(DRIVER), "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout is not None
            lines = iter(driver.stdout.readline, "")
            port = next(
                m[1] for m in (re.search(r"successfully on port (\d+)", li) for li in lines) if m
            )
            browser = Browser(f"http://127.0.0.1:{port}", profile)
            try:
                yield browser
            finally:
                browser.close()
        finally:
            driver.terminate()
