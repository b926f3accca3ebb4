"""Correct ports in the ways that kernels have, each with the class that allows it.

Attention block by block with a running maximum, or over pages that are merged; kernels that read a
result before it is rounded; activations in 8 bits before a product; sums kept in 16 bits; partial
sums of several devices, each stored; autocast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from benchmarks.planted.families import Gpt2
from benchmarks.planted.port import Port

Way = Callable[[Port], None]
BLOCK = 5  # keys of a block
PAGE = 4  # keys of a page
NARROW = ("float16", "bfloat16")
EVERY = ("float32", *NARROW)


def _outwards(port: Port, name: str) -> Tensor:
    """A matrix as (in, out)."""
    weight = port.w[name]
    return weight if isinstance(port, Gpt2) else weight.T


def _attended(port: Port, of_head: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Attention without scores and weights: a function of q, k and v of all heads."""

    def attention(at: str, x: Tensor) -> Tensor:
        q, k, v = port.placed(at, *port.queries_keys_values(at, x))
        mixed = of_head(q, port.spread(k), port.spread(v)).to(port.dtype)
        port.keep(f"{at}.mixed", mixed)
        return port.keep(f"{at}.out", port.dense(f"{at}.out", port.merged(mixed)))

    port.instead(attention=attention)


def flash(port: Port) -> None:
    """Block by block: scores in float32, exponentials cast before they meet the values."""

    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length = q.shape[1]
        top = torch.full((*q.shape[:2], 1), -torch.inf)
        total, mixed = torch.zeros_like(top), torch.zeros(q.shape)
        for start in range(0, length, BLOCK):
            keys = slice(start, start + BLOCK)
            scores = (q.float() @ k[:, keys].float().transpose(1, 2)) * port.scale
            scores = scores.masked_fill(~port.may_look(length)[:, keys], -torch.inf)
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            powers = torch.where(scores.isinf(), 0.0, (scores - higher).exp())
            again = torch.where(top.isinf(), 0.0, (top - higher).exp())
            total = total * again + powers.sum(-1, keepdim=True)
            cast = powers.to(port.dtype).float() @ v[:, keys].float()
            mixed, top = mixed * again + cast, higher
        return mixed / total

    _attended(port, attended)


def paged(port: Port) -> None:
    """Each page by itself, then merged by the logarithms of the pages' sums."""

    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length = q.shape[1]
        parts, logs = [], []
        for start in range(0, length, PAGE):
            keys = slice(start, start + PAGE)
            scores = (q.float() * port.scale) @ k[:, keys].float().transpose(1, 2)
            scores = scores.masked_fill(~port.may_look(length)[:, keys], -torch.inf)
            log = scores.logsumexp(-1, keepdim=True)
            shares = torch.where(log.isinf(), 0.0, (scores - log).exp())
            parts.append(shares.to(port.dtype).float() @ v[:, keys].float())
            logs.append(log)
        weights = torch.cat(logs, dim=-1).softmax(-1)
        return sum(  # type: ignore[return-value]
            part * weights[..., place, None] for place, part in enumerate(parts)
        )

    _attended(port, attended)


def fused(port: Port) -> None:
    """Results are dumped in the format, and go on in float32 within a kernel."""
    wide: dict[int, Tensor] = {}  # by the id of a stored tensor: what it was before

    def keep(address: str, value: Tensor) -> Tensor:
        stored = value.to(port.dtype) if value.is_floating_point() else value
        port.kept[address] = stored
        wide[id(stored)] = value.float()
        return stored

    def before(x: Tensor) -> Tensor:
        return wide.get(id(x), x.float())

    def dense(name: str, x: Tensor) -> Tensor:
        bias = port.w.get(f"{name}_bias")
        product = x.float() @ _outwards(port, name).float()
        return product if bias is None else product + bias.float()

    def rmsnorm(at: str, x: Tensor) -> Tensor:
        own = before(x)
        normal = own * (own.square().mean(-1, keepdim=True) + port.eps).rsqrt()
        return port.keep(f"{at}.out", normal * port.w[f"{at}.gain"].float())

    def layernorm(at: str, x: Tensor) -> Tensor:
        gain, bias = port.w[f"{at}.gain"].float(), port.w[f"{at}.bias"].float()
        return port.keep(f"{at}.out", F.layer_norm(before(x), x.shape[-1:], gain, bias, port.eps))

    usual = port.activation
    port.instead(
        keep=keep,
        dense=dense,
        rmsnorm=rmsnorm,
        layernorm=layernorm,
        added=lambda at, x, update: port.keep(f"{at}.add", before(x) + before(update)),
    )
    port.activation = lambda x: usual(before(x))
    if hasattr(port, "gated"):
        port.instead(
            gated=lambda at, gate, hidden: (
                before(port.keep(f"{at}.act", usual(before(gate)))) * before(hidden)
            )
        )


def _entering(port: Port, rounded: Callable[[Tensor], Tensor]) -> None:
    """Products with matrices whose rows are rounded first."""

    def dense(name: str, x: Tensor) -> Tensor:
        bias = port.w.get(f"{name}_bias")
        product = rounded(x.float()) @ _outwards(port, name).float()
        return (product if bias is None else product + bias.float()).to(port.dtype)

    port.instead(dense=dense)


def _steps(x: Tensor, largest: Tensor) -> Tensor:
    scale = (largest / 127).clamp_min(1e-30)
    return (x / scale).round().clamp(-127, 127) * scale


def int8_by_row(port: Port) -> None:
    """127 steps up to the largest entry of each row."""
    _entering(port, lambda x: _steps(x, x.abs().amax(-1, keepdim=True)))


def int8_by_tensor(port: Port) -> None:
    """127 steps up to the largest entry of all."""
    _entering(port, lambda x: _steps(x, x.abs().amax()))


def int8_by_groups(port: Port) -> None:
    """Groups of 32 entries, their scale in float16, as q8_0 has it."""

    def rounded(x: Tensor) -> Tensor:
        groups = x.reshape(len(x), -1, 32)
        scale = (groups.abs().amax(-1, keepdim=True) / 127).half().float().clamp_min(1e-7)
        return ((groups / scale).round().clamp(-128, 127) * scale).reshape(x.shape)

    _entering(port, rounded)


def int8_with_zero_point(port: Port) -> None:
    """255 steps from the least to the largest entry of each row."""

    def rounded(x: Tensor) -> Tensor:
        least, most = x.amin(-1, keepdim=True).clamp_max(0), x.amax(-1, keepdim=True).clamp_min(0)
        scale = ((most - least) / 255).clamp_min(1e-30)
        zero = (-128 - least / scale).round()
        return ((x / scale + zero).round().clamp(-128, 127) - zero) * scale

    _entering(port, rounded)


def _fp8(x: Tensor, largest: Tensor) -> Tensor:
    scale = (largest / 448).clamp_min(1e-30)
    return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() * scale


def fp8_by_row(port: Port) -> None:
    """float8 with a scale for each row."""
    _entering(port, lambda x: _fp8(x, x.abs().amax(-1, keepdim=True)))


def fp8_by_tensor(port: Port) -> None:
    """float8 with one scale."""
    _entering(port, lambda x: _fp8(x, x.abs().amax()))


def fp8_by_powers(port: Port) -> None:
    """float8 in groups of 32 whose scale is a power of 2."""

    def rounded(x: Tensor) -> Tensor:
        groups = x.reshape(len(x), -1, 32)
        scale = (groups.abs().amax(-1, keepdim=True) / 448).clamp_min(1e-30).log2().ceil().exp2()
        return ((groups / scale).to(torch.float8_e4m3fn).float() * scale).reshape(x.shape)

    _entering(port, rounded)


def sums_in_the_format(port: Port) -> None:
    """Products added term after term in 16 bits."""

    def dense(name: str, x: Tensor) -> Tensor:
        weight = _outwards(port, name)
        total = torch.zeros(len(x), weight.shape[1], dtype=port.dtype)
        for term in range(weight.shape[0]):
            total = total + x[:, term, None] * weight[term]
        bias = port.w.get(f"{name}_bias")
        return total if bias is None else total + bias

    port.instead(dense=dense)


def sums_by_sixteens(port: Port) -> None:
    """Sixteen terms at a time in float32, added in 16 bits, as matrix units do."""

    def dense(name: str, x: Tensor) -> Tensor:
        weight = _outwards(port, name)
        total = torch.zeros(len(x), weight.shape[1], dtype=port.dtype)
        for start in range(0, weight.shape[0], 16):
            terms = slice(start, start + 16)
            total = total + (x[:, terms].float() @ weight[terms].float()).to(port.dtype)
        bias = port.w.get(f"{name}_bias")
        return total if bias is None else total + bias

    port.instead(dense=dense)


def _parallel(count: int) -> Way:
    def parallel(port: Port) -> None:
        def dense(name: str, x: Tensor) -> Tensor:
            weight = _outwards(port, name).float()
            parts = zip(x.float().chunk(count, -1), weight.chunk(count, 0), strict=True)
            total = torch.zeros(len(x), weight.shape[1], dtype=port.dtype)
            for rows, columns in parts:
                total = total + (rows @ columns).to(port.dtype)
            bias = port.w.get(f"{name}_bias")
            return total if bias is None else total + bias

        port.instead(dense=dense)

    parallel.__doc__ = f"Partial sums of {count} devices, stored and added in the format."
    parallel.__name__ = f"parallel_{count}"
    return parallel


def autocast(format: str) -> Way:
    """float32, with what enters a product and what it gives in 16 bits."""

    def cast(port: Port) -> None:
        narrow: torch.dtype = getattr(torch, format)

        def dense(name: str, x: Tensor) -> Tensor:
            bias = port.w.get(f"{name}_bias")
            product = x.to(narrow).float() @ _outwards(port, name).to(narrow).float()
            if bias is not None:
                product = product + bias.to(narrow).float()
            return product.to(narrow)

        port.instead(
            dense=dense,
            scores=lambda q, k: (q.to(narrow) @ k.to(narrow).transpose(1, 2)) * port.scale,
            shares=lambda scores: scores.float().softmax(-1),
            mixed=lambda weights, v: weights.to(narrow) @ v.to(narrow),
            added=lambda at, x, update: port.keep(f"{at}.add", x.float() + update.float()),
        )

    cast.__name__ = f"autocast_{format}"
    return cast


# what is done, in which formats, and the class that allows it
CLASSES: tuple[tuple[Way, tuple[str, ...], str], ...] = (
    (flash, EVERY, "+flash"),
    (paged, EVERY, "+flash"),
    (fused, NARROW, "+fused"),
    (int8_by_row, EVERY, "+int8"),
    (int8_by_tensor, NARROW, "+int8:tensor"),
    (int8_by_groups, EVERY, "+int8"),
    (int8_with_zero_point, NARROW, "+int8"),
    (fp8_by_row, EVERY, "+fp8"),
    (fp8_by_tensor, NARROW, "+fp8:tensor"),
    (fp8_by_powers, NARROW, "+fp8"),
    (sums_in_the_format, NARROW, "+accumulate:"),
    (sums_by_sixteens, NARROW, "+accumulate:"),
    (_parallel(2), NARROW, "+parallel:2"),
    (_parallel(8), EVERY, "+parallel:8"),
)


def classes() -> Iterator[tuple[Way, str, str]]:
    """Every way with its format and its precision."""
    for way, formats, added in CLASSES:
        for format in formats:
            said = f"{added}{format}" if added.endswith(":") else added
            yield way, format, f"{format}{said}"
    for narrow in NARROW:
        yield autocast(narrow), "float32", f"autocast:{narrow}"


def ran(port: Port, way: Way) -> dict[str, Any]:
    """The dump of a port that computes in a way."""
    way(port)
    return port.run()
