"""What llama-perplexity saves for --kl-divergence: all log-probabilities, on a grid of 16 bits.

    8 bytes    "_logits_"
    4 each     the length of a chunk n, the size of the vocabulary v, the number of chunks c
    4·n·c      the tokens of all chunks
    the rest   for each chunk, rows for the second half of its tokens but one: two float32, the step
               of the grid and its lowest value, then v whole numbers of 16 bits (v made even)

A log-probability is lowest + step·q.  One more than 16 below the row's largest is raised to that.
What llama-perplexity prints, perplexities of chunks, has no numbers of tokens.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, logged_text
from byhand.scoring.logs.values import refuse

FORM = "llama-perplexity"
MAGIC = b"_logits_"
HEAD = 20  # bytes
PRINTED = re.compile(
    r"Final estimate: PPL|perplexity: calculating|^\s*\[1\]\d+\.\d+,", re.MULTILINE
)
BIASED = 4  # entries of 16 bits before those of the vocabulary: two float32


def is_printed(text: str) -> bool:
    """Whether a text is what llama-perplexity prints."""
    return PRINTED.search(text[:1_000_000]) is not None


def refuse_printed(path: Path) -> InputError:
    """The error for what llama-perplexity prints."""
    return InputError(
        _("this log has perplexities of chunks and no log-probability of any token"),
        where=str(path),
        expected=_("log-probabilities of tokens"),
        found=_("what llama-perplexity prints"),
        hint=_("llama-perplexity --save-all-logits FILE writes them to a file that byhand reads"),
    )


def read(path: Path, data: bytes) -> tuple[list[LoggedText], list[Finding]]:
    """The chunks of a file as texts; the second half of each has numbers."""
    if len(data) < HEAD:
        refuse(str(path), _("the log is cut off"), _("a head of 20 bytes"), len(data))
    length, size, chunks = (int(n) for n in np.frombuffer(data, "<i4", 3, len(MAGIC)))
    if not (2 <= length < 2**24 and 1 <= size < 2**24 and 0 < chunks < 2**31):
        refuse(
            str(path), _("the log is malformed"),
            _("the length of a chunk, the size of the vocabulary, the number of chunks"),
            [length, size, chunks],
        )  # fmt: skip
    first = length // 2
    rows = length - 1 - first
    row = 2 * ((size + 1) // 2) + BIASED
    whole = HEAD + 4 * length * chunks + 2 * chunks * rows * row
    if len(data) < whole:
        done = max(0, len(data) - HEAD - 4 * length * chunks) // max(1, 2 * rows * row)
        raise InputError(
            _("the log is cut off"),
            where=str(path),
            expected=_("{count} bytes").format(count=f"{whole:,}"),
            found=_("{count} bytes, which hold {chunks} of {all} chunks").format(
                count=f"{len(data):,}", chunks=done, all=chunks
            ),
        )
    tokens = np.frombuffer(data, "<i4", length * chunks, HEAD).reshape(chunks, length)
    if tokens.min() < 0 or tokens.max() >= size:
        refuse(str(path), _("the log is malformed"), _("token ids"), int(tokens.min()))
    grid = np.frombuffer(data, "<u2", chunks * rows * row, HEAD + 4 * length * chunks)
    grid = grid.reshape(chunks, rows, row)
    texts = [_chunk(path, place, tokens[place], grid[place], first) for place in range(chunks)]
    return texts, []


def _chunk(
    path: Path,
    place: int,
    tokens: np.ndarray[tuple[int], np.dtype[np.int32]],
    grid: np.ndarray[tuple[int, ...], np.dtype[np.uint16]],
    first: int,
) -> LoggedText:
    """One chunk: row k is about the token after place first + k."""
    where = _("{file}: chunk {place}").format(file=path, place=place)
    heads = np.ascontiguousarray(grid[:, :BIASED]).view("<f4").astype(np.float64)
    steps, lowest = heads[:, 0], heads[:, 1]
    targets = tokens[first + 1 :]
    codes = grid[np.arange(len(targets)), BIASED + targets].astype(np.float64)
    values = lowest + steps * codes
    logged = [None] * (first + 1) + [float(value) for value in values]
    findings = [
        Finding(
            "first token",
            _("llama.cpp reads <s> in place of the first token where the model asks for it."),
            _("a chunk is cut out of a text"),
            where,
            0,
        ),
        Finding(
            "rounded",
            _("The log keeps 16 bits of each number."),
            _("up to {step:.2g} of each error is the log's own").format(step=steps.max() / 2),
            where,
        ),
    ]
    raised = np.flatnonzero(codes == 0)
    if len(raised):
        says = _("Values at the lowest end of the grid stand for anything below.")
        position = int(first + 1 + raised[0])
        evidence = _("values raised: {count}").format(count=len(raised))
        findings.append(Finding("clipped", says, evidence, where, position))
    return logged_text(
        f"chunk {place}", where, logged, ids=[int(token) for token in tokens], findings=findings
    )
