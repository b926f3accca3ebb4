"""Colours, borders and number formats of cells, by their kind."""

from __future__ import annotations

from typing import Any

from byhand.document.palette import LIGHT

INK, QUIET, ACCENT = LIGHT["ink"], LIGHT["quiet"], LIGHT["stream"]
LINE, SHADE, MASKED = LIGHT["line"], LIGHT["wash"], LIGHT["line"]
GIVEN, GIVEN_INK = LIGHT["warn-tint"], LIGHT["stream"]  # what may be changed: yellow, blue ink
LIVE, WARNING = LIGHT["right-tint"], LIGHT["warn"]
FONT = "Calibri"

TITLE_HEIGHT, SENTENCE_HEIGHT, LIVE_HEIGHT = 26, 32, 20
PLACE_WIDTH, LABEL_WIDTH, NUMBER_WIDTH, GAP_WIDTH = 5, 12, 9.5, 3

KINDS: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 18, "font_color": ACCENT, "valign": "vcenter"},
    "sentence": {"italic": True, "font_color": QUIET, "text_wrap": True, "valign": "vcenter"},
    "live": {"bold": True, "font_size": 12, "bg_color": LIVE, "valign": "vcenter"},
    "address": {"bold": True, "font_color": ACCENT},
    "formula": {"font_color": QUIET},
    "remark": {"italic": True, "font_color": WARNING},
    "label": {"bg_color": SHADE, "font_color": QUIET, "align": "center", "bottom": 1,
              "bottom_color": LINE, "shrink": True},
    "group": {"bg_color": SHADE, "bold": True, "font_color": ACCENT, "align": "left"},
    "place": {"font_color": QUIET, "align": "right"},
    "token": {"font_color": INK, "bold": True, "align": "left", "indent": 1},
    "typed": {"indent": 1, "font_color": GIVEN_INK, "bg_color": GIVEN, "bold": True, "border": 1,
              "border_color": LINE, "num_format": "@"},
    "known": {"indent": 1, "font_color": INK, "num_format": "@", "border": 1, "border_color": LINE},
    "id": {"num_format": "0", "border": 1, "border_color": LINE},
    "number": {"num_format": "0.0000", "border": 1, "border_color": LINE},
    "working": {"num_format": "0.0000", "font_color": QUIET, "border": 1, "border_color": LINE},
    "text": {"indent": 1, "border": 1, "border_color": LINE, "bold": True},
    "weight": {"font_color": GIVEN_INK, "bg_color": GIVEN, "border": 1, "border_color": LINE},
    "masked": {"bg_color": MASKED, "border": 1, "border_color": LINE},
    "paragraph": {"text_wrap": True, "valign": "top"},
    "explained": {"text_wrap": True, "align": "left", "valign": "top", "indent": 1},
    "heading": {"bold": True, "font_size": 13, "font_color": ACCENT, "bottom": 1,
                "bottom_color": LINE},
    "link": {"font_color": GIVEN_INK, "underline": 1, "valign": "top"},
}  # fmt: skip

SHARES = {  # of attention weights and probabilities: the darker, the more
    "type": "2_color_scale",
    "min_type": "num",
    "max_type": "num",
    "min_value": 0,
    "max_value": 1,
    "min_color": LIGHT["card"],
    "max_color": LIGHT["n3"],
}
GRADIENTS = {  # below and above zero: the deeper, the larger
    "type": "3_color_scale",
    "mid_type": "num",
    "mid_value": 0,
    "min_color": LIGHT["n3"],
    "mid_color": LIGHT["z"],
    "max_color": LIGHT["p3"],
}
LARGEST_LOGIT = {"bold": True, "bg_color": LIGHT["right-tint"]}


class AllDigits(float):
    """A float written with enough digits to read back; XlsxWriter would write 16."""

    def __format__(self, _spec: str) -> str:
        return repr(float(self))


class Formats:
    """The formats of one file, each made once."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.made: dict[tuple[Any, ...], Any] = {}

    def __call__(
        self, kind: str, *, named: bool = False, first: bool = False, places: int = -1
    ) -> Any:
        """The format of a kind of cell; `named` numbers lean, a `first` column has a line."""
        key = kind, named, first, places
        if key not in self.made:
            properties = {"font_name": FONT, "font_size": 11, **KINDS[kind]}
            if named:
                properties["italic"] = True
            if first:
                properties |= {"left": 2, "left_color": ACCENT}
            if places >= 0:
                properties["num_format"] = "0." + "0" * places if places else "0"
            self.made[key] = self.book.add_format(properties)
        return self.made[key]

    def highlight(self) -> Any:
        """The format of the largest logit of a row."""
        if ("highlight",) not in self.made:
            self.made["highlight",] = self.book.add_format(LARGEST_LOGIT)
        return self.made["highlight",]
