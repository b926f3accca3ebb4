"""Words for what several changes have in common: places, and what is done to each row or column."""

from __future__ import annotations

ROWS = "(each|every|by|own|per|of a|each of the) (row|position|query|queries)"
COLUMNS = "(each|every|by|own|per|of a|each of the) (channel|column|entry|output|hidden unit)"
SCALED = "(factor|×|times|scal|multipl)"
MOVED = "(added|shift|constant|offset|same)"

BY_ROW = f"{ROWS}.*{SCALED}|{SCALED}.*{ROWS}"
BY_COLUMN = f"{COLUMNS}.*{SCALED}|{SCALED}.*{COLUMNS}"
ROW_SHIFT = f"{ROWS}.*{MOVED}|{MOVED}.*{ROWS}"
COLUMN_SHIFT = f"{COLUMNS}.*{MOVED}|{MOVED}.*{COLUMNS}"
TO_ALL_ROWS = f"{ROWS}.*{MOVED}|{MOVED}.*{ROWS}"

FIRST_ROW = r"(row|position)s? (only )?0\b|first (row|position|token)"
LAST_ROW = r"(row|query|queries|position)s? (only )?15\b|last (row|query|position)"
MOVES = "(shift|roll|moved|off|next|neighbour|before|previous|rotat)"
MINUS = "(subtract|minus|negat|sign|{-1}|{-2})"
TWICE = "(twice|again|doubl|{2})"


def zero(place: str) -> str:
    """Words for a place where zeros are."""
    return rf"({place}).*(\b0\b|zero)|(\b0\b|zeros?).*({place})"


def places(one: int, other: int) -> tuple[str, str]:
    """Words for two things that have changed places: how, and where."""
    changed = "(places|exchang|swap|order)"
    both = rf"\b{one}\b.*\b{other}\b"
    arrows = rf"\b{one} (←|is) .*{other}\b|\b{other} (←|is) .*{one}\b"
    return rf"{both}.*{changed}|{changed}.*{both}|{arrows}", both


def head(number: int) -> str:
    """Words for one head."""
    return rf"heads? (only )?{number}\b"


def position(number: int) -> str:
    """Words for one position."""
    return rf"(positions?|rows?|query|queries|keys?|slots?|tokens?) (only )?{number}\b"


def channel(number: int) -> str:
    """Words for one entry of a row."""
    named = "channels?|columns?|entry|entries|outputs?|units?|rows?|tokens?|logits?"
    return rf"({named}) (only )?{number}\b|[\[,]{number}\]"
