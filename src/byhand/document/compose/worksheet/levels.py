"""The lines of a level: one row of attention, one block, the whole pass, at the last position.

Such a sheet follows one position line by line.  It prints the rows that these lines read and that
are not asked for, keys and values of earlier positions above all, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from byhand.address import read_address
from byhand.document.compose.worksheet.sheet import BLOCK, MISTAKE, ROW, Blank
from byhand.document.parts import NumberRow, NumberTable
from byhand.plan import WEIGHT, Plan, Step

POSITIONS = ("pos", "query")
HEADS = ("head", "kv_head")
FIRST_BLOCK = "block.0."
OF_A_ROW = ("scores", "softmax", "mix")  # operations of the level ROW
COPYING = ("merge_heads", "split_heads")
EVERY_POSITION = (("scores", "k"), ("mix", "v"))  # inputs that are read at all positions

Place = tuple[int | None, int | None]  # a row's position and head, where it has them


def place_of(address: str, plan: Plan) -> Place:
    """The position and the head that a number stands at."""
    found = read_address(address)
    step = plan[found.name]
    at = dict(zip(step.axes, found.index, strict=False))
    position = next((at[axis] for axis in POSITIONS if axis in at), None)
    head = next((at[axis] for axis in HEADS if axis in at), None)
    return (
        position if isinstance(position, int) else None,
        head if isinstance(head, int) else None,
    )


def in_level(blank: Blank, level: str, plan: Plan) -> bool:
    """Whether a line belongs to the level: those of the last position."""
    step = plan[read_address(blank.places[0]).name]
    position, head = place_of(blank.places[0], plan)
    if step.stage != "forward" or position not in (None, plan.length - 1):
        return False
    if level == ROW:
        return step.address in _row_of_attention(plan) and head in (None, 0)
    return level not in (BLOCK, MISTAKE) or step.address.startswith(FIRST_BLOCK)


def _row_of_attention(plan: Plan) -> set[str]:
    """The steps of the first attention: its queries, scores, weights and their mix."""
    inside = [step for step in plan if step.address.startswith(FIRST_BLOCK)]
    found = {step.address for step in inside if step.op in OF_A_ROW}
    queries = {step.inputs.get("q", "") for step in inside if step.op == "scores"}
    return found | {address for address in queries if plan[address].op not in COPYING}


def rows_read(blanks: Iterable[Blank], plan: Plan) -> dict[str, set[Place]]:
    """Step → the rows of it that some lines read; (None, None) stands for all of them."""
    found: dict[str, set[Place]] = {}
    for blank in blanks:
        step = plan[read_address(blank.places[0]).name]
        position, head = place_of(blank.places[0], plan)
        position = plan.length - 1 if position is None else position  # a loss is the last one's
        for role, read in step.inputs.items():
            if read.startswith(WEIGHT):
                continue
            place = (None if (step.op, role) in EVERY_POSITION else position, head)
            found.setdefault(plan[read].address, set()).add(place)
    return found


def is_read(address: str, reading: dict[str, set[Place]], plan: Plan) -> bool:
    """Whether a number stands in a row that is read."""
    step = plan[read_address(address).name]
    position, head = place_of(address, plan)
    return any(
        (wanted is None or position is None or wanted == position)
        and (several(step) or of is None or head is None or of == head)
        for wanted, of in reading.get(step.address, ())
    )


def several(step: Step) -> bool:
    """Whether its heads are others than those that read it: keys may be shared by heads."""
    return "kv_head" in step.axes


def only_rows(table: NumberTable, wanted: Collection[str]) -> NumberTable:
    """The table with the rows that have a number of `wanted` in them."""
    return replace(table, rows=tuple(_rows(table.rows, wanted)))


def _rows(rows: Iterable[NumberRow], wanted: Collection[str]) -> Iterator[NumberRow]:
    for row in rows:
        if any(number.address in wanted for number in row.numbers):
            yield row
