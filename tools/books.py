"""The books of the built-in models and of some examples, which docs/ links to.

    python tools/books.py            # all of them, into docs/books
    python tools/books.py --check    # says whether the kept ones are up to date

The books of KEPT are in the repository.  Their numbers are exact, so with the versions of
constraints.txt they are the same to the byte on every machine.  The others (together four times as
large, some in floats) are made on demand.  `docs/books/README.md` lists all books and is written
here too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from byhand.document.book import Book
from byhand.document.media.html import write_book
from byhand.editions import make_book
from byhand.models import builtin_names, open_model

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "books"
EXAMPLES = ("two-experts", "sink", "humble", "translator")  # model files of docs/examples
INDEX = "README.md"
KEPT = ("tiny", "journey")
LANGUAGES = {"en": "English", "es": "Spanish"}
SPANISH = ("tiny", "journey")


@dataclass(frozen=True)
class Edition:
    """One book: a built-in model or an example with its own text, in a language."""

    model: str
    language: str

    @property
    def opened(self) -> str:
        """What `byhand book` opens, from the root of the repository."""
        return f"docs/examples/{self.model}.yaml" if self.model in EXAMPLES else self.model

    @property
    def place(self) -> str:
        """The same, from anywhere."""
        return str(DOCS.parent / self.opened) if self.model in EXAMPLES else self.model

    @property
    def name(self) -> str:
        """The folder of the book's pages."""
        return self.model if self.language == "en" else f"{self.model}-{self.language}"

    @property
    def kept(self) -> bool:
        """Whether the book is in the repository."""
        return self.name in KEPT

    @property
    def command(self) -> str:
        spoken = "" if self.language == "en" else f" --lang {self.language}"
        return f"byhand book {self.opened} --out {self.name}{spoken}"

    def make(self) -> Book:
        return make_book(self.place, language=self.language)

    def write(self, folder: Path) -> Book:
        """Writes the pages into a folder and removes pages that the book no longer has."""
        book = self.make()
        written = {path.name for path in write_book(book, folder)}
        for path in folder.glob("*.html"):
            if path.name not in written:
                path.unlink()
        return book


def editions() -> tuple[Edition, ...]:
    """Every built-in model and some examples in English, and some in Spanish."""
    return (
        *(Edition(name, "en") for name in (*builtin_names(), *EXAMPLES)),
        *(Edition(name, "es") for name in SPANISH),
    )


def index(*, on_site: bool = False) -> str:
    """The list of the books, as a page; the site has every book."""
    return "\n".join(_lines(on_site)) + "\n"


def _lines(on_site: bool) -> Iterator[str]:
    kept = " and ".join(f"[{name}]({name}/index.html)" for name in KEPT)
    yield "# The books of the built-in models"
    yield ""
    yield "Every book is a folder of pages that open from disk; start with its `index.html`."
    if not on_site:
        yield f"{kept} are here; `make books` writes the others beside them."
    yield "How a book is read, and how to make one of your own model: [the book](../book.md)."
    yield ""
    yield "| book | what it is of | language | made by |"
    yield "|---|---|---|---|"
    for each in editions():
        about = open_model(each.place).about.rstrip(".")
        link = f"[{each.name}]({each.name}/index.html)" if on_site or each.kept else each.name
        yield f"| {link} | {about} | {LANGUAGES[each.language]} | `{each.command}` |"


def stale(name: str, fresh: Path) -> list[str]:
    """The pages of a kept book that differ from the new ones, are missing, or are superfluous."""
    found = {path.name for folder in (fresh, FOLDER / name) for path in folder.glob("*.html")}
    return [
        f"{name}/{file}"
        for file in sorted(found)
        if _bytes(fresh / file) != _bytes(FOLDER / name / file)
    ]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def main() -> int:
    if "--check" not in sys.argv[1:]:
        for each in editions():
            each.write(FOLDER / each.name)
            print(f"docs/books/{each.name}/index.html")
        (FOLDER / INDEX).write_text(index(), "utf-8")
        return 0
    found = [] if (FOLDER / INDEX).read_text("utf-8") == index() else [INDEX]
    for each in editions():
        if each.kept:
            with TemporaryDirectory() as place:
                each.write(Path(place))
                found += stale(each.name, Path(place))
    for path in found:
        print(f"docs/books/{path} is stale: run `make books`")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
