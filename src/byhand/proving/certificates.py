"""Certificates: a proof as a JSON file that anyone can check, and its digests.

A certificate names the model by a digest, repeats the property, and gives for each goal the tree of
cases with a lower bound of the lead in each.  docs/certificates.md is its definition.
`byhand.verifying` decides every case again.  Nothing here computes with weights.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from hashlib import sha256
from math import floor
from pathlib import Path
from typing import Any

from byhand.drafts import write_whole
from byhand.errors import InputError, UsageError
from byhand.expression import Expression, write
from byhand.language import _, whole
from byhand.model import Model
from byhand.proving.claims import Agree
from byhand.proving.outcome import PROVEN, Leaf, Outcome, Tree
from byhand.proving.properties import Property
from byhand.weights import Tensor

FORMAT = "byhand certificate 1"
LARGEST = 256 * 2**20  # bytes of a certificate's file
DEEPEST = 400  # cuts one within the other
DIGITS = 3  # of a recorded lead
LEFT = Fraction(99, 100)  # of a lead, that is recorded
LEFT_OF_RANGES = Fraction(9, 10)  # the same where weights are ranges: bounds differ more
# settings that came after the first certificates: they count only where a model has them
LATER = (
    "magnitude", "sinks", "cap", "experts", "chosen", "normalised", "router_bias",
    "plus_one", "scaling", "normed", "clip", "d_value", "latent", "relative", "scoring",
    "choice_bias", "groups", "groups_chosen", "group_rule", "share_scale", "share_eps", "shared",
    "shared_gate", "shared_bias", "limit", "hidden_plus", "attn_after", "mlp_after", "cross",
    "cross_norm", "one_norm", "from_norm", "add_scale", "position_pairing", "embed_norm",
    "embed_width", "segments", "head", "head_scale", "logit_scale", "logit_cap", "encoder",
    "in_place", "first_row", "fixed_bias", "turned_first",
)  # fmt: skip
NEVER = ("family",)  # what modules are called changes no number


def certificate(outcome: Outcome) -> dict[str, Any]:
    """The certificate of a proven property, as a plain tree."""
    if outcome.answer != PROVEN:
        raise UsageError(
            _("only a proven property has a certificate"), expected=PROVEN, found=outcome.answer
        )
    tokens = outcome.property.model.outputs.tokens
    left = LEFT if outcome.property.model is outcome.property.own else LEFT_OF_RANGES
    goals = []
    for goal, tree in zip(outcome.property.goals, outcome.trees, strict=True):
        region = goal.shape.whole
        texts = 0 if region is None else region.texts
        cases = _node(tree, tokens, left)
        goals.append({"texts": None if texts is None else str(texts), "tree": cases})
    found: dict[str, Any] = {
        "format": FORMAT,
        "model": _named(outcome.property.own),
        "property": as_json(outcome.property.source),
        "answer": PROVEN,
        "goals": goals,
        "least": least_of(goals),
    }
    if others := others_of(outcome.property):
        found["others"] = [_named(other) for other in others]
    return {**found, "digest": certificate_digest(found)}


def write_certificate(outcome: Outcome, path: Path) -> Path:
    """Writes the certificate of a proven property; the file appears whole or not at all."""
    return write_whole(path, (_canonical(certificate(outcome)) + "\n").encode())


def read_certificate(path: Path) -> dict[str, Any]:
    """A certificate from its file; an InputError where it is none.  Nothing is verified yet."""
    try:
        if path.stat().st_size > LARGEST:
            raise _no_certificate(
                str(path),
                _("a file of at most {count} bytes").format(count=whole(LARGEST)),
                whole(path.stat().st_size),
            )
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise _no_certificate(str(path), "UTF-8", _("other bytes")) from None
    except OSError as error:
        raise InputError(
            _("cannot be read"), where=str(path), found=error.strerror or str(error)
        ) from None
    return parse_certificate(text, where=str(path))


def parse_certificate(text: str, *, where: str = "") -> dict[str, Any]:
    """A certificate from its text: every key is there and every node is well formed."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        found_deep = _("more")
        raise _no_certificate(
            where, _("at most {count} cuts within each other").format(count=DEEPEST), found_deep
        ) from None
    except ValueError as error:
        raise _no_certificate(where, "JSON", str(error)) from None
    check_form(found, where)
    return dict(found)


# ------------------------------------------------------------------------------- digests


def model_digest(model: Model) -> str:
    """The SHA-256 of a model's architecture, tokens and weights, however its floats are stored.

    Two models have the same digest if every number of them is the same number.  The model's name
    and its remarks do not count.

    >>> from byhand.models import open_model
    >>> model_digest(open_model("tiny"))[:16]
    'e45e4096b0186d32'
    """
    digest = sha256()
    spec = _plain(model.spec)
    del spec["name"]
    words = [list(model.vocabulary.tokens), list(model.outputs.tokens)]
    for part in (spec, words, sorted(model.weights)):
        digest.update(_canonical(part).encode() + b"\n")
    for name in sorted(model.weights):
        digest.update(_canonical([name, list(model.weights[name].shape)]).encode() + b"\n")
        for text in _entries(model.weights[name]):
            digest.update(text.encode() + b"\n")
    return digest.hexdigest()


def certificate_digest(tree: Mapping[str, Any]) -> str:
    """The SHA-256 of a certificate without its own digest, as JSON with sorted keys."""
    content = {key: value for key, value in tree.items() if key != "digest"}
    return sha256(_canonical(content).encode()).hexdigest()


def others_of(property: Property) -> list[Model]:
    """The further models that claims speak of, each once."""
    found: list[Model] = []
    for goal in property.goals:
        if isinstance(goal.claim, Agree) and not any(goal.claim.other is one for one in found):
            found.append(goal.claim.other)
    return found


def as_json(tree: Any) -> Any:
    """A plain tree as JSON reads it back: lists for tuples, texts for keys."""
    return json.loads(_canonical(tree))


def _canonical(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _named(model: Model) -> dict[str, str]:
    return {"name": model.name, "digest": model_digest(model)}


def _plain(value: Any) -> Any:
    """An architecture as JSON: numbers as fractions, expressions as they are written."""
    if isinstance(value, Expression):
        return write(value)
    if is_dataclass(value):
        entries = {one: getattr(value, one.name) for one in fields(value)}
        return {
            one.name: _plain(entry)
            for one, entry in entries.items()
            if one.name not in NEVER and (one.name not in LATER or entry != one.default)
        }
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, Fraction) else value


def _entries(tensor: Tensor) -> Iterator[str]:
    """Each entry of a tensor as text: a fraction in lowest terms, or what stands for it."""
    if tensor.floats:
        for entry in tensor.data.reshape(-1).astype("float64").tolist():
            top, bottom = entry.as_integer_ratio()
            yield f"{top}/{bottom}"
    else:
        for entry in tensor.data.flat:
            yield _entry(entry)


def _entry(entry: Any) -> str:
    if entry is None:
        return "masked"
    if isinstance(entry, Expression):
        return write(entry)
    if is_dataclass(entry):  # printed, within, unknown
        parts = [str(getattr(entry, one.name)) for one in fields(entry)]
        return " ".join([type(entry).__name__.lower(), *parts])
    number = Fraction(entry)
    return f"{number.numerator}/{number.denominator}"


# ------------------------------------------------------------------------------- writing


def lead_text(lead: Fraction, left: Fraction = LEFT) -> str:
    """A decimal of three digits, at least a hundredth less than a lead; 0 for 0.

    The checker's bounds are other ones than the prover's: this leaves them room.

    >>> lead_text(Fraction(1, 4)), lead_text(Fraction(100)), lead_text(Fraction(0))
    ('0.247', '99', '0')
    """
    if lead == 0:
        return "0"
    told = lead * left if lead > 0 else lead / left
    size = abs(told)
    places = DIGITS - (len(str(floor(size))) if size >= 1 else 1 - len(str(floor(1 / size))))
    units = abs(floor(told * Fraction(10) ** places))
    sign = "-" if lead < 0 else ""
    if places <= 0:
        return f"{sign}{units * 10**-places}"
    digits = f"{units:0{places + 1}d}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def least_of(goals: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The least lead of all cases, and the first goal that has it; None where there is no lead."""
    leads = [
        (Fraction(node["lead"]), node["lead"], place)
        for place, goal in enumerate(goals)
        for node in nodes(goal["tree"])
        if "lead" in node
    ]
    if not leads:
        return None
    _value, text, place = min(leads, key=lambda one: one[0])
    return {"lead": text, "goal": place}


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes of a certificate's tree, a cut before its parts; no recursion."""
    todo = [tree]
    while todo:
        one = todo.pop()
        yield one
        todo.extend(reversed(one.get("parts", ())))


def _node(tree: Tree, tokens: Any, left: Fraction) -> dict[str, Any]:
    """The tree of an outcome as nodes, built without recursion."""
    root: dict[str, Any] = {}
    todo: list[tuple[Tree, dict[str, Any], int]] = [(tree, root, 0)]
    while todo:
        one, node, deep = todo.pop()
        if deep > DEEPEST:
            raise InputError(
                _("the tree of cases is too deep for a certificate"),
                expected=_("at most {count} cuts within each other").format(count=DEEPEST),
            )
        if isinstance(one, Leaf):
            node.update(_leaf(one, tokens, left))
            continue
        parts: list[dict[str, Any]] = [{}, {}]
        node.update({"cut": one.cut, "first": list(one.first), "parts": parts})
        todo.extend((part, into, deep + 1) for part, into in zip(one.parts, parts, strict=True))
    return root


def _leaf(leaf: Leaf, tokens: Any, left: Fraction) -> dict[str, Any]:
    found: dict[str, Any] = {"by": leaf.by}
    if leaf.next:
        found["next"] = [tokens[id] for id in leaf.next]
    if leaf.by == "each":
        found["texts"] = leaf.texts
    if leaf.lead is not None:
        found["lead"] = lead_text(leaf.lead, left)
    return found


# ------------------------------------------------------------------------------- reading

KEYS = {
    "format": str, "model": dict, "property": dict, "answer": str, "goals": list,
    "least": dict | None, "digest": str,
}  # fmt: skip


def check_form(tree: Any, where: str = "") -> None:
    """Refuses what is not formed as a certificate; says nothing about whether it is true."""
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        found = tree.get("format") if isinstance(tree, dict) else type(tree).__name__
        raise _no_certificate(where, f'"format": "{FORMAT}"', repr(found)[:60])
    for key, kind in KEYS.items():
        if key not in tree or not isinstance(tree[key], kind):
            raise _no_certificate(where, f'"{key}"', _shown(tree.get(key)))
    models = [tree["model"], *tree.get("others", [])]
    for one in models:
        if not isinstance(one, dict) or not isinstance(one.get("digest"), str):
            raise _no_certificate(where, '"digest"', _shown(one))
    for place, goal in enumerate(tree["goals"]):
        at = f"goals[{place}]"
        if not isinstance(goal, dict) or not isinstance(goal.get("texts", 0), str | None):
            raise _no_certificate(f"{where} {at}", '"texts"', _shown(goal))
        _check_tree(goal.get("tree"), f"{where} {at}.tree")


def _check_tree(tree: Any, where: str) -> None:
    todo: list[tuple[Any, str, int]] = [(tree, where, 0)]
    while todo:
        node, at, deep = todo.pop()
        if deep > DEEPEST or not isinstance(node, dict) or not _formed(node):
            raise _no_certificate(at, _("a cut in two parts, or a case"), _shown(node))
        parts = node.get("parts", [])
        todo.extend((part, f"{at}.{n}", deep + 1) for n, part in enumerate(parts))


def _formed(node: dict[str, Any]) -> bool:
    match node:
        case {"cut": str(), "first": list(first), "parts": [_one, _other], **rest}:
            return not rest and all(type(value) is int for value in first)
        case {"by": "letters", **rest}:
            next = rest.pop("next", [])
            return _said(rest) and isinstance(next, list) and all(type(t) is str for t in next)
        case {"by": "each", "texts": int(), **rest}:
            return _said(rest)
        case {"by": "none", **rest}:
            return not rest
    return False


def _said(rest: dict[str, Any]) -> bool:
    """Whether a lead, and nothing else, is said, or none."""
    return not rest or (rest.keys() == {"lead"} and _decimal(rest["lead"]))


def _decimal(text: Any) -> bool:
    return isinstance(text, str) and bool(re.fullmatch(r"-?[0-9]{1,100}(\.[0-9]{1,100})?", text))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(_("a key is there twice"))
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _no_certificate(where: str, expected: str, found: str) -> InputError:
    return InputError(
        _("this is no certificate"), where=where.strip() or None, expected=expected, found=found
    )
