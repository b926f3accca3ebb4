"""The messages of byhand: found in the sources, merged into the translations, compiled.

    python tools/messages.py          # after changing a message: then translate what is new
    python tools/messages.py --check  # says what is missing, changes nothing

Messages are the strings inside `_("…")` or `later("…")`, and the descriptions of the built-in
models.  Line numbers are left out, so that the files change only with a message.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import yaml
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "byhand"
LOCALE = SOURCES / "locale"
TEMPLATE = LOCALE / "byhand.pot"
TRANSLATED = ("es",)
KEYWORDS = {"_": None, "later": None}
THEN = datetime(2026, 1, 1, tzinfo=UTC)  # fixed, so that the files do not change with the date


def po_file(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "byhand.po"


def found() -> Iterator[tuple[str, str]]:
    """(file, message) of every message in the sources."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(ROOT / "src").as_posix()
        told = {
            message: None
            for _line, message, _comments, _context in extract_from_file("python", path, KEYWORDS)
            if isinstance(message, str) and message
        }
        for message in (*told, *(each for each in inside_strings(path) if each not in told)):
            yield name, message
    for path in sorted((SOURCES / "models").glob("*.yaml")):
        name = path.relative_to(ROOT / "src").as_posix()
        model = yaml.safe_load(path.read_text("utf-8"))
        for message in (model.get("about"), *(model.get("notes") or ())):
            if message:
                yield name, " ".join(message.split())


def inside_strings(path: Path) -> Iterator[str]:
    """The messages inside f-strings, which Babel does not see before Python 3.12."""
    for string in ast.walk(ast.parse(path.read_text("utf-8"))):
        for node in ast.walk(string) if isinstance(string, ast.JoinedStr) else ():
            match node:
                case ast.Call(func=ast.Name(id=called), args=[ast.Constant(value=str(message))]):
                    if called in KEYWORDS:
                        yield message


def template() -> Catalog:
    """Every message of the sources, untranslated."""
    catalog = Catalog(
        project="byhand",
        version="1",
        msgid_bugs_address="none",
        creation_date=THEN,
        charset="utf-8",
    )
    catalog.header_comment = "# The messages of byhand, as tools/messages.py finds them."
    catalog.fuzzy = False
    for name, message in found():
        catalog.add(message, locations=[(name, None)])
    return catalog


def read(language: str) -> Catalog:
    with po_file(language).open("rb") as file:
        return read_po(file, locale=language)


def merged(language: str) -> Catalog:
    """The translation with the current messages: new ones are empty, old ones are removed."""
    try:
        old = read(language)
    except FileNotFoundError:
        old = Catalog(locale=language)
    catalog = Catalog(
        locale=language,
        header_comment="# The messages of byhand in another language: fill in every msgstr.",
        project="byhand",
        version="1",
        msgid_bugs_address="none",
        creation_date=THEN,
        revision_date=THEN,
        last_translator="The byhand authors",
        language_team=language,
        charset="utf-8",
        fuzzy=False,
    )
    for message in template():
        if message.id:
            known = old.get(message.id)
            text = known.string if known is not None else ""
            catalog.add(message.id, text, locations=message.locations)
    return catalog


def as_po(catalog: Catalog) -> bytes:
    buffer = BytesIO()
    write_po(buffer, catalog, width=98, include_lineno=False, sort_output=False)
    return buffer.getvalue()


def compiled(catalog: Catalog) -> bytes:
    buffer = BytesIO()
    write_mo(buffer, catalog)
    return buffer.getvalue()


def update() -> None:
    """Writes the template, the updated translations, and their compiled files."""
    LOCALE.mkdir(exist_ok=True)
    TEMPLATE.write_bytes(as_po(template()))
    for language in TRANSLATED:
        catalog = merged(language)
        po_file(language).parent.mkdir(parents=True, exist_ok=True)
        po_file(language).write_bytes(as_po(catalog))
        po_file(language).with_suffix(".mo").write_bytes(compiled(catalog))


def texts(catalog: Catalog) -> dict[str, str]:
    """Message → translation."""
    return {str(message.id): str(message.string) for message in catalog if message.id}


def complaints() -> Iterator[str]:
    """A line for everything that is out of date or not translated."""
    today = set(texts(template()))
    with TEMPLATE.open("rb") as file:
        if set(texts(read_po(file))) != today:
            yield f"{TEMPLATE.relative_to(ROOT)} is not up to date"
    for language in TRANSLATED:
        known = texts(read(language))
        yield from (f"{language}: no longer used: {text!r}" for text in set(known) - today)
        yield from (
            f"{language}: not translated: {text!r}" for text in today if not known.get(text)
        )


def main(arguments: list[str]) -> int:
    if "--check" not in arguments:
        update()
    found = list(complaints())
    print("\n".join(found) or "every message is translated")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
