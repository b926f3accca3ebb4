"""The colours of every page, printed book and spreadsheet, each under one name.

HTML reads them as custom properties (`media/html/style.py`), Typst as variables, and a spreadsheet
as they are.  A page has them light, dark and printed; paper and spreadsheets are always light.
"""

from __future__ import annotations

from typing import Final

_SCHEMES: Final = {  # name: (light, dark)
    # grounds, words and lines
    "paper": ("#fcfcfa", "#14171b"),
    "card": ("#ffffff", "#1b1f25"),
    "field": ("#ffffff", "#20252c"),
    "wash": ("#f3f3ef", "#1b1f25"),
    "ink": ("#1c2127", "#e7e9ec"),
    "quiet": ("#57606b", "#a5adb8"),
    "line": ("#d9dce1", "#343b45"),
    # the figure of the pass: the residual stream, side-trips, marked stations
    "stream": ("#24559c", "#8db8f5"),
    "trip": ("#6f86a9", "#7d93b3"),
    "lit": ("#b0401a", "#ffa36e"),
    "on-lit": ("#ffffff", "#2a1206"),
    "band": ("#fbe6d8", "#3a2519"),
    # registers
    "exact": ("#1b6b40", "#7dd3a0"),
    "named": ("#6b3fa0", "#cdb2f7"),
    "named-tint": ("#f1eaf9", "#2b2439"),
    "enclosed": ("#24559c", "#9ac1fb"),
    "rounded": ("#7d5200", "#f0c067"),
    # verdicts
    "right": ("#1b6b40", "#7dd3a0"),
    "right-tint": ("#e3f2e8", "#1d3328"),
    "carried": ("#24559c", "#9ac1fb"),
    "carried-tint": ("#e4edf9", "#1e2d44"),
    "warn": ("#7d5200", "#f0c067"),  # right but not from the lines above, and undecided
    "warn-tint": ("#fbefd5", "#3a2f18"),
    "error": ("#ad2118", "#ff9c90"),
    "error-tint": ("#fce5e2", "#43211e"),
    "unjudged": ("#5a5470", "#c2bbdb"),
    "unjudged-tint": ("#ecebf1", "#2c2a38"),
    # cases of a proof: decided by one pass for all their texts, or text by text
    "letters": ("#97cbae", "#2c6347"),
    "each": ("#a6c6ea", "#2e5484"),
    # numbers as colours: negative, zero, positive; the deeper, the larger
    "n4": ("#2a5a8f", "#9cc7f7"),
    "n3": ("#6795c3", "#5d93cc"),
    "n2": ("#a3c0de", "#376090"),
    "n1": ("#d5e2ef", "#24384f"),
    "z": ("#f1f1ed", "#20252c"),
    "p1": ("#f6dccb", "#46301f"),
    "p2": ("#ecb291", "#7c4a2a"),
    "p3": ("#d67f4f", "#c4713d"),
    "p4": ("#a8461a", "#ffb27f"),
    "on-n3": ("#1c2127", "#14171b"),  # words on that ground
    # shares of what rounding allows: within it (h0 to h3), beyond it (h4 to h6)
    "h0": ("#eef1f5", "#222932"),
    "h1": ("#d5e2f0", "#253a52"),
    "h2": ("#b3cde7", "#2c5580"),
    "h3": ("#86b0da", "#4480ba"),
    "h4": ("#de7a12", "#d9701f"),
    "h5": ("#c4401a", "#ff9a4d"),
    "h6": ("#740f1f", "#ffdca0"),
    "ring": ("#1c2127", "#ffffff"),  # around one entry
    # changes by an edit
    "moved": ("#0a6b64", "#7fdcd0"),
    "moved-tint": ("#d9f0ec", "#14383a"),
    "was": ("#8a94a1", "#77818e"),
    # the regions of a plane
    "hue0": ("#1f5fa8", "#8db8f5"),
    "hue1": ("#b4500f", "#ffab73"),
    "hue2": ("#0b7a5b", "#6fd3ae"),
    "hue3": ("#8a3f8f", "#dca6e6"),
    "hue4": ("#8a6a00", "#e5c465"),
    "hue5": ("#157a94", "#7cd0e6"),
    "hue6": ("#9b2d3a", "#ff9fa8"),
    "hue7": ("#55606c", "#b8c1cc"),
}
LIGHT: Final = {name: light for name, (light, _) in _SCHEMES.items()}
DARK: Final = {name: dark for name, (_, dark) in _SCHEMES.items()}
PRINTED: Final = LIGHT | {
    "paper": "#ffffff",
    "wash": "#f6f6f3",
    "ink": "#000000",
    "quiet": "#444444",
    "line": "#bbbbbb",
    "ring": "#000000",
}
HEAT: Final = ("n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4")
