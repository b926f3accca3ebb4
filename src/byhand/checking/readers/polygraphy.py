"""Claims in Polygraphy's JSON: what a runner gave, arrays in base64.  Nothing is unpickled.

`polygraphy run --save-outputs` writes a list of runners, each with its iterations, each with its
outputs by name.  The first iteration of the first runner is read; inputs of `--save-inputs` and
plain mappings from names to such arrays are read as well.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from byhand.checking.claims import Sheet
from byhand.checking.readers.arrays import no_claims, sheet_of_arrays
from byhand.checking.readers.tensors import BROKEN, array_of
from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _

KIND = "polygraphy_class"
OLD_KIND = "__polygraphy_encoded_"
LARGEST = 512 * 2**20  # bytes
MARK = b"polygraphy"


def is_polygraphy(path: Path) -> bool:
    """Whether a JSON file looks like Polygraphy's, by its beginning and its end."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
            size = path.stat().st_size
            file.seek(max(0, size - 4096))
            return MARK in head or MARK in file.read(4096)
    except OSError:
        return False


def read_polygraphy(path: Path) -> Sheet:
    """The claims of Polygraphy's outputs."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(
                _("the file is too large"),
                where=str(path),
                expected=_("at most {count} bytes").format(count=f"{LARGEST:,}"),
            )
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(path),
        ) from None
    except (ValueError, RecursionError):
        raise InputError(_("this is not JSON"), where=str(path)) from None
    found = dict(_arrays(_outputs(data, path), path))
    if not found:
        no_claims(str(path))
    return sheet_of_arrays(str(path), found.items())


def _outputs(data: Any, path: Path) -> Mapping[str, Any]:
    """The outputs of the first iteration of the first runner."""
    if isinstance(data, Mapping) and isinstance(data.get("lst"), list):
        runners = data["lst"]
        pair = runners[0] if runners else None
        first = pair[1] if isinstance(pair, list) and len(pair) == 2 else None
        data = first[0] if isinstance(first, list) and first else None
    elif isinstance(data, list):  # of inputs
        data = data[0] if data else None
    if isinstance(data, Mapping) and isinstance(data.get("outputs"), Mapping):
        data = data["outputs"]
    if not isinstance(data, Mapping):
        raise InputError(
            _("these are not outputs of Polygraphy"),
            where=str(path),
            expected=_("a runner with its outputs by name"),
            found=type(data).__name__,
        )
    return data


def _arrays(outputs: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
    for name, value in outputs.items():
        if name.startswith((KIND, OLD_KIND)):
            continue
        where = f"{path}: {shown(name)}"
        if isinstance(value, Mapping) and isinstance(value.get("values"), Mapping):
            value = value["values"]
        coded = value.get("array") if isinstance(value, Mapping) else None
        if not isinstance(coded, str) or "Tensor" in str(value.get(KIND, "")):
            raise InputError(
                _("this is not an array"),
                where=where,
                expected=_("an array that NumPy saved, in base64"),
                found=shown(str(value.get(KIND, "")) or type(value).__name__)
                if isinstance(value, Mapping)
                else type(value).__name__,
                hint=_("nothing is unpickled: save the outputs as NumPy arrays"),
            )
        yield name, _decoded(coded, where)


def _decoded(text: str, where: str) -> Any:
    try:
        data = base64.b64decode(text, validate=True)
        return array_of(io.BytesIO(data), len(data), where)
    except (binascii.Error, *BROKEN) as error:
        reason = shown(str(error) or type(error).__name__)
        raise InputError(
            _("this is not an array: {reason}").format(reason=reason), where=where
        ) from None
