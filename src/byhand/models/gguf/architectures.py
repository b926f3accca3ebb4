"""The architectures of GGUF files: settings and names of tensors → a ModelSpec.

A file means what llama.cpp makes of it.  An architecture has the traits of its `Kind`; what a file
may have or not (biases, norms of q and k, a head of its own) is told by its tensors.  Matrices of q
and k are kept as they are stored: where the converter interleaved their rows, RoPE's pairs are
neighbours.  Gains are kept too: those of Gemma have their 1 added already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from byhand.errors import SpecError, nearest
from byhand.expression import Call, Expression, Number
from byhand.files.gguf import Contents
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.gguf.experts import mlp_of
from byhand.models.gguf.latent import latent_attention
from byhand.models.gguf.rotation import rotation_of
from byhand.models.gguf.settings import Settings
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS
from byhand.spec import (
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    ModelSpec,
    NormSpec,
    over_root,
)

ARCHITECTURE = "general.architecture"


@dataclass(frozen=True, slots=True)
class Kind:
    """What all files of an architecture have in common."""

    family: str  # whose modules are called alike (names.families)
    norm: str = "rmsnorm"
    activation: str = "silu"
    pairing: str | None = "half"  # of RoPE; None: positions are learned
    parallel: bool = False  # attention and MLP read one norm and are added together
    gains: bool = True  # False: the norms of the stream have no gain
    pattern: int | None = None  # every so many layers, one without a window
    normalised: bool = True  # the shares of chosen experts
    embed_root: bool = False  # embeddings are multiplied by √d
    wide_layers: int | None = None  # with so many layers, scores are divided by √(d/heads)


KINDS: dict[str, Kind] = {
    "llama": Kind("llama", pairing="interleaved"),
    "qwen2": Kind("llama"),
    "qwen3": Kind("llama"),
    "qwen2moe": Kind("qwen_moe", normalised=False),
    "qwen3moe": Kind("qwen_moe"),
    "gemma": Kind("llama", activation="gelu_tanh", embed_root=True),
    "gemma2": Kind("gemma2", activation="gelu_tanh", embed_root=True, pattern=2, wide_layers=46),
    "gemma3": Kind("gemma2", activation="gelu_tanh", embed_root=True, pattern=6, wide_layers=62),
    "phi2": Kind("phi", norm="layernorm", activation="gelu_tanh", parallel=True),
    "phi3": Kind("phi3"),
    "gpt2": Kind("gpt2", norm="layernorm", activation="gelu_tanh", pairing=None),
    "gptneox": Kind("gpt_neox", norm="layernorm", activation="gelu_tanh"),
    "falcon": Kind("falcon", norm="layernorm", activation="gelu_tanh", parallel=True),
    "starcoder2": Kind("starcoder2", norm="layernorm", activation="gelu_tanh"),
    "stablelm": Kind("stablelm", norm="layernorm"),
    "olmo": Kind("llama", norm="layernorm", pairing="interleaved", gains=False),
    "olmo2": Kind("olmo2", pattern=4),
    "command-r": Kind("cohere", norm="layernorm", pairing="interleaved", parallel=True),
    "granite": Kind("granite", pairing="interleaved"),
    "gpt-oss": Kind("gpt_oss", pattern=2),
    "deepseek2": Kind("deepseek", pairing="interleaved", normalised=False),
}


def kind_of(contents: Contents) -> tuple[str, Kind]:
    """The architecture of a file; an InputError that names one which byhand does not know."""
    settings = Settings(contents.path, contents.settings, "")
    _key, name = settings.value(ARCHITECTURE)
    if not isinstance(name, str) or name not in KINDS:
        raise settings.refuse(
            ARCHITECTURE,
            ", ".join(KINDS),
            name,
            message=_("byhand does not know models of type {kind}").format(kind=shown(name)),
            hint=nearest(name[:80], KINDS) if isinstance(name, str) else None,
        )
    return name, KINDS[name]


def spec_of(contents: Contents, name: str) -> ModelSpec:
    """The spec of a file."""
    architecture, kind = kind_of(contents)
    settings = Settings(contents.path, contents.settings, f"{architecture}.")
    try:
        spec = _Builder(contents, settings, architecture, kind).spec(name)
    except SpecError as error:
        raise settings.impossible(error) from None
    settings.nothing_unread()
    return spec


class _Builder:
    """The parts of a spec, each from the settings and from what tensors there are."""

    def __init__(
        self, contents: Contents, settings: Settings, architecture: str, kind: Kind
    ) -> None:
        self.tensors, self.settings = contents.tensors, settings
        self.architecture, self.kind = architecture, kind
        self.d = settings.whole("embedding_length")
        self.layers = settings.whole("block_count", most=MOST_LAYERS)
        self.heads = settings.each("attention.head_count", self.layers)
        self.kv_heads = settings.each("attention.head_count_kv", self.layers, self.heads)
        rms = kind.norm == "rmsnorm"
        key = "attention.layer_norm_rms_epsilon" if rms else "attention.layer_norm_epsilon"
        self.eps = settings.epsilon(key, Fraction(0)) if not rms else settings.epsilon(key)

    def has(self, name: str, layer: int | None = None) -> bool:
        """Whether there is such a tensor."""
        return (name if layer is None else f"blk.{layer}.{name}") in self.tensors

    def norm(self, name: str, layer: int | None = None, kind: str | None = None) -> NormSpec:
        """The norm with a gain of this name; none where there is no gain."""
        if not self.has(f"{name}.weight", layer):
            return NO_NORM
        return NormSpec(kind or self.kind.norm, self.eps, bias=self.has(f"{name}.bias", layer))

    # -------------------------------------------------------------- the whole

    def spec(self, name: str) -> ModelSpec:
        """The whole spec."""
        settings = self.settings
        blocks = tuple(self.block(layer) for layer in range(self.layers))
        logit_scale = settings.number("logit_scale", Fraction(0))
        return ModelSpec(
            name=name,
            vocab=self.rows("token_embd.weight"),
            d_model=self.d,
            context=settings.whole("context_length", most=LONGEST_CONTEXT),
            blocks=blocks,
            position="learned" if self.kind.pairing is None else "none",
            embed_scale=self.embed_scale(),
            final_norm=self.norm("output_norm") if self.kind.gains else self.bare_norm(),
            tied=not self.has("output.weight"),
            head_bias=self.has("output.bias"),
            layout="out_in",
            family="mixtral" if self.architecture == "llama" and self.mixed else self.kind.family,
            logit_scale=self.logit_scale(logit_scale) if logit_scale else None,
            logit_cap=settings.number("final_logit_softcapping", Fraction(0)) or None,
        )

    def rows(self, tensor: str) -> int:
        """The outer side of a tensor, which must be there."""
        if tensor not in self.tensors:
            raise self.settings.refuse(
                tensor,
                tensor,
                message=_("the tensor {name} is missing").format(name=tensor),
            )
        return self.tensors[tensor].shape[0]

    @property
    def mixed(self) -> bool:
        """Whether the MLPs are experts."""
        return self.has("ffn_gate_inp.weight", 0)

    def bare_norm(self) -> NormSpec:
        """A norm without gain and bias."""
        return NormSpec(self.kind.norm, self.eps, gain=False, bias=False)

    def embed_scale(self) -> Expression | None:
        """What embeddings are multiplied by."""
        if self.kind.embed_root:
            return Call("sqrt", Number(Fraction(self.d)))
        scale = self.settings.number("embedding_scale", Fraction(0))
        return Number(scale) if scale not in (0, 1) else None

    def logit_scale(self, scale: Fraction) -> Expression | None:
        """Logits are multiplied by the scale; those of Granite are divided by it."""
        if self.architecture == "granite":
            scale = 1 / scale
        return None if scale == 1 else Number(scale)

    # -------------------------------------------------------------- one block

    def block(self, layer: int) -> BlockSpec:
        """One block, with the norms and biases whose tensors are there."""
        settings, kind = self.settings, self.kind
        attention = self.attention(layer)
        mlp = mlp_of(settings, self.tensors, layer, kind.activation, kind.normalised)
        residual = settings.number("residual_scale", Fraction(0))
        block = BlockSpec(
            attention,
            mlp,
            attn_norm=self.norm("attn_norm", layer) if kind.gains else self.bare_norm(),
            mlp_norm=self.norm("ffn_norm", layer) if kind.gains else self.bare_norm(),
            attn_after=self.norm("post_attention_norm", layer),
            mlp_after=self.norm("post_ffw_norm", layer),
            add_scale=Number(residual) if residual not in (0, 1) else None,
        )
        return _AS_THEY_ARE.get(self.architecture, _as_it_is)(self, block, layer)

    def attention(self, layer: int) -> AttentionSpec:
        """The attention of one block."""
        settings, heads = self.settings, self.heads[layer]
        if self.architecture == "deepseek2":
            return latent_attention(settings, self.tensors, layer, heads, self.eps)
        width = settings.whole("attention.key_length", self.d // heads or 1)
        if settings.whole("attention.value_length", width) != width:
            raise settings.refuse("attention.value_length", str(width))
        windowed, window = self.window(layer)
        rotary = None
        if self.kind.pairing is not None:
            rotary = rotation_of(settings, self.tensors, width, self.kind.pairing, windowed)
        packed = self.has("attn_qkv.weight", layer)
        q_bias, k_bias, v_bias = (
            self.has(f"attn_{'qkv' if packed else name}.bias", layer) for name in "qkv"
        )
        clip = settings.number("attention.clamp_kqv", Fraction(0))
        cap = settings.number("attn_logit_softcapping", Fraction(0))
        return AttentionSpec(
            heads=heads,
            d_head=width,
            kv_heads=self.kv_heads[layer],
            scale=self.scale(width, heads),
            window=window,
            rotary=rotary,
            q_norm=self.norm("attn_q_norm", layer),
            k_norm=self.norm("attn_k_norm", layer),
            normed=self.normed(layer, width),
            packed="concatenated" if packed else None,
            out_bias=self.has("attn_output.bias", layer),
            sinks=self.has("attn_sinks.weight", layer),
            cap=cap or None,
            clip=clip or None,
            q_bias=q_bias,
            k_bias=k_bias,
            v_bias=v_bias,
        )

    def normed(self, layer: int, width: int) -> str:
        """What the norms of q and k are of: each head alike, each with its own gain, the width."""
        if not self.has("attn_q_norm.weight", layer):
            return "head"
        shape = self.tensors[f"blk.{layer}.attn_q_norm.weight"].shape
        if len(shape) == 2:
            return "each"
        return "head" if shape == (width,) and self.architecture != "olmo2" else "width"

    def scale(self, width: int, heads: int) -> Expression | None:
        """What scores are multiplied by: 1/√width unless the file says otherwise."""
        if self.kind.wide_layers == self.layers:
            return over_root(self.d // heads)
        given = self.settings.number("attention.scale", Fraction(0))
        if not given:
            return over_root(width)
        return None if given == 1 else Number(given)

    def window(self, layer: int) -> tuple[bool, int | None]:
        """Whether this layer is one of those with a window, and how far it sees."""
        if self.kind.pattern is None:
            return False, None
        default = 4096 if self.architecture == "gemma2" else None
        window = self.settings.whole_or_none(
            "attention.sliding_window", default, most=LONGEST_CONTEXT
        )
        if window is None:
            return False, None
        every = self.settings.pattern(
            "attention.sliding_window_pattern", self.kind.pattern, self.layers
        )
        return every[layer], window if every[layer] else None


# ------------------------------------------------------------------ what one architecture has


def _as_it_is(_builder: _Builder, block: BlockSpec, _layer: int) -> BlockSpec:
    return block


def _one_norm(_builder: _Builder, block: BlockSpec, _layer: int) -> BlockSpec:
    """Attention and MLP read the same norm."""
    return replace(block, parallel=True, one_norm=True, mlp_norm=NO_NORM)


def _neox(builder: _Builder, block: BlockSpec, _layer: int) -> BlockSpec:
    return replace(block, parallel=builder.settings.flag("use_parallel_residual", True))


def _falcon(builder: _Builder, block: BlockSpec, layer: int) -> BlockSpec:
    """One norm for both; with a second one, that is attention's and the first is the MLP's."""
    if not builder.has("attn_norm_2.weight", layer):
        return _one_norm(builder, block, layer)
    return replace(block, parallel=True, mlp_norm=builder.norm("attn_norm_2", layer))


def _stablelm(builder: _Builder, block: BlockSpec, layer: int) -> BlockSpec:
    if builder.has("ffn_norm.weight", layer):
        return block
    return _one_norm(builder, block, layer)


def _oss(_builder: _Builder, block: BlockSpec, _layer: int) -> BlockSpec:
    """The norm that the file names after attention stands before the MLP."""
    return replace(block, mlp_norm=block.attn_after, attn_after=NO_NORM)


_AS_THEY_ARE: dict[str, Callable[[_Builder, BlockSpec, int], BlockSpec]] = {
    "phi2": _one_norm,
    "command-r": _one_norm,
    "gptneox": _neox,
    "falcon": _falcon,
    "stablelm": _stablelm,
    "gpt-oss": _oss,
}
