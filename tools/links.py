"""The links of a built site, checked without the network: each leads to a page and a place on it.

    python tools/links.py site

Links to other sites are not followed; anything else that a page would fetch from one is an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src"}
NOT_FETCHED = ("canonical", "prev", "next", "alternate", "license", "author")
IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?\s*(https?:)?//[^)"'\s]*""")


@dataclass
class Document(HTMLParser):
    """The links of a page, the files it fetches, and its link targets."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=lambda: {"", "top"})
    style: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collects the addresses and the id of a tag."""
        given = {name: value or "" for name, value in attributes}
        self.style = tag == "style"
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag in ("a", "use") and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in NOT_FETCHED:
            self.fetched.append(given.get("href", ""))
        elif tag in FETCHED and given.get(FETCHED[tag]):
            self.fetched.append(given[FETCHED[tag]])
        self.fetched += [found[0] for found in IN_STYLE.finditer(given.get("style", ""))]

    def handle_data(self, data: str) -> None:
        """Collects the files that an inline stylesheet fetches."""
        if self.style:
            self.fetched += [found[0] for found in IN_STYLE.finditer(data)]

    def handle_endtag(self, tag: str) -> None:
        """Notes the end of a stylesheet."""
        self.style = False


@cache
def read(page: Path) -> Document:
    """A parsed page, cached."""
    found = Document()
    found.feed(page.read_text("utf-8"))
    return found


def faults(site: Path) -> Iterator[str]:
    """A line for each link of the site that leads nowhere, and for each file fetched elsewhere."""
    for page in sorted(site.rglob("*.html")):
        document = read(page)
        name = page.relative_to(site)
        for link in document.links:
            if not urlsplit(link).scheme and not leads_somewhere(link, page, site):
                yield f"{name}: {link} leads nowhere"
        for link in document.fetched:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc or "//" in link:
                yield f"{name}: fetches {link} from the network"
            elif not leads_somewhere(link, page, site):
                yield f"{name}: {link} is not there"
    for sheet in sorted(site.rglob("*.css")):
        for found in IN_STYLE.finditer(sheet.read_text("utf-8")):
            yield f"{sheet.relative_to(site)}: fetches {found[0]} from the network"


def leads_somewhere(link: str, page: Path, site: Path) -> bool:
    """Whether a relative link names a file of the site and a place on its page."""
    parts = urlsplit(link)
    path = unquote(parts.path)
    base = site if path.startswith("/") else page.parent
    target = (base / path.lstrip("/")).resolve() if path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file() or not target.resolve().is_relative_to(site.resolve()):
        return False
    return target.suffix != ".html" or unquote(parts.fragment) in read(target).places


def main() -> int:
    """Prints the faults of a site; returns 1 if there are any, else 0."""
    found = list(faults(Path(sys.argv[1])))
    print("\n".join(found) or "every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
