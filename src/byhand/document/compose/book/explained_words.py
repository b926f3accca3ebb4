"""The words of the chapter on what the numbers say: names of sources, and blocks of `byhand
explain` as parts of a book, with their numbers as the language writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.parts import STRONG, Block, Drawing, Grid, Told
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.wording import part_name, quoted
from byhand.document.explained_parts import ExplainedPart, Finding, Picture, TextTable
from byhand.document.numerals import localised, with_decimal_sign
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.sources import Source

_MINUS = re.compile(r"(?<![\w.\]-])-(?=\d)")
_DESCRIBED = re.compile(r"<desc[^>]*>(.*?)</desc>", re.DOTALL)


def written(text: str) -> str:
    """A sentence with its numbers as the language writes them.

    >>> written("most is taken by the MLP (-2.4926)")
    'most is taken by the MLP (−2.4926)'
    """
    return with_decimal_sign(_MINUS.sub("−", text))


def stopped(sentence: str) -> str:
    """A sentence with the full stop that a page wants and a terminal does not."""
    return sentence if sentence.endswith((".", ":", "?", "…")) else sentence + "."


def source_words(scope: Scope, source: Source) -> str:
    """A source in words: the embedding of b, head 2 of block 0."""
    from byhand.explaining.ablation import Part

    spec = scope.found.model.spec
    match source.kind:
        case "token":
            trace = scope.found.trace
            token = trace.token(trace.tokens[scope.found.position])
            return _("the embedding of {token}").format(token=quoted(token))
        case "position":
            return _("position {position}").format(position=scope.found.position)
        case "head" | "mlp":
            index = source.index[0] if source.index else None
            return part_name(Part(source.kind, source.layer, index), spec)
        case "bias" | "norm" if source.layer is not None:
            trip = "attn" if ".attn." in source.address else "mlp"
            text = _("{part}: its bias") if source.kind == "bias" else _("{part}: its norm's bias")
            return text.format(part=part_name(Part(trip, source.layer), spec))
        case "bias":
            return _("the unembedding: its bias")
        case "norm":
            return _("the final norm: its bias")
        case _:
            return ""


def parts_of(blocks: Iterable[Block]) -> Iterator[ExplainedPart]:
    """Blocks of `byhand explain` as parts: a lead with what belongs to it, tables, drawings."""
    told: list[Told] = []
    for block in blocks:
        if isinstance(block, Told):
            if told and block.kind == "lead":
                yield _finding(told)
                told = []
            told.append(block)
            continue
        if told:
            yield _finding(told)
            told = []
        if isinstance(block, Grid):
            yield text_table(block)
        elif isinstance(block, Drawing) and block.svg:
            yield picture(block.svg)
    if told:
        yield _finding(told)


def _finding(told: list[Told]) -> Finding:
    texts = [stopped(written(each.text)) for each in told]
    unknown = any(each.kind == "open" for each in told)
    if told[0].kind == "lead":
        return Finding(texts[0], tuple(texts[1:]), unknown)
    return Finding("", tuple(texts), unknown)


def text_table(grid: Grid) -> TextTable:
    """A table of texts; a cell that has a number as part of its words keeps its words."""
    return TextTable(
        grid.title,
        grid.heads,
        tuple(
            tuple(
                localised(cell) if right else written(cell)
                for cell, right in zip(row, grid.right, strict=True)
            )
            for row in grid.rows
        ),
        grid.right,
        grid.strong,
        grid.note.removeprefix(STRONG).strip(),
        grid.left_out,
    )


def picture(svg: str) -> Picture:
    """A drawing, with the words it brings along for those who do not see it."""
    from html import unescape

    found = _DESCRIBED.search(svg)
    return Picture(svg, unescape(found[1]) if found else "")
