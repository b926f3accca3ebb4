"""The pages of the site that lie outside docs/, as hooks of mkdocs.

README is the home page.  The books of all built-in models and the course in both languages are
made.  Links for the repository
are rewritten to pages of the site.  Other unresolved links are warnings, which `make site` treats
as errors.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

import books  # noqa: E402

from byhand.courses import make_course, publish_course  # noqa: E402
from byhand.language import LANGUAGES  # noqa: E402

MOVED = {  # path in the repository → path on the site
    "README.md": "index.md",
    "README.es.md": "es.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "src/byhand/numbers/README.md": "numbers.md",
}
SOURCE = "source"  # files of the repository outside docs/ that a page links to
EXAMPLES = "examples/index.md"
BOOKS = "books/README.md"
COURSE = "course.md"
READ = "[Read it in English](course/en/index.html) · [Leerlo en español](course/es/index.html)"
SHELF = TemporaryDirectory(prefix="byhand-books-")
COG = re.compile(r"<!-- {{{cog.*?}}} -->\n|<!-- {{{end}}} -->\n?", re.DOTALL)
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of docs/ with README and similar files, the examples and every book."""
    for here, there in MOVED.items():
        files.append(File.generated(config, there, content=(ROOT / here).read_text("utf-8")))
    files.append(File.generated(config, EXAMPLES, content=_examples()))
    for source in _linked_sources():
        path = f"{SOURCE}/{source}"
        files.append(File.generated(config, path, abs_src_path=str(ROOT / source)))
    listed = files.get_file_from_path(BOOKS)
    assert listed is not None
    files.remove(listed)
    files.append(File.generated(config, BOOKS, content=books.index(on_site=True)))
    shelf = Path(SHELF.name)
    for each in books.editions():
        each.write(shelf / each.name)
        for page in sorted((shelf / each.name).iterdir()):
            path = f"books/{each.name}/{page.name}"
            if (kept := files.get_file_from_path(path)) is not None:
                files.remove(kept)
            files.append(File.generated(config, path, abs_src_path=str(page)))
    for path in _course(shelf):
        there = path.relative_to(shelf).as_posix()
        files.append(File.generated(config, there, abs_src_path=str(path)))
    return files


def _course(shelf: Path) -> tuple[Path, ...]:
    """The files of the course in each language, in folders course/en and course/es."""
    return tuple(
        path
        for language in LANGUAGES
        for path in publish_course(make_course(language), shelf / "course" / language)
    )


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page without cog's calls, with links to pages of the site."""
    here = page.file.src_uri
    source = next((old for old, new in MOVED.items() if new == here), f"docs/{here}")
    folder = posixpath.dirname(source)

    def led(link: re.Match[str]) -> str:
        old = posixpath.normpath(posixpath.join(folder, link[2]))
        place = link[3] or ""
        if old.startswith("docs/examples") and (ROOT / old).is_dir():
            new, place = EXAMPLES, place or _anchor(old)
        elif old.startswith("docs/"):
            new = old.removeprefix("docs/")
        else:
            new = MOVED.get(old, f"{SOURCE}/{old}")
        return f"{link[1]}{posixpath.relpath(new, posixpath.dirname(here) or '.')}{place})"

    if here == COURSE:
        title, _line, rest = markdown.partition("\n")
        markdown = f"{title}\n\n{READ}\n{rest}"
        return COG.sub("", markdown)
    return LINK.sub(led, COG.sub("", markdown))


def on_post_build(config: MkDocsConfig) -> None:
    """Removes the temporary books, which the site now has."""
    SHELF.cleanup()


def _linked_sources() -> set[str]:
    """The files outside docs/, other than pages, to which a page of docs/ links."""
    found = set()
    for page in (ROOT / "docs").glob("*.md"):
        for link in LINK.finditer(page.read_text("utf-8")):
            path = posixpath.normpath(posixpath.join("docs", link[2]))
            if not path.startswith("docs/") and path not in MOVED and (ROOT / path).is_file():
                found.add(path)
    return found


def _anchor(folder: str) -> str:
    name = posixpath.basename(folder)
    return "" if name == "examples" else f"#{name}"


def _examples() -> str:
    """A page that lists the files of docs/examples, folder by folder."""
    lines = ["# Examples", "", "Files that the pages of this site use.", ""]
    folder = ROOT / "docs" / "examples"
    lines += [f"- [{file.name}]({file.name})" for file in _files(folder)]
    inside = (path for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__")
    for inner in sorted(inside):
        lines += ["", f"## {inner.name}", ""]
        lines += [f"- [{file.name}]({inner.name}/{file.name})" for file in _files(inner)]
    return "\n".join(lines) + "\n"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())
