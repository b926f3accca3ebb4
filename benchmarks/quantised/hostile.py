"""Quantised folders with something wrong in them: only byhand's own errors come out.

    python benchmarks/quantised/hostile.py [--count 2000]

Tensors are dropped, cut, transposed, cast or filled with extremes; settings become junk.  Every
weight is then read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[2] / "tests"))
import byhand
from byhand.errors import ByhandError
from oracles.quantised_folders import FORMATS, tensors_of, write

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 7, 10**9, 10**40, 1.5, "", "x", "re:(a*)*", [], [1], {}, {"x": 1},
    [None], ["re:.*"], [0, 0], [10**9, 1], "gptq", "awq", "fp8",
)  # fmt: skip
DTYPES = (
    torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.float8_e4m3fn, torch.bool,
)  # fmt: skip


def spoil(tensors: dict[str, torch.Tensor], random: Random) -> None:
    """Changes one tensor, in place."""
    name = random.choice(list(tensors))
    tensor = tensors[name]
    match random.randrange(7):
        case 0:
            del tensors[name]
        case 1:
            tensors[name] = tensor[: random.randrange(len(tensor) + 1)] if tensor.ndim else tensor
        case 2:
            tensors[name] = tensor.T.contiguous() if tensor.ndim == 2 else tensor.reshape(-1)
        case 3:
            tensors[name] = tensor.float().to(random.choice(DTYPES))
        case 4:
            value = random.choice(
                (255, 127, -1, 0, 2**31 - 1, float("nan"), float("inf"), -(10**9))
            )
            flat = tensor.clone().float().reshape(-1)
            flat[random.randrange(max(1, flat.numel())) :] = value
            keeps = tensor.is_floating_point()
            tensors[name] = (
                (flat if keeps else flat.nan_to_num(0)).to(tensor.dtype).reshape(tensor.shape)
            )
        case 5:
            tensors[random.choice((name + "x", name.replace("weight", "qweight")))] = tensor.clone()
        case 6:
            tensors[name] = tensor.reshape(1, *tensor.shape)


def junk(config: dict[str, Any], random: Random) -> dict[str, Any]:
    """Settings with one value replaced, perhaps a deep one."""
    made = dict(config)
    key = random.choice([*made, "modules_to_not_convert", "ignore", "weight_block_size", "dynamic"])
    inner = made.get(key)
    deep = isinstance(inner, dict) and inner and random.random() < 0.8
    made[key] = junk(inner, random) if deep else random.choice(JUNK)
    return made


def main() -> None:
    """Counts what came of each folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    found: Counter[str] = Counter()
    for seed in range(parser.parse_args().count):
        random = Random(seed)
        kind = random.choice(list(FORMATS))
        tensors, _matrices = tensors_of(kind, 0)
        config = FORMATS[kind][0]
        if random.random() < 0.6:
            spoil(tensors, random)
        else:
            config = junk(config, random)
        with tempfile.TemporaryDirectory() as place:
            folder = write(Path(place), kind, tensors, **config)
            try:
                model = byhand.open_model(folder)
                for tensor in model.weights.values():
                    _ = tensor.data
                found["read"] += 1
            except ByhandError:
                found["refused"] += 1
            except Exception as error:
                found["BAD"] += 1
                print(seed, kind, repr(error)[:200])
    print(dict(found))
    sys.exit(found["BAD"] > 0)


if __name__ == "__main__":
    main()
