"""Pictures of the README's top as a reader meets it, and of the report of a proof.

    python tools/readme_picture.py [README.md NAME]

Without arguments: docs/pictures/readme*.png, of both languages, dark and on a phone, and proof.png.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import markdown

sys.path.append(str(Path(__file__).parent))

from chromium import PHONE, NoBrowser, launched

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
SCREEN = {"width": 1012, "height": 900}
MOMENT = 10_200  # milliseconds: softmax is on the stage
PAGE = """<!doctype html><meta charset="utf-8"><base href="{base}/"><style>
:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,'DejaVu Sans',sans-serif;
  max-width:860px;margin:0 auto;padding:28px 16px}}
pre{{background:light-dark(#f4f5f7,#20252c);padding:14px;overflow:auto;border-radius:6px}}
code{{font:13.5px/1.45 'DejaVu Sans Mono',monospace}}
img{{max-width:100%}}
h1,h2{{border-bottom:1px solid light-dark(#d9dce1,#343b45);padding-bottom:.3em}}
a{{color:light-dark(#1b5fc1,#8db8f5);text-decoration:none}}
</style>{body}"""
TAKEN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("README.md", "readme", {"viewport": SCREEN}),
    ("README.md", "readme-dark", {"viewport": SCREEN, "color_scheme": "dark"}),
    ("README.md", "readme-phone", {"viewport": PHONE}),
    ("README.es.md", "readme-es", {"viewport": SCREEN}),
)


def page(source: Path) -> str:
    """The README as a page, without the marks of its generated blocks."""
    text = re.sub(r"<!--.*?-->\n?", "", source.read_text("utf-8"), flags=re.DOTALL)
    body = markdown.markdown(text, extensions=["fenced_code", "tables"])
    return PAGE.format(base=ROOT.as_uri(), body=body)


def take(browser: Any, source: Path, name: str, settings: dict[str, Any]) -> None:
    context = browser.new_context(**settings)
    with TemporaryDirectory() as place:
        file = Path(place) / "page.html"
        file.write_text(page(source), "utf-8")
        window = context.new_page()
        window.goto(file.as_uri())
        window.wait_for_timeout(MOMENT)
        window.screenshot(path=str(FOLDER / f"{name}.png"))
    context.close()


def take_proof(browser: Any) -> None:
    """The report on the adder, for which the proof is made."""
    examples = ROOT / "docs" / "examples"
    with TemporaryDirectory() as place:
        report = Path(place) / "report.html"
        subprocess.run(
            [sys.executable, "-m", "byhand", "prove", str(examples / "adder.yaml"),
             str(examples / "adder.property.yaml"), "--jobs", "1", "--html", str(report)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        window = browser.new_page(viewport={"width": 1200, "height": 900})
        window.goto(report.as_uri())
        window.screenshot(path=str(FOLDER / "proof.png"))


def main(arguments: list[str]) -> int:
    try:
        with launched() as browser:
            if arguments:
                take(browser, Path(arguments[0]), arguments[1], {"viewport": SCREEN})
                return 0
            for source, name, settings in TAKEN:
                take(browser, ROOT / source, name, settings)
            take_proof(browser)
    except NoBrowser as lacking:
        print(f"no pictures: {lacking}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
