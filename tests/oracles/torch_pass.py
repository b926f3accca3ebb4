"""The forward pass again, in torch float64 and in the way frameworks write it.

It knows the spec and the weights and nothing of `byhand.forward`, `byhand.plan` or
`byhand.working`.  Its results stand under the addresses of the trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from byhand.numbers.base import ABSENT
from byhand.parameters import learned
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, RotarySpec
from byhand.weights import Weights
from oracles.arb_pass import ball_of, weight_ball

torch.set_num_threads(1)


def as_float(entry: Any) -> float:
    """The float64 nearest to one entry of a weight (to within rounding); masked is -∞."""
    if entry is ABSENT:
        return -math.inf
    ball = weight_ball(entry)
    assert ball is not None
    return float(ball)


def float_tensors(weights: Weights) -> dict[str, Tensor]:
    return {
        name: torch.tensor(
            [as_float(entry) for entry in tensor.data.flat], dtype=torch.float64
        ).reshape(tensor.shape)
        for name, tensor in weights.items()
    }


class TorchPass:
    """`found[address]` holds what was computed on the way."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights,
        tokens: Sequence[int],
        target: int,
        positions: Sequence[int] | None = None,
        mask: Sequence[Sequence[bool]] | None = None,
        *,
        learning: bool = False,
    ) -> None:
        self.spec = spec
        self.w = float_tensors(weights)
        for parameter in learned(spec) if learning else ():
            self.w[parameter.name].requires_grad_()
        self.ids = torch.tensor(tokens)
        self.places = torch.tensor(range(len(tokens)) if positions is None else positions)
        self.may_look = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
        if mask is not None:
            self.may_look &= torch.tensor(mask)
        self.found: dict[str, Tensor] = {}
        self._run(target)

    def gradients(self, targets: Sequence[int], *, last: bool = False) -> dict[str, Tensor]:
        """The gradients of the mean loss by torch.autograd, under `grad.` and an address.

        With `last`, those of the last position's loss.  A target of -1 does not count.
        """
        ids = torch.tensor(targets)
        logits = self.found["logits"]
        loss = F.cross_entropy(
            *((logits[-1:], ids[-1:]) if last else (logits, ids)), ignore_index=-1
        )
        inside = {name: x for name, x in self.found.items() if x.requires_grad}
        inside |= {f"weight.{name}": x for name, x in self.w.items() if x.requires_grad}
        found = torch.autograd.grad(loss, list(inside.values()), allow_unused=True)
        return {
            f"grad.{name}": grad
            for name, grad in zip(inside, found, strict=True)
            if grad is not None
        }

    def _run(self, target: int) -> None:
        spec = self.spec
        x = F.embedding(self.ids, self.w["embed.token"])
        if spec.embed_scale is not None:
            x = x * float(ball_of(spec.embed_scale))
        if spec.position == "learned":
            x = x + self.w["embed.position"][self.places]
        if spec.position == "sinusoidal":
            x = x + self._sinusoidal(spec.d_model, float(spec.position_base))
        self.found["stream.0"] = x
        for layer, block in enumerate(spec.blocks):
            x = self._block(f"block.{layer}", block, x)
            self.found[f"stream.{layer + 1}"] = x
        x = self._norm("final.norm", spec.final_norm, x)
        head = self.w["embed.token"] if spec.tied else self._out_in("head")
        logits = F.linear(x, head, self.w.get("head_bias"))
        self.found["logits"] = logits
        self.found["probs"] = logits.softmax(-1)
        self.found["next"] = logits.argmax(-1)
        self.found["loss"] = F.cross_entropy(logits[-1:], torch.tensor([target])).reshape(1)

    def _sinusoidal(self, width: int, base: float) -> Tensor:
        rates = torch.exp(
            torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(base) / width)
        )
        angles = self.places[:, None].double() * rates
        table = torch.zeros(len(self.places), width, dtype=torch.float64)
        table[:, 0::2] = torch.sin(angles)
        table[:, 1::2] = torch.cos(angles)
        return table

    def _out_in(self, name: str) -> Tensor:
        """The matrix as `F.linear` wants it."""
        return self.w[name] if self.spec.layout == "out_in" else self.w[name].T

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self._out_in(name), self.w.get(f"{name}_bias"))

    def _norm(self, at: str, norm: NormSpec, x: Tensor) -> Tensor:
        if norm.kind == "none":
            return x
        gain, bias, eps = self.w.get(f"{at}.gain"), self.w.get(f"{at}.bias"), float(norm.eps)
        if norm.kind == "layernorm":
            x = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
        else:
            x = F.rms_norm(x, x.shape[-1:], gain, eps)
        self.found[f"{at}.out"] = x
        return x

    def _block(self, at: str, block: BlockSpec, x: Tensor) -> Tensor:
        if block.norm_place == "post":
            if block.attention:
                x = x + self._attention(f"{at}.attn", block.attention, x)
                x = self._norm(f"{at}.attn.norm", block.attn_norm, x)
            if block.mlp:
                x = x + self._mlp(f"{at}.mlp", block.mlp, x)
                x = self._norm(f"{at}.mlp.norm", block.mlp_norm, x)
            return x
        attended, thought = torch.zeros_like(x), torch.zeros_like(x)
        if block.attention:
            read = self._norm(f"{at}.attn.norm", block.attn_norm, x)
            attended = self._attention(f"{at}.attn", block.attention, read)
        if block.mlp:
            middle = x if block.parallel else x + attended
            thought = self._mlp(
                f"{at}.mlp", block.mlp, self._norm(f"{at}.mlp.norm", block.mlp_norm, middle)
            )
        return x + attended + thought

    def _attention(self, at: str, attn: AttentionSpec, x: Tensor) -> Tensor:
        if attn.queries:
            q, k, v = self._queries_keys_values(at, attn, x)  # (heads, length, d_head)
        else:
            v = self._linear(f"{at}.v", x).reshape(len(self.ids), -1, attn.d_head).transpose(0, 1)
            q = torch.zeros(attn.heads, *v.shape[1:], dtype=torch.float64)
            k = torch.zeros_like(v)
        q = self._norm(f"{at}.q_norm", attn.q_norm, q)
        k = self._norm(f"{at}.k_norm", attn.k_norm, k)
        if attn.rotary:
            q = self.found[f"{at}.q_rotated"] = self._rotated(at, attn.rotary, q)
            k = self.found[f"{at}.k_rotated"] = self._rotated(at, attn.rotary, k)
        groups = attn.heads // attn.kv_heads
        k, v = k.repeat_interleave(groups, dim=0), v.repeat_interleave(groups, dim=0)
        scale = 1.0 if attn.scale is None else float(ball_of(attn.scale))
        bias = self._score_bias(at, attn)
        products = q @ k.transpose(-1, -2) * scale
        if attn.cap is not None:
            products = float(attn.cap) * torch.tanh(products / float(attn.cap))
        scores = self.found[f"{at}.scores"] = products + bias
        nothing = (scores == -math.inf).all(-1, keepdim=True)
        if attn.nothing:  # a row of -∞ has no softmax: 0 instead
            weights = torch.where(nothing, 0.0, torch.where(nothing, 0.0, scores).softmax(-1))
            mixed = weights @ v
        elif attn.cap is not None and not attn.sinks:
            weights = scores.softmax(-1)
            mixed = weights @ v
        elif attn.sinks:  # as one more key, whose column is dropped
            sinks = self.w[f"{at}.sinks"].reshape(-1, 1, 1).expand(-1, len(self.ids), 1)
            weights = torch.cat((scores, sinks), dim=-1).softmax(-1)[..., :-1]
            mixed = weights @ v
        else:
            weights = scores.softmax(-1)
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
        self.found[f"{at}.weights"], self.found[f"{at}.mixed"] = weights, mixed
        side_by_side = mixed.transpose(0, 1).reshape(len(self.ids), -1)
        out = self._linear(f"{at}.out", side_by_side) if attn.out else side_by_side
        self.found[f"{at}.out"] = out
        self.found[f"{at}.head_out"] = self._alone(at, attn, mixed)
        return out

    def _alone(self, at: str, attn: AttentionSpec, mixed: Tensor) -> Tensor:
        """What comes out where all heads but one are silenced, for each head; without bias."""
        outs = []
        for head in range(attn.heads):
            silenced = torch.zeros_like(mixed)
            silenced[head] = mixed[head]
            rows = silenced.transpose(0, 1).reshape(len(self.ids), -1)
            outs.append(F.linear(rows, self._out_in(f"{at}.out")) if attn.out else rows)
        return torch.stack(outs)

    def _queries_keys_values(
        self, at: str, attn: AttentionSpec, x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        length, width = len(self.ids), attn.d_head
        if attn.packed == "per_head":
            cut = self._linear(f"{at}.qkv", x).view(length, attn.heads, 3 * width).transpose(0, 1)
            q, k, v = torch.split(cut, width, dim=-1)
            return q, k, v
        if attn.packed:
            sides = [attn.heads * width, attn.kv_heads * width, attn.kv_heads * width]
            flat: list[Tensor] = list(torch.split(self._linear(f"{at}.qkv", x), sides, dim=-1))
        else:
            flat = [self._linear(f"{at}.{name}", x) for name in ("q", "k", "v")]
        q, k, v = (part.reshape(length, -1, width).transpose(0, 1) for part in flat)
        return q, k, v

    def _rotated(self, at: str, rotary: RotarySpec, x: Tensor) -> Tensor:
        if rotary.given:
            rates = self.w[f"{at}.frequencies"]
        else:
            powers = torch.arange(0, rotary.width, 2, dtype=torch.float64) / rotary.width
            rates = 1.0 / (float(rotary.base) ** powers)
        angles = torch.outer(self.places.double(), rates)
        turning, passing = x[..., : rotary.width], x[..., rotary.width :]
        if rotary.pairing == "half":
            wide = torch.cat((angles, angles), dim=-1)
            left, right = turning.chunk(2, dim=-1)
            turned = torch.cat((-right, left), dim=-1)
        else:
            wide = angles.repeat_interleave(2, dim=-1)
            turned = torch.stack((-turning[..., 1::2], turning[..., 0::2]), dim=-1).flatten(-2)
        factor = 1.0 if rotary.magnitude is None else float(ball_of(rotary.magnitude))
        cos, sin = wide.cos() * factor, wide.sin() * factor
        return torch.cat((turning * cos + turned * sin, passing), dim=-1)

    def _score_bias(self, at: str, attn: AttentionSpec) -> Tensor:
        """(head, query, key): ALiBi, the table, and -∞ where a query may not look."""
        length = len(self.ids)
        bias = torch.zeros(attn.heads, length, length, dtype=torch.float64)
        if attn.alibi:
            distance = (self.places[None, :] - self.places[:, None]).abs().double()
            bias = bias - self.w[f"{at}.slopes"][:, None, None] * distance
        if attn.score_table:
            table = self.w[f"{at}.score_table"]
            bias = bias + table[:, self.places][:, :, self.places]
        may_look = self.may_look.tril() if attn.causal else self.may_look
        if attn.window is not None:
            may_look = may_look.triu(1 - attn.window)
        return bias.masked_fill(~may_look, -math.inf)

    def _experts(self, at: str, mlp: MlpSpec, x: Tensor) -> Tensor:
        """As frameworks do: each expert answers for the positions that chose it."""
        scores = self.found[f"{at}.router"] = self._linear(f"{at}.router", x)
        ids = scores.sort(dim=-1, descending=True, stable=True).indices[:, : mlp.chosen]
        shares = scores.softmax(-1).gather(-1, ids)
        if mlp.normalised:
            shares = shares / shares.sum(dim=-1, keepdim=True)
        self.found[f"{at}.shares"] = torch.zeros_like(scores).scatter(-1, ids, shares)
        self.found[f"{at}.chosen"] = torch.zeros_like(scores).scatter(-1, ids, 1.0)
        out = torch.zeros_like(x)
        for expert in range(mlp.experts or 0):
            rows, slots = torch.where(ids == expert)
            hidden = self._expert(f"{at}.hidden", expert, x[rows])
            if mlp.gated:
                gate = self._expert(f"{at}.gate", expert, x[rows])
                inner = _bend(mlp.activation, gate) * hidden
            else:
                inner = _bend(mlp.activation, hidden)
            answer = self._expert(f"{at}.out", expert, inner)
            out = out.index_add(0, rows, answer * shares[rows, slots, None])
        self.found[f"{at}.out"] = out
        return out

    def _expert(self, name: str, expert: int, x: Tensor) -> Tensor:
        matrix = self.w[name][expert]
        bias = self.w[f"{name}_bias"][expert] if f"{name}_bias" in self.w else None
        return F.linear(x, matrix if self.spec.layout == "out_in" else matrix.T, bias)

    def _mlp(self, at: str, mlp: MlpSpec, x: Tensor) -> Tensor:
        if mlp.experts is not None:
            return self._experts(at, mlp, x)
        hidden = self._linear(f"{at}.hidden", x)
        if mlp.gated:
            inner = _bend(mlp.activation, self._linear(f"{at}.gate", x)) * hidden
            self.found[f"{at}.gated"] = inner
        else:
            inner = self.found[f"{at}.act"] = _bend(mlp.activation, hidden)
        out = self.found[f"{at}.out"] = self._linear(f"{at}.out", inner)
        return out


def _bend(activation: str, x: Tensor) -> Tensor:
    match activation:
        case "relu":
            return F.relu(x)
        case "gelu":
            return F.gelu(x)
        case "gelu_tanh":
            return F.gelu(x, approximate="tanh")
        case "silu":
            return F.silu(x)
        case "identity":
            return x
    raise ValueError(activation)
