"""What an engine's errors look like, in sentences, and where to look next."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

import numpy as np

from byhand.document.compose.score.saying import amount, nats, times
from byhand.document.parts import Finding, LeftOut, Part
from byhand.language import _
from byhand.scoring.likeness import BEYOND, LIKE, NARROWER, UNCLEAR, WIDER, Likeness
from byhand.scoring.scored import Against, Scored
from byhand.scoring.summaries import worst

FINE = ("float64", "float32")  # no engine works in a finer one
FAR = 100  # times as wide: how much more is of no interest


def findings(scored: Scored, against: Against) -> Finding:
    """One engine: which rounding its errors look like, and what does not fit."""
    told = [*map(_compared, against.likenesses), *_beyond(scored, against), *_lean(against)]
    told += [_doubt(against)] if _doubtful(against) else []
    told += against.engine.findings
    errors = _("errors of {engine}").format(engine=against.name)
    return Finding(f"{errors}: {_lead(against)}", tuple(told))


def _lead(against: Against) -> str:
    """The sentence that the numbers carry, and no more."""
    if not against.summary.count:
        return _("nothing of the log can be compared with these tokens")
    if not against.likenesses:
        return _("there is no run to compare them with")
    if against.summary.largest == 0:
        return _("every log-probability is the true one")
    kinds = {one.format: one.kind for one in against.likenesses}
    if UNCLEAR in kinds.values() and not against.alike:
        return _("the numbers cannot tell whether they are those of rounding")
    if against.alike:
        names = _listed([one.format for one in against.alike])
        if _odd(against):
            return _("most look like rounding of {formats}, but not all").format(formats=names)
        return _("they look like rounding of {formats}").format(formats=names)
    wider = [format for format, kind in kinds.items() if kind == WIDER]
    if len(wider) == len(kinds):
        return _("they are wider than rounding of {formats}").format(formats=_listed(wider))
    narrower = [format for format, kind in kinds.items() if kind == NARROWER]
    if not wider:
        return _("they are narrower than rounding of {formats}").format(formats=_listed(narrower))
    return _("they are wider than rounding of {wider}, narrower than of {narrower}").format(
        wider=_listed(wider), narrower=_listed(narrower)
    )


def _odd(against: Against) -> bool:
    """Whether something does not fit the format that the errors look like."""
    return bool(against.summary.impossible) or any(
        len(one.beyond) or one.biased for one in against.alike
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def _compared(one: Likeness) -> str:
    """The statistic for one format, with its interval."""
    if one.kind == UNCLEAR and one.ratio != one.ratio:
        return _("beside {format}: {count} tokens are too few to tell").format(
            format=one.format, count=one.count
        )
    if one.low > FAR:
        return _("beside {format}: wider, more than {count} times as wide").format(
            format=one.format, count=FAR
        )
    text = {
        LIKE: _("beside {format}: alike, {ratio} as wide ({interval})"),
        WIDER: _("beside {format}: wider, {ratio} as wide ({interval})"),
        NARROWER: _("beside {format}: narrower, {ratio} as wide ({interval})"),
        UNCLEAR: _("beside {format}: unclear, {ratio} as wide ({interval})"),
    }[one.kind]
    interval = _("95 in 100: {low} to {high}").format(low=amount(one.low), high=amount(one.high))
    return text.format(format=one.format, ratio=times(one.ratio), interval=interval)


def _against_which(against: Against) -> Likeness | None:
    """The format beside which single errors are judged: the finest alike, else the coarsest."""
    alike = against.alike
    return alike[0] if alike else against.likenesses[-1] if against.likenesses else None


def _beyond(scored: Scored, against: Against) -> Iterator[str]:
    """Errors beyond all that byhand's own run shows."""
    one = _against_which(against)
    if one is None or not len(one.beyond):
        return
    first = scored.token(int(one.beyond[0]))
    text = _(
        "{count} of {all} errors are over {factor} times the largest of byhand's own {format} "
        "run; the first is at position {position} of text {text} ({error})"
    )
    yield text.format(
        count=len(one.beyond), all=against.summary.count, factor=f"{BEYOND:g}", format=one.format,
        position=first.position, text=first.text, error=nats(first.errors[against.name]),
    )  # fmt: skip


def _lean(against: Against) -> Iterator[str]:
    one = _against_which(against)
    if one is not None and one.biased:
        low, high = one.lean
        text = _("they lean to one side: the median is {low} to {high} (95 in 100)")
        yield text.format(low=nats(low), high=nats(high))


def _doubtful(against: Against) -> bool:
    return against.summary.doubt > against.summary.spread / 10 > 0


def _doubt(against: Against) -> str:
    return _("the true values are known to {radius} only: more digits would tell more").format(
        radius=amount(against.summary.doubt, 1)
    )


# ------------------------------------------------------------------ where to look next


def next_look(scored: Scored, against: Against) -> Iterator[Part]:
    """The dump to make, and the check that reads it."""
    if against.engine.in_doubt:
        text = _("first find out what the values of {engine} are: perhaps no natural logarithms")
        yield Finding(text.format(engine=against.name))
        return
    one = _against_which(against)
    places = worst(against.errors, 1)
    if one is None or not len(places) or not against.summary.largest:
        return
    plain = bool(against.alike) and not _odd(against)
    if plain:
        text = _("no error of {engine} is beyond rounding of {format}")
        yield Finding(text.format(engine=against.name, format=one.format))
        if one.format in FINE:
            return
    never = np.flatnonzero(np.isneginf(against.engine.logprobs))
    strange = next((each for each in (one.beyond, never) if len(each)), places)
    token = scored.token(int(strange[0]))
    if plain:
        why = _(
            "if {engine} works in a finer format than {format}, something else is wrong: the "
            "largest error is that of token {position} of text {text}"
        )
    elif strange is never:
        why = _("the first token that {engine} calls impossible is token {position} of text {text}")
    elif strange is one.beyond:
        why = _(
            "the first error of {engine} beyond rounding of {format} is that of token {position} "
            "of text {text}"
        )
    else:
        why = _("the largest error of {engine} is that of token {position} of text {text}")
    why = why.format(
        engine=against.name, format=one.format, position=token.position, text=token.text
    )
    dump = _(
        "to see where it begins, dump tokens 0 to {last} of that text from the engine: "
        "{file}, with input_ids, hidden states and logits"
    ).format(last=token.position - 1, file="dump.safetensors")
    # no --precision: the dump says what it was worked out in, and the errors are only like a format
    command = f"byhand check {quote(scored.called)} dump.safetensors"
    yield Finding(why, (dump,))
    yield LeftOut(_("then"), command)
