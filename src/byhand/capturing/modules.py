"""Modules of a torch model, matched to steps despite any wrappers.

`torch.compile`, FSDP and checkpointing insert a name in the middle; DataParallel, peft and other
classes add a prefix.  Both are removed before a name is looked up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from byhand.errors import UsageError, nearest
from byhand.language import _
from byhand.models.huggingface.families import FAMILIES
from byhand.names import FOREIGN, PREFIXES, ROWS, without_wrappers
from byhand.names.derived import derived
from byhand.names.families import MODULES


@dataclass(frozen=True)
class Modules:
    """The modules of a model by the names they have without their wrappers."""

    named: Mapping[str, Any]  # as named_modules() has them
    prefix: str  # of the inner model, with its dot
    plain: Mapping[str, Any]  # modules of the inner model, by their names without wrappers
    family: str = ""  # whose names they have

    @classmethod
    def of(cls, model: Any) -> Modules:
        """The modules of a torch model by their names, without wrappers and the common prefix."""
        named = dict(model.named_modules())
        # a wrapper and its module have one name; the module comes later and gets the hook
        plain = {without_wrappers(name): module for name, module in named.items()}
        # TransformerLens identifies its hooks by name, anywhere in the tree
        plain = dict(getattr(model, "hook_dict", None) or plain)
        family = next(filter(None, map(family_of, (model, *plain.values()))), "")
        prefix = _prefix(plain, family)
        return cls(named, prefix, {
            name.removeprefix(prefix): module
            for name, module in plain.items() if name.startswith(prefix)
        }, family)  # fmt: skip

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The modules of the inner model, by their plain names."""
        yield from self.plain.items()

    @property
    def inner(self) -> Any:
        """The inner model; the whole model if nothing wraps it."""
        around = self.prefix.rstrip(".")
        return [module for name, module in self.named.items()
                if without_wrappers(name) == around][-1]  # fmt: skip

    @property
    def compiled(self) -> bool:
        """Whether torch.compile was applied to any of them."""
        return any(
            "_orig_mod" in name.split(".") or getattr(module, "_compiled_call_impl", None)
            for name, module in self.named.items()
        )

    def check(self, names: Iterable[str]) -> None:
        """Refuses names of modules that do not exist."""
        for name in names:
            if name not in self.named:
                raise UsageError(
                    _("the model has no module {name}").format(name=repr(name)),
                    expected=_("names of modules, as named_modules() has them"),
                    found=repr(name),
                    hint=nearest(name, self.named),
                )


def _prefix(names: Iterable[str], family: str) -> str:
    """The prefix of the names of the inner model.

    It is the shortest prefix after which most names are known.  Names like `norm` are common, so a
    module of a layer must follow the prefix.
    """
    known: Counter[str] = Counter()
    layered = {""}
    for name in names:
        for start in (0, *(match.end() for match in re.finditer(r"\.", name))):
            if (row := row_of(name[start:], family)) is not None:
                known[name[:start]] += 1
                if row[1] is not None:
                    layered.add(name[:start])
    most = max((known[prefix] for prefix in layered), default=0)
    best = (prefix for prefix in layered if known[prefix] == most)
    found = sorted(best, key=lambda prefix: (len(prefix), prefix))
    others = [prefix for prefix in found if not prefix.startswith(found[0])]
    if most and others:
        two = ", ".join(prefix.rstrip(".") for prefix in (found[0], *others))
        raise UsageError(
            _("there is more than one model inside this one"),
            expected=_("one model inside a wrapper"),
            found=two,
            hint=_("capture one of them by itself"),
        )
    return found[0] if most else ""


Row = tuple[str, int | None]  # the address of a step with L for its layer, and the layer


@cache
def _patterns(family: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Every foreign name as a pattern for any layer, with its step; the family's own ones first."""
    found: dict[str, str] = {}
    for each in derived(family):
        prefixes = ("",) if each.beside else _prefixes(family)
        found |= {prefix + each.module: each.address for prefix in prefixes}
    for row in ROWS:
        for style in FOREIGN:
            for name in row.names(style):
                for prefix in ("", *PREFIXES):
                    if name.startswith(prefix):
                        found.setdefault(name.removeprefix(prefix), row.address)
    return tuple(
        (re.compile(re.sub(r"\\\.L\\\.|\\\.L$", _layer, re.escape(name))), address)
        for name, address in found.items()
    )


def _prefixes(family: str) -> tuple[str, ...]:
    names = MODULES[family]
    return (names.prefix, *names.prefixes, "")


def _layer(match: re.Match[str]) -> str:
    return r"\.(\d+)" + (r"\." if match[0].endswith(".") else "")


@cache
def row_of(name: str, family: str = "") -> Row | None:
    """The step of a module's name, and its layer; None if it has none."""
    for pattern, address in _patterns(family):
        if match := pattern.fullmatch(name):
            return (address, int(match[1]) if match.groups() else None) if address else None
    return None


def family_of(model: Any) -> str:
    """The family whose names a model of transformers has; nothing for other models."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    found = FAMILIES.get(kind) if isinstance(kind, str) else None
    return found.names if found else ""
