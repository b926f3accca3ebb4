"""A real Chromium, for the tests of pages, their pictures and their speed.

The search order is: the program in BYHAND_CHROMIUM, one on the path, the one that playwright
installed.  `tools/browser.sh` installs one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
QUIET = (  # the browser itself sends nothing to the network
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = {"width": 1360, "height": 900}
PHONE = {"width": 390, "height": 844}


class NoBrowser(Exception):
    """There is no Chromium, or no playwright to drive it; the message says what to install."""


def chromium() -> str | None:
    """The path of a Chromium, or None."""
    if named := os.environ.get("BYHAND_CHROMIUM"):
        return named
    for name in NAMES:
        if found := shutil.which(name):
            return found
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        return str(own) if own.exists() else None


@contextmanager
def launched() -> Iterator[Any]:
    """A running browser; raises NoBrowser if there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser("playwright is not installed (pip install playwright)") from None
    program = chromium()
    if program is None:
        raise NoBrowser(
            "there is no Chromium here (apt install chromium, or playwright install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()
