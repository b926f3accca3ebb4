"""What is true of a sentence about a change: by its words, and by what it predicts.

Two judges that know nothing of each other.  The words were written down with the change, before any
check was run.  The prediction needs no words: a cause is an edited plan, and a true one gives what
the port gives for a text that the diagnosis has never seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from benchmarks.unlisted.changes import Part
from byhand.checking.replay import Line, Replay
from byhand.errors import ByhandError
from byhand.numbers.allowed import Judged
from byhand.plan import Plan
from byhand.worked import Missing

CLOSE = 2e-3  # how far a number in a sentence may be from the true one, relatively
LEAST = 1e-12
PREDICTED = 3.0  # × the usual rounding error, as a root mean square: what a true cause leaves
CLEARLY = 4.0  # factor by which a cause must leave less than the model does
OWN = re.compile(r";[^;]*\bthe (?:model|file|claims?|plan)\b.*", re.DOTALL)  # what should be
AND = re.compile(r"; and with that,?")  # between two mistakes in one sentence
NUMBER = re.compile(
    r"(?<![\w.√/])(?P<sign>[-−]?)(?:(?P<over>\d+(?:\.\d+)?)/)?(?P<root>√?)\(?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?![\d\]])|\d+(?:\.\d+)?(?:e[-+−]?\d+)?)(?!\.?\d)(?!\])?"
)
LISTED = re.compile(r"\b(?P<word>[a-z]+?)s? (?P<numbers>\d+(?:(?:, and |, | and )\d+)+)(?!\.?\d)")
AXES = {
    "pos": "position",
    "d_ff": "channel",
    "d_model": "channel",
    "d_head": "entry",
    "hidden unit": "channel",
    "vocab": "token",
    "tokens? of the vocabulary": "token",
}
ONE_LESS = re.compile(r"(?P<over>1/\()?\b1 [-−] (?P<part>0?\.\d+)(?(over)\))")
WANTED = re.compile(r"\{(-?\d+(?:\.\d+)?(?:e-?\d+)?)\}")


def says(sentence: str, patterns: Iterable[str], ids: list[int]) -> bool:
    """Whether a sentence says one of these; <3> in a pattern is the id of token 3."""
    halves = [OWN.sub("", half) for half in AND.split(sentence)]
    return any(_says(half, pattern, ids) for half in halves for pattern in patterns)


def _says(sentence: str, pattern: str, ids: list[int]) -> bool:
    sentence = f"{sentence}\n{_worded(sentence)}"
    pattern = re.sub(r"<(\d+)>", lambda m: rf"\b{ids[int(m[1])]}\b", pattern)
    wanted = [float(each) for each in WANTED.findall(pattern)]
    marked = NUMBER.sub(lambda match: _marked(match, wanted), sentence)
    pattern = WANTED.sub(lambda match: f"⟨{float(match[1])!r}⟩".replace(".", r"\."), pattern)
    return re.search(pattern, f"{marked}\n{sentence}", re.IGNORECASE | re.DOTALL) is not None


def _worded(sentence: str) -> str:
    """The same in the words of the patterns: axes by their names, each number of a list its own."""
    sentence = ONE_LESS.sub(_one_less, sentence)
    for axis, word in AXES.items():
        sentence = re.sub(rf"\b{axis}s? (?=\d)", f"{word} ", sentence)
    return LISTED.sub(_each, sentence)


def _one_less(match: re.Match[str]) -> str:
    """0.9 for 1 − 0.1, and 1.25 for 1/(1 − 0.2)"""
    rest = 1 - float(match["part"])
    return f"{1 / rest if match['over'] and rest else rest:.9g}"


def _each(match: re.Match[str]) -> str:
    numbers: list[str] = re.findall(r"\d+", match["numbers"])
    return ", ".join(f"{match['word']} {number}" for number in numbers)


def _marked(match: re.Match[str], wanted: list[float]) -> str:
    """A number, as ⟨0.9⟩ if it is close to a wanted one."""
    value = float(Fraction(match["digits"].replace(",", "").replace("−", "-")))
    value = value**0.5 if match["root"] else value
    if match["over"]:
        value = float(match["over"]) / value if value else 0.0
    value = -value if match["sign"] else value
    for each in wanted:
        if abs(value - each) <= CLOSE * abs(each) + LEAST * (not each):
            return f"⟨{each!r}⟩"
    return match[0]


def tells(sentence: str, part: Part, ids: list[int]) -> bool:
    """Whether a sentence says how the mistake was made."""
    return says(sentence, part.says, ids)


def all_true(sentence: str, parts: Sequence[Part], ids: list[int]) -> bool:
    """Whether a sentence tells mistakes that were made, and no others."""
    return all(any(tells(half, part, ids) for part in parts) for half in AND.split(sentence))


def places(sentence: str, part: Part, ids: list[int]) -> bool:
    """Whether a sentence says, truly, where the mistake is, if not how it was made."""
    return says(sentence, part.where, ids)


def predicts(plan: Plan, replay: Replay, address: str) -> bool:
    """Whether an edited plan gives what the port claims at a step, for a text that is new to it.

    It must leave what rounding usually leaves, and clearly less than the model does.
    """
    line = _whole(replay, address)
    if line is None:
        return False
    model, edited = (_judged(each, replay, line) for each in (replay.plan, plan))
    if model is None or edited is None or edited.follows is False:
        return False
    was, now = (_left(each, line) for each in (model, edited))
    return now <= PREDICTED and now * CLEARLY < was


def _whole(replay: Replay, address: str) -> Line | None:
    lines = replay.lines.get(address, ())
    return next((line for line in lines if not line.claim.index), None)


def _judged(plan: Plan, replay: Replay, line: Line) -> Judged | None:
    try:
        judged = replay.judged(replay.try_edit(plan, line.claim.address), line)
    except (ByhandError, ValueError, IndexError):  # an edit may hold the first text's own numbers
        return None
    return None if isinstance(judged, Missing) else judged


def _left(judged: Judged, line: Line) -> float:
    """The root mean square of what is left, in usual rounding errors; equal numbers leave 0."""
    usual = np.broadcast_to(0.0 if judged.usual is None else judged.usual, line.values.shape)
    with np.errstate(all="ignore"):
        off = np.where(line.values == judged.expected, 0.0, np.abs(line.values - judged.expected))
        times = np.where(off == 0, 0.0, off / np.where(usual > 0, usual, LEAST))
    counted = np.ones(times.shape, dtype=bool) if judged.claimed is None else judged.claimed
    return float(np.sqrt(np.mean(np.square(np.nan_to_num(times, nan=1e9, posinf=1e9)[counted]))))
