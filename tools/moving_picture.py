"""The moving picture at the top of the README: one pass of tiny, its numbers exact, named, exact.

    python tools/moving_picture.py

It writes docs/pictures/pass.svg and pass.es.svg from a trace.  The picture moves by its own style
sheet, follows a dark scheme, and stands still where a reader asks for less motion.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import byhand
from byhand.document.palette import DARK, LIGHT

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
TEXT = "a b"
VOCABULARY = "abc"
WIDE, HIGH = 960, 392
LINE, STAGE, CAPTION = 92, 236, 352  # heights of the stream, of the numbers, of the sentence
LEFT, RIGHT = 70, 890
SECONDS = 2.8  # a scene
FADE = 0.15  # part of a scene in which it appears
GLYPH = 0.52  # width of a character, in font sizes
USED = ("paper", "ink", "quiet", "line", "stream", "exact", "named", "lit")

# address read at the last position, its station, and the sentence below
SCENES = (
    ("embed.token", "embed", "embed"),
    ("stream.0", "position", "position"),
    ("block.0.attn.scores", "scores", "scores"),
    ("block.0.attn.weights", "softmax", "softmax"),
    ("block.0.attn.add", "attention", "attention"),
    ("block.0.attn.norm.out", "norm", "back"),
    ("block.0.mlp.add", "mlp", "mlp"),
    ("block.0.mlp.norm.out", "norm", "again"),
    ("logits", "logits", "logits"),
    ("next", "next", "next"),
)
WORDS = {
    "en": {
        "title": "One pass of the model tiny over the text “a b”",
        "about": "The numbers at b, step by step: softmax makes e/(1 + e), the layernorm cancels "
        "it, and the logits are exactly 1, −1, 0.",
        "exact": "exact", "named": "named, never rounded", "proven": "proven",
        ".embed": "embed", ".position": "+ position", ".scores": "scores", ".softmax": "softmax",
        ".attention": "+ attention", ".norm": "layernorm", ".mlp": "+ MLP", ".logits": "logits",
        ".next": "next",
        "embed": "The token b becomes a row of numbers.",
        "position": "Its position is added. This row is the residual stream.",
        "scores": "How well does b's question fit each token before it?",
        "softmax": "Softmax makes e appear. Nobody rounds it: it keeps its name.",
        "attention": "Attention adds its answer to the stream, e and all.",
        "back": "The layernorm divides by its own spread, and e cancels. Exact again.",
        "mlp": "The MLP adds its part.",
        "again": "The second layernorm.",
        "logits": "One logit for each word of the vocabulary: exactly 1, −1 and 0.",
        "next": "The largest logit says the next token. Nothing was rounded on the way.",
    },
    "es": {
        "title": "Un pase del modelo tiny sobre el texto «a b»",
        "about": "Los números de b, paso a paso: softmax produce e/(1 + e), el layernorm lo "
        "cancela y los logits son exactamente 1, −1, 0.",
        "exact": "exacto", "named": "con nombre, sin redondear", "proven": "demostrado",
        ".embed": "embed", ".position": "+ posición", ".scores": "scores", ".softmax": "softmax",
        ".attention": "+ atención", ".norm": "layernorm", ".mlp": "+ MLP", ".logits": "logits",
        ".next": "siguiente",
        "embed": "El token b se convierte en una fila de números.",
        "position": "Se le suma su posición. Esta fila es el flujo residual.",
        "scores": "¿Cuánto encaja la pregunta de b con cada token anterior?",
        "softmax": "Softmax hace aparecer e. Nadie lo redondea: conserva su nombre.",
        "attention": "La atención suma su respuesta al flujo residual, con e incluido.",
        "back": "El layernorm divide por la desviación, y e se cancela. Exacto otra vez.",
        "mlp": "El MLP suma su parte.",
        "again": "El segundo layernorm.",
        "logits": "Un logit por cada palabra del vocabulario: exactamente 1, −1 y 0.",
        "next": "El logit mayor decide el siguiente token. Nada se ha redondeado por el camino.",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """What is shown at one station: the numbers of the last position, or the next token."""

    station: str
    sentence: str
    numbers: tuple[str, ...]
    register: str  # "exact", "named" or "proven"


def scenes(trace: Any) -> list[Scene]:
    """The scenes, their numbers from the trace."""
    made = []
    for address, station, sentence in SCENES:
        if address == "next":
            said = trace.next[-1]
            assert said.proven
            made.append(Scene(station, sentence, (VOCABULARY[said.id],), "proven"))
            continue
        row = trace[address].value
        while row.ndim > 1:
            row = row[-1]
        numbers = tuple(map(str, row))
        register = "named" if any("e" in number for number in numbers) else "exact"
        made.append(Scene(station, sentence, numbers, register))
    return made


def split(number: str) -> tuple[str, str] | None:
    """The two sides of a fraction, without the brackets around them."""
    depth = 0
    for place, sign in enumerate(number):
        depth += (sign == "(") - (sign == ")")
        if sign == "/" and not depth:
            return tuple(side.removeprefix("(").removesuffix(")")
                         for side in (number[:place], number[place + 1 :]))  # type: ignore[return-value]  # fmt: skip
    return None


def drawn(number: str, x: float, size: float) -> tuple[str, float]:
    """A number at x, a fraction as a fraction; and its width."""
    sides = split(number)
    if sides is None:
        return text(x, STAGE + size * 0.34, number, size), max(len(number), 1) * size * GLYPH
    small = size * 0.74
    wide = max(map(len, sides)) * small * GLYPH + 8
    middle = x + wide / 2
    over = text(middle, STAGE - small * 0.32, sides[0], small, "middle")
    below = text(middle, STAGE + small * 1.02, sides[1], small, "middle")
    bar = f'<path d="M{x:.1f} {STAGE}h{wide:.1f}" stroke="currentColor" stroke-width="2"/>'
    return over + bar + below, wide


def text(x: float, y: float, words: str, size: float, anchor: str = "start", more: str = "") -> str:
    words = escape(words.replace("-", "−"))
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.0f}" text-anchor="{anchor}"{more}>'
        f"{words}</text>"
    )


def row(numbers: tuple[str, ...]) -> str:
    """The numbers side by side in the middle of the stage."""
    size, gap = 52.0, 56.0
    while True:
        widths = [drawn(number, 0, size)[1] for number in numbers]
        whole = sum(widths) + gap * (len(numbers) - 1)
        if whole < WIDE - 140:
            break
        size, gap = size * 0.9, gap * 0.9
    x, made = (WIDE - whole) / 2, []
    for number, wide in zip(numbers, widths, strict=True):
        made.append(drawn(number, x, size)[0])
        x += wide + gap
    return "".join(made)


def style(count: int) -> str:
    """The style sheet: colours, and when each scene is seen."""
    light = ";".join(f"--{name}:{LIGHT[name]}" for name in USED)
    dark = ";".join(f"--{name}:{DARK[name]}" for name in USED)
    slot = 100 / count
    shown = [
        f"@keyframes seen{{0%{{opacity:0}}{slot * FADE:.2f}%,{slot:.2f}%{{opacity:1}}"
        f"{slot * (1 + FADE):.2f}%,100%{{opacity:0}}}}"
    ]
    step = (RIGHT - LEFT) / (count - 1)
    moves = "".join(
        f"{slot * (place + FADE):.2f}%,{slot * (place + 1):.2f}%"
        f"{{transform:translateX({place * step:.1f}px)}}"
        for place in range(count)
    )
    shown.append(f"@keyframes along{{0%{{transform:translateX(0)}}{moves}}}")
    late = "".join(f".s{place}{{animation-delay:{place * SECONDS:.1f}s}}" for place in range(count))
    whole = f"{count * SECONDS:.1f}s"
    return (
        f"svg{{{light};color:var(--ink)}}"
        f"@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
        "text{font-family:Georgia,'DejaVu Serif',serif;fill:currentColor}"
        ".label{font-family:system-ui,'DejaVu Sans',sans-serif;fill:var(--quiet)}"
        ".exact,.proven{color:var(--exact)}.named{color:var(--named)}.words{color:var(--ink)}"
        f".scene{{opacity:0;animation:seen {whole} linear infinite both}}{late}"
        f".dot{{fill:var(--lit);animation:along {whole} ease-in-out infinite}}"
        + "".join(shown)
        + "@media(prefers-reduced-motion:reduce){.scene,.dot{animation:none}"
        f".s{count - 2}{{opacity:1}}.dot{{transform:translateX({(count - 2) * step:.1f}px)}}}}"
    )


def picture(language: str) -> str:
    """The whole SVG."""
    words, told = WORDS[language], scenes(byhand.trace("tiny", TEXT))
    step = (RIGHT - LEFT) / (len(told) - 1)
    places = [LEFT + step * place for place in range(len(told))]
    parts = [
        f'<rect width="{WIDE}" height="{HIGH}" rx="12" fill="var(--paper)" stroke="var(--line)"/>',
        f'<path d="M{LEFT - 34} {LINE}H{RIGHT + 34}" stroke="var(--stream)" stroke-width="4"/>',
    ]
    for place, (x, scene) in enumerate(zip(places, told, strict=True)):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{LINE}" r="7" fill="var(--paper)" '
            f'stroke="var(--stream)" stroke-width="3"/>'
        )
        y = LINE - 24 if place % 2 else LINE + 36
        parts.append(text(x, y, words[f".{scene.station}"], 15, "middle", ' class="label"'))
    parts.append(f'<circle class="dot" cx="{LEFT}" cy="{LINE}" r="10"/>')
    for place, scene in enumerate(told):
        said = text(WIDE / 2, CAPTION, words[scene.sentence], 21, "middle", ' class="words"')
        kind = text(WIDE / 2, STAGE + 74, words[scene.register], 15, "middle")
        parts.append(
            f'<g class="scene s{place} {scene.register}">{row(scene.numbers)}{kind}{said}</g>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-labelledby="t d"><title id="t">{escape(words["title"])}</title>'
        f'<desc id="d">{escape(words["about"])}</desc><style>{style(len(told))}</style>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def main() -> int:
    for language, name in (("en", "pass.svg"), ("es", "pass.es.svg")):
        (FOLDER / name).write_text(picture(language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
