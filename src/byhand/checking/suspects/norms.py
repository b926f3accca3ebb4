"""Mistakes in a normalisation: eps, variance, gain and bias, or the kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from byhand.checking.suspects.casts import format_of
from byhand.checking.suspects.mistakes import Line, Mistake, first, made, number, reading, setting
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

NORM_OPS = ("mean", "center", "mean_square", "root", "normalize", "affine")
EPS = tuple(map(Fraction, ("1e-5", "1e-6", "0", "1e-12", "1e-8", "1e-3", "1e-7", "1e-4")))


@dataclass(frozen=True)
class Group:
    """The lines of one norm: all, and those in the region, by the last part of their names."""

    at: str
    lines: Mapping[str, Step]  # of the plan
    open: Mapping[str, Step]  # of the region

    @property
    def layernorm(self) -> bool:
        """Whether the norm is a LayerNorm; otherwise it is an RMSNorm."""
        return "centered" in self.lines

    @property
    def square(self) -> str:
        """The name of the line that holds the mean square."""
        return "variance" if self.layernorm else "mean_square"

    @property
    def root(self) -> str:
        """The name of the line that holds the divisor."""
        return "std" if self.layernorm else "rms"

    @property
    def source(self) -> str:
        """What is normalised."""
        return self.lines["mean" if self.layernorm else "mean_square"].inputs["x"]

    @property
    def out(self) -> Step:
        """The last line."""
        return self.lines.get("out") or self.lines["normalized"]

    @property
    def eps(self) -> Fraction:
        """The eps under the root."""
        eps: Fraction = self.lines[self.root].attributes["eps"]
        return eps

    @property
    def width(self) -> int:
        """The number of entries of a row."""
        return self.lines["normalized"].shape[-1]

    def copied(self, draft: Draft, x: str, before: str) -> str:
        """Writes the norm of another input before a line; returns the address of its output."""
        new: dict[str, str] = {self.source: x}
        for step in self.lines.values():
            reads = {role: new.get(read, read) for role, read in step.inputs.items()}
            new[step.address] = draft.copy(before, step, **reads)
        return new[self.out.address]

    def normalise(self, draft: Draft, address: str) -> None:
        """Normalises the line's result in place."""
        draft.keep(address, self.copied(draft, draft.aside(address), address))


def group(scene: Scene, at: str) -> Group | None:
    """The norm of this name; None if the model has none."""
    lines = {}
    for step in scene.plan:
        name = step.address.removeprefix(at + ".")
        if name != step.address and "." not in name and step.op in NORM_OPS:
            lines[name] = step
    if "normalized" not in lines:
        return None
    inside = {name: step for name, step in lines.items() if step.address in scene.inside}
    return Group(at, lines, inside)


def groups(scene: Scene) -> list[Group]:
    """The norms with a line in the region."""
    names = dict.fromkeys(
        step.address.rpartition(".")[0] for step in scene.region if step.op in NORM_OPS
    )
    found = (group(scene, name) for name in names)
    return [each for each in found if each is not None]


def norm_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the norms of the region: in all of them, then in each alone."""
    every = groups(scene)
    if not every:
        return
    yield from _suspects(scene, every, 0)
    if 1 < len(every) <= 3:
        for each in every:
            yield from _suspects(scene, [each], 3)


def _suspects(scene: Scene, every: Sequence[Group], unlikely: int) -> Iterator[Edit]:
    for make in (_eps, _gain_and_bias, _variance, _kind, _whole, _reciprocal):
        for edit in make(scene, every):
            yield replace(edit, unlikely=edit.unlikely + unlikely)


def _eps(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    rooted = [each for each in every if each.root in each.open]
    if not rooted:
        return
    eps, width = rooted[0].eps, rooted[0].width
    words: dict[str, Any] = {"eps": number(eps), "n": width}
    roots = [each.lines[each.root] for each in rooted]
    for place, other in enumerate(EPS):
        if other != eps:
            mistake = Mistake(
                "eps-value", _("it follows if eps is {other}; the model says {eps}"),
                _("use eps {eps} in this norm"), setting(eps=other), int(place > 3),
            )  # fmt: skip
            yield from made(scene, roots, mistake, other=number(other), **words)
    if not eps:
        return
    yield from made(scene, rooted, Mistake(
        "eps-place",
        _("it follows if eps is added after the root, √v + eps; the model says √(v + {eps})"),
        _("add eps {eps} under the root"), _eps_after_the_root), **words)  # fmt: skip
    if all(each.square in each.open and each.width > 1 for each in rooted):
        yield from made(scene, rooted, Mistake(
            "variance-sample",
            _(
                "it follows if the norm divides by sample deviation + eps (over n - 1); the "
                "model says √(v + {eps}), over n = {n}"
            ),
            _("divide the variance by n and add eps under the root (correction=0)"),
            _sample_deviation, 1), **words)  # fmt: skip


def _eps_after_the_root(draft: Draft, each: Group) -> None:
    at = each.lines[each.root].address
    draft.change(at, eps=Fraction(0))
    draft.then(at, "raised", by=each.eps)


def _sample_deviation(draft: Draft, each: Group) -> None:
    _eps_after_the_root(draft, each)
    _over_one_less(draft, each)


def _over_one_less(draft: Draft, each: Group) -> None:
    factor = Fraction(each.width, each.width - 1)
    draft.then(each.lines[each.square].address, "scaled", factor=factor)


def _variance(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    squared = [each for each in every if each.square in each.open and each.width > 1]
    if squared:
        yield from made(scene, squared, Mistake(
            "variance-sample",
            _("it follows if the variance is divided by n - 1 = {less}; the model divides by "
              "n = {n}"),
            _("divide the variance by n (unbiased=False, correction=0)"),
            _over_one_less, 0 if squared[0].layernorm else 3,
        ), less=squared[0].width - 1, n=squared[0].width)  # fmt: skip
    yield from made(scene, (each for each in every if each.root in each.open), Mistake(
        "root-missing",
        _("it follows if the norm divides by the variance; the model divides by its root"),
        _("take the square root of the variance plus eps"),
        lambda draft, each: draft.change(
            each.lines[each.root].address, op="raised", eps=None, by=each.eps),
        3))  # fmt: skip


def _reciprocal(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    """Edits that multiply by the root, or by its reciprocal in a coarser format."""
    ended = [each for each in every if "normalized" in each.open]
    root = ended[0].root if ended else ""
    yield from made(scene, ended, Mistake(
        "norm-inverted",
        _("it follows if the norm multiplies by {root}; the model divides by it"),
        _("divide by the root, or multiply by rsqrt"), partial(_inverted, format=None), 1),
        root=root)  # fmt: skip
    own = format_of(scene.context.precision)
    for format in ("bfloat16", "float16") if own == "float32" and not scene.context.by_hand else ():
        yield from made(scene, ended, Mistake(
            "precision",
            _("it follows if 1/{root} is rounded to {format}; the model is worked out in "
              "{precision}"),
            _("keep the reciprocal of the root in {precision}"),
            partial(_inverted, format=format), 1),
            root=root, format=format, precision=own)  # fmt: skip


def _inverted(draft: Draft, each: Group, *, format: str | None) -> None:
    """Divides by 1/root; or, with a format, by the reciprocal of 1/root rounded to it."""
    ratio, root = each.lines["normalized"], each.lines[each.root]

    def over(below: str) -> str:
        reads, one = {"below": below}, Fraction(1)
        return draft.write(ratio.address, "over", reads, root.axes, root.shape, top=one)

    by = over(ratio.inputs["by"])
    if format is not None:
        by = over(draft.made_of(by, "cast", ratio.address, format=format))
    draft.change(ratio.address, inputs={"by": by})


def _gain_and_bias(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    ended = [each.lines["out"] for each in every if "out" in each.open]
    gained = [step for step in ended if "gain" in step.inputs]
    biased = [step for step in ended if "bias" in step.inputs]
    both = [step for step in gained if step in biased]
    yield from made(scene, gained, Mistake(
        "norm-gain-missing",
        _("it follows if the norm is not multiplied by its gain; the model has a gain"),
        _("multiply by the gain (weight) of the norm"), reading(gain=None)))  # fmt: skip
    yield from made(scene, biased, Mistake(
        "norm-bias-missing",
        _("it follows if the norm's bias is left out; the model has a bias"),
        _("add the bias of the norm"), reading(bias=None)))  # fmt: skip
    yield from made(scene, both, Mistake(
        "norm-gain-missing",
        _("it follows if the norm has no gain and no bias; the model has both"),
        _("multiply by the gain and add the bias of the norm"),
        reading(gain=None, bias=None)))  # fmt: skip
    yield from made(scene,
        [step for step in gained if step.attributes.get("plus_one")],
        Mistake("norm-gain-plus-one",
                _("it follows if the norm multiplies by the gain; the model says 1 + gain"),
                _("multiply by 1 + gain"), setting(plus_one=None)),
    )  # fmt: skip
    yield from made(scene,
        [step for step in gained if not step.attributes.get("plus_one")],
        Mistake("norm-gain-plus-one",
                _("it follows if the norm multiplies by 1 + gain; the model says gain"),
                _("multiply by the gain itself, without adding 1"),
                first("gain", "raised", by=Fraction(1)), 1),
        Mistake("norm-gain-plus-one",
                _("it follows if the norm multiplies by gain - 1; the model says gain"),
                _("multiply by the gain itself; if the file stores gain - 1, add 1"),
                first("gain", "raised", by=Fraction(-1)), 1),
    )  # fmt: skip
    yield from made(scene, both, Mistake(
        "norm-bias-first",
        _("it follows if the bias is added before the gain; the model says x·gain + bias"),
        _("multiply by the gain first, then add the bias"), _bias_first, 3))  # fmt: skip


def _bias_first(draft: Draft, step: Step) -> None:
    reads = {role: step.inputs[role] for role in ("x", "bias")}
    bias = draft.write(step.address, "affine", reads, step.axes, step.shape)
    draft.change(step.address, inputs={"x": bias, "bias": None})


def _kind(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    layernorms = [each for each in every if each.layernorm]
    yield from made(scene, layernorms, Mistake(
        "norm-kind", _("it follows if the norm is an RMSNorm; the model says layernorm"),
        _("subtract the mean before dividing (use LayerNorm)"), _as_rmsnorm))  # fmt: skip
    for at, sentence in (
        ("normalized", _("it follows if x itself is divided by std; the model divides x - mean")),
        ("variance", _("it follows if the variance is the mean of x²; the model says the mean of "
                       "(x - mean)²")),
    ):  # fmt: skip
        opened = [each for each in layernorms if at in each.open]
        yield from made(scene, opened, Mistake(
            "mean-kept", sentence, _("subtract the mean first"),
            lambda draft, each, at=at: draft.change(  # type: ignore[misc]
                each.lines[at].address, inputs={"x": each.source}), 1))  # fmt: skip
    yield from made(scene, (each for each in every if not each.layernorm), Mistake(
        "norm-kind", _("it follows if the norm is a layernorm; the model says RMSNorm"),
        _("do not subtract the mean (use RMSNorm)"), _as_layernorm))  # fmt: skip


def _as_rmsnorm(draft: Draft, each: Group) -> None:
    """x/√(mean x² + eps) in every line of a LayerNorm that is in the region."""
    lines, source = each.lines, each.source
    if "centered" in each.open:
        draft.keep(lines["centered"].address, source)
    for name in ("variance", "normalized"):
        if name in each.open:
            draft.change(lines[name].address, inputs={"x": source})
    square, root = lines["variance"], lines["std"]
    if "variance" not in each.open and ("std" in each.open or "normalized" in each.open):
        first = next(lines[name] for name in ("std", "normalized") if name in each.open)
        fresh = draft.copy(first.address, square, x=source)
        if "std" in each.open:
            draft.change(root.address, inputs={"x": fresh})
        else:
            by = draft.copy(first.address, root, x=fresh)
            draft.change(first.address, inputs={"by": by})


def _as_layernorm(draft: Draft, each: Group) -> None:
    """(x - mean)/std in every line of an RMSNorm that is in the region."""
    lines, source = each.lines, each.source
    names = ("mean_square", "rms", "normalized")
    first = next((lines[name] for name in names if name in each.open), None)
    if first is None:
        return
    square, root, ratio = (lines[name] for name in names)
    mean = draft.write(first.address, "mean", {"x": source}, square.axes, square.shape)
    centered = draft.write(
        first.address, "center", {"x": source, "mean": mean}, ratio.axes, ratio.shape
    )
    if "normalized" in each.open:
        draft.change(ratio.address, inputs={"x": centered})
    if "mean_square" in each.open:
        draft.change(square.address, inputs={"x": centered})
        return
    fresh = draft.copy(first.address, square, x=centered)
    if "rms" in each.open:
        draft.change(root.address, inputs={"x": fresh})
    else:
        draft.change(ratio.address, inputs={"by": draft.copy(first.address, root, x=fresh)})


def _whole(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    """Edits that leave the norm out, or apply it twice."""
    ended = [each for each in every if each.out.address in scene.inside]
    if not ended:
        return
    final = all(each.at == "final.norm" for each in ended)
    prefix = "final-" if final else ""
    yield from made(
        scene, ended,
        Mistake(prefix + "norm-missing",
                _("it follows if {norm} is left out; the model normalises here"),
                _("normalise: apply {norm}"),
                lambda draft, each: draft.keep(each.out.address, each.source)),
        twice(prefix, lambda draft, each: each.normalise(draft, each.out.address),
              0 if final else 2),
        norm=ended[0].at,
    )  # fmt: skip


def twice(prefix: str, make: Callable[[Draft, Line], None], unlikely: int) -> Mistake[Line]:
    """The mistake of a norm that is applied twice; its name fills the sentence."""
    sentence = _("it follows if {norm} is applied twice; the model applies it once")
    return Mistake(prefix + "norm-twice", sentence, _("apply {norm} once"), make, unlikely)
