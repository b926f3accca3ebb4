"""The file of a checkpoint's kept bounds: where it lies, and whether it may be believed.

It lies beside the checkpoint, or in the user's cache folder where that cannot be written to.  A
wrong bound would make a wrong proof, so a file counts only if it was written here: it begins with
a seal (HMAC-SHA256) by a secret that lies in the user's cache folder and never leaves it.  A file
that came along with somebody's checkpoint, or is damaged, is ignored, and a warning says so.

BYHAND_CACHE=off keeps nothing; BYHAND_CACHE=FOLDER keeps everything there.
"""

from __future__ import annotations

import hmac
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp

from byhand.drafts import write_whole
from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.enclosed.limbs.kept_bounds import KeptBounds, Unreadable, keeping

NAME = ".byhand-bounds"
VARIABLE = "BYHAND_CACHE"
WORTH = 1.0  # seconds that new bounds must have taken before a file is written
HEAD = b"byhand bounds 1\n"
SEAL = 32  # bytes


class IgnoredBounds(UserWarning):
    """The warning that a file of kept bounds is not used: they are worked out again."""


@contextmanager
def kept_bounds(source: str | Path) -> Iterator[KeptBounds | None]:
    """Inside, bounds of the weights of a checkpoint are read from its file and added to it.

    `source` is where the model was read from; None is given where nothing is kept.
    """
    places = places_of(source)
    if not places:
        yield None
        return
    kept = _read(places) or KeptBounds()
    worth = kept.seconds
    try:
        with keeping(kept):
            yield kept
    finally:
        if kept.changed and (kept.seconds - worth >= WORTH or any(p.exists() for p in places)):
            write(kept, places)


def places_of(source: str | Path) -> list[Path]:
    """Where the file may lie, the best place first; nowhere for models that are no checkpoint."""
    said = os.environ.get(VARIABLE, "")
    if said.lower() in ("off", "0", "no"):
        return []
    checkpoint = Path(source) if str(source) else None
    if checkpoint is None or not checkpoint.exists():
        return []
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    own = sha256(str(folder.resolve()).encode()).hexdigest()[:24]
    if said:
        return [Path(said).expanduser() / own]
    return [folder / NAME, user_folder() / own]


def user_folder() -> Path:
    """The user's cache folder for byhand."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "byhand"


def _read(places: list[Path]) -> KeptBounds | None:
    for path in places:
        with suppress(OSError):
            data = path.read_bytes()
            head, seal, rest = data[: len(HEAD)], data[len(HEAD) :][:SEAL], data[len(HEAD) + SEAL :]
            secret = _secret(make=False)
            if head != HEAD or secret is None or not hmac.compare_digest(seal, _seal(secret, rest)):
                _ignored(path, _("it was not written here, or it is damaged"))
                continue
            try:
                found = KeptBounds.from_bytes(rest)
            except Unreadable:
                _ignored(path, _("it is damaged"))
                continue
            if found is not None:  # otherwise an older byhand made it: it is written anew
                return found
    return None


def _ignored(path: Path, reason: str) -> None:
    text = _("the kept bounds in {path} are not used ({reason}); they are worked out again")
    warnings.warn(text.format(path=path, reason=reason), IgnoredBounds, stacklevel=2)


def write(kept: KeptBounds, places: list[Path]) -> Path | None:
    """Writes the file to the first place that can be written to; None where none can."""
    secret = _secret(make=True)
    if secret is None:
        return None
    rest = kept.to_bytes()
    data = HEAD + _seal(secret, rest) + rest
    for path in places:
        with suppress(OSError, ByhandError):
            write_whole(path, data, make_folder=path.parent != places[0].parent or len(places) == 1)
            kept.changed = False
            return path
    return None


def _seal(secret: bytes, data: bytes) -> bytes:
    return hmac.new(secret, data, sha256).digest()


def _secret(*, make: bool) -> bytes | None:
    """The secret of this user; None where there is none, and none can be made."""
    path = user_folder() / "secret"
    with suppress(OSError):
        found = path.read_bytes()
        if len(found) >= SEAL:
            return found
    if not make:
        return None
    with suppress(OSError, ByhandError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_secret(path)
        found = path.read_bytes()
        return found if len(found) >= SEAL else None
    return None


def _make_secret(path: Path) -> None:
    """A secret for this user, there as a whole or not at all; one that is there stays."""
    place, draft = mkstemp(dir=path.parent, prefix=path.name)  # which its user alone may read
    try:
        with os.fdopen(place, "wb") as file:
            file.write(secrets.token_bytes(SEAL))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
