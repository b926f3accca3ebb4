"""The built-in models, number by number, and the door to all models."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from byhand.counting import count
from byhand.errors import ModelFileError, UsageError
from byhand.models import builtin_names, open_model, open_spec
from byhand.numbers.base import Printed, Unknown
from byhand.spec import NormSpec, RotarySpec, over_root


def test_the_built_in_models_have_files_and_the_files_have_names() -> None:
    import byhand.models

    folder = Path(byhand.models.__file__).parent
    assert sorted(path.stem for path in folder.glob("*.yaml")) == sorted(builtin_names())
    for name in builtin_names():
        model = open_model(name)
        assert model.name == name
        assert model.text
        assert model.about.endswith(".")
        assert model.vocabulary.encode(model.text)
        assert open_spec(name) == model.spec


def test_tiny_is_the_model_of_the_documents() -> None:
    model = open_model("tiny")
    block = model.spec.blocks[0]
    assert model.vocabulary.tokens == ("a", "b", "c")
    assert model.text == "a b"
    assert block.attention is not None
    assert block.attention.scale is None
    assert not block.attention.out
    assert block.norm_place == "post"
    assert block.attn_norm == NormSpec("layernorm", Fraction(0))
    assert model.spec.final_norm.kind == "none"
    assert model.spec.tied
    weights = model.weights
    assert weights["embed.token"].data.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert weights["embed.position"].data.tolist() == [[0, 0], [1, 0]]
    for name in ("attn.q", "attn.k", "attn.v", "mlp.hidden", "mlp.out"):
        assert weights[f"block.0.{name}"].data.tolist() == [[1, 0], [0, 1]]
    assert weights["block.0.attn.norm.gain"].data.tolist() == [1, 1]
    assert weights["block.0.mlp.norm.bias"].data.tolist() == [0, 0]


def test_journey_is_the_model_of_the_document() -> None:
    model = open_model("journey")
    block = model.spec.blocks[0]
    assert model.vocabulary.tokens == ("the", "cat", "sat", "on", "mat", "dog")
    assert (model.text, model.target) == ("the cat sat on", "mat")
    assert block.attn_norm == NormSpec("layernorm", Fraction(1, 100_000), gain=False, bias=False)
    assert block.norm_place == "pre"
    assert block.attention is not None
    assert block.attention.scale == over_root(4)
    assert model.spec.final_norm.kind == "none"
    weights = model.weights
    assert weights["head"].shape == (4, 6)
    # The sum of each matrix of the document.
    sums = {
        "embed.token": "4.8", "embed.position": "0.6", "block.0.attn.q": "2.6",
        "block.0.attn.k": "3.0", "block.0.attn.v": "3.5", "block.0.attn.out": "4.1",
        "block.0.mlp.hidden": "1.9", "block.0.mlp.out": "2.1", "head": "4.5",
    }  # fmt: skip
    assert {name: weights[name].data.sum() for name in weights} == {
        name: Fraction(total) for name, total in sums.items()
    }
    assert weights["block.0.attn.q"].data[2].tolist() == [
        Fraction(1, 10), Fraction(-1, 10), Fraction(1, 2), Fraction(1, 5),
    ]  # fmt: skip


def test_the_walkthrough_knows_what_was_printed_and_nothing_more() -> None:
    model = open_model("abc-walkthrough")
    weights = model.weights
    assert model.vocabulary.kind == "characters"
    assert model.vocabulary.encode("ABC") == (0, 1, 2)
    assert model.spec.layout == "out_in"
    assert weights["head"].shape == (3, 2)
    assert weights["head"].data[0].tolist() == [
        Printed(Fraction(-515, 1000), 4), Printed(Fraction(12707, 10000), 4),
    ]  # fmt: skip
    assert weights["block.0.attn.qkv"].shape == (6, 2)
    assert weights["block.0.mlp.hidden"].shape == (8, 2)
    printed = {"embed.token", "embed.position", "head"}
    for name, tensor in weights.items():
        kind = Printed if name in printed else Unknown
        assert all(isinstance(entry, kind) for entry in tensor.data.ravel())


def test_minigpt_is_freshly_initialised() -> None:
    model = open_model("minigpt-init")
    spec, weights = model.spec, model.weights
    assert (spec.d_model, spec.context, len(spec.blocks), spec.vocab) == (64, 32, 2, 64)
    attention = spec.blocks[1].attention
    assert attention is not None
    assert attention.rotary == RotarySpec(16)
    assert (attention.heads, attention.d_head, attention.q_bias) == (4, 16, False)
    assert spec.final_norm == NormSpec("layernorm", Fraction(1, 100_000))
    assert count(spec, weights)["count.total"] == 103_680
    assert len([t for t in model.vocabulary.tokens if not t.startswith("<pad")]) == 60
    assert len(model.vocabulary.encode(model.text or "")) == 8
    assert set(weights["block.1.mlp.norm.gain"].data) == {1}
    assert set(weights["block.0.mlp.hidden_bias"].data) == {0}
    for name, tensor in weights.items():
        if len(tensor.shape) == 2:
            assert tensor.data.dtype == np.float32
            assert 0.019 < tensor.data.std() < 0.021, name
    assert not np.array_equal(weights["block.0.attn.q"].data, weights["block.1.attn.q"].data)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        open_model("tinny")
    assert caught.value.message == "there is no model 'tinny'"
    assert caught.value.hint == "did you mean tiny?"
    assert caught.value.expected == (
        "a model file, the folder of a checkpoint, a .gguf file, "
        "or one of tiny, abc, abc-walkthrough, journey, minigpt-init, minigpt"
    )


@pytest.mark.parametrize("name", ["", "x" * 5000, "a\0b", "no/such/file.yaml"])
def test_a_name_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError if name else (UsageError, ModelFileError)):
        open_model(name)


def test_a_path_opens_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny"  # no built-in: it has a folder
    path.write_text(Path(open_model("tiny").source).read_text("utf-8"), "utf-8")
    assert open_model(path).source == str(path)
    assert open_model(str(path)).spec == open_model("tiny").spec


def test_an_architecture_needs_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text("vocabulary: {size: 9}\nmodel: {d_model: 4, layers: 0}\n", "utf-8")
    assert open_spec(path).vocab == 9
    with pytest.raises(ModelFileError, match=r"the weight embed\.token is missing"):
        open_model(path)


def test_opening_tiny_imports_nothing_heavy() -> None:
    code = (
        "import sys; from byhand.models import open_model; open_model('tiny'); "
        "heavy = ('flint', 'torch', 'safetensors', 'ml_dtypes', 'sympy', 'rich', 'click'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
