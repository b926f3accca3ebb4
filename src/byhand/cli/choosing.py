"""Options that several commands share: the numbers they work in, and the names of the steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from byhand.cli.speaking import flag, later, option
from byhand.errors import UsageError, nearest
from byhand.language import _
from byhand.options import Chosen, does_not_fit, whole_or_text
from byhand.reading import read_segments

DASHES = "--"


def numbers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options for numbers; the command gets them as `chosen`."""

    @wraps(command)
    def choosing(
        exact: bool,
        digits: str | None,
        decimals: str | None,
        float: str | None,
        device: str | None,
        **rest: Any,
    ) -> Any:
        amounts = whole_or_text(digits), whole_or_text(decimals)
        return command(chosen=Chosen(exact, *amounts, float, device, DASHES), **rest)

    for each in reversed(OPTIONS):
        choosing = each(choosing)
    return choosing


OPTIONS = (
    flag("--exact", later("exact or named numbers (the default up to 2,000 parameters)")),
    option(
        "--digits",
        "N",
        later("N significant digits of every number, proven (trace: with --float, both compared)"),
    ),
    option("--decimals", "D", later("as with a pencil: every line rounded to D decimals")),
    option(
        "--float",
        "FORMAT",
        later("floats: float64, float32, bfloat16 or float16 (the default above that)"),
    ),
    option("--device", "DEVICE", later("work with torch on this device: cpu, cuda, cuda:1")),
)


def beside_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options for what is read beside the text: the command gets `source`, `segments`."""

    @wraps(command)
    def reading(segments: str | None, **rest: Any) -> Any:
        return command(segments=read_segments(segments), **rest)

    for each in reversed(BESIDE):
        reading = each(reading)
    return reading


BESIDE = (
    option("--source", "TEXT", later("what the encoder reads, of a model that has one")),
    option(
        "--segments",
        "KINDS",
        later("the kind of each token, of a model that has several: 0,0,1"),
    ),
)
names_option = option(
    "--names",
    "STYLE",
    later(
        "call the steps as others do: transformer_lens, transformer_bridge, gpt2, llama, gpt_neox, "
        "vllm, llama.cpp, mlx, flax, onnx, or hf for the checkpoint's own"
    ),
    default="byhand",
)


def style_of(name: str, family: str | None) -> str:
    """The style of names asked for; `hf` means that of the checkpoint's family."""
    from byhand.names import FOREIGN, STYLES
    from byhand.names.derived import HUGGING_FACE

    own = family if family is None or family in FOREIGN else HUGGING_FACE
    short = {"tl": "transformer_lens", "hf": own}
    style = short.get(name, name)
    if style is None:
        raise UsageError(
            _("this model comes from no checkpoint, so it has no names of its own"),
            expected=", ".join(STYLES),
            found=name,
        )
    if style not in STYLES:
        error = does_not_fit("--names", ", ".join((*STYLES, "hf")), name)
        error.hint = nearest(name[:40], STYLES)
        raise error
    return style
