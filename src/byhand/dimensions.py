"""The names of dimensions that a maker gives: of the stream, and of the units of each MLP.

They are words for people.  A number system, a plan and a spec know indices alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from byhand.parameters import Parameter
from byhand.spec import ModelSpec

_SIDES = {  # what each side of a tensor counts, for the layout in_out
    "embed.token": ("token", "stream"),
    "embed.position": ("position", "stream"),
    "embed.segment": ("segment", "stream"),
    "head": ("stream", "output"),
    "head_bias": ("output",),
    "head.hidden": ("stream", "stream"),
    "head.hidden_bias": ("stream",),
    **{
        f"{norm}.{kept}": ("stream",)
        for norm in (
            "embed.norm", "final.norm", "head.norm", "attn.norm", "attn.after", "cross.norm",
            "mlp.norm", "mlp.after",
        )
        for kept in ("gain", "bias")
    },
    **{f"{trip}.{name}": ("stream", "") for trip in ("attn", "cross") for name in ("q", "k", "v")},
    **{f"{trip}.out": ("", "stream") for trip in ("attn", "cross")},
    **{f"{trip}.out_bias": ("stream",) for trip in ("attn", "cross")},
    "attn.qkv": ("stream", ""),
    "attn.q_wide": ("stream", ""),
    "attn.q_latent": ("stream", ""),
    "attn.kv_latent": ("stream", ""),
    "mlp.router": ("stream", ""),
    "mlp.gate": ("stream", "unit"),
    "mlp.gate_bias": ("unit",),
    "mlp.hidden": ("stream", "unit"),
    "mlp.hidden_bias": ("unit",),
    "mlp.out": ("unit", "stream"),
    "mlp.out_bias": ("stream",),
    "mlp.shared.gate": ("stream", ""),
    "mlp.shared.hidden": ("stream", ""),
    "mlp.shared.out": ("", "stream"),
}  # fmt: skip
_BLOCK = re.compile(r"block\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The names of the stream's dimensions, and of each layer's MLP units; empty where not given.

    >>> Dimensions(("digit", "sum"), ((), ("above",))).of_units(1)
    ('above',)
    """

    stream: tuple[str, ...] = ()
    units: tuple[tuple[str, ...], ...] = ()  # by layer

    def of_units(self, layer: int) -> tuple[str, ...]:
        """The names of the units of a layer's MLP; empty where they have none."""
        return self.units[layer] if layer < len(self.units) else ()

    def along(self, axis: str, address: str) -> tuple[str, ...]:
        """The names along an axis of a step, "d" or "d_ff"; empty where there are none."""
        block = _BLOCK.search(address)
        if axis == "d_ff" and block and not address.startswith("encoder."):
            return self.of_units(int(block[1]))
        return self.stream if axis == "d" else ()

    def of_sides(
        self, parameter: Parameter, spec: ModelSpec, tokens: Sequence[str], outputs: Sequence[str]
    ) -> tuple[Sequence[str], ...]:
        """The names along each side of a tensor; empty where its places have none."""
        whole = parameter.name.removeprefix("encoder.")
        block = _BLOCK.match(whole)
        name = whole[block.end() :] if block else whole
        sides = _SIDES.get(name, ("",) * len(parameter.shape))
        if spec.layout == "out_in" and len(sides) == 2 and not name.startswith("embed."):
            sides = sides[::-1]
        sides = ("",) * (len(parameter.shape) - len(sides)) + sides  # one of these for each expert
        known: dict[str, Sequence[str]] = {
            "token": tokens,
            "output": outputs,
            "stream": self.stream,
            "unit": self.of_units(int(block[1])) if block and whole == parameter.name else (),
        }
        return tuple(known.get(side, ()) for side in sides)


UNNAMED = Dimensions()
