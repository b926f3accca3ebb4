"""The forward pass of today's models again, in torch float64 and in the way frameworks write it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    LatentSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RelativeSpec,
)
from byhand.weights import Weights
from oracles.arb_pass import ball_of
from oracles.torch_pass import TorchPass, _bend


class TodaysPass(TorchPass):
    """A pass with an encoder, and all that `torch_pass` does not know."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights,
        tokens: Sequence[int],
        target: int,
        positions: Sequence[int] | None = None,
        *,
        source: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
    ) -> None:
        self.source = source
        self.segments = segments
        self.distances: dict[str, Tensor] = {}
        super().__init__(spec, weights, tokens, target, positions)

    def _run(self, target: int) -> None:
        spec, read = self.spec, None
        if spec.encoder is not None:
            asked = self.ids, self.places, self.may_look
            self.ids = torch.tensor(self.source)
            self.places = torch.arange(len(self.ids))
            self.may_look = torch.ones(len(self.ids), len(self.ids), dtype=torch.bool)
            read = self._stack("encoder.", spec.encoder, None)
            self.ids, self.places, self.may_look = asked
        x = self._stack("", spec, read)
        if spec.head is not None:
            x = _bent(spec.head.activation, self._linear("head.hidden", x))
            x = self._norm("head.norm", spec.head.norm, x)
        if spec.embed_width is not None:
            x = self._linear("head.projected", x)
        x = _times(x, spec.head_scale)
        head = self.w["embed.token"] if spec.tied else self._out_in("head")
        logits = _times(F.linear(x, head, self.w.get("head_bias")), spec.logit_scale)
        logits = _capped(logits, spec.logit_cap)
        self.found |= {"logits": logits, "probs": logits.softmax(-1), "next": logits.argmax(-1)}
        self.found["loss"] = F.cross_entropy(logits[-1:], torch.tensor([target])).reshape(1)

    def _stack(self, stack: str, side: ModelSpec | EncoderSpec, read: Tensor | None) -> Tensor:
        table = "embed.token"
        if isinstance(side, EncoderSpec) and side.vocab is not None:
            table = "encoder.embed.token"
        x = _times(F.embedding(self.ids, self.w[table]), side.embed_scale)
        if self.spec.embed_width is not None:
            x = self._linear("embed.projected", x)
        if side.segments is not None:
            x = x + self.w["embed.segment"][torch.tensor(self.segments)]
        if side.position == "learned":
            x = x + self.w[f"{stack}embed.position"][self.places]
        if side.position == "sinusoidal":
            rows = self._sinusoidal(self.spec.d_model, float(side.position_base))
            if side.position_pairing == "half":
                rows = torch.cat((rows[:, 0::2], rows[:, 1::2]), dim=-1)
            x = x + rows
        x = self._norm(f"{stack}embed.norm", side.embed_norm, x)
        if side.relative is not None:
            found = self.w[f"{stack}relative"][_buckets(side.relative, self.places)].permute(
                2, 0, 1
            )
            self.distances[stack] = self.found[f"{stack}relative"] = found
        for layer, block in enumerate(side.blocks):
            x = self._todays_block(stack, f"{stack}block.{layer}", block, x, read)
            self.found[f"{stack}stream.{layer + 1}"] = x
        return self._norm(f"{stack}final.norm", side.final_norm, x)

    def _norm(self, at: str, norm: NormSpec, x: Tensor) -> Tensor:
        if norm.kind == "none":
            return x
        if norm.kind == "layernorm":
            y = F.layer_norm(x, x.shape[-1:], eps=float(norm.eps))
        else:
            y = F.rms_norm(x, x.shape[-1:], eps=float(norm.eps))
        if norm.gain:
            y = y * (self.w[f"{at}.gain"] + (1 if norm.plus_one else 0))
        if norm.bias:
            y = y + self.w[f"{at}.bias"]
        self.found[f"{at}.out"] = y
        return y

    def _todays_block(
        self, stack: str, at: str, block: BlockSpec, x: Tensor, read: Tensor | None
    ) -> Tensor:
        def before(name: str, norm: NormSpec, x: Tensor) -> Tensor:
            return self._norm(f"{at}.{name}.norm", norm, x) if block.norm_place == "pre" else x

        def added(name: str, norm: NormSpec, x: Tensor, update: Tensor) -> Tensor:
            x = x + _times(update, block.add_scale)
            return self._norm(f"{at}.{name}.norm", norm, x) if block.norm_place == "post" else x

        entering = x
        assert block.attention is not None
        assert block.mlp is not None
        asking = before("attn", block.attn_norm, x)
        out = self._attend(stack, f"{at}.attn", block.attention, asking, asking)
        out = self._norm(f"{at}.attn.after", block.attn_after, out)
        x = added("attn", block.attn_norm, asking if block.from_norm else x, out)
        if block.cross is not None:
            assert read is not None
            crossing = before("cross", block.cross_norm, x)
            out = self._attend(stack, f"{at}.cross", block.cross, crossing, read)
            x = added("cross", block.cross_norm, x, out)
        if block.one_norm:
            thinking = asking
        else:
            thinking = before("mlp", block.mlp_norm, entering if block.parallel else x)
        out = self._norm(
            f"{at}.mlp.after", block.mlp_after, self._mlp(f"{at}.mlp", block.mlp, thinking)
        )
        onto = thinking if block.from_norm and not block.parallel else x
        return added("mlp", block.mlp_norm, onto, out)

    # ------------------------------------------------------------------ attention

    def _attend(self, stack: str, at: str, attn: AttentionSpec, x: Tensor, read: Tensor) -> Tensor:
        if attn.latent is not None:
            q, k, v = self._latent(at, attn, attn.latent, x)
        else:
            q, k, v = self._plain(at, attn, x, read)
        groups = attn.heads // attn.kv_heads
        k, v = k.repeat_interleave(groups, dim=0), v.repeat_interleave(groups, dim=0)
        scores = _capped(_times(q @ k.transpose(-1, -2), attn.scale), attn.cap)
        if attn.relative:
            scores = scores + self.distances[stack]
        if attn.causal:
            scores = scores.masked_fill(~self.may_look.tril(), -math.inf)
        self.found[f"{at}.scores"] = scores
        if attn.sinks:
            sinks = self.w[f"{at}.sinks"].reshape(-1, 1, 1).expand(-1, scores.shape[1], 1)
            weights = torch.cat((scores, sinks), dim=-1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        mixed = weights @ v
        self.found[f"{at}.weights"], self.found[f"{at}.mixed"] = weights, mixed
        out = self._linear(f"{at}.out", mixed.transpose(0, 1).reshape(len(x), -1))
        self.found[f"{at}.out"] = out
        return out

    def _plain(
        self, at: str, attn: AttentionSpec, x: Tensor, read: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        found = []
        for name, rows, heads, width, norm in (
            ("q", x, attn.heads, attn.d_head, attn.q_norm),
            ("k", read, attn.kv_heads, attn.d_head, attn.k_norm),
            ("v", read, attn.kv_heads, attn.value_width, None),
        ):
            part = self._linear(f"{at}.{name}", rows)
            if norm is not None and attn.normed == "width":
                part = self._norm(f"{at}.{name}_norm", norm, part)
            part = part.reshape(len(rows), heads, width).transpose(0, 1)
            if norm is not None and attn.normed != "width":
                part = self._norm(f"{at}.{name}_norm", norm, part)
            if attn.clip is not None:
                part = part.clamp(-float(attn.clip), float(attn.clip))
            if attn.rotary and name != "v":
                part = self.found[f"{at}.{name}_rotated"] = self._turned(at, attn, part)
            found.append(part)
        q, k, v = found
        return q, k, v

    def _latent(
        self, at: str, attn: AttentionSpec, latent: LatentSpec, x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As DeepSeek writes it: q and k are [nope, pe], k's pe part is one for all heads."""
        assert attn.rotary is not None
        turned, n = attn.rotary.width, len(x)
        still = attn.d_head - turned
        few = x
        if latent.query_rank is not None:
            few = self._norm(
                f"{at}.q_latent_norm", latent.query_norm, self._linear(f"{at}.q_latent", x)
            )
        q = self._linear(f"{at}.q_wide", few).view(n, attn.heads, attn.d_head).transpose(0, 1)
        q_nope, q_pe = q.split([still, turned], dim=-1)
        down, k_pe = self._linear(f"{at}.kv_latent", x).split([latent.rank, turned], dim=-1)
        normed = self._norm_of_one_head(f"{at}.kv_latent_norm", latent.norm, down)
        wide = self._linear(f"{at}.kv_wide", normed)
        wide = wide.view(n, attn.heads, still + attn.value_width).transpose(0, 1)
        k_nope, v = wide.split([still, attn.value_width], dim=-1)
        q_pe, k_pe = self._turned(at, attn, q_pe), self._turned(at, attn, k_pe[None])
        q = torch.cat((q_nope, q_pe), dim=-1)
        k = torch.cat((k_nope, k_pe.expand(attn.heads, n, turned)), dim=-1)
        self.found |= {f"{at}.q": q, f"{at}.k": k, f"{at}.v": v}
        return q, k, v

    def _norm_of_one_head(self, at: str, norm: NormSpec, x: Tensor) -> Tensor:
        y = self._norm(at, norm, x)
        if f"{at}.out" in self.found:
            self.found[f"{at}.out"] = y[None]
        return y

    def _turned(self, at: str, attn: AttentionSpec, x: Tensor) -> Tensor:
        assert attn.rotary is not None
        if attn.rotary.scaling is None:
            return self._rotated(at, attn.rotary, x)
        assert attn.rotary.scaling.kind == "linear"
        places = self.places
        self.places = self.places.double() / float(attn.rotary.scaling.factor)
        try:
            return self._rotated(at, attn.rotary, x)
        finally:
            self.places = places

    # ------------------------------------------------------------------ MLPs

    def _mlp(self, at: str, mlp: MlpSpec, x: Tensor) -> Tensor:
        if mlp.experts is None:
            inner = self._inner(mlp, lambda name: self._linear(f"{at}.{name}", x))
            out = self.found[f"{at}.out"] = self._linear(f"{at}.out", inner)
            return out
        shares = self._shares(at, mlp, x)
        out = torch.zeros_like(x)
        for expert in range(mlp.experts):
            rows = torch.nonzero(shares[:, expert]).flatten()

            def matrix(name: str, expert: int = expert, rows: Tensor = rows) -> Tensor:
                return self._expert(f"{at}.{name}", expert, x[rows])

            answer = self._expert(f"{at}.out", expert, self._inner(mlp, matrix))
            out = out.index_add(0, rows, answer * shares[rows, expert, None])
        if mlp.shared is not None:
            more = self._mlp(f"{at}.shared", mlp.shared_mlp, x)
            if mlp.shared_gate:
                more = more * self._linear(f"{at}.shared.score", x).sigmoid()
            out = out + more
        self.found[f"{at}.out"] = out
        return out

    def _inner(self, mlp: MlpSpec, matrix: Any) -> Tensor:
        hidden = matrix("hidden")
        if not mlp.gated:
            return _bent(mlp.activation, hidden)
        gate = matrix("gate")
        if mlp.limit is not None:
            limit = float(mlp.limit)
            gate, hidden = gate.clamp(max=limit), hidden.clamp(-limit, limit)
        return _bent(mlp.activation, gate) * (hidden + float(mlp.hidden_plus))

    def _shares(self, at: str, mlp: MlpSpec, x: Tensor) -> Tensor:
        logits = self.found[f"{at}.router"] = self._linear(f"{at}.router", x)
        alone = mlp.scoring == "sigmoid"
        scores = logits.sigmoid() if alone else logits
        ranked = scores + self.w[f"{at}.choice_bias"] if mlp.choice_bias else scores
        if mlp.groups is not None:
            assert mlp.groups_chosen is not None
            parts = ranked.view(len(x), mlp.groups, -1)
            count = 2 if mlp.group_rule == "top2" else 1
            worth = parts.topk(count, dim=-1).values.sum(-1)
            best = worth.sort(dim=-1, descending=True, stable=True).indices[:, : mlp.groups_chosen]
            kept = torch.zeros_like(worth, dtype=torch.bool).scatter(-1, best, True)
            ranked = parts.masked_fill(~kept[..., None], -math.inf).flatten(1)
        ids = ranked.sort(dim=-1, descending=True, stable=True).indices[:, : mlp.chosen]
        shares = (scores if alone else logits.softmax(-1)).gather(-1, ids)
        if mlp.normalised:
            shares = shares / (shares.sum(-1, keepdim=True) + float(mlp.share_eps))
        shares = shares * float(mlp.share_scale)
        found = torch.zeros_like(logits).scatter(-1, ids, shares)
        self.found[f"{at}.shares"] = found
        self.found[f"{at}.chosen"] = torch.zeros_like(logits).scatter(-1, ids, 1.0)
        return found


def _times(x: Tensor, scale: Any) -> Tensor:
    return x if scale is None else x * float(ball_of(scale))


def _capped(x: Tensor, cap: Any) -> Tensor:
    return x if cap is None else torch.tanh(x / float(cap)) * float(cap)


def _bent(kind: str, x: Tensor) -> Tensor:
    match kind:
        case "relu2":
            return F.relu(x) ** 2
        case "quick_gelu":
            return x * torch.sigmoid(1.702 * x)
        case "gelu_fast":
            return 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))
        case "gelu_bloom":
            return x * 0.5 * (1 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))
        case "sigmoid":
            return torch.sigmoid(x)
        case "tanh":
            return torch.tanh(x)
    return _bend(kind, x)


def _buckets(relative: RelativeSpec, places: Tensor) -> Tensor:
    """As T5 does it, with logarithms; a hair is added, so that they reach whole numbers."""
    ahead = places[None, :] - places[:, None]
    count, first = relative.buckets, torch.zeros_like(ahead)
    if relative.both:
        count //= 2
        first, distance = (ahead > 0).long() * count, ahead.abs()
    else:
        distance = (-ahead).clamp(min=0)
    exact = count // 2
    logs = torch.log(distance.double() / exact) / math.log(relative.distance / exact)
    far = exact + (logs * (count - exact) + 1e-9).clamp(min=0).long()
    return first + torch.where(distance < exact, distance, far.clamp(max=count - 1))
