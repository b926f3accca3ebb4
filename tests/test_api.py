"""The public face: about ten names, complete, sorted, and cheap to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import pytest

import byhand


def test_the_exports_are_complete_and_sorted() -> None:
    assert byhand.__all__ == sorted(byhand.__all__)
    assert dir(byhand) == byhand.__all__
    for name in byhand.__all__:
        assert getattr(byhand, name) is not None
    assert set(byhand.__all__) == {*byhand._HOMES, "__version__"}


def test_what_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'traces'"):
        byhand.traces  # noqa: B018


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


def test_errors_can_be_caught_by_their_base() -> None:
    with pytest.raises(byhand.ByhandError):
        byhand.trace("tiny", "z")
    assert issubclass(byhand.Undecided, byhand.ByhandError)
