"""The pictures in docs/pictures: of the book (desktop, dark, phone, Spanish, paper), the course and
the page.

    python tools/pictures.py            # all of them
    python tools/pictures.py course     # those whose names begin so

They are taken of new books, of the course and of `byhand serve` in a real Chromium (see
chromium.py).  Paper is the first printed page, made if pdftoppm is installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).parent))

from books import Edition
from chromium import PHONE, NoBrowser, launched

from byhand.courses import make_course, publish_course

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SCREEN = {"width": 1280, "height": 860}
TABLET = {"width": 820, "height": 1180}
COLOURS = 128  # of a picture of the page
SETTLED = 500  # milliseconds, until the badge has worked the numbers out


@dataclass(frozen=True)
class CourseEdition:
    """The course in a language."""

    language: str

    @property
    def name(self) -> str:
        return f"course-{self.language}"

    def write(self, folder: Path) -> None:
        publish_course(make_course(self.language), folder)


@dataclass(frozen=True)
class Picture:
    """One picture: a passage of a page of a book or the course, and how the browser shows it."""

    name: str
    edition: Edition | CourseEdition
    page: str
    passage: str = ""  # scrolled to; empty: the top of the page
    scheme: str = "light"
    phone: bool = False

    def take(self, browser: Any, books: Path) -> None:
        settings = {"viewport": PHONE, "device_scale_factor": 2} if self.phone else {}
        context = browser.new_context(
            **{"viewport": SCREEN, "color_scheme": self.scheme, **settings}
        )
        window = context.new_page()
        window.goto((books / self.edition.name / f"{self.page}.html").as_uri())
        window.add_style_tag(content=".passage { content-visibility: visible !important }")
        if isinstance(self.edition, CourseEdition):
            answer(window)
        if self.passage:
            window.evaluate("id => document.getElementById(id).scrollIntoView()", self.passage)
        window.wait_for_timeout(SETTLED)
        window.screenshot(path=str(FOLDER / f"{self.name}.png"))
        context.close()


TINY, SPANISH = Edition("tiny", "en"), Edition("tiny", "es")
JOURNEY, MINIGPT = Edition("journey", "en"), Edition("minigpt", "en")
COURSE, CURSO = CourseEdition("en"), CourseEdition("es")
PICTURES = (
    Picture("course", COURSE, "residual"),
    Picture("course-exercises", COURSE, "attention", "attention-exercise-1"),
    Picture("course-dark", COURSE, "training", "training-4", scheme="dark"),
    Picture("course-es", CURSO, "attention"),
    Picture("course-phone", COURSE, "attention", "attention-exercise-1", phone=True),
    Picture("journey-after", JOURNEY, "attention", "attention-0-attn-scores"),
    Picture("book", TINY, "attention", "attention-0-attn-weights"),
    Picture("book-dark", TINY, "block", "block-0-attn-norm", scheme="dark"),
    Picture("book-phone", TINY, "attention", "attention-0-attn-weights", phone=True),
    Picture("book-spanish", SPANISH, "attention", "attention-0-attn-weights"),
    Picture("book-claims", JOURNEY, "exact", "exact-claims"),
    Picture("book-strips", MINIGPT, "attention", "attention-0-attn-weights"),
)
PRINTED = Picture("book-print", TINY, "attention")
EDITED = "#model=journey&passage=attention-0-attn-weights"
EDIT = ("weight.embed.token[1,0]", "7/8")  # edited in the view of weights, and its new text
GREETING, WIDE = "?language=en", {"width": 1440, "height": 900}
LEARNING = "#model=journey&view=learn&language=en"
ON_PHONE = {"viewport": PHONE, "device_scale_factor": 2}
# name → place, display, what a person does first
PAGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "serve": (EDITED, {"viewport": SCREEN}, "edit"),
    "serve-dark": (f"{EDITED}&language=es", {"viewport": SCREEN, "color_scheme": "dark"}, "edit"),
    "serve-phone": (EDITED, ON_PHONE, ""),
    "serve-compare": ("#model=minigpt&view=compare&language=en", {"viewport": SCREEN}, ""),
    "page-after": (GREETING, {"viewport": WIDE}, ""),
    "page-after-told": (GREETING, {"viewport": WIDE}, "break"),
    "page-after-dark": (GREETING, {"viewport": WIDE, "color_scheme": "dark"}, "flip"),
    "page-after-spanish": ("?language=es", {"viewport": WIDE}, "break"),
    "page-after-tablet": (GREETING, {"viewport": TABLET}, "flip"),
    "page-after-phone": (GREETING, {"viewport": PHONE}, ""),
    "serve-learn": (LEARNING, {"viewport": {"width": 1280, "height": 1060}}, "learn"),
}


def answer(window: Any) -> None:
    """Answers two exercises of a page, the second with a slip; the others are left open."""
    boxes = window.query_selector_all(".answering")
    for box, key in zip(boxes, ("right", "wrong"), strict=False):
        told = json.loads(box.get_attribute("data-answer"))
        for field, text in zip(box.query_selector_all("input"), told[key], strict=True):
            field.fill(text)
        box.query_selector("button").click()


def print_page(browser: Any, books: Path) -> None:
    """Takes the first sheet of a printed page."""
    window = browser.new_page()
    window.goto((books / PRINTED.edition.name / f"{PRINTED.page}.html").as_uri())
    window.wait_for_timeout(SETTLED)
    sheet = books / "sheet.pdf"
    window.pdf(path=str(sheet), format="A4", prefer_css_page_size=True)
    window.close()
    first = ["-png", "-r", "90", "-f", "1", "-l", "1", "-singlefile"]
    subprocess.run(["pdftoppm", *first, str(sheet), str(FOLDER / PRINTED.name)], check=True)


def take_pages(browser: Any, begin: str) -> None:
    """Takes the page of `byhand serve`, with a weight edited."""
    pages = {name: how for name, how in PAGES.items() if name.startswith(begin)}
    if not pages:
        return
    command = [sys.executable, "-m", "byhand", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            origin = server.stdout.readline().strip()
            for name, (where, settings, does) in pages.items():
                context = browser.new_context(**settings, reduced_motion="reduce", locale="en-GB")
                window = context.new_page()
                window.goto(origin + where)
                window.wait_for_selector("#main .view")
                if does:
                    DOINGS[does](window)
                window.wait_for_timeout(4 * SETTLED)  # a comparison works out two passes
                window.screenshot(path=str(FOLDER / f"{name}.png"))
                context.close()
                lighten(FOLDER / f"{name}.png")
        finally:
            server.terminate()


def lighten(picture: Path) -> None:
    """Writes a picture with fewer colours, so that it is small; as it is without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(picture) as full:
        full.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def edit_weight(window: Any) -> None:
    """Edits a weight as a person does, then returns to the step."""
    address, text = EDIT
    window.click(".views a[data-view=weights]")
    window.click(f'#main button[data-a="{address}"]')
    window.fill("#weight-text", text)
    window.wait_for_selector("#rail .changes")
    window.keyboard.press("Enter")
    window.click(".views a[data-view=steps]")
    window.wait_for_selector(".view.steps")


def learn_steps(window: Any) -> None:
    """Presses for ten training steps, and waits until all are on the curve."""
    window.click("[data-do=learn-ten]")
    window.wait_for_selector(".told:has-text('in 10 steps')")
    window.mouse.move(0, 0)


def press(name: str) -> Callable[[Any], None]:
    """Presses one of the three things that the greeting offers."""

    def pressed(window: Any) -> None:
        window.click(f".offer[data-name={name}]")
        window.wait_for_selector("#trials .star-of")
        window.mouse.move(0, 0)

    return pressed


DOINGS = {
    "edit": edit_weight,
    "learn": learn_steps,
    "break": press("mask"),
    "flip": press("flip"),
}


def main(begin: str = "") -> int:
    """Takes the pictures whose names begin so."""
    FOLDER.mkdir(exist_ok=True)
    wanted = [picture for picture in PICTURES if picture.name.startswith(begin)]
    if PRINTED.name.startswith(begin):
        wanted.append(PRINTED)
    with TemporaryDirectory() as place:
        books = Path(place)
        for edition in dict.fromkeys(picture.edition for picture in wanted):
            edition.write(books / edition.name)
        try:
            with launched() as browser:
                take_pages(browser, begin)
                for picture in wanted:
                    if picture is not PRINTED:
                        picture.take(browser, books)
                        lighten(FOLDER / f"{picture.name}.png")
                if PRINTED in wanted and shutil.which("pdftoppm"):
                    print_page(browser, books)
                elif PRINTED in wanted:
                    print("no picture of paper: there is no pdftoppm (apt install poppler-utils)")
        except NoBrowser as lacking:
            print(f"no pictures: {lacking}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
