"""Causes of a text's lines: which lines are diagnosed, in what order, and what repeats.

A port makes the same mistake wherever it has the same code.  So the first wrong line of each step
is diagnosed in full, and at the other blocks what explained it is tried first.  What repeats is
told once, and a repeated explanation is preferred to one that fits a single line.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from byhand.checking.diagnosis import Diagnosis, diagnosed
from byhand.checking.differences import forgiving
from byhand.checking.ids import next_of_the_text
from byhand.checking.replay import Line, Replay
from byhand.checking.surroundings import Surroundings
from byhand.checking.verdicts import Marked, Suspect, Verdict
from byhand.numbers.allowed import Judged

MOST_WORK = 60_000_000_000  # multiplications for the diagnosis of all lines of a text
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")
ADDRESS = re.compile(r"\bblock\.\d+[\w.]*")
SAME_NUMBER = 0.01  # relative: how far a number may be from block to block
NUMBERS = re.compile(r"[-−+]?\d[\d.,e]*(?:[-−]\d+)?")
Form = tuple[str, str]


def with_causes(
    replay: Replay,
    around: Surroundings,
    lines: Sequence[Marked],
    judged: Callable[[Marked], tuple[Line, Judged]],
    known: Sequence[Form] = (),
) -> list[Marked]:
    """The lines, with causes for those that are wrong or hardly explained by rounding.

    `known` are explanations of other texts, which are tried first.
    """
    found: dict[str, list[Form]] = defaultdict(list)  # by step, whatever the block
    told: dict[int, Marked] = {}
    left = float(MOST_WORK)
    for line in _in_turn(lines):
        step = line.step
        own, verdict = judged(line)
        with forgiving():
            diagnosis = Diagnosis()
            diagnosis = diagnosed(
                replay,
                around,
                own,
                verdict,
                unusual=line.unusual,
                favourites=[kind for kind, _words in (*found[step], *known)],
                work=left,
            )
        left -= diagnosis.work
        causes = diagnosis.causes or (_by_the_text(replay, own) if step == "next" else ())
        told[id(line)] = replace(
            line, suspects=causes, described=diagnosis.described, ask=diagnosis.ask
        )
        found[step] += map(form_of, causes)
    return [told.get(id(line), line) for line in lines]


def _by_the_text(replay: Replay, line: Line) -> tuple[Suspect, ...]:
    """That a person wrote the next token of the text in place of the model's."""
    if not line.claim.by_hand:
        return ()
    found = next_of_the_text(line, replay.text.tokens, replay.text.target)
    return () if found is None else (found,)


def _in_turn(lines: Sequence[Marked]) -> Iterator[Marked]:
    """The wrong lines, then the unusual ones; before both, those whose step was not seen yet."""
    doubtful = [line for line in lines if line.verdict is Verdict.ERROR]
    doubtful += [line for line in lines if line.unusual]
    seen: set[str] = set()
    again = []
    for line in doubtful:
        if line.step in seen:
            again.append(line)
        else:
            seen.add(line.step)
            yield line
    yield from again


def form_of(suspect: Suspect) -> Form:
    """A mistake, whatever its numbers: its kind and its sentence without them."""
    return suspect.kind, NUMBERS.sub("", suspect.sentence)


# ------------------------------------------------------------------------ what repeats


def together(texts: Sequence[Sequence[Marked]]) -> list[list[Marked]]:
    """The lines of all texts; what repeats is counted, preferred, and told once in each text."""
    everywhere = [line for lines in texts for line in lines]
    steps: dict[str, list[Marked]] = defaultdict(list)
    for line in everywhere:
        steps[line.step].append(line)
    counts = {
        step: Counter(kind for line in lines for kind in {each.kind for each in line.suspects})
        for step, lines in steps.items()
    }
    result = []
    for lines in texts:
        sure = [_repeated(line, steps[line.step]) for line in lines]
        weighed = [_weighed(line, steps[line.step], counts[line.step]) for line in sure]
        result.append(_told_once(weighed))
    return result


def _repeated(line: Marked, others: Sequence[Marked]) -> Marked:
    """The line without causes that the same step of other blocks speaks against.

    Where rounding may explain a line, a number that was read off it is weak evidence.  If the step
    is as unusual in other blocks, the same number must explain one of them.
    """
    if line.verdict is Verdict.ERROR or not line.suspects:
        return line
    doubtful = [other for other in others if other.unusual and other is not line]
    if len(doubtful) < 2:
        return line
    kept = tuple(
        each for each in line.suspects
        if not each.evidence.fitted or _found_again(each, doubtful)
    )  # fmt: skip
    return replace(line, suspects=kept)


def _found_again(suspect: Suspect, others: Sequence[Marked]) -> bool:
    """Whether other lines have the same mistake, and all of them with the same numbers."""
    form, own = form_of(suspect), _numbers_of(suspect)
    same = [each for line in others for each in line.suspects if form_of(each) == form]
    return bool(same) and all(
        len(numbers) == len(own) and np.allclose(numbers, own, rtol=SAME_NUMBER, atol=0.0)
        for numbers in map(_numbers_of, same)
    )


def _numbers_of(suspect: Suspect) -> list[float]:
    """The numbers of a sentence, without those of addresses."""
    words = ADDRESS.sub("", suspect.sentence.partition(";")[0])
    found = (each.replace(",", "").replace("−", "-") for each in NUMBER.findall(words))
    return [float(each) for each in found]


def _weighed(line: Marked, others: Sequence[Marked], counts: Counter[str]) -> Marked:
    """The line with the causes that explain most lines of its step, and how many they explain."""
    if not line.suspects or line.claim.by_hand:
        return line
    most = max(counts[each.kind] for each in line.suspects)
    kept = [each for each in line.suspects if counts[each.kind] == most]
    without = sum(other.verdict.follows is True for other in others if _apart(other, line))
    suspects = tuple(
        replace(
            each,
            evidence=replace(
                each.evidence,
                lines=most,
                without=without,
                alike=max(0, each.evidence.alike - (len(line.suspects) - len(kept))),
            ),
        )
        for each in kept
    )
    return replace(line, suspects=suspects)


def _apart(one: Marked, other: Marked) -> bool:
    """Whether two lines of a step belong to different blocks."""
    return one.block is not None and one.block != other.block


def _told_once(lines: Sequence[Marked]) -> list[Marked]:
    """The lines of a text; a mistake repeated in later blocks refers to the first one.

    The first one names all the blocks.
    """
    first: dict[tuple[str, Form], str] = {}
    blocks: dict[str, list[int]] = defaultdict(list)
    told = []
    for line in lines:
        if line.suspects and line.verdict is Verdict.ERROR:
            mistake = (line.step, form_of(line.suspects[0]))
            before = first.setdefault(mistake, line.address)
            line = line if before == line.address else replace(line, like=before)
            block = line.block
            blocks[before] += [] if block is None else [block]
        told.append(line)
    return [
        replace(line, blocks=tuple(blocks[line.address])) if line.address in blocks else line
        for line in told
    ]
