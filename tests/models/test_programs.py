"""Compiled programs: an npz file is opened as the transformer that its arrays describe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import InputError
from byhand.files import parse_model
from byhand.files.writing import write_model
from calling import Outcome

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROGRAM = EXAMPLES / "compiled.npz"
LAYER = "transformer/layer_0/"


@pytest.fixture
def arrays() -> dict[str, Any]:
    with np.load(PROGRAM, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def forward(arrays: dict[str, Any], ids: list[int], causal: bool = False) -> Any:
    """The logits of the arrays in plain NumPy, as their compiler means them."""
    x = arrays["token_embed/embeddings"][ids] + arrays["pos_embed/embeddings"][: len(ids)]
    heads = int(arrays["heads"])
    for layer in range(9):
        at = f"transformer/layer_{layer}/"
        if f"{at}attn/query/w" not in arrays:
            break

        def linear(name: str, rows: Any, at: str = at) -> Any:
            return rows @ arrays[f"{at}{name}/w"] + arrays[f"{at}{name}/b"]

        q, k, v = (
            linear(f"attn/{name}", x).reshape(len(ids), heads, -1).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        if causal:
            scores = np.where(np.tril(np.ones(scores.shape[1:])), scores, -1e30)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (powers / powers.sum(-1, keepdims=True)) @ v
        x = x + linear("attn/linear", mixed.transpose(1, 0, 2).reshape(len(ids), -1))
        x = x + linear("mlp/linear_2", np.maximum(linear("mlp/linear_1", x), 0))
    return x @ arrays["unembed"]


def saved(folder: Path, arrays: dict[str, Any]) -> Path:
    np.savez(folder / "program.npz", **arrays)
    return folder / "program.npz"


def test_the_example_is_what_its_script_makes(
    arrays: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    made = __import__("compiled").compiled()
    sys.modules.pop("compiled")
    assert made.keys() == arrays.keys()
    for name, data in made.items():
        assert np.array_equal(data, arrays[name]), name


def test_it_answers_as_the_program_says_on_every_text() -> None:
    model = byhand.open_model(PROGRAM)
    for length in range(1, 5):
        for letters in product("ab", repeat=length):
            trace = byhand.trace(model, " ".join(("BOS", *letters)), numbers="float64")
            said = [trace.answer(found.id or 0) for found in trace.next or ()][1:]
            pairs = zip(("", *letters), letters, strict=False)
            assert said == ["yes" if one == other else "no" for one, other in pairs]


@pytest.mark.parametrize("ids", [[0], [0, 1], [0, 1, 2, 2, 1, 1, 2, 2, 2]], ids=len)
def test_its_logits_are_those_of_a_plain_pass_over_the_arrays(
    arrays: dict[str, Any], ids: list[int]
) -> None:
    text = " ".join(str(arrays["tokens"][id]) for id in ids)
    logits = byhand.trace(PROGRAM, text, numbers="float64")["logits"].array
    assert np.abs(logits - forward(arrays, ids)).max() < 1e-12


@pytest.mark.parametrize("causal", [False, True])
def test_so_are_those_of_any_program_of_several_blocks_and_heads(
    tmp_path: Path, causal: bool
) -> None:
    random = np.random.default_rng(5)
    d, heads, width, inner = 5, 3, 2, 4
    sides = {"attn/query": (d, heads * width), "attn/key": (d, heads * width),
             "attn/value": (d, heads * width), "attn/linear": (heads * width, d),
             "mlp/linear_1": (d, inner), "mlp/linear_2": (inner, d)}  # fmt: skip
    arrays: dict[str, Any] = {
        "token_embed/embeddings": random.normal(size=(4, d)).astype(np.float32),
        "pos_embed/embeddings": random.normal(size=(6, d)),
        "unembed": random.normal(size=(d, 3)),
        "heads": np.array(heads),
        "causal": np.array(causal),
        "tokens": np.array(["BOS", "x", "y", "z"]),
        "outputs": np.array(["0", "1", "2"]),
    }
    for layer, (name, shape) in product(range(2), sides.items()):
        arrays[f"transformer/layer_{layer}/{name}/w"] = random.normal(size=shape)
        arrays[f"transformer/layer_{layer}/{name}/b"] = random.normal(size=shape[1])
    model = byhand.open_model(saved(tmp_path, arrays))
    assert (len(model.spec.blocks), model.spec.causal, model.dimensions.stream) == (2, causal, ())
    logits = byhand.trace(model, "BOS z x y", numbers="float64")["logits"].array
    assert np.abs(logits - forward(arrays, [0, 3, 1, 2], causal)).max() < 1e-12


def test_the_stream_has_the_names_of_the_program_and_a_model_file_keeps_them() -> None:
    model = byhand.open_model(PROGRAM)
    assert model.dimensions.stream[:4] == ("one", "tokens:BOS", "tokens:a", "tokens:b")
    again = parse_model(write_model(model))
    assert again.dimensions == model.dimensions
    for name, tensor in model.weights.items():
        assert (again.weights[name].data == tensor.data).all()


@pytest.mark.parametrize(
    ("change", "where", "expected"),
    [
        ({f"{LAYER}attn/key/b": None}, f"{LAYER}attn/key/b", "an array"),
        ({"heads": None}, "heads", "a whole number of at least 1"),
        ({"heads": np.array(2)}, "heads", "a divisor of 9"),
        ({"tokens": np.array([1, 2, 3])}, "tokens", "a row of words"),
        ({"outputs": None}, "outputs", "a row of words"),
        ({"unembed": np.array(["x"])}, "unembed", "numbers"),
        ({"unembed": np.zeros(3)}, "unembed", "a matrix"),
        ({"unembed": np.zeros((16, 3))}, "weights.head", "16×2 (d × outputs)"),
        ({"noise": np.zeros(3)}, "noise", None),
        ({"tokens": np.array(["a", "a", "b"])}, "vocabulary", None),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, arrays: dict[str, Any], change: dict[str, Any], where: str, expected: str | None
) -> None:
    changed = {name: data for name, data in (arrays | change).items() if data is not None}
    path = saved(tmp_path, changed)
    with pytest.raises(InputError) as caught:
        byhand.open_model(path)
    assert str(caught.value.where).startswith(f"{path}: {where}"), caught.value
    if expected is not None:
        assert caught.value.expected == expected


def test_nothing_is_unpickled(
    tmp_path: Path, arrays: dict[str, Any], byhand: Callable[..., Outcome]
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays, extra=np.array([{}], dtype=object))  # type: ignore[arg-type]
    (tmp_path / "broken.npz").write_bytes(b"PK no zip")
    for name in ("bad.npz", "broken.npz"):
        outcome = byhand("trace", str(tmp_path / name))
        assert (outcome.status, outcome.out) == (2, "")
        assert "nothing is unpickled" in " ".join(outcome.err.split())
        assert "Traceback" not in outcome.err
