"""English is the source, Spanish is complete: every message, every placeholder."""

from __future__ import annotations

import importlib.util
import re
import string
from collections.abc import Iterator
from gettext import GNUTranslations
from pathlib import Path
from types import ModuleType

import pytest

from byhand.errors import ByhandError, UsageError
from byhand.language import LANGUAGES, _, preferred, speak, speaking, whole
from byhand.options import refuse_unless_whole

ROOT = Path(__file__).parent.parent


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("messages", ROOT / "tools" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


messages = load()


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    yield
    speak("en")


def placeholders(text: str) -> set[str]:
    return {name for _text, name, _spec, _conversion in string.Formatter().parse(text) if name}


def test_every_message_is_translated_and_the_files_are_up_to_date() -> None:
    assert list(messages.complaints()) == [], "run python tools/messages.py"


def test_no_translation_is_marked_as_doubtful() -> None:
    assert [m.id for m in messages.read("es") if m.fuzzy and m.id] == []


FORMATTED = [pair for pair in messages.texts(messages.read("es")).items() if "{" in pair[0]]


@pytest.mark.parametrize(("english", "spanish"), FORMATTED)
def test_a_translation_has_the_placeholders_of_its_message(english: str, spanish: str) -> None:
    if re.search(r"\{\w+: ", english):  # an example of YAML, never formatted
        assert re.findall(r"\{.*?\}", english) == re.findall(r"\{.*?\}", spanish)
    else:
        assert placeholders(english) == placeholders(spanish)


def test_the_compiled_translation_is_that_of_its_source() -> None:
    with messages.po_file("es").with_suffix(".mo").open("rb") as file:
        compiled = GNUTranslations(file)
    for english, spanish in messages.texts(messages.read("es")).items():
        assert compiled.gettext(english) == spanish


def test_signs_names_of_steps_and_spaces_survive_translation() -> None:
    for english, spanish in messages.texts(messages.read("es")).items():
        for piece in re.findall(r"--[a-z-]+|block\.[\w.*\[\],]+|[≈√…→·±]", english):
            assert piece in spanish, english
        assert english.startswith(" ") == spanish.startswith(" ")


def test_byhand_speaks_what_it_is_told_to() -> None:
    speak("es")
    assert _("hint") == "pista"
    assert str(ByhandError("x", hint="y")) == "x\n  pista: y"
    speak("en")
    assert _("hint") == "hint"


@pytest.mark.parametrize(
    ("settings", "language"),
    [
        ({"LANG": "es_MX.UTF-8"}, "es"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({"LANG": "es_ES.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LC_MESSAGES": "es", "LANG": "en_US"}, "es"),
        ({}, "en"),
    ],
)
def test_the_locale_says_the_language(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], language: str
) -> None:
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    assert preferred() == language
    assert set(LANGUAGES) == {"en", "es"}


def test_thousands_are_set_apart_as_the_language_does() -> None:
    """265,719 would be read as a decimal fraction in Spanish."""
    with speaking("en"):
        assert whole(265_719) == "265,719"
    with speaking("es"):
        assert whole(265_719) == "265\N{NO-BREAK SPACE}719"
        with pytest.raises(UsageError) as refused:
            refuse_unless_whole("digits", 5_000, 1, 1_000)
        assert refused.value.expected == "un número entero de 1 a 1\N{NO-BREAK SPACE}000"
