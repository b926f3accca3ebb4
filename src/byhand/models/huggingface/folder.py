"""The folder of a checkpoint: its config and the safetensors files of its weights.

Anything else is refused with a hint.  Pickled weights are never opened.
"""

from __future__ import annotations

from pathlib import Path

from byhand.errors import InputError
from byhand.files.mapped import Stored, open_tensors, shown
from byhand.language import _
from byhand.models.huggingface.config import Config, read_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
OTHER = (".h5", ".msgpack", ".gguf", ".ggml", ".onnx", ".npz")


def config_of(path: Path) -> Config:
    """The config of a folder, or a bare config.json."""
    if not path.is_dir():
        return Config(path, read_json(path))
    file = path / CONFIG
    if not _there(file):
        raise InputError(
            _("this folder has no config.json"),
            where=str(path),
            expected=_("a folder with config.json and model.safetensors"),
            found=_listing(path),
            hint=_way_on(path),
        )
    return Config(file, read_json(file))


def name_of(path: Path) -> str:
    """The folder's name, which is the model's name."""
    folder = path if path.is_dir() else path.absolute().parent
    return folder.resolve().name or str(folder)


def is_weights(path: Path) -> bool:
    """Whether the name is that of a weights file, in any format."""
    return path.name.lower().endswith((".safetensors", INDEX, ".bin.index.json", *PICKLED, *OTHER))


def refuse_file(path: Path) -> InputError:
    """The error for a weights file given in place of its folder."""
    if path.name.lower().endswith((".safetensors", INDEX)):
        return InputError(
            _("these are weights without a config.json"),
            where=str(path),
            expected=_("the folder with config.json and model.safetensors"),
            found=path.name,
            hint=_("give the folder: {folder}").format(folder=path.absolute().parent),
        )
    return _refuse_format(path.absolute().parent, path.name)


def without_weights(path: Path) -> InputError:
    """The error for a bare config.json where weights are needed."""
    return InputError(
        _("this is an architecture without weights"),
        where=str(path),
        expected=_("a folder with config.json and model.safetensors"),
        found=path.name,
        hint=_("byhand count and byhand trace --shapes need no weights"),
    )


def has_weights(folder: Path) -> bool:
    """Whether the folder has safetensors files."""
    return _there(folder / WEIGHTS) or _there(folder / INDEX)


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """Every tensor of the folder's weights by its name in the files."""
    if _there(folder / WEIGHTS):
        return open_tensors(folder / WEIGHTS)
    if _there(folder / INDEX):
        return _shards(folder)
    names = _names(folder)
    for name in names:
        if name.lower().endswith((*PICKLED, *OTHER)) and not name.lower().endswith(".gguf"):
            raise _refuse_format(folder, name)
    raise InputError(
        _("this folder has no weights"),
        where=str(folder),
        expected=_("{single}, or {index} and its parts").format(single=WEIGHTS, index=INDEX),
        found=_listing(folder),
        hint=_way_on(folder),
    )


def _shards(folder: Path) -> dict[str, Stored]:
    """The tensors of all parts, each from the file that the index names."""
    index = Config(folder / INDEX, read_json(folder / INDEX))
    table = index.within("weight_map")
    if table is None:
        raise index.refuse("weight_map", _("the file of each tensor"))
    parts: dict[str, dict[str, Stored]] = {}
    for tensor, file in table.table.items():
        if not isinstance(file, str) or not _plain_name(file):
            raise table.refuse(shown(tensor), _("a safetensors file name without a folder"), file)
        if file not in parts:
            parts[file] = open_tensors(folder / file)
        if tensor not in parts[file]:
            raise InputError(
                _("the tensor {name} is not in its file").format(name=shown(tensor)),
                where=str(folder / file),
                expected=_("{name}, as {index} says").format(name=shown(tensor), index=INDEX),
                found=_some(list(parts[file])),
            )
    for file, tensors in parts.items():
        for tensor in tensors:
            if table.table.get(tensor) != file:
                raise InputError(
                    _("the tensor {name} is not in the index").format(name=shown(tensor)),
                    where=str(folder / file),
                    expected=_("only tensors that {index} names for this file").format(index=INDEX),
                    found=shown(tensor),
                )
    return {tensor: parts[file][tensor] for tensor, file in table.table.items()}


def _plain_name(name: str) -> bool:
    return (
        name.endswith(".safetensors")
        and Path(name).name == name
        and "\\" not in name
        and "\0" not in name
        and len(name) <= 255
    )


def _refuse_format(folder: Path, name: str) -> InputError:
    pickled = name.lower().endswith((*PICKLED, ".bin.index.json"))
    return InputError(
        _("{file} is pickled, and a pickled file can run anything when opened").format(file=name)
        if pickled
        else _("byhand does not read the format of {file}").format(file=name),
        where=str(folder / name),
        expected="….safetensors",
        found=name,
        hint=_("convert it where you trust it, with transformers: {code}").format(
            code=f"AutoModelForCausalLM.from_pretrained({str(folder)!r})"
            ".save_pretrained('converted')"
        ),
    )


def _way_on(folder: Path) -> str | None:
    packed = [name for name in _names(folder) if name.lower().endswith(".gguf")]
    if packed:
        return _("give the file: {file}").format(file=folder / packed[0])
    if _there(folder / ADAPTER):
        return _("this is an adapter: merge it into its model first (merge_and_unload in peft)")
    if _there(folder / "snapshots"):
        return _("this is a cache: give one of the folders under snapshots")
    return None


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(
            _("the folder cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(folder),
        ) from None


def _listing(folder: Path) -> str:
    return _some(_names(folder))


def _some(names: list[str]) -> str:
    return ", ".join(map(shown, names[:8])) + (", …" if len(names) > 8 else "") or _("nothing")
