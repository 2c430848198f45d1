"""Drives Chromium through chromedriver: the part of WebDriver that the page's tests need."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

NEEDS_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("chromium") or not shutil.which("chromedriver"),
        reason="needs a browser: apt-get install chromium chromium-driver",
    ),
]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

_KEYS: dict[str, dict[str, Any]] = {
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    " ": {"code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
    "ArrowDown": {"code": "ArrowDown", "windowsVirtualKeyCode": 40},
}


class Browser:
    """A browser with an empty profile. Call `close` at the end."""

    def __init__(self, driver: str, profile: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._driver = subprocess.Popen(
            [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._url = f"http://127.0.0.1:{port}"
        wanted = {
            "goog:chromeOptions": {"args": [*FLAGS, f"--user-data-dir={profile}"]},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self._wait_until_ready()
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/session/{session['sessionId']}"

    def open(self, page: Path, width: int, height: int, *, dark: bool, phone: bool = False) -> None:
        """Load a page at a width, in the system's light or dark colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})
        # A headless window need not have the focus, and without it no element shows its own.
        self.devtools("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self._call("POST", "/url", {"url": page.as_uri()})
        time.sleep(0.6)

    def run(self, script: str) -> Any:
        """The value that a script returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def press(self, key: str, times: int = 1) -> None:
        """Press a key as a person does: the focused element gets it."""
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                event = {"type": kind, "key": key, **_KEYS.get(key, {"text": key})}
                self.devtools("Input.dispatchKeyEvent", event)

    def errors(self) -> list[str]:
        """Errors and warnings on the console since the last call."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, target: Path, top: int, width: int, height: int) -> None:
        """A part of the page as PNG."""
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        options = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        picture = self.devtools("Page.captureScreenshot", options)
        target.write_bytes(base64.b64decode(picture["data"]))

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        """A command of the browser's own protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def close(self) -> None:
        """End the browser."""
        try:
            self._call("DELETE", "", None)
        finally:
            self._driver.terminate()
            self._driver.wait(10)

    def _wait_until_ready(self) -> None:
        for _ in range(100):
            try:
                if self._call("GET", "/status", None)["ready"]:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise TimeoutError("chromedriver does not answer")

    def _call(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)  # noqa: S310
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)["value"]
