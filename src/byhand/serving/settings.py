"""The architecture of a model, key by key: its current value, its choices, and its change.

Each key is one setting of all blocks: `norm.kind`, `heads`, `position`.  The specs refuse
impossible settings, as in a model file.  `fitted_weights` provides the weights of a changed spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any

from byhand.errors import InputError, SpecError, nearest
from byhand.expression import Expression
from byhand.files import scalars
from byhand.files.tables import number_text
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
USUAL_EPS = Fraction(1, 100_000)  # of a new norm
USUAL_CONTEXT = 16  # of new learned positions without a context length
LONGEST_CONTEXT = 4_096
MOST_HEADS = 1_000
GIVE_WAY = {  # (key, conflicting setting) → what has to be set first
    ("norm.place", "residual"): ("residual", "serial"),
    ("residual", "residual"): ("norm.place", "pre"),
    ("causal", "attention.window"): ("window", "none"),
}


class _Said:
    """One edit: a text for a word, a number or a truth value."""

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        self.node = Scalar("architecture", 1, key, text.strip())

    def word(self) -> str:
        """One of the choices of its key."""
        return scalars.word(self.node, *(SETTINGS[self.key].choices or ()))

    def truth(self) -> bool:
        """True or false."""
        return self.word() == "true"

    def parallel(self) -> bool:
        """Whether attention and MLP read the same stream."""
        return self.word() == "parallel"

    def heads(self) -> int:
        """A number of heads."""
        return scalars.whole(self.node, 1, MOST_HEADS)

    def length(self) -> int | None:
        """A number of positions; None: unlimited."""
        return None if self.node.text == "none" else scalars.whole(self.node, 1, LONGEST_CONTEXT)

    def number(self) -> Fraction:
        """A rational number."""
        return scalars.number(self.node)

    def scale(self) -> Expression | None:
        """The factor of the scores; None for no factor."""
        if self.node.text == "none":
            return None
        value = scalars.value_of(self.node)
        return None if value == 1 else scalars.constant(value)


Now = Callable[[ModelSpec], str | None]
Change = Callable[[ModelSpec, _Said], ModelSpec]
Read = Callable[[_Said], Any]
Say = Callable[[Any], str]
Owners = Callable[[ModelSpec], Iterable[Any]]
Each = Callable[[ModelSpec, _Said, Callable[[Any], Any]], ModelSpec]


@dataclass(frozen=True)
class Setting:
    """One key: its current value (None: absent), its choices, and its change."""

    now: Now
    choices: tuple[str, ...] | None  # None: any number
    change: Change


def settings(spec: ModelSpec) -> list[dict[str, Any]]:
    """The settings, each with its current value and choices (None: any number)."""
    found = []
    for key, setting in SETTINGS.items():
        value = setting.now(spec)
        if value is not None:
            choices = None if setting.choices is None else list(setting.choices)
            found.append({"key": key, "value": value, "choices": choices})
    return found


def changed_spec(spec: ModelSpec, edits: Iterable[tuple[str, str]]) -> ModelSpec:
    """The spec after all edits together; the `where` of an error is the key."""
    said = dict(edits)
    for key in said:
        if key not in SETTINGS:
            raise InputError(
                _("there is no key {key} here").format(key=repr(key[:60])),
                where="architecture",
                expected=", ".join(SETTINGS),
                found=key[:60],
                hint=nearest(key[:60], SETTINGS),
            )
    waiting = [_Said(key, said[key]) for key in SETTINGS if key in said]
    while waiting:
        refused: list[tuple[_Said, InputError]] = []
        for edit in waiting:
            try:
                spec = SETTINGS[edit.key].change(spec, edit)
            except InputError as error:  # another edit may make it possible
                refused.append((edit, error))
        if len(refused) == len(waiting):
            raise _located(*refused[0])
        waiting = [edit for edit, _error in refused]
    return spec


def _located(edit: _Said, error: InputError) -> InputError:
    """The error with the key as its place, and the other key that has to change."""
    hint = error.hint
    if hint is None and isinstance(error, SpecError) and (edit.key, error.key) in GIVE_WAY:
        key, value = GIVE_WAY[edit.key, error.key]
        hint = _("set {key} to {value} first").format(key=key, value=value)
    where = f"architecture.{edit.key}"
    return InputError(
        error.message, where=where, expected=error.expected, found=error.found, hint=hint
    )


# ------------------------------------------------------------------ what is there


def norms_of(spec: ModelSpec) -> list[NormSpec]:
    """The norms that there are."""
    found = [norm for b in spec.blocks for norm in (b.attn_norm, b.mlp_norm)]
    return [norm for norm in (*found, spec.final_norm) if norm.kind != "none"]


def _attentions(spec: ModelSpec) -> list[AttentionSpec]:
    return [block.attention for block in spec.blocks if block.attention]


def _position_now(spec: ModelSpec) -> str:
    attention = next(iter(_attentions(spec)), None)
    if spec.position == "none" and attention is not None:
        if attention.rotary is not None:
            return "rope"
        if attention.alibi:
            return "alibi"
    return spec.position


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _or_none(value: Expression | Fraction | int | None) -> str:
    if value is None:
        return "none"
    return str(value) if isinstance(value, int) else number_text(value)


def _residual_word(parallel: bool) -> str:
    return "parallel" if parallel else "serial"


def _norm_kind_now(spec: ModelSpec) -> str | None:
    blocks = spec.blocks[:1]
    return next((b.attn_norm.kind if b.attention else b.mlp_norm.kind for b in blocks), None)


def _activation_now(spec: ModelSpec) -> str | None:
    return next((block.mlp.activation for block in spec.blocks if block.mlp), None)


# ------------------------------------------------------------------ norms


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


def _each_norm(spec: ModelSpec, said: _Said, change: Callable[[NormSpec], NormSpec]) -> ModelSpec:
    """The spec with each existing norm changed, in the blocks and at the end."""
    if not norms_of(spec):
        raise InputError(
            _("this model has no norms"),
            found=f"{said.key}: {said.node.text[:40]}",
            hint=_("set {key} to {value} first").format(key="norm.kind", value="layernorm"),
        )

    def changed(norm: NormSpec) -> NormSpec:
        return norm if norm.kind == "none" else change(norm)

    spec = _each_block(
        spec,
        said,
        lambda b: replace(b, attn_norm=changed(b.attn_norm), mlp_norm=changed(b.mlp_norm)),
    )
    return replace(spec, final_norm=changed(spec.final_norm))


def _final_norm(spec: ModelSpec, said: _Said) -> ModelSpec:
    kind = said.word()
    like = spec.final_norm
    if like.kind == "none":
        like = next(iter(norms_of(spec)), NO_NORM)
    return replace(spec, final_norm=_of_kind(like, kind))


# ------------------------------------------------------------------ blocks and attention


def _each_block(
    spec: ModelSpec, _said: _Said, change: Callable[[BlockSpec], BlockSpec]
) -> ModelSpec:
    return replace(spec, blocks=tuple(map(change, spec.blocks)))


def _each_attention(
    spec: ModelSpec, said: _Said, change: Callable[[AttentionSpec], AttentionSpec]
) -> ModelSpec:
    if not _attentions(spec):
        raise InputError(_("this model has no attention"), found=said.key)
    return _each_block(
        spec,
        said,
        lambda b: b if b.attention is None else replace(b, attention=change(b.attention)),
    )


def _heads(spec: ModelSpec, said: _Said) -> ModelSpec:
    """The spec with the same widths divided among another number of heads."""
    count = said.heads()

    def change(attention: AttentionSpec) -> AttentionSpec:
        width = attention.q_width
        if width % count:
            raise InputError(
                _("d_model = {d} cannot be split evenly among {count} heads").format(
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
    """RoPE for heads of another width: whole heads stay whole."""
    if rotary is None:
        return None
    width = d_head if rotary.width == before else min(rotary.width, d_head)
    given = rotary.given and width == rotary.width
    return replace(rotary, width=width, given=given)


def _kv_heads(spec: ModelSpec, said: _Said) -> ModelSpec:
    count = said.heads()

    def change(attention: AttentionSpec) -> AttentionSpec:
        if attention.packed is not None and count != attention.kv_heads:
            raise InputError(
                _("questions, keys and values are one matrix here and cannot be cut apart"),
                expected=str(attention.kv_heads),
                found=str(count),
            )
        return replace(attention, kv_heads=count)

    return _each_attention(spec, said, change)


def _activation(spec: ModelSpec, said: _Said) -> ModelSpec:
    kind = said.word()
    if not any(block.mlp for block in spec.blocks):
        raise InputError(_("this model has no MLP"), found=said.key)
    return _each_block(
        spec,
        said,
        lambda b: b if b.mlp is None else replace(b, mlp=replace(b.mlp, activation=kind)),
    )


def _position(spec: ModelSpec, said: _Said) -> ModelSpec:
    """The spec with another kind of positions."""
    kind = said.word()

    def change(attention: AttentionSpec) -> AttentionSpec:
        rotary = attention.rotary
        if kind == "rope" and rotary is None:
            even = attention.d_head - attention.d_head % 2
            rotary = RotarySpec(even or attention.d_head)  # a head of width 1 has no pair
        return replace(attention, rotary=rotary if kind == "rope" else None, alibi=kind == "alibi")

    if kind in RELATIVE:
        return replace(_each_attention(spec, said, change), position="none")
    if _attentions(spec):
        spec = _each_attention(spec, said, change)
    context = spec.context or (USUAL_CONTEXT if kind == "learned" else None)
    return replace(spec, position=kind, context=context)


def _divisors(number: int) -> str:
    found = [n for n in range(1, number + 1) if number % n == 0]
    return ", ".join(map(str, found[:12])) + (", …" if len(found) > 12 else "")


# ------------------------------------------------------------------ all keys


def _now(owners: Owners, name: str, say: Say) -> Now:
    """The field of the first owner as text; None without an owner."""
    return lambda spec: next((say(getattr(one, name)) for one in owners(spec)), None)


def _field(owners: Owners, each: Each, name: str, read: Read, say: Say, *choices: str) -> Setting:
    """The setting of one field of every norm, attention or block, or of the model."""

    def change(spec: ModelSpec, said: _Said) -> ModelSpec:
        value = read(said)
        return each(spec, said, lambda one: replace(one, **{name: value}))

    return Setting(_now(owners, name, say), choices or None, change)


_norm = partial(_field, norms_of, _each_norm)
_attention = partial(_field, _attentions, _each_attention)
_block = partial(_field, attrgetter("blocks"), _each_block)
_model = partial(_field, lambda spec: [spec], lambda spec, _said, change: change(spec))

SETTINGS: Mapping[str, Setting] = {
    "norm.kind": Setting(_norm_kind_now, NORMS, _norm_kind),
    "norm.place": _block("norm_place", _Said.word, str, *PLACES),
    "norm.eps": _norm("eps", _Said.number, number_text),
    "norm.gain": _norm("gain", _Said.truth, _truth, *TRUTHS),
    "norm.bias": _norm("bias", _Said.truth, _truth, *TRUTHS),
    "final_norm": Setting(lambda spec: spec.final_norm.kind, NORMS, _final_norm),
    "position": Setting(_position_now, (*POSITIONS, *RELATIVE), _position),
    "context": _model("context", _Said.length, _or_none),
    "activation": Setting(_activation_now, ACTIVATIONS, _activation),
    "heads": Setting(_now(_attentions, "heads", str), None, _heads),
    "kv_heads": Setting(_now(_attentions, "kv_heads", str), None, _kv_heads),
    "scale": _attention("scale", _Said.scale, _or_none),
    "causal": _attention("causal", _Said.truth, _truth, *TRUTHS),
    "window": _attention("window", _Said.length, _or_none),
    "residual": _block("parallel", _Said.parallel, _residual_word, *RESIDUALS),
    "tied": _model("tied", _Said.truth, _truth, *TRUTHS),
}
