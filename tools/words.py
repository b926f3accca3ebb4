"""The words of the product, checked: what docs/words.md asks for, as far as a machine can say.

    python tools/words.py            # complaints about messages and docs, none if all is well

A sentence has at most 25 words.  A word of the style sheet that is not ours is named with the one
that is.  Numbers agree with their nouns.  No `=` stands before a rounded number.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 25  # of a sentence
FIRST_PAGES = ("README.md", "README.es.md")  # whose sentences are as short as messages
SHORT = 4  # words of a label, which may say "stream" alone

# What is not ours, with what is; a pattern may say where the word is right after all.
ENGLISH = {
    r"\bside-trips?\b": "branch",
    r"\baims?\b": "target",
    r"\bare others\b": "changed",
    r"\bmakes shares\b": "turns scores into weights",
    r"\bcannot be told\b(?! from| apart)": "is not known",
    r"\bbent gates\b|\bthe bend\b": "activation",
    r"\butili[sz]e\b": "use",
    r"\w\(s\)": "a singular and a plural",
    r"(?<!\+ )\b1 (?:line|word|token|text|head|layer|step|number|block|position|row|column)s\b": (
        "the noun in the singular"
    ),
}
SPANISH = {
    r"\bcorriente\b(?<!archivo corriente)": "flujo residual",
    r"\bhace partes\b": "convierte las puntuaciones en pesos",
    r"\breparte un entero\b": "suma 1",
    r"\bmetas?\b": "objetivo",
    r"\bla MLP\b": "el MLP",
    r"\bla softmax\b": "el softmax",
    r"\bpuntos? de control\b": "checkpoint",
    r"\bdígitos?\b": "cifra",
    r"\bencerrad|\bencierros?\b": "acotado, intervalo",
    r"\bdoblez|\bdesvíos?\b": "activación, rama",
    r"\b[Tt]ransp(?:one|onga|uest)": "traspuesta",
    r"\bordenador\b": "equipo",
    r"(?:^|[:;.] )(?:[Bb]usque|[Ee]lija|[Rr]este|[Tt]ome|[Dd]ivida|[Oo]rdene|[Mm]antenga)\b": "tú",
    r"\w\(e?s\)": "un singular y un plural",
}
ROUNDED = re.compile(r"(?<![≈<>!])= ?[−-]?\d+\.\d{4,}(?!\d*/)")
DOUBLED = re.compile(r"[^\s{}]  [^\s{}]")


def sentences(text: str) -> list[str]:
    """The sentences of a message."""
    return [found for found in re.split(r"(?<=[.!?])\s+|\n", text) if found]


def length(sentence: str) -> int:
    """How many words a sentence has; a sign counts as one."""
    return len(sentence.split())


def read() -> dict[str, str]:
    """Message → Spanish, as tools/messages.py reads them."""
    spec = importlib.util.spec_from_file_location("messages", ROOT / "tools" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.texts(module.read("es"))
    return found


def not_ours(text: str, words: dict[str, str]) -> Iterator[str]:
    """A complaint for every word that the style sheet replaces."""
    for pattern, ours in words.items():
        if found := re.search(pattern, text):
            yield f"{found[0]!r}: say {ours}"


def of_one(text: str, words: dict[str, str]) -> Iterator[str]:
    """What is wrong with a message in one language."""
    for sentence in sentences(text):
        if length(sentence) > MOST_WORDS:
            yield f"a sentence of {length(sentence)} words"
    if DOUBLED.search(text):
        yield "two spaces"
    if ROUNDED.search(text):
        yield "= before a rounded number"
    yield from not_ours(text, words)


def stream_alone(english: str) -> bool:
    """Whether a sentence speaks of the stream and never says that it is the residual one."""
    return (
        re.search(r"\b[Tt]he stream\b(?!,)", english) is not None
        and "residual" not in english
        and length(english) > SHORT
    )


def complaints(messages: dict[str, str], docs: Iterable[Path]) -> Iterator[str]:
    """A line for everything that the style sheet does not allow."""
    for english, spanish in messages.items():
        for problem in of_one(english, ENGLISH):
            yield f"{english!r}: {problem}"
        for problem in of_one(spanish, SPANISH):
            yield f"{spanish!r}: {problem}"
        if stream_alone(english):
            yield f"{english!r}: say residual stream"
        if "cabecera" in spanish and "header" not in english:
            yield f"{spanish!r}: say cabeza de salida"
        more = re.fullmatch(r"\{count\} more (\w+)s", english)
        if more and not any(one.startswith(f"1 more {more[1]}") for one in messages):
            yield f"{english!r}: there is no '1 more {more[1]}'"
    for page in docs:
        words = SPANISH if page.name.endswith(".es.md") else ENGLISH
        text = page.read_text("utf-8")
        if page.name in FIRST_PAGES:
            yield from (f"{page.name}: {problem}" for problem in too_long(text))
        for line in prose(text):
            for problem in (*not_ours(line, words), *_rounded(line)):
                yield f"{page.relative_to(ROOT)}: {problem}: {line.strip()[:60]}"


def too_long(text: str) -> Iterator[str]:
    """The sentences of a page's paragraphs that are longer than a message may be."""
    for paragraph in re.split(r"\n\s*\n", "\n".join(prose(text))):
        if not paragraph.lstrip().startswith(("#", "|", "!", "<!--")):
            for sentence in sentences(" ".join(paragraph.split())):
                if length(sentence) > MOST_WORDS:
                    yield f"a sentence of {length(sentence)} words: {sentence[:60]}"


def _rounded(line: str) -> Iterator[str]:
    if ROUNDED.search(line):
        yield "= before a rounded number"


def prose(text: str) -> Iterator[str]:
    """The lines of a page outside blocks of code, without code in them."""
    inside = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            inside = not inside
        elif not inside and not line.startswith("    "):
            yield re.sub(r"`[^`]*`", "", line)


def pages() -> list[Path]:
    """The pages that are checked: not the style sheet, which names what is not ours, nor the map of
    the modules, which is written from their first lines."""
    found = [ROOT / "README.md", ROOT / "README.es.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if page.name not in ("words.md", "house.md")]


def main() -> int:
    found = list(complaints(read(), pages()))
    print("\n".join(found) or "every word is ours")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
