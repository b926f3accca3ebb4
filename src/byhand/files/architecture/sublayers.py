"""`attention:`, `cross:` and `mlp:` of the `model:` table."""

from __future__ import annotations

from fractions import Fraction

from byhand.files import scalars
from byhand.files.architecture.positions import Places, Positions
from byhand.files.architecture.settings import NORM_KEYS, WIDEST, located
from byhand.files.tree import Node, Scalar, Table
from byhand.language import _
from byhand.spec import (
    ACTIVATIONS,
    PACKINGS,
    AttentionSpec,
    LatentSpec,
    MlpSpec,
    NormSpec,
    over_root,
)
from byhand.sublayer_specs import GROUP_RULES, NORMED, SCORINGS


class Sublayers(Positions):
    """Reads the sublayers of a block."""

    d_model: int

    def attention(
        self, node: Node | None, positions: Places, across: bool = False
    ) -> AttentionSpec | None:
        """Attention to the same text, or `across` to the encoder's."""
        if isinstance(node, Scalar):
            scalars.word(node, "none")
            return None
        table = self.table(
            node, "heads", "kv_heads", "d_head", "scale", "causal", "window", "bias", "packed",
            "out", "q_norm", "k_norm", "score_table", "queries", "nothing", "sinks", "cap", "norm",
            "normed", "turned_first", "clip", "d_value", "latent", "relative", "after",
        )  # fmt: skip
        scale, packed = table.get("scale"), table.get("packed")
        count = self.count(table, "heads") or 1
        width = self.head_width(table, count)
        out = self.flag(table, "out", True)
        queries = self.flag(table, "queries", True)
        biased = [*("qk" if queries else ""), "v", *(["out"] if out else [])]
        bias = self.flags(table.get("bias"), tuple(biased), "q", "k", "v", "out")
        nothing = table.get("nothing")
        usual = over_root(width) if queries else None
        packing = "none" if packed is None else scalars.word(packed, "none", *PACKINGS)
        with located(attention=table, rope=positions.rope):
            return AttentionSpec(
                heads=count,
                d_head=width,
                kv_heads=self.count(table, "kv_heads") or count,
                scale=usual if scale is None else self.scale(scale),
                causal=self.flag(table, "causal", not across),
                window=self.count(table, "window"),
                rotary=self.rotary(positions.rope, width) if positions.rope else None,
                alibi=positions.alibi,
                score_table=self.flag(table, "score_table", False),
                q_norm=self.norm(table.get("q_norm")),
                k_norm=self.norm(table.get("k_norm")),
                q_bias=bias["q"],
                k_bias=bias["k"],
                v_bias=bias["v"],
                packed=None if packing == "none" else packing,
                out=out,
                out_bias=bias["out"],
                queries=queries,
                nothing=nothing is not None and scalars.word(nothing, "refused", "zero") == "zero",
                sinks=self.flag(table, "sinks", False),
                cap=self.number(table, "cap"),
                normed=self.word(table, "normed", "head", *NORMED),
                turned_first=self.flag(table, "turned_first", False),
                clip=self.number(table, "clip"),
                d_value=self.count(table, "d_value"),
                latent=self.latent(table.get("latent")),
                relative=self.flag(table, "relative", False),
            )

    def latent(self, node: Node | None) -> LatentSpec | None:
        """The few numbers that latent attention makes queries, keys and values of."""
        if node is None:
            return None
        table = self.table(node, "rank", "query_rank", "norm", "query_norm", "bias")
        rank = scalars.whole(table.needed("rank", found=table.keys()), 1, WIDEST)
        return LatentSpec(
            rank=rank,
            query_rank=self.count(table, "query_rank"),
            norm=self.norm(table.get("norm")),
            query_norm=self.norm(table.get("query_norm")),
            down_bias=self.flag(table, "bias", False),
        )

    def head_width(self, table: Table, heads: int) -> int:
        """The width of a head; where it is left out, heads share the stream."""
        node = table.get("d_head")
        if node is not None:
            return scalars.whole(node, 1, WIDEST)
        if self.d_model % heads:
            raise table.at("heads").wrong(
                _("d_model = {d} cannot be split evenly among {count} heads").format(
                    d=self.d_model, count=heads
                ),
                expected=_("a divisor of {d}, or d_head").format(d=self.d_model),
                found=str(heads),
            )
        return self.d_model // heads

    def mlp(self, node: Node | None) -> MlpSpec | None:
        """One MLP, or a choice among experts."""
        if isinstance(node, Scalar):
            scalars.word(node, "none")
            return None
        table = self.table(
            node, "d_ff", "units", "activation", "gated", "bias", "norm", "experts", "chosen",
            "normalised", "scoring", "choice_bias", "groups", "groups_chosen", "group_rule",
            "share_scale", "share_eps", "shared", "shared_gate", "shared_bias", "limit",
            "hidden_plus", "after",
        )  # fmt: skip
        experts, gated = self.count(table, "experts"), self.flag(table, "gated", False)
        biased = ["hidden", "out", *["gate"] * gated, *["router"] * (experts is not None)]
        bias = self.flags(table.get("bias"), tuple(biased), "hidden", "gate", "out", "router")
        share_scale = self.number(table, "share_scale")
        with located(mlp=table):
            return MlpSpec(
                d_ff=self.width(table, "d_ff", "units"),
                activation=self.word(table, "activation", "relu", *ACTIVATIONS),
                gated=gated,
                hidden_bias=bias["hidden"],
                gate_bias=bias["gate"],
                out_bias=bias["out"],
                experts=experts,
                chosen=self.count(table, "chosen"),
                normalised=self.flag(table, "normalised", True),
                router_bias=bias["router"],
                scoring=self.word(table, "scoring", "softmax", *SCORINGS),
                choice_bias=self.flag(table, "choice_bias", False),
                groups=self.count(table, "groups"),
                groups_chosen=self.count(table, "groups_chosen"),
                group_rule=self.word(table, "group_rule", "max", *GROUP_RULES),
                share_scale=Fraction(1) if share_scale is None else share_scale,
                share_eps=self.number(table, "share_eps") or Fraction(0),
                shared=self.count(table, "shared"),
                shared_gate=self.flag(table, "shared_gate", False),
                shared_bias=self.maybe(table, "shared_bias", scalars.truth),
                limit=self.number(table, "limit"),
                hidden_plus=self.number(table, "hidden_plus") or Fraction(0),
            )

    # ------------------------------------------------------------------------ their norms

    def sublayer_norm(self, sublayer: Node | None, norm: Node | None) -> NormSpec:
        """A sublayer's own norm, merged over the block's."""
        own = sublayer.get("norm") if isinstance(sublayer, Table) else None
        if own is None:
            return self.norm(norm, "place", "one", "from")
        if not isinstance(own, Table) or not isinstance(norm, Table):
            return self.norm(own)
        self.table(own, *NORM_KEYS)
        return self.norm(own.over(norm), "place", "one", "from")

    def after(self, sublayer: Node | None) -> NormSpec:
        """The norm of what a sublayer adds."""
        return self.norm(sublayer.get("after") if isinstance(sublayer, Table) else None)
