"""The cost of a book: the time to write it, the time until a page responds, and its size.

`byhand book` is timed from a cold start, in a new process each time.  A page is timed in a new
window of headless Chromium, from opening it to the response to the first key.  The slowest page of
a book counts.  `--record` writes the table of docs/book.md.

    python -m benchmarks.book [--record]
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from chromium import DESKTOP, NoBrowser, launched  # noqa: E402

RECORD = ROOT / "docs" / "book-cost.json"
ROUNDS = 5  # of writing
OPENINGS = 3  # of each page
MODELS = ("tiny", "journey", "abc", "minigpt")
BARS = {"tiny": 2.0, "journey": 3.0}  # seconds until a book is written
OPENED = 1.0  # seconds until a page answers
PAGE = {"tiny": 300_000}  # bytes of a page


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes of one book."""

    model: str
    written: float
    answered: float | None  # of the slowest page; None without a browser
    slowest: str
    largest: int

    def row(self) -> dict[str, str]:
        answered = "" if self.answered is None else f"{self.answered:.2f} s ({self.slowest})"
        return {
            "book": self.model,
            "written in": f"{self.written:.2f} s",
            "a page answers in": answered,
            "largest page": f"{self.largest / 1000:.0f} kB",
        }

    def met(self) -> bool:
        """Whether every target of this book is met."""
        return (
            self.written <= BARS.get(self.model, self.written)
            and (self.answered or 0) <= OPENED
            and self.largest < PAGE.get(self.model, self.largest + 1)
        )


def seconds_to_write(model: str, folder: Path) -> float:
    """Median seconds of `byhand book`, from the start of the process to its end."""
    command = [sys.executable, "-m", "byhand", "book", model, "--out", str(folder)]
    taken = []
    for _round in range(ROUNDS):
        start = perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        taken.append(perf_counter() - start)
    return median(taken)


def seconds_to_answer(browser: Any, page: Path) -> float:
    """Median seconds from opening a page to the passage that the first key leads to."""
    taken = []
    for _opening in range(OPENINGS):
        context = browser.new_context(viewport=DESKTOP)
        window = context.new_page()
        start = perf_counter()
        window.goto(page.as_uri(), wait_until="domcontentloaded")
        window.keyboard.press("j")
        window.wait_for_function("document.activeElement.matches('.passage, .passage *')")
        taken.append(perf_counter() - start)
        context.close()
    return median(taken)


def cost_of(model: str, folder: Path, browser: Any | None) -> Cost:
    written = seconds_to_write(model, folder)
    pages = [path for path in sorted(folder.glob("*.html")) if path.stem != "index"]
    answers = {} if browser is None else {p.stem: seconds_to_answer(browser, p) for p in pages}
    slowest = max(answers, key=lambda name: answers[name], default="")
    return Cost(
        model, written, answers.get(slowest), slowest, max(path.stat().st_size for path in pages)
    )


def measured(browser: Any | None) -> list[Cost]:
    costs = []
    for model in MODELS:
        with TemporaryDirectory() as folder:
            costs.append(cost_of(model, Path(folder), browser))
            print("   ".join(f"{head}: {told}" for head, told in costs[-1].row().items()))
    return costs


def main() -> int:
    try:
        with launched() as browser:
            costs = measured(browser)
    except NoBrowser as lacking:
        print(f"pages are not opened: {lacking}", file=sys.stderr)
        costs = measured(None)
    met = all(cost.met() for cost in costs)
    print(f"bars: {BARS} s to write, {OPENED} s to answer, {PAGE} bytes a page")
    print("all of them are met" if met else "NOT ALL OF THEM ARE MET")
    if "--record" in sys.argv[1:]:
        data = {"rows": [cost.row() for cost in costs]}
        RECORD.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
