"""The ways that kernels have: each class allows its own correct runs, and says no to others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.alarms import classes
from benchmarks.planted import models
from benchmarks.planted.families import PORTS

import byhand
from byhand.capturing.ways import with_ways
from byhand.checking.replay import Rounding
from byhand.checking.verdicts import Marking
from byhand.errors import InputError
from byhand.numbers.allowed import precision

FAMILY, SEED = "llama", 4
EVERY = {f"{way.__name__} {format}": (way, format, name) for way, format, name in classes.classes()}
SHOWN = [name for name in EVERY if not name.endswith(" float16")]


def checked(name: str, precision: str) -> Marking:
    """The run of this name, judged in a precision."""
    way, format, _own = EVERY[name]
    model, ids = models.model(FAMILY, SEED), models.some_ids(FAMILY, SEED)
    dump = classes.ran(PORTS[FAMILY](model, ids, format), way)
    text = " ".join(map(str, ids))
    return byhand.check(model, dump, text=text, precision=precision, suspects=False)


@pytest.mark.parametrize("name", SHOWN)
def test_a_correct_run_is_right_in_its_own_class(name: str) -> None:
    marking = checked(name, EVERY[name][2])
    assert marking.follows
    assert not any(line.unusual for line in marking)


@pytest.mark.parametrize(
    "name",
    ["int8_by_row float32", "fp8_by_row bfloat16", "sums_in_the_format bfloat16",
     "parallel_8 bfloat16", "fused bfloat16"],
)  # fmt: skip
def test_the_plain_class_does_not_allow_what_only_a_way_allows(name: str) -> None:
    assert not checked(name, EVERY[name][1]).follows


def test_kernels_that_never_store_their_scores_are_judged_more_sharply() -> None:
    wide, sharp = (checked("flash bfloat16", name) for name in ("bfloat16", "bfloat16+flash"))
    at = "block.0.attn.mixed"
    plain, flash = (next(line for line in each if line.address == at) for each in (wide, sharp))
    assert flash.share > 2 * plain.share


def test_ways_add_up_in_one_name() -> None:
    found = precision("transformers:bfloat16+flash+int8+parallel:4+fused")
    assert (found.islands, found.flash, found.fused, found.parts) == (True, True, True, 4)
    assert found.bytes is not None
    assert found.format == "bfloat16"
    assert Rounding.named("float16+accumulate:float16").precision.coarse


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bfloat16+flsh", "flsh"),
        ("bfloat16+parallel:1", "parallel:1"),
        ("bfloat16+parallel:x", "parallel:x"),
        ("bfloat16+parallel:9999999999999", "parallel:9999999999999"),
        ("bfloat16+int8+fp8", "fp8"),
        ("float32+accumulate:bfloat16", "float32+accumulate:bfloat16"),
        ("bf16+flash", "bf16+flash"),
    ],
)
def test_what_has_no_such_way_is_refused_by_its_name(name: str, part: str) -> None:
    with pytest.raises(InputError) as refused:
        Rounding.named(name)
    assert refused.value.found == part


class _Weight:
    """A parameter spread over a mesh of four devices."""

    class device:  # noqa: N801 - stands in for a torch.device
        type = "cpu"

    class device_mesh:  # noqa: N801 - stands in for a DeviceMesh
        @staticmethod
        def size() -> int:
            return 4


class Linear8bitLt:
    """A layer whose class tells that activations are quantised."""


class _Model:
    def __init__(self, *modules: Any, weights: tuple[Any, ...] = ()) -> None:
        self._modules, self._weights = modules, weights

    def modules(self) -> Any:
        return iter(self._modules)

    def parameters(self) -> Any:
        return iter(self._weights)


class Fp8Linear:
    """A layer of transformers; its activations may have one scale, which the file has."""

    def __init__(self, scheme: str) -> None:
        self.activation_scheme = scheme


def _of_scheme(**activations: Any) -> _Model:
    """A layer with a scheme of compressed-tensors."""
    scheme = SimpleNamespace(input_activations=SimpleNamespace(**activations))
    return _Model(SimpleNamespace(quantization_scheme=scheme))


def test_a_capture_reads_8_bit_activations_off_quantised_layers() -> None:
    pytest.importorskip("torch")
    by_row = _of_scheme(num_bits=8, type="int", strategy="token")
    by_tensor = _of_scheme(num_bits=8, type="float", strategy="tensor")
    assert with_ways("bfloat16", by_row, None) == "bfloat16+int8"
    assert with_ways("bfloat16", by_tensor, None) == "bfloat16+fp8:tensor"
    assert with_ways("bfloat16", _of_scheme(num_bits=4, type="float"), None) == "bfloat16"
    assert with_ways("bfloat16", _Model(Fp8Linear("dynamic")), None) == "bfloat16+fp8"
    assert with_ways("bfloat16", _Model(Fp8Linear("static")), None) == "bfloat16+fp8:tensor"


def test_a_capture_reads_the_ways_off_the_model() -> None:
    pytest.importorskip("torch")
    plain = _Model()
    assert with_ways("transformers:bfloat16", plain, "sdpa") == "transformers:bfloat16"
    assert with_ways("bfloat16", plain, "flash_attention_2") == "bfloat16+flash"
    assert with_ways("bfloat16", plain, "paged|sdpa") == "bfloat16+flash"
    assert with_ways("float16", _Model(Linear8bitLt()), None) == "float16+int8"
    assert with_ways("bfloat16", _Model(weights=(_Weight(),)), None) == "bfloat16+parallel:4"
    assert with_ways(None, plain, None) is None
