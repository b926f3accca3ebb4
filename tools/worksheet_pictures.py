"""Pictures of a worksheet as it is printed, and of the page with feedback that a student gets.

    python tools/worksheet_pictures.py

docs/pictures/worksheet-after.png and feedback.png, and the same in Spanish.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

import byhand
from byhand import worksheets
from byhand.document.compose.worksheet import Questioning, Worksheet, claims_text
from byhand.document.media.typst.worksheet import worksheet_source
from byhand.document.media.typst.writing import compiler, design
from byhand.feedback import write_feedback
from byhand.language import speaking

sys.path.append(str(Path(__file__).parent))

from chromium import NoBrowser, launched

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SCREEN = {"width": 960, "height": 640}
PAGES, SHARPNESS, GAP = 2, 78, 16  # pages side by side, dots an inch, pixels between them
COLOURS = 64
LANGUAGES = (("en", ""), ("es", "-spanish"))
SLIP = ("scores", ("1.100", "-0.844", "-0.024", "0.200"))  # not scaled


def sheet_of(student: str) -> Worksheet:
    trace = byhand.trace("journey")
    asking = Questioning.asked(level="row", students=(student,))
    made = worksheets.make_worksheet(trace, asking, "journey")
    return worksheets.replace(made, student=student)


def printed(sheet: Worksheet) -> Image.Image:
    """The first pages, side by side, cut where the paper is empty."""
    with TemporaryDirectory() as place:
        source = Path(place) / "sheet.typ"
        source.write_text(design() + worksheet_source(sheet), "utf-8")
        raw = compiler().compile(str(source), format="png", ppi=SHARPNESS)
    pages = [Image.open(BytesIO(page)).convert("RGB") for page in raw[:PAGES]]
    width, height = pages[0].size
    whole = Image.new("RGB", (PAGES * width + (PAGES - 1) * GAP, height), "#8a8f98")
    for at, page in enumerate(pages):
        whole.paste(page, (at * (width + GAP), 0))
    return whole


def filled_in(sheet: Worksheet) -> str:
    """The key of the sheet with a slip in it."""
    address, numbers = SLIP
    blanks = tuple(
        worksheets.replace(blank, answers=numbers) if f".{address}[" in blank.address else blank
        for blank in sheet.blanks
    )
    text = claims_text(worksheets.replace(sheet, blanks=blanks), filled=True)
    start, _student, rest = text.partition("\nstudent: ")
    return f"{start}\nstudent: {sheet.student}\n{rest.partition(chr(10))[2]}"


def take_feedback(browser: Any, sheet: Worksheet, name: str) -> None:
    with TemporaryDirectory() as place:
        answers, folder = Path(place) / sheet.file, Path(place) / "feedback"
        answers.write_text(filled_in(sheet), "utf-8")
        pages = write_feedback(byhand.check("journey", answers), folder)
        window = browser.new_page(viewport=SCREEN)
        window.goto(next(page for page in pages if page.stem.startswith("feedback")).as_uri())
        window.screenshot(path=str(FOLDER / f"{name}.png"))


def main() -> int:
    for language, ending in LANGUAGES:
        with speaking(language):
            sheet = sheet_of("Ana")
            picture = printed(sheet).quantize(COLOURS, dither=Image.Dither.NONE)
            picture.save(FOLDER / f"worksheet-after{ending}.png", optimize=True)
            try:
                with launched() as browser:
                    take_feedback(browser, sheet, f"feedback{ending}")
            except NoBrowser as lacking:
                print(f"no pictures of feedback: {lacking}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
