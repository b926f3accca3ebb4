"""The architecture of a model changed key by key: ModelSpec + edits → ModelSpec.

Each key says one thing of every block: `norm.kind`, `heads`, `position`.  What is impossible is
refused by the specs themselves, as in a model file.  Which weights a changed spec needs is the
business of `fitting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from byhand.errors import InputError, SpecError, nearest
from byhand.expression import Expression
from byhand.files import scalars
from byhand.files.tree import Scalar
from byhand.language import _
from byhand.spec import (
    ACTIVATIONS,
    NO_NORM,
    NORMS,
    PLACES,
    POSITIONS,
    AttentionSpec,
    BlockSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)

TRUTHS = ("true", "false")
RESIDUALS = ("serial", "parallel")
RELATIVE = ("rope", "alibi")
USUAL_EPS = Fraction(1, 100_000)  # of a norm where there was none
USUAL_CONTEXT = 16  # of learned positions where the model had no longest text
LONGEST_CONTEXT = 4_096
CHOICES: Mapping[str, tuple[str, ...] | None] = {
    "norm.kind": NORMS,
    "norm.place": PLACES,
    "norm.eps": None,
    "norm.gain": TRUTHS,
    "norm.bias": TRUTHS,
    "final_norm": NORMS,
    "position": (*POSITIONS, *RELATIVE),
    "context": None,
    "activation": ACTIVATIONS,
    "heads": None,
    "kv_heads": None,
    "scale": None,
    "causal": TRUTHS,
    "window": None,
    "residual": RESIDUALS,
    "tied": TRUTHS,
}


def changed_spec(spec: ModelSpec, edits: tuple[tuple[str, str], ...]) -> ModelSpec:
    """The spec after some edits, all of them together; `where` of an error is the key."""
    known = set(CHOICES)
    for key, _said in edits:
        if key not in known:
            raise InputError(
                _("there is no key {key} here").format(key=repr(key[:60])),
                where="architecture",
                expected=", ".join(CHOICES),
                found=key[:60],
                hint=nearest(key[:60], CHOICES),
            )
    said = dict(edits)
    waiting = [_Said(key, said[key]) for key in CHOICES if key in said]
    while waiting:
        refused: list[tuple[_Said, InputError]] = []
        for edit in waiting:
            try:
                spec = _EDITS[edit.key](spec, edit)
            except InputError as error:  # another edit may make room for this one
                refused.append((edit, error))
        if len(refused) == len(waiting):
            raise _located(*refused[0])
        waiting = [edit for edit, _error in refused]
    return spec


def _located(edit: _Said, error: InputError) -> InputError:
    """The error with the key as its place, and which other key has to give way."""
    hint = _give_way(edit.key, error.key) if isinstance(error, SpecError) else None
    return InputError(
        error.message,
        where=f"architecture.{edit.key}",
        expected=error.expected,
        found=error.found,
        hint=error.hint or hint,
    )


def offered(key: str) -> tuple[str, ...]:
    """The words that a key can have; none where it takes a number."""
    return CHOICES[key] or ()


def _give_way(key: str, wrong: str) -> str | None:
    match key, wrong:
        case "norm.place", "residual":
            return _("set {key} to {value} first").format(key="residual", value="serial")
        case "residual", "residual":
            return _("set {key} to {value} first").format(key="norm.place", value="pre")
        case "causal", "attention.window":
            return _("set {key} to {value} first").format(key="window", value="none")
    return None


class _Said:
    """One edit: a text that is a word, a number or a truth value."""

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        self.node = Scalar("architecture", 1, key, text.strip())

    @property
    def none(self) -> bool:
        return self.node.text == "none"

    def word(self) -> str:
        return scalars.word(self.node, *offered(self.key))

    def truth(self) -> bool:
        return self.word() == "true"

    def whole(self, most: int) -> int:
        return scalars.whole(self.node, 1, most)

    def number(self) -> Fraction:
        return scalars.number(self.node)

    def scale(self) -> Expression | None:
        if self.none:
            return None
        value = scalars.value_of(self.node)
        return None if value == 1 else scalars.constant(value)


# ------------------------------------------------------------------ norms


def _each_norm(spec: ModelSpec, change: Callable[[NormSpec], NormSpec]) -> ModelSpec:
    """The norms of the blocks and the last one, each changed; where there is none, none comes."""

    def changed(norm: NormSpec) -> NormSpec:
        return norm if norm.kind == "none" else change(norm)

    blocks = tuple(
        replace(b, attn_norm=changed(b.attn_norm), mlp_norm=changed(b.mlp_norm))
        for b in spec.blocks
    )
    return replace(spec, blocks=blocks, final_norm=changed(spec.final_norm))


def _of_kind(norm: NormSpec, kind: str) -> NormSpec:
    if kind == "none":
        return NO_NORM
    if norm.kind == "none":
        return NormSpec(kind, USUAL_EPS, gain=True, bias=kind == "layernorm")
    return replace(norm, kind=kind, bias=norm.bias and kind == "layernorm")


def _norm_kind(spec: ModelSpec, said: _Said) -> ModelSpec:
    kind = said.word()
    blocks = tuple(
        replace(b, attn_norm=_of_kind(b.attn_norm, kind), mlp_norm=_of_kind(b.mlp_norm, kind))
        for b in spec.blocks
    )
    last = spec.final_norm
    final = last if last.kind == "none" else _of_kind(last, kind)
    return replace(spec, blocks=blocks, final_norm=final)


def _norm_place(spec: ModelSpec, said: _Said) -> ModelSpec:
    place = said.word()
    return _each_block(spec, lambda block: replace(block, norm_place=place))


def _norm_eps(spec: ModelSpec, said: _Said) -> ModelSpec:
    eps = said.number()
    if not norms_of(spec):
        raise _no_norm(said)
    return _each_norm(spec, lambda norm: replace(norm, eps=eps))


def _norm_gain(spec: ModelSpec, said: _Said) -> ModelSpec:
    gain = said.truth()
    if not norms_of(spec):
        raise _no_norm(said)
    return _each_norm(spec, lambda norm: replace(norm, gain=gain))


def _norm_bias(spec: ModelSpec, said: _Said) -> ModelSpec:
    bias = said.truth()
    if not norms_of(spec):
        raise _no_norm(said)
    return _each_norm(spec, lambda norm: replace(norm, bias=bias))


def _no_norm(said: _Said) -> InputError:
    return InputError(
        _("this model has no norms"),
        found=f"{said.key}: {said.node.text[:40]}",
        hint=_("set {key} to {value} first").format(key="norm.kind", value="layernorm"),
    )


def _final_norm(spec: ModelSpec, said: _Said) -> ModelSpec:
    kind = said.word()
    like = spec.final_norm
    if like.kind == "none":
        like = next(iter(norms_of(spec)), NO_NORM)
    return replace(spec, final_norm=_of_kind(like, kind))


def norms_of(spec: ModelSpec) -> list[NormSpec]:
    """The norms that there are."""
    found = [norm for b in spec.blocks for norm in (b.attn_norm, b.mlp_norm)]
    return [norm for norm in (*found, spec.final_norm) if norm.kind != "none"]


# ------------------------------------------------------------------ blocks and attention


def _each_block(spec: ModelSpec, change: Callable[[BlockSpec], BlockSpec]) -> ModelSpec:
    return replace(spec, blocks=tuple(map(change, spec.blocks)))


def _each_attention(
    spec: ModelSpec, said: _Said, change: Callable[[AttentionSpec], AttentionSpec]
) -> ModelSpec:
    if not any(block.attention for block in spec.blocks):
        raise InputError(_("this model has no attention"), found=said.key)
    return _each_block(
        spec,
        lambda b: b if b.attention is None else replace(b, attention=change(b.attention)),
    )


def _heads(spec: ModelSpec, said: _Said) -> ModelSpec:
    """The same numbers shared out to another number of heads."""
    count = said.whole(1_000)

    def change(attention: AttentionSpec) -> AttentionSpec:
        width = attention.q_width
        if width % count:
            raise InputError(
                _("d_model = {d} cannot be shared out among {count} heads").format(
                    d=width, count=count
                ),
                expected=_divisors(width),
                found=str(count),
            )
        d_head = width // count
        alike = attention.kv_heads == attention.heads
        kv_heads = count if alike else max(1, attention.kv_width // d_head)
        usual = attention.scale == over_root(attention.d_head)
        return replace(
            attention,
            heads=count,
            d_head=d_head,
            kv_heads=kv_heads,
            scale=over_root(d_head) if usual else attention.scale,
            rotary=_narrowed(attention.rotary, attention.d_head, d_head),
        )

    return _each_attention(spec, said, change)


def _narrowed(rotary: RotarySpec | None, before: int, d_head: int) -> RotarySpec | None:
    """RoPE on heads of another width: on all of it where it was on all of it."""
    if rotary is None:
        return None
    width = d_head if rotary.width == before else min(rotary.width, d_head)
    given = rotary.given and width == rotary.width
    return replace(rotary, width=width, given=given)


def _kv_heads(spec: ModelSpec, said: _Said) -> ModelSpec:
    count = said.whole(1_000)

    def change(attention: AttentionSpec) -> AttentionSpec:
        if attention.packed is not None and count != attention.kv_heads:
            raise InputError(
                _("questions, keys and values are one matrix here and cannot be cut apart"),
                expected=str(attention.kv_heads),
                found=str(count),
            )
        return replace(attention, kv_heads=count)

    return _each_attention(spec, said, change)


def _scale(spec: ModelSpec, said: _Said) -> ModelSpec:
    scale = said.scale()
    return _each_attention(spec, said, lambda attention: replace(attention, scale=scale))


def _causal(spec: ModelSpec, said: _Said) -> ModelSpec:
    causal = said.truth()
    return _each_attention(spec, said, lambda attention: replace(attention, causal=causal))


def _window(spec: ModelSpec, said: _Said) -> ModelSpec:
    window = None if said.none else said.whole(LONGEST_CONTEXT)
    return _each_attention(spec, said, lambda attention: replace(attention, window=window))


def _residual(spec: ModelSpec, said: _Said) -> ModelSpec:
    parallel = said.word() == "parallel"
    return _each_block(spec, lambda block: replace(block, parallel=parallel))


def _activation(spec: ModelSpec, said: _Said) -> ModelSpec:
    kind = said.word()
    if not any(block.mlp for block in spec.blocks):
        raise InputError(_("this model has no MLP"), found=said.key)
    return _each_block(
        spec, lambda b: b if b.mlp is None else replace(b, mlp=replace(b.mlp, activation=kind))
    )


# ------------------------------------------------------------------ the ends


def _position(spec: ModelSpec, said: _Said) -> ModelSpec:
    """One kind of positions instead of whatever there was."""
    kind = said.word()

    def change(attention: AttentionSpec) -> AttentionSpec:
        rotary = attention.rotary
        if kind == "rope" and rotary is None:
            even = attention.d_head - attention.d_head % 2
            rotary = RotarySpec(even or attention.d_head)  # a head of one number has no pair
        return replace(attention, rotary=rotary if kind == "rope" else None, alibi=kind == "alibi")

    if kind in RELATIVE:
        spec = _each_attention(spec, said, change)
        return replace(spec, position="none")
    spec = _each_block(
        spec, lambda b: b if b.attention is None else replace(b, attention=change(b.attention))
    )
    context = spec.context or (USUAL_CONTEXT if kind == "learned" else None)
    return replace(spec, position=kind, context=context)


def _context(spec: ModelSpec, said: _Said) -> ModelSpec:
    return replace(spec, context=None if said.none else said.whole(LONGEST_CONTEXT))


def _tied(spec: ModelSpec, said: _Said) -> ModelSpec:
    return replace(spec, tied=said.truth())


def _divisors(number: int) -> str:
    found = [n for n in range(1, number + 1) if number % n == 0]
    return ", ".join(map(str, found[:12])) + (", …" if len(found) > 12 else "")


_EDITS: dict[str, Callable[[ModelSpec, _Said], ModelSpec]] = {
    "norm.kind": _norm_kind,
    "norm.place": _norm_place,
    "norm.eps": _norm_eps,
    "norm.gain": _norm_gain,
    "norm.bias": _norm_bias,
    "final_norm": _final_norm,
    "position": _position,
    "context": _context,
    "activation": _activation,
    "heads": _heads,
    "kv_heads": _kv_heads,
    "scale": _scale,
    "causal": _causal,
    "window": _window,
    "residual": _residual,
    "tied": _tied,
}
