"""The public face: about ten names, complete, sorted, and cheap to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import UsageError


def test_the_exports_are_complete_and_sorted() -> None:
    assert byhand.__all__ == sorted(byhand.__all__)
    assert dir(byhand) == byhand.__all__
    for name in byhand.__all__:
        assert getattr(byhand, name) is not None
    assert set(byhand.__all__) == {*byhand._HOMES, "__version__"}


def test_what_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tracings'"):
        byhand.tracings  # noqa: B018


def in_a_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_byhand_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'flint', 'click', 'yaml', 'rich', 'torch'}"
    assert in_a_new_process(f"import byhand, sys; print({heavy} & set(sys.modules))") == "set()"


def test_the_demo_imports_neither_rich_nor_torch() -> None:
    code = """
import contextlib, io, sys
from byhand.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main.run(["trace", "tiny"])
print({'rich', 'torch', 'safetensors', 'sympy', 'json'} & set(sys.modules) - {'json'})
"""
    assert in_a_new_process(code) == "set()"


def test_no_module_has_the_name_of_a_public_function() -> None:
    """Importing a submodule sets an attribute of its package, and would hide the function."""
    modules = {module.name for module in iter_modules(byhand.__path__)}
    assert modules & set(byhand.__all__) == set()


def test_a_model_can_be_given_by_name_by_path_or_itself(tmp_path: Path) -> None:
    model = byhand.open_model("tiny")
    path = tmp_path / "mine.yaml"
    source = Path(byhand.__file__).parent / "models" / "tiny.yaml"
    path.write_text(source.read_text("utf-8"), "utf-8")
    for given in ("tiny", model, path, str(path)):
        assert byhand.trace(given, "b")["logits"].value.tolist() == [[-1, 1, 0]]


def test_one_pattern_or_several_prune_the_working() -> None:
    assert list(byhand.trace("tiny", "a", only="embed.token").steps) == ["tokens", "embed.token"]
    assert "logits" not in byhand.trace("tiny", "a", only=["stream.0", "tokens"]).steps


def test_decimals_target_and_heads_are_passed_on() -> None:
    trace = byhand.trace("tiny", "a b", decimals=3, target="c", heads=True)
    assert trace.numbers.name == "decimals 3"
    assert trace.loss is not None
    assert trace["block.0.attn.head_out"].value.shape == (1, 2, 2)


def test_digits_give_enclosures_and_a_proof() -> None:
    trace = byhand.trace("journey", digits=20)
    assert trace.numbers.uniform == "enclosed"
    assert trace.proof is not None
    assert (trace.proof.digits, trace.proof.complete) == (20, True)
    loss = trace.loss
    assert isinstance(loss, byhand.Enclosure)
    exactly = byhand.trace("journey").loss
    assert loss.decimal(20) == exactly.significant(20) == "1.8312926370471089183"
    assert loss.contains(byhand.Enclosure.of(exactly.ball(2000)))
    assert not loss.contains(1.8312926370)
    assert 0 < loss.rad < abs(loss.mid) / 10**20
    assert trace["logits"].register == "enclosed"
    assert repr(trace).endswith("steps, next 'cat', proven>")


def test_digits_of_some_steps_alone() -> None:
    trace = byhand.trace("minigpt", digits=8, only="block.1.attn.mixed")
    assert trace.proof is not None
    assert trace.proof.complete
    assert "logits" not in trace.steps
    assert all(entry.proves(8) for _i, entry in trace["block.1.attn.mixed"].entries())


def test_a_number_of_digits_may_be_one_of_numpy() -> None:
    trace = byhand.trace("tiny", digits=np.int8(50))  # type: ignore[arg-type]
    assert (trace.digits, type(trace.digits)) == (50, int)
    assert trace["block.0.attn.weights[0,1,1]"].decimal(50) == (
        byhand.trace("tiny", digits=50)["block.0.attn.weights[0,1,1]"].decimal(50)
    )


@pytest.mark.parametrize("other", [{"exact": True}, {"decimals": 2}, {"float": "float32"}])
@pytest.mark.parametrize("call", [byhand.trace, byhand.generate])
def test_digits_and_other_numbers_exclude_each_other(call: Any, other: dict[str, Any]) -> None:
    one, two = sorted(["digits", *other], key=["exact", "digits", "decimals", "float"].index)
    with pytest.raises(UsageError, match=f"{one} and {two} exclude each other"):
        call("tiny", "a", digits=5, **other)


def test_generation_with_digits_is_proven() -> None:
    generation = byhand.generate("minigpt", digits=15, count=2)
    assert [chosen.proven for chosen in generation] == [True, True]
    assert generation.digits == 15
    floats = byhand.generate("minigpt", float="float64", count=2)
    for chosen, rounded in zip(generation.choices, floats, strict=True):
        assert chosen.probability.decimal(12) == f"{rounded.probability:.12f}"


def test_floats_and_digits_are_compared() -> None:
    comparison = byhand.compare(
        byhand.trace("minigpt", float="float32"), byhand.trace("minigpt", digits=12)
    )
    assert comparison.differing == ()
    assert 4 < comparison["logits"].usual_digits < 8


def test_errors_can_be_caught_by_their_base() -> None:
    with pytest.raises(byhand.ByhandError):
        byhand.trace("tiny", "z")
    assert issubclass(byhand.Undecided, byhand.ByhandError)


@pytest.mark.parametrize("position", [True, 1.0, "1"])
def test_a_position_is_a_whole_number(position: Any) -> None:
    with pytest.raises(UsageError, match="position"):
        byhand.explain("tiny", position=position)
