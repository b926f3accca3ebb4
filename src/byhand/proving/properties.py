"""Properties: a model, a domain of texts, and what must hold for all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from byhand.errors import InputError, UsageError
from byhand.files import scalars
from byhand.files.tree import Node, Table
from byhand.language import _
from byhand.model import Model
from byhand.models import builtin_names, open_model
from byhand.proving.claims import Claim
from byhand.proving.domain import Shape
from byhand.proving.reading import sentences
from byhand.proving.reading.claim_reading import read_claims
from byhand.proving.reading.known_weights import read_distance, read_weights
from byhand.proving.reading.property_files import KEYS, node_of, plain, tree_of
from byhand.proving.reading.texts import Setting, read_texts


@dataclass(frozen=True, slots=True)
class Goal:
    """One claim about the texts of one shape.  A continuation of n tokens makes n goals."""

    shape: Shape
    claim: Claim


@dataclass(frozen=True)
class Property:
    """What is to be proven: goals about a model, whose weights may be known within ranges."""

    model: Model  # with weights that are Printed or Within, where the property says so
    goals: tuple[Goal, ...]
    own: Model  # the model with its own numbers
    moved: Fraction = Fraction(0)  # how far each entry of an embedding may be moved
    source: Mapping[str, Any] = field(default_factory=dict)  # as it was written: a plain tree


def read_property(
    source: Path | str | Mapping[str, Any], model: Model | Path | str | None = None
) -> Property:
    """The property of a file, or of a table with the same keys; `model` replaces its own.

    The contents of all files that it names are kept in `Property.source`, which reads back to the
    same property.
    """
    root, folder = tree_of(source)
    own = _model(root, folder, model)
    moving = read_weights(root.get("weights"), own)
    moved = read_distance(root.get("embeddings"))
    claim = root.needed("claim", ", ".join(KEYS), root.keys())
    scopes = read_texts(_texts(root, claim), Setting.of(own))
    moves = moving is not own or moved > 0
    goals = tuple(Goal(shape, one) for shape, one in read_claims(claim, scopes, own, moves))
    if all(goal.shape.whole is None for goal in goals):
        raise root.entries.get("texts", root).wrong(
            _("there is no text like this"), expected=_("at least one text"), found=None
        )
    said = {key: plain(node) for key, node in root.entries.items() if key != "model"}
    return Property(moving, goals, own, moved, said)


def _model(root: Table, folder: Path | None, given: Model | Path | str | None) -> Model:
    if isinstance(given, Model):
        return given
    if given is not None:
        return open_model(given)
    node = root.needed("model", ", ".join(KEYS), root.keys())
    name = scalars.text(node)
    path = name if name in builtin_names() or folder is None else folder / name
    try:
        return open_model(path)
    except InputError as error:
        raise error if error.where else node.refused(error) from None


def _texts(root: Table, claim: Node) -> Node:
    """The texts; those of a table, where the claim is one and no others are given."""
    if "texts" not in root.entries and isinstance(claim, Table):
        for key in ("next", "continuation"):
            inner = claim.get(key)
            table = inner.get("table") if isinstance(inner, Table) else None
            if isinstance(table, Table):
                return node_of({"list": list(table.entries)}, "texts")
    return root.needed("texts", ", ".join(KEYS), root.keys())


def in_words(property: Property) -> str:
    """The property in sentences, in the language spoken now."""
    shapes = {id(goal.shape): goal.shape for goal in property.goals if goal.shape.after == 0}
    counts = [0 if (all := shape.whole) is None else all.texts for shape in shapes.values()]
    count = None if None in counts else sum(one or 0 for one in counts)
    return sentences.of_property(property.source, count)


# --------------------------------------------------------------------------- simple ones

_LEAD = re.compile(r"(?P<of>.+?)\s+over\s+(?P<over>.+?)(?:\s+by\s+(?P<by>\S+))?")
_BOUND = re.compile(r"(?P<at>.+?)\s*(?P<sign>>=|<=)\s*(?P<bound>\S+)")


def simple(
    model: Model | Path | str,
    *,
    texts: Sequence[str] | None = None,
    pattern: str | None = None,
    up_to: int | None = None,
    length: int | None = None,
    of: Sequence[str] | str | None = None,
    where: Mapping[str, Any] | None = None,
    next: Any = None,
    continuation: Any = None,
    file: Path | str | None = None,
    lead: str | None = None,
    at: str | None = None,
    agree: Model | Path | str | None = None,
    constant: bool = False,
    unmoved: bool = False,
    printed: int | None = None,
    within: Any = None,
    rounded_to: str | None = None,
    known_to: str | None = None,
    moved: Any = None,
) -> Property:
    """A property from a few words, as `byhand prove` has them for options.

    `file` is a Python file for the next token, `lead` is "A over B by 1/2", `at` is
    "block.0.attn.weights[0,-1,0] >= 0.9", `agree` another model; the others are keys of a file.
    """
    domain = {"list": texts, "pattern": pattern, "up to": up_to, "length": length, "of": of,
              "where": where}  # fmt: skip
    claims = {
        "next": next if file is None else {"file": file},
        "continuation": continuation,
        "lead": None if lead is None else _lead(lead),
        "same as": agree,
        "constant": constant or None,
        "unmoved": unmoved or None,
    }
    given = {key: value for key, value in claims.items() if value is not None}
    if at is not None:
        given |= _bound(at)
    if file is not None and next is not None:
        raise UsageError(_("next is given twice"), expected="next, file", found=str(file))
    weights = {"printed": printed, "within": within, "rounded to": rounded_to,
               "known to": known_to}  # fmt: skip
    tables = {"texts": domain, "weights": weights, "embeddings": {"within": moved}}
    said = {key: _given(table) for key, table in tables.items() if _given(table)}
    if not given:
        raise UsageError(_("a claim is missing"), expected=", ".join(claims))
    return read_property({**said, "claim": given}, model)


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _lead(text: str) -> dict[str, str]:
    found = _LEAD.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            _("this is no lead of one token over another"), expected="A over B by 1/2", found=text
        )
    return _given(found.groupdict())


def _bound(text: str) -> dict[str, str]:
    found = _BOUND.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            _("this is no bound of a number"),
            expected="block.0.attn.weights[0,-1,0] >= 0.9",
            found=text,
        )
    return {"at": found["at"], "at least" if found["sign"] == ">=" else "at most": found["bound"]}
