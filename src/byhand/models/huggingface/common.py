"""What most decoders have in common: their sizes, windows by layer, attention, MLPs and the whole.

A reader of one family says what is its own, with the defaults of its configuration class.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from byhand.expression import Call, Expression, Number, Quotient
from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, NEEDED, Config
from byhand.models.huggingface.rope import Keys, read_rope
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)

LAYER_TYPES = {"full_attention": False, "attention": False, "sliding_attention": True}
TINY = Fraction(1, 1_000_000)
SMALL = Fraction(1, 100_000)


class Common:
    """The sizes of a config, and the parts that are built with them.

    `kv_heads` and `head_dim` are a family's defaults; None: as many as heads, and d/heads wide.
    """

    def __init__(
        self,
        config: Config,
        *,
        context: int = 2048,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        fixed_width: bool = False,  # the family has no head_dim
        null_width: bool = False,  # head_dim may be null, in spite of a default
    ) -> None:
        self.config, self.context = config, context
        self.d = config.whole("hidden_size")
        self.heads = config.whole("num_attention_heads")
        self.layers = config.whole("num_hidden_layers", most=MOST_LAYERS)
        self.kv = config.whole_or_none("num_key_value_heads", kv_heads) or self.heads
        given = None
        if head_dim is not None and not null_width:
            given = config.whole("head_dim", head_dim)
        elif not fixed_width:
            given = config.whole_or_none("head_dim", head_dim)
        self.width = given or head_width(config, self.d, self.heads)

    def rope(
        self,
        *,
        table: Config | None = None,
        **keys: Any,
    ) -> RotarySpec | None:
        """The rotation of the heads; `keys` are those of `rope.Keys`."""
        return read_rope(self.config, self.width, Keys(context=self.context, **keys), table)

    def attention(
        self, *, bias: bool = False, out_bias: bool = False, **settings: Any
    ) -> AttentionSpec:
        """Attention with one bias for q, k and v, and the usual scale; the rest as given."""
        usual = {"q_bias": bias, "k_bias": bias, "v_bias": bias, "scale": over_root(self.width)}
        return AttentionSpec(
            heads=self.heads,
            d_head=self.width,
            kv_heads=self.kv,
            out_bias=out_bias,
            **{**usual, **settings},
        )

    def mlp(
        self,
        activation: str,
        *,
        gated: bool = True,
        bias: bool = False,
        key: str = "hidden_act",
        d_ff: int | None = None,
    ) -> MlpSpec:
        """An MLP with biases everywhere or nowhere; `activation` is the default of its key."""
        return MlpSpec(
            d_ff=d_ff or self.config.whole("intermediate_size"),
            activation=self.config.word(key, activation, ACTIVATIONS),
            gated=gated,
            hidden_bias=bias,
            gate_bias=bias and gated,
            out_bias=bias,
        )

    def rmsnorm(
        self, eps: Fraction = TINY, *, key: str = "rms_norm_eps", **settings: Any
    ) -> NormSpec:
        """The family's RMSNorm."""
        return NormSpec("rmsnorm", self.config.epsilon(key, eps), bias=False, **settings)

    def layernorm(
        self, eps: Fraction = SMALL, *, key: str = "layer_norm_eps", **settings: Any
    ) -> NormSpec:
        """The family's LayerNorm."""
        return NormSpec("layernorm", self.config.epsilon(key, eps), **settings)

    def windows(self, kinds: Sequence[bool], window: int | None = None) -> list[int | None]:
        """The window of each layer: `kinds` says which layers have one, unless layer_types does."""
        kinds = layer_kinds(self.config, kinds)
        size = self.window(window)
        if any(kinds) and size is None:
            raise self.config.refuse("layer_types", _("a sliding_window, for sliding_attention"))
        return [size if sliding else None for sliding in kinds]

    def window(self, usual: int | None) -> int | None:
        """The length of a window, where there is one."""
        return self.config.whole_or_none("sliding_window", usual, most=LONGEST_CONTEXT)

    def spec(
        self,
        name: str,
        blocks: Sequence[BlockSpec],
        final_norm: NormSpec,
        *,
        tied: bool = False,
        **settings: Any,
    ) -> ModelSpec:
        """The whole model; `tied` is the family's default."""
        return ModelSpec(
            name=name,
            vocab=self.config.whole("vocab_size"),
            d_model=self.d,
            context=self.config.whole(
                "max_position_embeddings", self.context, most=LONGEST_CONTEXT
            ),
            blocks=tuple(blocks),
            final_norm=final_norm,
            tied=self.config.flag("tie_word_embeddings", tied),
            layout="out_in",
            **settings,
        )


def head_width(config: Config, d: int, heads: int, key: str = "num_attention_heads") -> int:
    """d/heads; refused where that is not whole."""
    if d % heads:
        name = "n_embd" if key == "n_head" else "hidden_size"
        raise config.refuse(key, _("a divisor of {name}, {d}").format(name=name, d=d), heads)
    return d // heads


def layer_kinds(config: Config, usual: Sequence[bool]) -> Sequence[bool]:
    """Which layers have a window: as layer_types says, else as usual."""
    _key, types = config.value("layer_types", None)
    if types is None:
        return usual
    known = ", ".join(LAYER_TYPES)
    if not isinstance(types, list) or len(types) != len(usual):
        expected = _("a list of {count}, each of {names}").format(count=len(usual), names=known)
        raise config.refuse("layer_types", expected, types)
    for kind in types:
        if not isinstance(kind, str) or kind not in LAYER_TYPES:
            raise config.refuse("layer_types", known, kind)
    return [LAYER_TYPES[kind] for kind in types]


def every(
    config: Config, layers: int, usual: int, key: str = "sliding_window_pattern"
) -> list[bool]:
    """A window in all layers but every n-th."""
    n = config.whole(key, usual)
    return [bool((layer + 1) % n) for layer in range(layers)]


def root(x: int | Fraction) -> Expression:
    """√x."""
    return Call("sqrt", Number(Fraction(x)))


def factor(config: Config, key: str, usual: Fraction = Fraction(1)) -> Expression | None:
    """A number that something is multiplied by; None where it is 1."""
    found = config.number(key, usual)
    return None if found == 1 else Number(found)


def over(config: Config, key: str, usual: Fraction = Fraction(1)) -> Expression | None:
    """1 divided by a number above 0; None where it is 1."""
    if config.value(key, None)[1] is None:
        found = usual
    else:
        found = config.positive(key)
    return None if found == 1 else Number(1 / found)


def over_root_of(config: Config, key: str, usual: Fraction) -> Expression:
    """1/√ of a number above 0."""
    found = config.number(key, usual)
    if found <= 0:
        raise config.refuse(key, _("a number above 0"), found)
    return Quotient(Number(Fraction(1)), Call("sqrt", Number(found)))


def limit(config: Config, key: str, usual: Fraction | None = None) -> Fraction | None:
    """A number above 0, or null: no limit."""
    found = config.value(key, usual)[1]
    if found is None:
        return None
    value = config.number(key, usual if usual is not None else NEEDED)
    if value <= 0:
        raise config.refuse(key, _("a number above 0, or null"), value)
    return value
