"""A real Chromium for the tests of pages, and what a page is asked in it.

`tools/chromium.py` finds it.  Without any, the tests are skipped and say so; with BYHAND_BROWSER
set to `required` they fail instead.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import chromium  # noqa: E402
from chromium import DESKTOP, PHONE  # noqa: E402

__all__ = ["CONTRASTS", "DESKTOP", "FAULTS", "PHONE", "Windows", "launched", "run_axe"]

AXE_PLACES = ("build/axe-core/package/axe.min.js", "node_modules/axe-core/axe.min.js")


def axe_core() -> str | None:
    """The text of axe-core, where `make` (or npm) has brought it."""
    named = os.environ.get("BYHAND_AXE")
    for place in (named, *(str(ROOT / place) for place in AXE_PLACES)):
        if place and Path(place).exists():
            return Path(place).read_text("utf-8")
    return None


@contextmanager
def launched() -> Iterator[Any]:
    """A running browser, one a process: a second Playwright beside it would not start.

    Without one the test is skipped, aloud, or fails where it is required.
    """
    try:
        yield _running()
    except chromium.NoBrowser as lacking:
        reason = f"no browser test was run: {lacking}"
        if os.environ.get("BYHAND_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


@cache
def _running() -> Any:
    """The browser of this process, until its end."""
    stack = ExitStack()
    browser = stack.enter_context(chromium.launched())
    atexit.register(stack.close)
    return browser


@dataclass
class Windows:
    """Pages that are opened from disk, one window for each setting, and what they let out.

    A window is kept from test to test: opening one costs more than all that is asked in it.
    """

    browser: Any
    kept: dict[str, Any] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)  # what was asked for from anywhere but disk
    complaints: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Forgets what was heard before."""
        self.fetched.clear()
        self.complaints.clear()

    def __call__(self, path: Path, **settings: Any) -> Any:
        """The page of a file, freshly opened."""
        settings = {"viewport": DESKTOP, **settings}
        key = repr(sorted(settings.items()))
        if key not in self.kept:
            self.kept[key] = self._window(settings)
        page = self.kept[key]
        page.set_viewport_size(settings["viewport"])
        page.emulate_media(media="null")  # a test before may have looked at it as printed
        page.goto(path.as_uri())
        return page

    def _window(self, settings: dict[str, Any]) -> Any:
        page = self.browser.new_context(**settings).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("request", lambda request: self._heard(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def _heard(self, url: str) -> None:
        if not url.startswith(("file:", "data:")):
            self.fetched.append(url)

    def close(self) -> None:
        for page in self.kept.values():
            page.context.close()


# ------------------------------------------------------------------ what a page is asked


def run_axe(page: Any) -> list[tuple[str, str]]:
    """What axe-core objects to, with the first element it does so at; nothing where it is not here.

    Passages out of sight are laid out too, so that they are looked at like the others.
    """
    axe = axe_core()
    if axe is None:
        return []
    page.add_style_tag(content=".passage { content-visibility: visible !important }")
    page.evaluate(axe)
    found = page.evaluate(
        "axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>"
        " violations.map(({ id, nodes }) => [id, nodes[0].html]))"
    )
    return [(id, html) for id, html in found]


# Every text that can be seen, with its colour and what it stands on; alpha is not used.
CONTRASTS = """
() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const rgb = (colour) => {
    canvas.fillStyle = "#000";
    canvas.fillStyle = colour;
    const hex = canvas.fillStyle;
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  };
  const light = (colour) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb(colour).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (!/, 0\\)$|^transparent$/.test(colour)) return colour;
    }
    return "#ffffff";
  };
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || node.closest("script, style, svg, .sr, .skip")) continue;
    if (!node.checkVisibility()) continue;
    const a = light(getComputedStyle(node).color), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return found;
}
"""

# Headings in order, names for everything that can be operated, targets that can be hit.
FAULTS = """
() => {
  const faults = [], all = (selector) => [...document.querySelectorAll(selector)];
  const said = (what, node) => faults.push(`${what}: ${node.outerHTML.slice(0, 80)}`);
  const label = (node) => node.getAttribute("aria-label") ?? "";
  const name = (node) => `${label(node)}${node.textContent}${node.title}`.trim();
  for (const node of all("a[href], button, [role=img], [role=group], nav, section"))
    if (!name(node) && !node.getAttribute("aria-labelledby")) said("no name", node);
  let before = 0;
  for (const heading of all("h1, h2, h3, h4")) {
    const level = Number(heading.localName[1]);
    if (level > before + 1) said("heading skipped", heading);
    before = level;
  }
  for (const node of all("button, .top a, .n > a")) {
    const { width, height } = node.getBoundingClientRect();
    if (width && (width < 24 || height < 24)) said("small target", node);
  }
  for (const table of all("table")) if (!table.caption) said("no caption", table);
  if (all("main").length !== 1) faults.push("not one main");
  if (all("h1").length !== 1) faults.push("not one h1");
  if (!document.documentElement.lang) faults.push("no language");
  return faults;
}
"""
