"""One config, worked out by the transformers library and by byhand, and what differs."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

import byhand
from benchmarks.families.lifted import lifted
from benchmarks.families.registry import NEAR, Case
from byhand import forward
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.models import open_model, open_spec
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.floats import Floats
from byhand.parameters import learned
from byhand.plan import Plan

Array = npt.NDArray[np.float64]
LEARNED_TABLES = ("correction_bias", "final_logits_bias")  # buffers of the library
TINY = Fraction(1, 10**30)  # how wide an enclosure may be that stands for the truth
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
    source: list[int] | None = None  # what the encoder reads
    segments: list[int] | None = None

    @property
    def plan(self) -> Plan:
        source = None if self.source is None else len(self.source)
        return forward.plan(self.ours.spec, len(self.ids), source=source, segments=self.segments)

    def inputs(self, ids: list[int] | None = None) -> dict[str, Any]:
        """What the library is called with."""
        text = torch.tensor([self.ids if ids is None else ids])
        if self.source is not None:
            return {"input_ids": torch.tensor([self.source]), "decoder_input_ids": text}
        kinds = {} if self.segments is None else {"token_type_ids": torch.tensor([self.segments])}
        return {"input_ids": text, **kinds}


def auto(case: Case) -> Any:
    """The library's class for models of a case."""
    if case.masked:
        return transformers.AutoModelForMaskedLM
    if case.source is not None:
        return transformers.AutoModelForSeq2SeqLM
    return transformers.AutoModelForCausalLM


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
    with lifted(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the library's own code
        model = auto(case).from_config(config, dtype=torch.float64, experts_implementation="eager")
    if case.own_head:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if hasattr(module, "create_weight"):
                module.weight.copy_(waves(*module.weight.shape))
        tables = [each for each in model.named_buffers() if each[0].endswith(LEARNED_TABLES)]
        for name, weight in (*model.named_parameters(), *tables):
            if not weight.requires_grad and weight.ndim > 1 and "position" in name:
                continue  # sines and cosines
            drawn = torch.randn(weight.shape, generator=noise)
            gain = weight.ndim == 1 and name.endswith("weight")
            drawn = 1 + drawn / 4 if gain else drawn / math.sqrt(max(weight.shape[-1], 4))
            weight.copy_(drawn.float())
    return model.eval()


def waves(rows: int, width: int) -> torch.Tensor:
    """The sines of each position, then its cosines."""
    place = torch.arange(rows, dtype=torch.float64)[:, None]
    angle = place / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


@contextmanager
def pair(case: Case, seed: int = 0) -> Iterator[Pair]:
    """The model of a case on both sides; its folder lasts as long as the context."""
    theirs = made(case, seed)
    with tempfile.TemporaryDirectory() as folder:
        narrow = deepcopy(theirs).float()  # tables of the other one stay in float64
        narrow.config.dtype = torch.float32
        narrow.save_pretrained(folder, save_original_format=not case.stacked)
        noise = np.random.default_rng(seed)
        ids = noise.integers(0, theirs.config.get_text_config().vocab_size, case.length).tolist()
        ours = open_model(Path(folder))
        ids, *beside = drawn(case, ours, ids)
        yield Pair(case, theirs, ours, Path(folder), ids, seed, *beside)


def drawn(case: Case, model: Model, ids: list[int]) -> tuple[list[int], Any, Any]:
    """The text, the source and the segments of a case."""
    noise = np.random.default_rng(len(ids))
    kinds = model.spec.segments
    segments = None if kinds is None else noise.integers(0, kinds, len(ids)).tolist()
    if case.masked:  # RoBERTa counts no position for padding, wherever it stands
        pad = case.settings.get("pad_token_id")
        ids = [each if each != pad else (each + 1) % model.spec.vocab for each in ids]
    if case.source is None:
        return ids, None, segments
    words = len(model.source_vocabulary)
    first = [*model.start, *(each % model.spec.vocab for each in ids)][: len(ids)]
    return first, noise.integers(0, words, case.source).tolist(), segments


# ------------------------------------------------------------------ float64 and balls


def library(pair: Pair) -> tuple[list[Array], Array]:
    """The library's hidden states and logits in float64."""
    with torch.no_grad(), lifted():
        cache = {} if pair.case.masked else {"use_cache": False}
        found = pair.theirs(**pair.inputs(), output_hidden_states=True, **cache)
    states = found.get("hidden_states")
    if states is None:
        states = (*found.encoder_hidden_states, *found.decoder_hidden_states)
    return [x[0].numpy() for x in states], found.logits[0].numpy()


def hidden_steps(pair: Pair) -> list[str]:
    """The steps of byhand that are the library's hidden states, the last of them normed."""
    spec, known = pair.ours.spec, pair.plan.known
    found = []
    for stack, side in (("encoder.", spec.encoder), ("", spec)):
        if side is not None:
            layers = len(side.blocks)
            ends = ("head.projected", "final.norm.out", f"stream.{layers}")
            last = next(f"{stack}{step}" for step in ends if f"{stack}{step}" in known)
            found += [known[f"{stack}stream.{layer}"] for layer in range(layers)] + [known[last]]
    return found


def by_hand(pair: Pair) -> tuple[list[Array], Array]:
    """byhand's hidden states and logits in float64."""
    numbers = Floats("float64")
    found = work_out(pair.plan, pair.ours.weights, pair.ids, numbers, source=pair.source)
    return [np.asarray(found[step]) for step in hidden_steps(pair)], np.asarray(found["logits"])


def distance(pair: Pair) -> float:
    """The largest difference of a hidden state or a logit, relative to the largest of its kind."""
    return _distance(by_hand(pair), library(pair))


def _distance(ours: tuple[list[Array], Array], theirs: tuple[list[Array], Array]) -> float:
    assert len(ours[0]) == len(theirs[0]), f"{len(theirs[0])} hidden states, {len(ours[0])} here"
    pairs = zip([*ours[0], ours[1]], [*theirs[0], theirs[1]], strict=True)
    return max(_apart(*each) for each in pairs)


def _apart(ours: Array, theirs: Array) -> float:
    assert ours.shape == theirs.shape, f"{ours.shape}, not {theirs.shape}"
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))


def enclosed(pair: Pair, bits: int) -> list[Any]:
    """byhand's logits as enclosures, worked out with so many bits."""
    numbers = Balls(bits)
    plan = pair.plan.only(["logits"])
    found = work_out(plan, pair.ours.weights, pair.ids, numbers, source=pair.source)["logits"]
    return list(np.ravel(numbers.entries(found.value)))


def contained(pair: Pair, bits: Sequence[int], logits: Array) -> bool:
    """Whether the enclosures of all these bits contain what many more bits give.

    The middles of those are the library's logits in float64, up to rounding.
    """
    truth = enclosed(pair, max(bits) + 60)
    near = np.array([float(each.mid) for each in truth])
    if _apart(near, logits.ravel()) > NEAR or not all(each.rad < TINY for each in truth):
        return False
    return all(
        ball.contains(true)
        for count in bits
        for true, ball in zip(truth, enclosed(pair, count), strict=True)
    )


# ------------------------------------------------------------------ counts and tokens


def counts(pair: Pair) -> tuple[int, int]:
    """The parameters that config.json alone tells, and those of the library that it ever reads."""
    alone = pair.folder if pair.case.own_head else pair.folder / "config.json"
    ours = sum(each.size for each in learned(open_spec(alone)))
    tables = (module for module in pair.theirs.modules() if hasattr(module, "offset"))
    unread = sum(module.offset * module.weight.shape[1] for module in tables)
    unread *= not pair.ours.spec.first_row
    every = dict(pair.theirs.named_parameters())
    beside = {**dict.fromkeys(("cls.predictions.bias", "lm_head.bias"), ".decoder.bias"),
              "model.shared.weight": "model.decoder.embed_tokens.weight"}  # fmt: skip
    for name, used in beside.items():  # untied: what is read is another one
        if any(other.endswith(used) for other in every):
            every.pop(name, None)
    return ours, sum(each.numel() for each in every.values() if each.requires_grad) - unread


def greedy(pair: Pair, count: int = 6) -> tuple[list[int], list[int]]:
    """The next tokens of both, each chosen after all before it, without a cache.

    Of an encoder, the words at all places.
    """
    if pair.case.masked:
        numbers = Floats("float64")
        words = work_out(pair.plan, pair.ours.weights, pair.ids, numbers)["next"].value
        return [word.id for word in words], library(pair)[1].argmax(-1).tolist()
    texts = [list(pair.ids[:3]), list(pair.ids[:3])]
    for _token in range(count):
        with torch.no_grad(), lifted():
            found = pair.theirs(**pair.inputs(texts[1]), use_cache=False)
        texts[1].append(int(found.logits[0, -1].argmax()))
    endless = replace(pair.ours, ends=())
    source = None if pair.source is None else " ".join(map(str, pair.source))
    made = byhand.generate(endless, " ".join(map(str, texts[0])), count=count, source=source)
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
        model: Any = auto(pair.case).from_pretrained(
            pair.folder,
            dtype=torch.float32,
            attn_implementation=attention,
            experts_implementation="eager",
        )
    except ValueError as error:
        if "does not support an attention implementation" in str(error):
            return None
        raise
    capture = byhand.capture(model.eval(), **pair.inputs())
    marking = byhand.check(pair.ours, capture)
    lines = list(marking)
    wrong = [str(line) for line in lines if not line.verdict.follows]
    return Judged(len(lines), tuple(wrong), tuple(each.name for each in marking.unmatched))
