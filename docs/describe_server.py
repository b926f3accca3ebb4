"""Writes the tables of docs/serve.md: called by cog, from the tables that the server uses."""

from __future__ import annotations

import json
from pathlib import Path

from byhand.editions import TOY_PARAMETERS
from byhand.serving.app import PAGE
from byhand.serving.limits import MIB, Limits
from byhand.serving.openapi import REFUSALS
from byhand.serving.page.words import words
from byhand.serving.questions import ASKED
from byhand.serving.tables import MOST_LISTED, WINDOW

RECORD = Path(__file__).parent / "serve-cost.json"


def questions() -> None:
    """Every question with its keys."""
    print("| question | takes | gives |")
    print("|---|---|---|")
    for name, question in ASKED.items():
        needed = [f"**{key}**" for key in question.needed]
        print(f"| `{name}` | {', '.join([*needed, *question.possible])} | {question.about} |")


def keys() -> None:
    """Every key of the page, as its help has them."""
    said = words("en")
    table = (PAGE / "keys.js").read_text("utf-8").partition("const KEYS = ")[2].partition(";")[0]
    print("| key | |")
    print("|---|---|")
    for pressed, what in json.loads(f'{{"keys": {table}}}')["keys"]:
        joined = (" + " if pressed[0] == "Ctrl" else " ").join(f"`{key}`" for key in pressed)
        print(f"| {joined} | {said[what]} |")


def sizes() -> None:
    """Up to which sizes what can be done."""
    print(
        f"Models of up to {TOY_PARAMETERS:,} parameters can be edited; larger ones are looked at."
    )
    print(f"Weights of more than {MOST_LISTED:,} numbers come as windows of {WINDOW} by {WINDOW}.")


def statuses() -> None:
    """Every status that is not 200."""
    print("| status | |")
    print("|---|---|")
    for status, about in REFUSALS.items():
        print(f"| {status} | {about} |")


def limits() -> None:
    """What a request may take."""
    at = Limits()
    rows = {
        "a request": f"{at.body // MIB} MiB, tables at most {at.depth} deep",
        "its head, its body": f"there within {at.head_seconds:g} and {at.body_seconds:g} seconds",
        "the work on it": f"{at.work_seconds:g} seconds, {at.memory // MIB:,} MiB "
        "(where the system can count them: Linux)",
        "requests at once": f"{at.workers} in work, {at.waiting} waiting, each for at most "
        f"{at.wait_seconds:g} seconds",
        "connections": f"{at.connections}; left after {at.idle_seconds:g} seconds without a "
        f"request, or {at.unread_seconds:g} with an answer that nobody reads",
        "answers that are kept": f"{at.kept // MIB} MiB together, {at.kept_each // MIB} MiB each",
    }
    print("| what | limit |")
    print("|---|---|")
    for what, limit in rows.items():
        print(f"| {what} | {limit} |")


def measured(part: str) -> None:
    """A table of what was measured."""
    rows = json.loads(RECORD.read_text("utf-8"))[part]
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")
