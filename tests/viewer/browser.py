"""A real browser without a window: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
_PATIENCE = 90_000  # ms: a machine that is busy draws few frames a second


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; a test in which there is none skips."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=_OPTIONS)
        yield started
        started.close()


@contextmanager
def browser_page(
    url: str, width: int = 420, height: int = 300, scheme: str = "light"
) -> Iterator[Any]:
    """A page with the address open and its scene drawn, and what it asked for in `page.asked`."""
    with browser() as started:
        size = {"width": width, "height": height}
        page = started.new_page(viewport=size, color_scheme=scheme)
        page.set_default_timeout(_PATIENCE)
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(url)
        page.wait_for_selector("canvas")
        # the page says that there is no graphics card, in front of the robot
        page.add_style_tag(content=".mantine-Notification-root { display: none !important }")
        yield page
