"""Claims about learning: gradients, moments and new weights; their names, targets and texts.

A gradient is named after what it is the gradient of: `grad.logits`, `grad.weight.head`, or with a
Hugging Face name `transformer.wte.weight.grad` or `grad.transformer.h.0.mlp`.  What an optimizer
keeps is named after torch: `transformer.wte.weight.exp_avg`, `exp_avg_sq.lm_head.weight`.

The gradients of a batch are those of all its texts together.  So the texts become one text, side by
side, and claims about one row become claims about its positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand import forward
from byhand.address import Index
from byhand.backward import adjoint
from byhand.batch import following_ids
from byhand.checking.claims import Claim, ClaimedText, Entry, Sheet
from byhand.checking.matches.texts import Row
from byhand.checking.optimizers import read_rule
from byhand.errors import InputError
from byhand.language import _, amount, later
from byhand.model import Model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.optimizer import BEFORE, UPDATE, Rule, update
from byhand.passes import Mask
from byhand.plan import GRAD, LOGPROBS, STANDINGS, WEIGHT, Plan, Step
from byhand.reading import beside

LOSSES = ("losses", "mean_loss", *LOGPROBS, *STANDINGS)
MOMENTS = {"exp_avg": "m", "exp_avg_sq": "v", "momentum_buffer": "m"}  # torch's → ours
POSITIONS = ("pos", "query", "key")
NEW = {  # before the name of a weight → what it is a name of
    f"{UPDATE}clipped.": "clipped.", "clipped.": "clipped.", f"{UPDATE}weight.": "weight.",
    "updated.": "weight.", "new.": "weight.", UPDATE: "weight.",
}  # fmt: skip


def learned_from(name: str) -> tuple[str, str] | None:
    """What kind of number of a training step a name means, and of what; None for other names.

    >>> learned_from("transformer.wte.weight.grad")
    ('grad.', 'transformer.wte.weight')
    >>> learned_from("exp_avg_sq.lm_head.weight")
    ('update.v.', 'lm_head.weight')
    """
    before = BEFORE if name.startswith(BEFORE) else UPDATE
    rest = name.removeprefix(BEFORE)
    for theirs, ours in MOMENTS.items():
        if rest.endswith(f".{theirs}"):
            return f"{before}{ours}.", rest.removesuffix(f".{theirs}")
        if rest.startswith(f"{theirs}."):
            return f"{before}{ours}.", rest.removeprefix(f"{theirs}.")
    for ours in ("m", "v"):
        if rest.startswith(f"{ours}.") and before == BEFORE:
            return f"{BEFORE}{ours}.", rest.removeprefix(f"{ours}.")
    for prefix, kind in NEW.items():
        if name.startswith(prefix):
            return UPDATE + kind, name.removeprefix(prefix).removesuffix(".grad")
    if name.startswith(GRAD):
        return GRAD, name.removeprefix(GRAD)
    return (GRAD, name.removesuffix(".grad")) if name.endswith(".grad") else None


def learning(entries: Iterable[Entry]) -> bool:
    """Whether some of the claims are about learning: losses, gradients or an update."""
    return any(about_learning(entry.name) for entry in entries)


def about_learning(name: str) -> bool:
    """Whether a name is about losses of a text, gradients or an update."""
    plain = name.strip().partition("[")[0]
    return plain in LOSSES or learned_from(plain) is not None


def of_all_texts(address: str) -> bool:
    """Whether a step of learning belongs to all texts of a batch together."""
    return address == "mean_loss" or address.startswith((GRAD + WEIGHT, UPDATE, BEFORE))


def rule_of(sheet: Sheet) -> Rule | None:
    """The optimizer that the sheet names."""
    return None if sheet.optimizer is None else read_rule(sheet.optimizer, sheet.source)


def learning_plan(plan: Plan, rule: Rule | None, claimed: Container[str]) -> Plan:
    """The plan with its backward pass, and with the optimizer's step where there is one."""
    backward = passing_on(adjoint(plan), claimed)
    return backward if rule is None else update(backward, rule)


def every_name(plan: Plan, rule: Rule | None) -> Plan:
    """The plan with all steps of learning that claims may name; without a rule, of any."""
    backward = adjoint(plan)
    rule = rule or Rule("adamw", clip=Fraction(1), step=2)
    return update(passing_on(backward, backward.aliases), rule)


def passing_on(plan: Plan, claimed: Container[str]) -> Plan:
    """The plan with a line for each claimed gradient that is another one, passed on as it is.

    Both sides of a sum have the sum's gradient, and a port may get one of them wrong.  What flows
    back from that side then reads its own line.  It may have been cast on its way.
    """
    steps = {step.address: step for step in plan}
    aliases = dict(plan.aliases)
    for alias, to in plan.aliases.items():
        of = steps.get(alias.removeprefix(GRAD))
        if not alias.startswith(GRAD) or of is None or alias not in claimed:
            continue
        del aliases[alias]
        for step in _flowing_from(of, steps.values()):
            reads = {role: alias if read == to else read for role, read in step.inputs.items()}
            steps[step.address] = replace(step, inputs=reads)
        line = Step(alias, "total", {"term_1": to}, *steps[to].sides, "as it is")
        steps = {
            address: step
            for before in steps.values()
            for address, step in ((before.address, before), (alias, line))
            if address != alias or before.address == to
        }
    return replace(plan, steps=tuple(steps.values()), aliases=aliases)


def _flowing_from(of: Step, steps: Iterable[Step]) -> list[Step]:
    """The steps that work out what flows back from a step to what it reads."""
    alone = {GRAD + read for read in of.reads}
    via = (f".via.{of.address}", f".via.{of.address}.heads")
    return [
        step
        for step in steps
        if (step.address in alone and step.op != "total")
        or step.address.endswith(via)
        or step.address.startswith(f"{GRAD}{of.address}.")
    ]


# ------------------------------------------------------------------ targets


def names_targets(sheet: Sheet) -> bool:
    """Whether the sheet says what should come after each position."""
    return sheet.targets is not None or sheet.labels is not None


def targets_of(sheet: Sheet, model: Model, row: Row, goal: int | None) -> tuple[int, ...] | None:
    """The next id after each position; None where the gradients are those of the last loss.

    `targets` are the next ids.  `labels` are the ids themselves, as transformers has them: each
    position is judged by the next one's.  Without either, the text is shifted by one.
    """
    length = len(row.tokens)
    given = _of_row(sheet, sheet.targets, row)
    if given is None and (labels := _of_row(sheet, sheet.labels, row)) is not None:
        aligned = model.in_place or model.spec.encoder is not None  # each at its own position
        given = labels if aligned else (*labels[1:], UNCOUNTED)
    if given is None:
        named = {entry.name.strip().partition("[")[0] for entry in sheet.entries}
        if goal is not None and not named & set(LOSSES):
            return None
        given = following_ids(model, row.tokens, goal)
    inside = given[row.before : row.before + length] if len(given) > length else given
    if all(id < 0 for id in inside):
        raise sheet.wrong(
            _("there is no token to predict in this text"), expected=_("two tokens, or a target")
        )
    return tuple(UNCOUNTED if id < 0 else id for id in inside)


def _of_row(sheet: Sheet, given: Any, row: Row) -> tuple[int, ...] | None:
    """The ids that are given for a row of the batch, padding included."""
    if given is None:
        return None
    rows = np.atleast_2d(given)
    if row.place >= len(rows) or rows.shape[1] != row.width:
        raise sheet.wrong(
            _("the targets do not fit the text"),
            expected=_("one for each position"),
            found=" × ".join(map(str, rows.shape)),
        )
    ids = [int(id) for id in rows[row.place]]
    counted = [*ids[: row.before], *ids[row.width - row.behind :]]
    if any(id >= 0 for id in counted):
        raise sheet.wrong(
            _("the loss counts what comes after padding"),
            expected=_("targets of -1 at padding"),
            found=str(next(id for id in counted if id >= 0)),
        )
    return tuple(ids)


# ------------------------------------------------------------------ texts side by side


def side_by_side(
    texts: Sequence[ClaimedText], model: Model, axes: Mapping[str, tuple[str, ...]]
) -> ClaimedText:
    """One claimed text of several; `axes` are those of the claimed steps."""
    first = texts[0]
    if first.source is not None:
        raise InputError(
            _("gradients of several texts are not judged where each has a source"),
            expected=_("one text and its source"),
            found=amount(len(texts), later("1 text"), later("{count} texts")),
        )
    lengths = tuple(len(text.tokens) for text in texts)
    kinds = tuple(kind for text in texts for kind in text.segments or (0,) * len(text.tokens))
    positions = tuple(
        place for text in texts for place in (text.positions or range(len(text.tokens)))
    )
    targets = None
    if first.targets is not None:
        targets = tuple(id for text in texts for id in text.targets or ())
    claims: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    start = 0
    for text, length in zip(texts, lengths, strict=True):
        for claim in text.claims:
            of_step = axes.get(claim.address, ())
            moved = replace(claim, index=_moved(claim.index, of_step, start, length))
            claims[claim.address, claim.name].append(moved)
        start += length
    together = [
        each
        for (address, _name), parts in claims.items()
        for each in _as_one(parts, axes.get(address, ()), lengths)
    ]
    return replace(
        first,
        text="\n".join(text.text for text in texts),
        tokens=tuple(id for text in texts for id in text.tokens),
        claims=tuple(together),
        positions=positions,
        segments=kinds if any(text.segments is not None for text in texts) else None,
        masks=tuple(
            map(_block_diagonal, zip(*(_masks(text, model) for text in texts), strict=True))
        ),
        padding=(0, 0),
        targets=targets,
        lengths=lengths,
    )


def _moved(index: Index, axes: tuple[str, ...], start: int, length: int) -> Index:
    """The index in the texts' common positions."""
    if not any(axis in POSITIONS for axis in axes):
        return index
    places: list[int | slice] = []
    for at, axis in enumerate(axes):
        place = index[at] if at < len(index) else slice(None)
        if axis in POSITIONS:
            if isinstance(place, slice):
                low, high, _step = place.indices(length)
                place = slice(start + low, start + high)
            else:
                place += start
        places.append(place)
    return tuple(places)


def _as_one(
    parts: Sequence[Claim], axes: tuple[str, ...], lengths: tuple[int, ...]
) -> Sequence[Claim]:
    """The claims about all rows as one claim, 0 where texts meet; as they are where some lack."""
    held = [at for at, axis in enumerate(axes) if axis in POSITIONS]
    whole = len(parts) == len(lengths) and all(
        claim.claimed is None and np.ndim(claim.values) == len(axes)
        and all(claim.values.shape[at] == length for at in held)
        for claim, length in zip(parts, lengths, strict=True)
    )  # fmt: skip
    if not held or not whole:
        return parts
    shape = list(parts[0].values.shape)
    for at in held:
        shape[at] = sum(lengths)
    values = np.zeros(shape)
    slack = np.zeros(shape)
    for claim in parts:
        values[claim.index] = claim.values
        slack[claim.index] = claim.slack
    return [replace(parts[0], index=(), values=values, slack=slack if slack.any() else 0.0)]


def _masks(text: ClaimedText, model: Model) -> tuple[Mask, ...]:
    """The masks of a text's blocks: the claimed ones, or the model's own."""
    if text.masks is not None:
        return text.masks
    read = beside(text.source, text.segments)
    plan = forward.plan(model.spec, len(text.tokens), positions=text.positions, **read)
    layers = range(len(model.spec.blocks))
    return tuple(plan[f"block.{layer}.attn.scores"].attributes["mask"] for layer in layers)


def _block_diagonal(masks: Sequence[Mask]) -> Mask:
    """One mask: no text looks into another."""
    size = sum(len(mask) for mask in masks)
    rows: list[tuple[bool, ...]] = []
    start = 0
    for mask in masks:
        for row in mask:
            rows.append((*[False] * start, *row, *[False] * (size - start - len(row))))
        start += len(mask)
    return tuple(rows)
