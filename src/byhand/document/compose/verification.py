"""A checked certificate as parts: what it proves, whether it is accepted, and else why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from byhand.document import words
from byhand.document.compose.proof.wording import counted, seconds
from byhand.document.parts import Answer, Part, Title
from byhand.language import _
from byhand.proving.reading import sentences

if TYPE_CHECKING:
    from byhand.verifying import Verification


def report(found: Verification, source: Mapping[str, Any], model: str) -> Iterator[Part]:
    """The property, and whether its certificate is accepted; `source` is the property's tree."""
    name = words.printable(model)
    if not found.accepted:
        yield Title(name, "", ())
        yield Answer("refuted", _("Rejected"), _sentence(found.reasons[0]), _figures(found))
        return
    told, said = sentences.of_property(source, found.texts), source.get("property")
    yield Title(str(said), told, ((_("model"), name),)) if said else Title(name, told, ())
    sentence = _("Every case of the certificate was decided again.")
    yield Answer("proven", _("Accepted"), sentence, _figures(found))


def _sentence(reason: str) -> str:
    """A reason as a sentence; one that begins with a place in the certificate stays as it is."""
    return f"{reason}." if reason.startswith("goals[") else f"{reason[:1].upper()}{reason[1:]}."


def _figures(found: Verification) -> tuple[tuple[str, str], ...]:
    texts = () if found.texts is None else ((_("texts"), counted(found.texts)),)
    cases = (_("cases"), words.whole(found.leaves))
    return (*texts, cases, (_("time"), seconds(found.seconds)))
