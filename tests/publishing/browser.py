"""A real Chromium for the tests of pages, and what a page is asked in it.

Found in this order: the program that BYHAND_CHROMIUM names, one on the path, one that playwright
has installed for itself.  Without any, the tests are skipped and say so; where BYHAND_BROWSER is
`required` (as in CI) they fail instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
QUIET = (  # nothing of the browser's own goes to the network
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ROOT = Path(__file__).parents[2]
AXE_PLACES = ("build/axe-core/package/axe.min.js", "node_modules/axe-core/axe.min.js")


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


def axe_core() -> str | None:
    """The text of axe-core, where `make` (or npm) has brought it."""
    named = os.environ.get("BYHAND_AXE")
    for place in (named, *(str(ROOT / place) for place in AXE_PLACES)):
        if place and Path(place).exists():
            return Path(place).read_text("utf-8")
    return None


def missing(reason: str) -> None:
    """Skips a test that has no browser, aloud; fails it where a browser is required."""
    if os.environ.get("BYHAND_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def launched() -> Iterator[Any]:
    """A running browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no browser test was run: playwright is not installed (pip install playwright)")
    program = chromium()
    if program is None:
        missing(
            "no browser test was run: there is no Chromium here "
            "(apt install chromium, or playwright install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


# ------------------------------------------------------------------ what a page is asked

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
