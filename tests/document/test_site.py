"""The documentation site: built without a warning, its links checked, nothing fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser import Windows

from byhand.models import builtin_names

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import links  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


def test_every_link_of_the_site_leads_somewhere_and_nothing_comes_from_elsewhere(
    site: Path,
) -> None:
    assert list(links.faults(site)) == []


def test_every_built_in_model_has_its_book_on_the_site(site: Path) -> None:
    shelf = (site / "books" / "index.html").read_text("utf-8")
    for name in builtin_names():
        assert f'href="{name}/index.html"' in shelf
        assert (site / "books" / name / "index.html").exists()


def test_the_api_page_shows_what_the_docstrings_say(site: Path) -> None:
    page = (site / "api.html").read_text("utf-8")
    assert "Every number from the text to the next token, and back to every weight." in page
    assert "{{{cog" not in (site / "index.html").read_text("utf-8")


def test_the_site_works_without_the_network_and_is_searched_from_disk(
    site: Path, windows: Windows
) -> None:
    windows.listen()
    page = windows(site / "index.html")
    page.click(".md-search__input")
    page.keyboard.type("enclosure")
    page.wait_for_selector(".md-search-result__item", state="attached")
    for name in ("api.html", "house.html", "books/index.html"):
        windows(site / name)
    assert windows.fetched == []
    assert windows.complaints == []


def test_a_dead_link_and_a_picture_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="there.html#here">fine</a> <a href="there.html#gone">no place</a>'
        '<a href="gone.html">no page</a> <a href="https://example.org">another site</a>'
        '<img src="https://example.org/a.png"><style>a{background:url(//example.org/b)}</style>'
    )
    (tmp_path / "there.html").write_text('<p id="here">')
    assert list(links.faults(tmp_path)) == [
        "index.html: there.html#gone leads nowhere",
        "index.html: gone.html leads nowhere",
        "index.html: fetches https://example.org/a.png from the network",
        "index.html: fetches url(//example.org/b from the network",
    ]
