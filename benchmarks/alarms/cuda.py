"""Correct runs on a GPU: `transformers` in its formats, and ports whose products are real kernels.

    python -m benchmarks.alarms.cuda [SEED]

What the precision of a captured run is, `byhand.capture` says.  The ports call cuBLAS's float8 and
int8 products, its float16 sums, and flash attention.  Nothing is recorded: it needs a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.alarms import library, report, runs
from benchmarks.alarms.models import FAMILIES, WEIGHTS, saved
from benchmarks.planted import models as small
from benchmarks.planted.families import PORTS, Gpt2
from benchmarks.planted.port import Port
from byhand.capturing import capture
from byhand.model import Model
from byhand.weights import Tensor as Weight
from byhand.weights import Weights

FORMATS = ("float32", "tf32", "bfloat16", "float16", "autocast:bfloat16", "autocast:float16")


@contextmanager
def _working(format: str) -> Iterator[torch.dtype]:
    """The settings of torch for a format, and the format of the weights."""
    cast = format.removeprefix("autocast:")
    torch.set_float32_matmul_precision("high" if format == "tf32" else "highest")
    narrow = None if cast in ("float32", "tf32") else getattr(torch, cast)
    with torch.autocast("cuda", dtype=narrow, enabled=cast != format):
        yield torch.float32 if narrow is None or cast != format else narrow


def device_runs(seed: int = 0) -> Iterator[runs.Run]:
    """Every family, weights of every kind, formats and kinds of attention."""
    for family in FAMILIES:
        for kind, weights in enumerate(WEIGHTS):
            with saved(family, weights, seed + kind) as pair:
                for number, format in enumerate(FORMATS):
                    for attention in ("eager", "sdpa"):
                        way = library.Way(format, attention, 8, ("none", "left")[number % 2], False)
                        texts = library.batch(way, seed + number)
                        with _working(format) as dtype:
                            model = pair.theirs(dtype, attention).cuda()
                            found = capture(
                                model, texts.ids.cuda(), attention_mask=texts.real.long().cuda(),
                                position_ids=texts.positions.cuda(),
                            )  # fmt: skip
                        yield runs.Run(
                            f"{family}, {weights}, {way}", "cuda", family, format,
                            found.precision or format, pair.ours, found,
                        )  # fmt: skip


# ------------------------------------------------------------------------ kernels


def _in_steps(model: Model, rounded: Callable[[Tensor], Tensor]) -> Model:
    """The model with matrices that 8 bits hold: only activations are rounded."""
    made = dict(model.weights.items())
    for name, tensor in model.weights.items():
        if len(tensor.shape) == 2 and not name.startswith("embed."):
            data = rounded(torch.from_numpy(np.array(tensor.data))).numpy()
            made[name] = Weight(name, data)
    return Model(model.spec, Weights(made), model.vocabulary)


def _through(port: Port, product: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Products x·Wᵀ with W (out, in) on the GPU; a bias is added in float32."""

    def dense(name: str, x: Tensor) -> Tensor:
        weight = port.w[name].T.contiguous() if isinstance(port, Gpt2) else port.w[name]
        result = product(x.cuda(), weight.cuda()).float()
        bias = port.w.get(f"{name}_bias")
        return (result if bias is None else result + bias.cuda().float()).to(port.dtype).cpu()

    port.instead(dense=dense)


def float8(port: Port) -> None:
    """cuBLAS's float8 product with a scale for each row."""

    def product(x: Tensor, weight: Tensor) -> Tensor:
        scale = (x.float().abs().amax(-1, keepdim=True) / 448).clamp_min(1e-30)
        rows = (x.float() / scale).to(torch.float8_e4m3fn)
        ones = torch.ones(1, len(weight), device=x.device)
        columns = weight.to(torch.float8_e4m3fn).T
        result: Tensor = torch._scaled_mm(
            rows, columns, scale_a=scale, scale_b=ones, out_dtype=torch.bfloat16
        )
        return result

    _through(port, product)


def int8(port: Port) -> None:
    """cuBLAS's int8 product with a scale for each row; weights are whole multiples of 2^-7."""

    def product(x: Tensor, weight: Tensor) -> Tensor:
        scale = (x.float().abs().amax(-1, keepdim=True) / 127).clamp_min(1e-30)
        rows = (x.float() / scale).round().to(torch.int8)
        rows = torch.cat([rows, rows, rows])  # the kernel wants more than 16 rows
        steps = (weight.float() * STEPS).round().to(torch.int8)
        return torch._int_mm(rows, steps.T)[: len(x)].float() * scale / STEPS

    _through(port, product)


def plain(port: Port) -> None:
    """cuBLAS's product in the format."""
    _through(port, torch.nn.functional.linear)


def flash(port: Port) -> None:
    """torch's flash attention."""

    def attention(at: str, x: Tensor) -> Tensor:
        q, k, v = port.placed(at, *port.queries_keys_values(at, x))
        heads = [each[None].cuda() for each in (q, port.spread(k), port.spread(v))]
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            mixed = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        port.keep(f"{at}.mixed", mixed[0].cpu())
        return port.keep(f"{at}.out", port.dense(f"{at}.out", port.merged(mixed[0].cpu())))

    port.instead(attention=attention)


STEPS = 128.0
KERNELS: tuple[tuple[Callable[[Port], None], str, str], ...] = (
    (float8, "bfloat16", "bfloat16+fp8"),
    (int8, "bfloat16", "bfloat16+int8"),
    (int8, "float16", "float16+int8"),
    (plain, "float16", "float16+accumulate:float16"),
    (plain, "float16", "float16"),
    (plain, "bfloat16", "bfloat16"),
    (flash, "bfloat16", "bfloat16+flash"),
    (flash, "float16", "float16+flash"),
)


def kernel_runs(seed: int = 0) -> Iterator[runs.Run]:
    """Ports of every family with real kernels."""
    held = {
        float8: lambda x: x.to(torch.float8_e4m3fn).float(),
        int8: lambda x: (x * STEPS).round().clamp(-127, 127) / STEPS,
    }
    for way, format, precision in KERNELS:
        for family in small.SPECS:
            for draw in range(seed, seed + 3):
                model = small.model(family, draw)
                if way in held:
                    model = _in_steps(model, held[way])
                ids = small.some_ids(family, draw)
                torch.backends.cuda.matmul.allow_fp16_accumulation = "accumulate" in precision
                port = PORTS[family](model, ids, format)
                way(port)
                yield runs.Run(
                    f"{family}, {way.__name__} kernel, {precision}", "cuda", family, format,
                    precision, model, port.run(), " ".join(map(str, ids)),
                )  # fmt: skip


def main() -> int:
    found = report.Report()
    seed = int(sys.argv[1]) if sys.argv[1:] else 0
    for run in (*kernel_runs(seed), *device_runs(seed)):
        found.add(run)
    data = found.data()
    print(report.tables(data))
    print(*report.summary(data), sep="\n")
    print(*data["alarms"][:30], *data["unusual"][:30], sep="\n")
    return 1 if data["alarms"] else 0


if __name__ == "__main__":
    sys.exit(main())
