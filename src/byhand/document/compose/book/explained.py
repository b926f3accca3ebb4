"""What the numbers say: the sources of a logit, step by step, and the effect of removing a step.

The sections of `byhand explain` become passages, each with its steps.  The scale of the book limits
the work: for a large model, nothing that costs more than a few runs.  The page says what is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import LARGE, Edition
from byhand.document.compose.book.head_stories import stories
from byhand.document.compose.explanation import attribution, heads
from byhand.document.compose.explanation.facts import findings
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.sections import section
from byhand.document.numerals import written
from byhand.document.parts import Column, Finding, Grid, LeftOut, NumberTable, Part, Remark, Section
from byhand.language import _, amount, later
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.explaining.facts import Facts

SLUG = "explained"
FEW_POSITIONS = 4  # positions of a pencil-sized text that are all explained
MOST_TERMS = 32  # terms of a sum; beyond, the largest and the sum of the others
MOST_HEADS = 12  # heads of a large model whose attention weights are listed
MOST_KEYS = 3  # positions listed for such a head

STREAM = ("embed", "position", "stream", "add")
HEADS = ("qkv", "qk_norm", "rotate", "scores", "weights", "mixed", "attn_out")


def page(edition: Edition) -> Page:
    """The page on what the numbers say."""
    return Page(
        SLUG,
        _("What the numbers say"),
        _(
            "Where the prediction comes from: the logit as a sum that closes, and the "
            "answer after every step. What the heads read and write, the path of the "
            "residual stream, and what happens when a part is taken away."
        ),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    found = edition.explained.at(edition.last)
    if found.missing is not None:
        yield _unknown(edition, found)
    else:
        yield _logit(edition, found)
        yield _lens(edition, found)
    told = None if found.missing is not None else _told(edition, found)
    if found.heads:
        yield from _purposes(edition, found, told)
        yield _attention(edition, found)
    yield _geometry(edition, found)
    if told is not None:
        yield _facts(edition, told)
    if edition.everything and found.few_texts and found.missing is None:
        yield _every_text(edition, found)
    if not edition.everything:
        yield _health(edition, found)


def _explained_positions(edition: Edition) -> Sequence[int]:
    """The positions that are explained one by one: all of a few, else the followed one."""
    length = len(edition.trace.tokens)
    if edition.everything and length <= FEW_POSITIONS:
        return range(length)
    return (edition.last,)


# ------------------------------------------------------------------ passages


def _passage(
    name: str, title: str, sentences: Iterable[str], lit: Sequence[str], parts: Iterable[Part]
) -> Passage:
    return Passage(f"{SLUG}-{name}", title, tuple(map(written, sentences)), tuple(lit),
                   show=tuple(parts), looks_back=True)  # fmt: skip


def _of_section(section: Section, lit: Sequence[str], *more: Part) -> Passage:
    about = [section.about] if section.about else []
    return _passage(section.name, section.title, about, lit, (*section.parts, *more))


def _steps(edition: Edition, *kinds: str, norms: bool = False) -> tuple[str, ...]:
    """The steps of some kinds; with `norms`, also the norms on the stream itself."""
    spec = edition.model.spec

    def on_stream(layer: int | None) -> bool:
        return layer is None or spec.blocks[layer].norm_place == "post"

    return tuple(
        address
        for topic in edition.topics
        if topic.kind in kinds or (norms and topic.kind == "norm" and on_stream(topic.layer))
        for address in topic.addresses
    )


def _unknown(edition: Edition, found: Explanation) -> Passage:
    """The passage that says why the logits cannot be explained."""
    assert found.missing is not None
    text = _("The logits are not known, so nothing can be said of where they come from: {reason}.")
    reason = words.why_missing(found.missing)
    lit = _steps(edition, "logits")
    return _passage("open", _("What is not known"), [text.format(reason=reason)], lit, ())


def _logit(edition: Edition, found: Explanation) -> Passage:
    """The passage on the sum and its closing; for a few positions, one sum each."""

    def scope(one: Explanation) -> Scope:
        return Scope(one, terms=MOST_TERMS, workings=edition.showing.workings)

    shown = section(scope(found), "attribution")
    others = (at for at in _explained_positions(edition) if at != found.position)
    earlier = [
        part for at in others for part in attribution.summed(scope(edition.explained.at(at)))
    ]
    parts: list[Part] = [*earlier, *shown.parts]
    if not edition.everything and len(edition.trace.tokens) > 1:
        parts.append(_others_left_out(edition, "attribution"))
    lit = _steps(edition, *STREAM, "attn_out", "mlp_out", "logits", norms=True)
    return _of_section(replace(shown, parts=tuple(parts)), lit)


def _others_left_out(edition: Edition, section: str) -> LeftOut:
    text = _("The other positions are left out here. Any of them:")
    return LeftOut(text, f"byhand explain {edition.command} --only {section} --position 0")


def _lens(edition: Edition, found: Explanation) -> Passage:
    """The passage on the leader after every step; where it is cheap, at every position."""
    large = edition.scale == LARGE
    shown = section(Scope(found, full=not large), "lens")
    lit = _steps(edition, *STREAM, "logits", "probs", "next", norms=True)
    if large and len(edition.trace.tokens) > 1:
        return _of_section(shown, lit, _others_left_out(edition, "lens"))
    return _of_section(shown, lit)


def _sparing(edition: Edition) -> bool:
    """Whether a run takes so long that only few are made."""
    one_by_one = isinstance(edition.trace.numbers, Exact | Pencil)
    return edition.scale == LARGE or (one_by_one and not edition.everything)


# ------------------------------------------------------------------ heads, and the plane


def _purposes(edition: Edition, found: Explanation, told: Facts | None) -> Iterator[Passage]:
    """The passage on what each head is for, where that is clear of some."""
    if parts := stories(found, told):
        about = _(
            "What a head is for shows in where it looks, in what it adds, and in what comes "
            "without it. Only what is clear in the numbers of this text is said."
        )
        title = _("What each head is for")
        yield _passage("purposes", title, [about], _steps(edition, *HEADS), parts)


def _attention(edition: Edition, found: Explanation) -> Passage:
    """The passage on attention; with a small vocabulary, what each head reads and writes."""
    lit = _steps(edition, *HEADS)
    if _sparing(edition):
        title = _("What the heads read")
        return _passage("attention", title, [_looks_about()], lit, _large_heads(edition, found))
    shown = section(Scope(found, full=True), "attention")
    parts = tuple(_read_and_written(shown.parts))
    if any(isinstance(part, LeftOut) for part in shown.parts):
        text = _("QK and OV are shown for the {count} heads that add most. All of them:")
        command = f"byhand explain {edition.command} --only attention --all"
        parts = (*parts, LeftOut(text.format(count=heads.MOST_TABLES), command))
    return _of_section(replace(shown, parts=parts), lit)


def _read_and_written(parts: Iterable[Part]) -> Iterator[Part]:
    """What heads read beside what they write, if both are lists: one table for each head."""
    lists: list[Grid] = []
    small = any(isinstance(part, NumberTable) for part in parts)
    for part in parts:
        if isinstance(part, Grid) and part.title.startswith(("QK ", "OV ")):
            lists.append(part)
        elif isinstance(part, Grid | NumberTable | Remark) or (small and isinstance(part, Finding)):
            yield part
        if len(lists) == 2:
            (qk, ov), lists = lists, []
            yield replace(
                qk,
                title=f"{qk.title}, {ov.title}",
                columns=(*qk.columns, ov.columns[1]),
                rows=tuple((*one, two[1]) for one, two in zip(qk.rows, ov.rows, strict=True)),
            )


def _looks_about() -> str:
    return _("Each head distributes its attention; here are the heads that add most to the lead.")


def _large_heads(edition: Edition, found: Explanation) -> Iterator[Part]:
    """The attention weights of the most important heads, which the trace already has."""
    scope, rows = Scope(found), []
    foremost = found.foremost_heads(MOST_HEADS)
    for layer, head in foremost:
        name = f"block.{layer}.attn.weights[{head},{found.position}]"
        shares = np.nan_to_num(found.shares(layer, head), nan=-1.0)
        keys = np.argsort(-shares, kind="stable")[:MOST_KEYS].tolist()
        said = [f"{scope.place(at)} {shares[at]:.4f}" for at in keys if shares[at] >= 0]
        rows.append((name, ", ".join(said)))
    yield Grid(
        _("where each head looks from position {place}").format(place=scope.where(found.position)),
        (Column(_("heads"), "address"), Column(_("looks at"))),
        tuple(rows),
        left_out=_more_heads(len(found.heads) - len(foremost)),
    )
    yield LeftOut(
        _("What each head looks for and writes, token by token, is left out: it would take longer "
          "than the pass itself."),
        f"byhand explain {edition.command} --only attention",
    )  # fmt: skip


def _more_heads(count: int) -> str:
    many = later("{count} heads that add less")
    return amount(count, later("1 head that adds less"), many) if count > 0 else ""


def _geometry(edition: Edition, found: Explanation) -> Passage:
    """The passage on the stream as a path: drawn, and as lengths and angles."""
    shown = section(Scope(found, full=True), "geometry")
    lit = _steps(edition, *STREAM, "logits", norms=True)
    earlier = len(edition.trace.tokens) - len(found.geometry.paths)
    if earlier <= 0:
        return _of_section(shown, lit)
    what = amount(earlier, later("1 earlier position"), later("{count} earlier positions"))
    return _of_section(shown, lit, LeftOut(_("left out: {what}").format(what=what)))


# ------------------------------------------------------------------ facts and health


def _told(edition: Edition, found: Explanation) -> Facts:
    """The facts of the explained positions; of a large model, with few parts removed."""
    if _sparing(edition):
        return edition.explained.few_facts(found.position)
    return edition.explained.facts(_explained_positions(edition))


def _facts(edition: Edition, told: Facts) -> Passage:
    """The passage on how each prediction comes about, checked by removing parts."""
    parts: list[Part] = list(findings(told))
    if _sparing(edition):
        text = _(
            "Only the parts that matter most are removed here, since each removal is a run of "
            "the whole model. All of them:"
        )  # fmt: skip
        parts.append(LeftOut(text, f"byhand explain {edition.command} --only facts"))
    about = _(
        "The same in sentences, made from the numbers. What a sentence says about a part "
        "is checked: the part is taken out of the pass and the text worked out again."
    )
    lit = [*_steps(edition, "next", "logits"), *_turning_steps(edition, told)]
    return _passage("facts", _("How the prediction comes about"), [about], lit, parts)


def _turning_steps(edition: Edition, told: Facts) -> Iterator[str]:
    """The steps of the parts that turned a prediction, or whose removal changes it."""
    trips = set()
    for fact in told.facts:
        parts = [change.part for change in fact.turning.changes]
        parts += [check.part for check in fact.needed]
        trips |= {(part.layer, "attn" if part.kind == "head" else part.kind) for part in parts}
    for topic in edition.topics:
        if (topic.layer, topic.trip or topic.kind) in trips:
            yield from topic.addresses


def _every_text(edition: Edition, found: Explanation) -> Passage:
    """The passage with the table over all texts."""
    shown = section(Scope(found, full=True, every=True), "inputs")
    return _of_section(shown, _steps(edition, "tokens", "next"))


def _health(edition: Edition, found: Explanation) -> Passage:
    """The passage on sizes, entropies and dead units."""
    shown = section(Scope(found, full=edition.scale != LARGE), "health")
    lit = _steps(edition, "add", "weights", "attn_out", "act", "mlp_out")
    return _of_section(shown, lit)
