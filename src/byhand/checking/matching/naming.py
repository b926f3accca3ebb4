"""What a name of the claims stands for: a step, a weight or a count, and whose name it is.

Whose name it is says in which order the axes may come: `layouts`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from byhand import names
from byhand.checking.counts import known_counts
from byhand.errors import nearest
from byhand.model import Model
from byhand.plan import WEIGHT, Plan
from byhand.spec import Parameter, parameters

BYHAND, LENS, HUGGING_FACE, CACHE = "byhand", "transformer_lens", "huggingface", "cache"
COUNT = "count."
AROUND = ("module.", "base_model.model.")  # in front of a module, by DataParallel and by peft
ENDINGS = (".output[0]", ".output.0", ".output")  # of what a module gives
MOST_HINTS = 40  # names for which near ones are looked for: it takes a while
_PAST = re.compile(r"(?:past|present)(?:_key_values?)?\.(\d{1,6})\.(key|value)s?")


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for."""

    address: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    style: str
    op: str = ""

    @property
    def step(self) -> bool:
        """Whether the name stands for a step, and not for a weight or a count."""
        return not self.address.startswith((WEIGHT, COUNT))


class Known:
    """Every name that stands for something in this model, at one length.

    `instead` are names that stand for another step in these claims than they usually do.
    """

    def __init__(self, model: Model, plan: Plan, instead: Mapping[str, str] | None = None) -> None:
        self.model = model
        self.plan = plan
        self.instead = instead or {}
        self._hints = MOST_HINTS

    def look_up(self, name: str) -> Found | None:
        """What the name stands for; None for an unknown one."""
        return (
            self._step(name, BYHAND)
            or self._weight(name)
            or self._count(name)
            or (self._foreign(name))
        )

    def _step(self, name: str, style: str) -> Found | None:
        if name not in self.plan.known:
            return None
        step = self.plan[name]
        return Found(step.address, step.axes, step.shape, style, step.op)

    def _weight(self, name: str) -> Found | None:
        own = self._weights.get(name.removeprefix(WEIGHT)) if name.startswith(WEIGHT) else None
        parameter = own or self._foreign_weights.get(unwrapped(name))
        if parameter is None:
            return None
        address = WEIGHT + parameter.name
        return Found(address, parameter.axes, parameter.shape, BYHAND)

    def _count(self, name: str) -> Found | None:
        known = name.startswith(COUNT) and name in self._counts
        return Found(name, (), (), BYHAND) if known else None

    def _foreign(self, name: str) -> Found | None:
        for ending in ("", *ENDINGS):
            if not name.endswith(ending):
                continue
            plain = unwrapped(name.removesuffix(ending))
            if (address := self._steps.get(plain)) is not None:
                return self._step(address, LENS if "hook_" in plain else HUGGING_FACE)
            if ending and (found := self._step(plain, BYHAND)):
                return found
        return self._past(unwrapped(name))

    def _past(self, name: str) -> Found | None:
        """Keys and values as a cache holds them: those that the scores and the mixing read."""
        match = _PAST.fullmatch(name)
        if match is None:
            return None
        step, role = ("scores", "k") if match[2] == "key" else ("mixed", "v")
        at = f"block.{match[1]}.attn.{step}"
        if at not in self.plan.known:
            return None
        return self._step(self.plan[at].inputs[role], CACHE)

    # ------------------------------------------------------------------ what there is

    @cached_property
    def _steps(self) -> Mapping[str, str]:
        return {**names.steps(self.plan.spec, self.plan.known), **self.instead}

    @cached_property
    def _weights(self) -> Mapping[str, Parameter]:
        return {parameter.name: parameter for parameter in parameters(self.plan.spec)}

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        return known_counts(self.model)

    @cached_property
    def _foreign_weights(self) -> Mapping[str, Parameter]:
        """Tensors under the names that checkpoints have for them."""
        if self.model.family is None:
            return {}
        from byhand.models.huggingface.families import FAMILIES

        called = FAMILIES[self.model.family][1]
        known = self._weights
        found = {called.embedding: "embed.token"}
        found |= {theirs: ours for ours, theirs in called.outside.items()}
        for layer in range(len(self.plan.spec.blocks)):
            found |= {
                f"{called.layer}{layer}.{theirs}": f"block.{layer}.{ours}"
                for ours, theirs in called.inside.items()
            }
        found |= {called.prefix + theirs: ours for theirs, ours in found.items()}
        head = "head" if "head" in known else "embed.token"
        found |= dict.fromkeys(called.heads, head)
        return {theirs: known[ours] for theirs, ours in found.items() if ours in known}

    # ------------------------------------------------------------------ near names

    def hint(self, name: str) -> str | None:
        """The known names nearest to an unknown one, of the style it seems to have."""
        if not self._hints:
            return None
        self._hints -= 1
        return nearest(name[:120], self._pool(unwrapped(name)))

    def _pool(self, name: str) -> list[str]:
        if name.startswith(COUNT):
            return list(self._counts)
        if name.startswith(WEIGHT):
            return [WEIGHT + known for known in self._weights]
        lens = name.startswith(("blocks.", "unembed.", "ln_final.")) or "hook_" in name
        for theirs in (True, False):
            pool = [known for known in self._steps if theirs is ("hook_" in known)]
            if lens is theirs and (lens or self._modular(name)):
                weights = list(self._foreign_weights) if name.endswith(("weight", "bias")) else []
                return pool + weights
        return list(self.plan.known)

    def _modular(self, name: str) -> bool:
        """Whether it looks like a module's name."""
        first = {known.partition(".")[0] for known in self._steps if "hook_" not in known}
        return name.partition(".")[0] in first


def unwrapped(name: str) -> str:
    """The name without what is wrapped around a module: `module.`, `_orig_mod.`"""
    name = names.without_wrappers(name)
    for prefix in AROUND * 2:
        name = name.removeprefix(prefix)
    return name
