"""One config, worked out by the transformers library and by byhand, and what differs."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

import byhand
from benchmarks.families.lifted import lifted
from benchmarks.families.registry import Case
from byhand import forward
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.models import open_model, open_spec
from byhand.numbers.floats import Floats
from byhand.parameters import learned
from byhand.plan import Plan

Array = npt.NDArray[np.float64]
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


@dataclass(frozen=True)
class Pair:
    """A model of the library with random float32 weights, and the same opened by byhand."""

    case: Case
    theirs: Any  # float64, lifted
    ours: Model
    folder: Path
    ids: list[int]
    seed: int

    @property
    def plan(self) -> Plan:
        return forward.plan(self.ours.spec, len(self.ids))


def config_of(case: Case) -> Any:
    """The library's config of a case."""
    return transformers.AutoConfig.for_model(case.kind, **_copied(case.settings))


def _copied(settings: Any) -> Any:
    """The same settings: the library changes the tables it is given."""
    if isinstance(settings, dict):
        return {key: _copied(value) for key, value in settings.items()}
    return [_copied(value) for value in settings] if isinstance(settings, list) else settings


def made(case: Case, seed: int) -> Any:
    """The library's model with random float32 numbers, held and worked out in float64."""
    config = config_of(case)
    config._attn_implementation = case.attention
    with lifted():
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float64, experts_implementation="eager"
        )
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        routing = [pair for pair in model.named_buffers() if pair[0].endswith("correction_bias")]
        for name, weight in [*model.named_parameters(), *routing]:
            drawn = torch.randn(weight.shape, generator=noise)
            gain = weight.ndim == 1 and name.endswith("weight")
            drawn = 1 + drawn / 4 if gain else drawn / math.sqrt(max(weight.shape[-1], 4))
            weight.copy_(drawn.float())
    return model.eval()


@contextmanager
def pair(case: Case, seed: int = 0) -> Iterator[Pair]:
    """The model of a case on both sides; its folder lasts as long as the context."""
    theirs = made(case, seed)
    with tempfile.TemporaryDirectory() as folder:
        theirs.float()
        theirs.config.dtype = torch.float32
        theirs.save_pretrained(folder, save_original_format=not case.stacked)
        theirs = made(case, seed)  # whose tables are in float64
        noise = np.random.default_rng(seed)
        ids = noise.integers(0, theirs.config.get_text_config().vocab_size, case.length).tolist()
        yield Pair(case, theirs, open_model(Path(folder)), Path(folder), ids, seed)


# ------------------------------------------------------------------ float64 and balls


def library(pair: Pair) -> tuple[list[Array], Array]:
    """The library's hidden states and logits in float64."""
    with torch.no_grad(), lifted():
        ids = torch.tensor([pair.ids])
        found = pair.theirs(ids, output_hidden_states=True, use_cache=False)
    return [x[0].numpy() for x in found.hidden_states], found.logits[0].numpy()


def hidden_steps(pair: Pair) -> list[str]:
    """The steps of byhand that are the library's hidden states, the last of them normed."""
    layers, known = len(pair.ours.spec.blocks), pair.plan.known
    ends = ("head.projected", "final.norm.out", f"stream.{layers}")
    last = next(step for step in ends if step in known)
    return [*(known[f"stream.{layer}"] for layer in range(layers)), known[last]]


def by_hand(pair: Pair) -> tuple[list[Array], Array]:
    """byhand's hidden states and logits in float64."""
    found = work_out(pair.plan, pair.ours.weights, pair.ids, Floats("float64"))
    return [np.asarray(found[step]) for step in hidden_steps(pair)], np.asarray(found["logits"])


def distance(pair: Pair) -> float:
    """The largest difference of a hidden state or a logit, relative to the largest of its kind."""
    theirs, logits = library(pair)
    ours, own = by_hand(pair)
    assert len(theirs) == len(ours), f"{len(theirs)} hidden states, {len(ours)} here"
    return max(_apart(a, b) for a, b in zip([*ours, own], [*theirs, logits], strict=True))


def _apart(ours: Array, theirs: Array) -> float:
    assert ours.shape == theirs.shape, f"{ours.shape}, not {theirs.shape}"
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))


def contained(pair: Pair, bits: int) -> bool:
    """Whether balls of these bits contain the logits worked out with 200 bits, and are near."""
    from byhand.numbers.enclosed.balls import Balls

    def logits(precision: int) -> Any:
        numbers = Balls(precision)
        return work_out(pair.plan.only(["logits"]), pair.ours.weights, pair.ids, numbers)["logits"]

    truth, wide = logits(240), logits(bits)
    return all(bool(ball.contains(true)) for true, ball in zip(truth.flat, wide.flat, strict=True))


# ------------------------------------------------------------------ counts and tokens


def counts(pair: Pair) -> tuple[int, int]:
    """The parameters that config.json alone tells, and those of the library that it ever reads."""
    ours = sum(each.size for each in learned(open_spec(pair.folder / "config.json")))
    tables = (module for module in pair.theirs.modules() if hasattr(module, "offset"))
    unread = sum(module.offset * module.weight.shape[1] for module in tables)
    return ours, sum(weight.numel() for weight in pair.theirs.parameters()) - unread


def greedy(pair: Pair, count: int = 6) -> tuple[list[int], list[int]]:
    """The next tokens of both, each chosen after all before it, without a cache."""
    texts = [list(pair.ids[:3]), list(pair.ids[:3])]
    for _token in range(count):
        with torch.no_grad(), lifted():
            found = pair.theirs(torch.tensor([texts[1]]), use_cache=False)
        texts[1].append(int(found.logits[0, -1].argmax()))
    endless = replace(pair.ours, ends=())
    made = byhand.generate(endless, " ".join(map(str, texts[0])), count=count)
    return [*texts[0], *(chosen.id for chosen in made)], texts[1]


# ------------------------------------------------------------------ alarms


@dataclass(frozen=True)
class Judged:
    """A float32 run of the library, captured and checked."""

    lines: int
    wrong: tuple[str, ...]
    unmatched: tuple[str, ...]


def judged(pair: Pair, attention: str) -> Judged | None:
    """What `check` says of the library's float32 run; None where it has no such attention."""
    try:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            pair.folder,
            dtype=torch.float32,
            attn_implementation=attention,
            experts_implementation="eager",
        )
    except ValueError as error:
        if "does not support an attention implementation" in str(error):
            return None
        raise
    capture = byhand.capture(model.eval(), torch.tensor([pair.ids]))
    marking = byhand.check(pair.ours, capture)
    lines = list(marking)
    wrong = [str(line) for line in lines if not line.verdict.follows]
    return Judged(len(lines), tuple(wrong), tuple(each.name for each in marking.unmatched))
