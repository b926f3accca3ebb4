"""The sources of the residual stream, found by walking the spine of a plan from its end.

The spine is read off the plan itself, so edited plans and all kinds of models need no special cases
here.  No number is known in this module: `path` carries the sources along, `attribution` adds them
up.
"""

from __future__ import annotations

from dataclasses import dataclass

from byhand.address import write_index
from byhand.plan import WEIGHT, Plan, Step

PASSES = ("affine", "center", "linear", "normalize", "rescale")  # the stream passes through these


@dataclass(frozen=True, slots=True)
class Source:
    """One part of the residual stream, or of the logits, with its address.

    The kinds "token" and "position" are rows of the embedding.  "head" is one head through its
    slice of the output matrix, with the bias of its values, since attention weights add up to 1.
    "key" is the part of a head that comes from one position.  "mlp" is an MLP without its bias,
    "neuron" one unit of it.  "bias" is a bias added to the stream or to the logits, "norm" the bias
    of a norm on the stream.  "step" is a given step, which stands for all steps before it.
    """

    address: str  # "block.0.attn.head_out", "weight.block.0.mlp.out_bias"
    kind: str
    layer: int | None = None
    index: tuple[int, ...] = ()  # the head, the neuron, or the head and the key

    @property
    def name(self) -> str:
        """The address with the source's own index: block.0.attn.head_out[2]."""
        return self.address + write_index(self.index)

    def at(self, of: str, position: int, column: int) -> str:
        """The address of one number: explain.logits.block.0.attn.head_out[2,3,5]."""
        return f"explain.{of}.{self.address}{write_index((*self.index, position, column))}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the spine: something enters the stream, or the stream passes through it."""

    step: Step
    enters: bool


def spine(plan: Plan, end: str) -> tuple[Stage, ...]:
    """From the first step that enters the stream to the step `end`, in order."""
    stages: list[Stage] = []
    step = plan[end]
    while True:
        if step.op == "add":
            stages.append(Stage(plan[step.inputs["y"]], enters=True))
        elif step.op in PASSES and "plus" not in step.attributes:
            stages.append(Stage(step, enters=False))
        else:
            stages.append(Stage(step, enters=True))
            return tuple(reversed(stages))
        step = plan[step.inputs["x"]]


def final_stream(plan: Plan) -> str:
    """The address of what leaves the last block: what the final norm and the unembedding read."""
    return plan[f"stream.{len(plan.spec.blocks)}"].address


def bias_of(step: Step) -> Source | None:
    """The source of a step's bias; None where it has no bias."""
    address = step.inputs.get("bias")
    if address is None:
        return None
    kind = "norm" if step.op == "affine" else "bias"
    return Source(address, kind, layer_of(address))


def layer_of(address: str) -> int | None:
    """The block that an address belongs to."""
    parts = address.removeprefix(WEIGHT).split(".")
    return int(parts[1]) if parts[0] == "block" else None
