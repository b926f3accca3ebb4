"""The built-in models, and the one door to any model: `open_model`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from byhand.errors import ByhandError, UsageError, nearest
from byhand.files import read_model, read_spec
from byhand.language import _
from byhand.model import Model
from byhand.options import does_not_fit
from byhand.spec import ModelSpec
from byhand.weights import Weights

_FOLDER = Path(__file__).parent
_BUILT_IN = (
    "tiny",
    "abc",
    "abc-walkthrough",
    "journey",
    "minigpt-init",
    "minigpt",
)  # from the smallest


def builtin_names() -> tuple[str, ...]:
    """The names of the built-in models, from the smallest to the largest."""
    return _BUILT_IN


def is_builtin(model: Model) -> bool:
    """Whether an opened model is a built-in one, not merely one of the same name."""
    return model.name in _BUILT_IN and _FOLDER in Path(model.source).resolve().parents


def called(model: str | Path | Model) -> str:
    """A model's argument on the command line: its name, or its path."""
    if not isinstance(model, Model):
        return str(model)
    lies_somewhere = bool(model.source) and Path(model.source).exists()
    return model.source if lies_somewhere and not is_builtin(model) else model.name


def open_model(name_or_path: str | Path) -> Model:
    """The model: `name_or_path` is a built-in name, a model file or the folder of a checkpoint.

    A .gguf file holds a model as llama.cpp keeps it, an .npz file a compiled program
    (docs/compiled-programs.md).

    >>> open_model("journey")
    <Model journey: 160 parameters, 6 tokens>
    """
    path = _find(name_or_path)
    if path.suffix == ".npz":
        from byhand.models.programs import read_program

        return read_program(path)
    if _gguf(path):
        from byhand.models import gguf

        return gguf.open_file(path)
    if _checkpoint(path):
        from byhand.models import huggingface

        return huggingface.open_checkpoint(path)
    return read_model(path)


def open_spec(name_or_path: str | Path) -> ModelSpec:
    """The architecture alone: a model file without weights, or a bare config.json, is enough."""
    path = _find(name_or_path)
    if path.suffix == ".npz":
        return open_model(path).spec
    if _gguf(path):
        from byhand.models import gguf

        return gguf.read_spec(path)
    if _checkpoint(path):
        from byhand.models import huggingface

        return huggingface.read_spec(path)
    return read_spec(path)


def weights_of(name_or_path: str | Path) -> Weights | None:
    """The weights, none of them read yet; None where there are none, or none that byhand reads."""
    try:
        return open_model(name_or_path).weights
    except ByhandError:  # `open_spec` reports errors of an architecture
        return None


def is_checkpoint(name_or_path: str | Path) -> bool:
    """Whether this is a checkpoint (a folder, its config.json, a GGUF file), not a model file."""
    return _checkpoint(_find(name_or_path))


def _gguf(path: Path) -> bool:
    return path.suffix.lower() == ".gguf" and not path.is_dir()


def _checkpoint(path: Path) -> bool:
    if path.suffix in (".yaml", ".yml", ".npz") and path.is_file():
        return False
    from byhand.models import huggingface  # only now: model files do not need it

    return huggingface.recognises(path)


def _find(name_or_path: str | Path) -> Path:
    expected = _(
        "a model file, the folder of a checkpoint, a .gguf file, or one of {names}"
    ).format(names=", ".join(_BUILT_IN))
    if not isinstance(name_or_path, str | PathLike):
        raise does_not_fit("model", expected, name_or_path)
    if name_or_path in _BUILT_IN:
        return _FOLDER / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    try:
        there = path.exists() and name_or_path != ""
    except (OSError, ValueError):  # too long a name, or a NUL in it
        there = False
    if there:
        return path
    shown = str(name_or_path)
    raise UsageError(
        _("there is no model {name}").format(name=repr(shown[:80])),
        expected=expected,
        found=shown[:80] or _("nothing"),
        hint=nearest(shown[:80], _BUILT_IN),
    )
