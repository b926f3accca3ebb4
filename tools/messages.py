"""The messages of byhand: found in the sources, merged into the translations, compiled.

    python tools/messages.py          # after changing a message: then translate what is new
    python tools/messages.py --check  # says what is missing, changes nothing

A message is a string inside `_("…")` or `later("…")`, and what the built-in models say of
themselves.  Line numbers are left out, so that the files change only when a message does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timezone
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
THEN = datetime(2026, 1, 1, tzinfo=timezone.utc)  # dates would change the files for nothing


def po_file(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "byhand.po"


def found() -> Iterator[tuple[str, str]]:
    """(file, message) of every message in the sources."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(ROOT / "src").as_posix()
        for _line, message, _comments, _context in extract_from_file("python", path, KEYWORDS):
            if isinstance(message, str) and message:
                yield name, message
    for path in sorted((SOURCES / "models").glob("*.yaml")):
        name = path.relative_to(ROOT / "src").as_posix()
        model = yaml.safe_load(path.read_text("utf-8"))
        for message in (model.get("about"), *(model.get("notes") or ())):
            if message:
                yield name, " ".join(message.split())


def template() -> Catalog:
    """Every message of the sources, untranslated."""
    catalog = Catalog(project="byhand", version="1", creation_date=THEN, charset="utf-8")
    catalog.header_comment = "# Messages of byhand.  Written by tools/messages.py."
    for name, message in found():
        catalog.add(message, locations=[(name, None)])
    return catalog


def read(language: str) -> Catalog:
    with po_file(language).open("rb") as file:
        return read_po(file, locale=language)


def merged(language: str) -> Catalog:
    """The translation with the messages of today: new ones are empty, old ones are gone."""
    try:
        old = read(language)
    except FileNotFoundError:
        old = Catalog(locale=language)
    catalog = Catalog(locale=language, project="byhand", version="1", charset="utf-8")
    catalog.creation_date = catalog.revision_date = THEN
    catalog.last_translator = "The byhand authors"
    catalog.language_team = language
    catalog.header_comment = old.header_comment or "# Translation of byhand."
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


def files() -> Iterator[tuple[Path, bytes]]:
    """Every file of the translations as it should be."""
    yield TEMPLATE, as_po(template())
    for language in TRANSLATED:
        catalog = merged(language)
        yield po_file(language), as_po(catalog)
        yield po_file(language).with_suffix(".mo"), compiled(catalog)


def untranslated(language: str) -> list[str]:
    return [str(message.id) for message in merged(language) if message.id and not message.string]


def main(arguments: list[str]) -> int:
    stale = [path for path, data in files() if not path.exists() or path.read_bytes() != data]
    if "--check" not in arguments:
        for path, data in files():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    elif stale:
        print("not up to date:", *(path.relative_to(ROOT) for path in stale))
    missing = [(language, text) for language in TRANSLATED for text in untranslated(language)]
    for language, text in missing:
        print(f"{language}: not translated: {text!r}")
    return 1 if missing or (stale and "--check" in arguments) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
