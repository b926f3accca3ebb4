"""A person at the served page: one browser window, and everything that it lets out."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from patience import PATIENCE

sys.path.append(str(Path(__file__).parents[1] / "document"))

from browser import DESKTOP, launched

__all__ = ["Page", "launched"]


class Page:
    """One window on the page, and what it lets out."""

    def __init__(self, browser: Any, origin: str, **settings: Any) -> None:
        self.origin = origin
        self.context = browser.new_context(
            **{"viewport": DESKTOP, "locale": "en-GB", "reduced_motion": "reduce", **settings}
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.origin, "blob:", "data:")):
            self.complaints.append(f"asked elsewhere: {url}")

    def open(self, where: str = "/?model=tiny&language=en") -> Any:
        self.page.goto(self.origin + where)
        self.page.wait_for_selector("#main .view")
        return self.page

    def see(self, selector: str, text: str | re.Pattern[str] | None = None) -> Any:
        """Waits until something with this text stands there."""
        found = self.page.locator(selector)
        if text is not None:
            found = found.filter(has_text=text)
        found.first.wait_for(state="visible")
        return found.first

    def gone(self, selector: str, text: str | None = None) -> None:
        found = self.page.locator(selector)
        (found.filter(has_text=text) if text else found).first.wait_for(state="hidden")

    def view(self, name: str) -> None:
        self.page.click(f".views a[data-view={name}]")
        self.see(f".view.{name}")

    def change_weight(self, address: str, text: str) -> None:
        self.page.click(f'#main button[data-a="{address}"]')
        self.page.fill("#weight-text", text)

    def foretold(self) -> str:
        found: str = self.page.inner_text(".tokens .guess .token")
        return found

    @property
    def title(self) -> str:
        found: str = self.page.inner_text(".step-title")
        return found
