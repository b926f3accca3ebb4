"""Rows of answers in which every two answers meet that can: a pairwise cover, made greedily.

`forbidden` names pairs of answers that exclude each other.  `silences` names answers under which
other questions have no effect: what is answered to those does not count as met in that row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

Answer = tuple[str, str]  # a question and the answer to it
Pair = frozenset[Answer]
Row = dict[str, str]


def met(row: Mapping[str, str], silences: Mapping[Answer, Sequence[str]]) -> set[Pair]:
    """The pairs of answers of a row that both have an effect."""
    quiet = {question for answer in row.items() for question in silences.get(answer, ())}
    heard = [answer for answer in row.items() if answer[0] not in quiet]
    return set(map(frozenset, combinations(heard, 2)))


def possible(
    questions: Mapping[str, Sequence[str]],
    forbidden: set[Pair],
    silences: Mapping[Answer, Sequence[str]],
) -> set[Pair]:
    """Every pair of answers that can meet."""
    answers = [(question, answer) for question, known in questions.items() for answer in known]
    pairs = set(map(frozenset, combinations(answers, 2)))
    return {
        pair
        for pair in pairs - forbidden
        if len({question for question, _answer in pair}) == 2
        and not any(other[0] in silences.get(one, ()) for one in pair for other in pair)
    }


def cover(
    questions: Mapping[str, Sequence[str]],
    forbidden: set[Pair],
    silences: Mapping[Answer, Sequence[str]],
    *,
    seed: int,
    among: int = 8,
) -> list[Row]:
    """Rows in which all possible pairs meet; always the same ones.

    Each row begins with two answers that have not met, and takes for every other question the
    answer that meets the most new ones; the best of some such rows is kept.
    """
    random = Random(seed)
    left = possible(questions, forbidden, silences)
    rows: list[Row] = []
    while left:
        tries = [_row(questions, forbidden, left, random) for _try in range(among)]
        best = max(tries, key=lambda row: len(met(row, silences) & left))
        left -= met(best, silences)
        rows.append(best)
    return rows


def _row(
    questions: Mapping[str, Sequence[str]], forbidden: set[Pair], left: set[Pair], random: Random
) -> Row:
    row: Row = dict(random.choice(sorted(left, key=sorted)))
    rest = [question for question in questions if question not in row]
    random.shuffle(rest)
    for question in rest:
        fitting = [
            answer
            for answer in questions[question]
            if not any(frozenset({(question, answer), other}) in forbidden for other in row.items())
        ]
        random.shuffle(fitting)
        row[question] = max(fitting, key=lambda answer: _gain((question, answer), row, left))
    return row


def _gain(answer: Answer, row: Row, left: set[Pair]) -> int:
    return sum(frozenset({answer, other}) in left for other in row.items())
