"""Mistakes in a normalisation: eps, the variance, gain and bias, its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from byhand.checking.suspects.editing import Draft, Edit, Scene
from byhand.checking.suspects.wording import number
from byhand.language import _
from byhand.plan import WEIGHT, Step

NORM_OPS = ("mean", "center", "mean_square", "root", "normalize", "affine")
EPS = tuple(map(Fraction, ("1e-5", "1e-6", "0", "1e-12", "1e-8", "1e-3", "1e-7", "1e-4")))


@dataclass(frozen=True)
class Group:
    """The lines of one normalisation: all of them, and those in the region by their last name."""

    at: str
    lines: Mapping[str, Step]  # of the plan
    open: Mapping[str, Step]  # of the region

    @property
    def layernorm(self) -> bool:
        return "centered" in self.lines

    @property
    def square(self) -> str:
        return "variance" if self.layernorm else "mean_square"

    @property
    def root(self) -> str:
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
        eps: Fraction = self.lines[self.root].attributes["eps"]
        return eps

    @property
    def width(self) -> int:
        return self.lines["normalized"].shape[-1]

    def copied(self, draft: Draft, x: str, before: str) -> str:
        """The same normalisation of something else, written before a line; where it ends."""
        new: dict[str, str] = {self.source: x}
        for step in self.lines.values():
            reads = {role: new.get(read, read) for role, read in step.inputs.items()}
            new[step.address] = draft.copy(before, step, **reads)
        return new[self.out.address]


def group(scene: Scene, at: str) -> Group | None:
    """The normalisation of this name; None where the model has none."""
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
    """The normalisations with a line in the region."""
    names = dict.fromkeys(
        step.address.rpartition(".")[0] for step in scene.region if step.op in NORM_OPS
    )
    found = (group(scene, name) for name in names)
    return [each for each in found if each is not None]


def norm_suspects(scene: Scene) -> Iterator[Edit]:
    """Every mistake in the normalisations of the region: in all alike, then in each alone."""
    every = groups(scene)
    if not every:
        return
    yield from _suspects(scene, every, 0)
    if 1 < len(every) <= 3:
        for each in every:
            yield from _suspects(scene, [each], 3)


def _suspects(scene: Scene, every: Sequence[Group], unlikely: int) -> Iterator[Edit]:
    for make in (_eps, _gain_and_bias, _variance, _kind, _whole):
        for edit in make(scene, every):
            yield Edit(edit.kind, edit.sentence, edit.change, edit.plan, edit.unlikely + unlikely)


def _eps(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    rooted = [each for each in every if each.root in each.open]
    if not rooted:
        return
    eps = rooted[0].eps
    for place, other in enumerate(EPS):
        if other == eps:
            continue
        draft = scene.draft()
        for each in rooted:
            draft.change(each.lines[each.root].address, eps=other)
        yield Edit(
            "eps-value",
            _("it follows if eps is {other}; the model says {eps}").format(
                other=number(other), eps=number(eps)
            ),
            _("use eps {eps} in this norm").format(eps=number(eps)),
            draft.made(),
            int(place > 3),
        )
    if not eps:
        return
    outside = _(
        "it follows if eps is added after the root, √v + eps; the model says √(v + {eps})"
    ).format(eps=number(eps))
    change = _("add eps {eps} under the root").format(eps=number(eps))
    draft = scene.draft()
    for each in rooted:
        at = each.lines[each.root].address
        draft.change(at, eps=Fraction(0))
        draft.then(at, "raised", by=each.eps)
    yield Edit("eps-place", outside, change, draft.made())
    if all(each.square in each.open and each.width > 1 for each in rooted):
        for each in rooted:
            _over_one_less(draft, each)
        sentence = _(
            "it follows if the norm divides by the sample deviation plus eps (over n - 1, eps "
            "after the root); the model says √(v + {eps}) with v over n = {n}"
        ).format(eps=number(eps), n=rooted[0].width)
        change = _("divide the variance by n and add eps under the root (correction=0)")
        yield Edit("variance-sample", sentence, change, draft.made(), 1)


def _over_one_less(draft: Draft, each: Group) -> None:
    factor = Fraction(each.width, each.width - 1)
    draft.then(each.lines[each.square].address, "scaled", factor=factor)


def _variance(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    squared = [each for each in every if each.square in each.open and each.width > 1]
    if squared:
        draft = scene.draft()
        for each in squared:
            _over_one_less(draft, each)
        yield Edit(
            "variance-sample",
            _(
                "it follows if the variance is divided by n - 1 = {less}; the model divides by "
                "n = {n}"
            ).format(less=squared[0].width - 1, n=squared[0].width),
            _("divide the variance by n (unbiased=False, correction=0)"),
            draft.made(),
            0 if squared[0].layernorm else 3,
        )
    rooted = [each for each in every if each.root in each.open]
    if rooted:
        draft = scene.draft()
        for each in rooted:
            step = each.lines[each.root]
            draft.change(step.address, op="raised", eps=None, by=each.eps)
        yield Edit(
            "root-missing",
            _("it follows if the norm divides by the variance; the model divides by its root"),
            _("take the square root of the variance plus eps"),
            draft.made(),
            3,
        )


def _gain_and_bias(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    ended = [each.lines["out"] for each in every if "out" in each.open]
    gained = [step for step in ended if "gain" in step.inputs]
    biased = [step for step in ended if "bias" in step.inputs]
    wishes = (
        (
            "norm-gain-missing", gained, {"gain": None},
            _("it follows if the norm is not multiplied by its gain; the model has a gain"),
            _("multiply by the gain (weight) of the norm"), 0,
        ),
        (
            "norm-bias-missing", biased, {"bias": None},
            _("it follows if the norm's bias is left out; the model has a bias"),
            _("add the bias of the norm"), 0,
        ),
        (
            "norm-gain-missing", [step for step in gained if step in biased],
            {"gain": None, "bias": None},
            _("it follows if the norm has no gain and no bias; the model has both"),
            _("multiply by the gain and add the bias of the norm"), 0,
        ),
    )  # fmt: skip
    for kind, steps, inputs, sentence, change, unlikely in wishes:
        if steps:
            draft = scene.draft()
            for step in steps:
                draft.change(step.address, inputs=inputs)
            yield Edit(kind, sentence, change, draft.made(), unlikely)
    for by, sentence, change in (
        (1, _("it follows if the norm multiplies by 1 + gain; the model says gain"),
         _("multiply by the gain itself, without adding 1")),
        (-1, _("it follows if the norm multiplies by gain - 1; the model says gain"),
         _("multiply by the gain itself; if the file stores gain - 1, add 1")),
    ):  # fmt: skip
        if gained:
            draft = scene.draft()
            for step in gained:
                _raise_weight(scene, draft, step, "gain", Fraction(by))
            yield Edit("norm-gain-plus-one", sentence, change, draft.made(), 1)
    both = [step for step in gained if step in biased]
    if both:
        draft = scene.draft()
        for step in both:
            bias = draft.write(
                step.address, "affine", {"x": step.inputs["x"], "bias": step.inputs["bias"]},
                step.axes, step.shape,
            )  # fmt: skip
            draft.change(step.address, inputs={"x": bias, "bias": None})
        yield Edit(
            "norm-bias-first",
            _("it follows if the bias is added before the gain; the model says x·gain + bias"),
            _("multiply by the gain first, then add the bias"),
            draft.made(),
            3,
        )


def _raise_weight(scene: Scene, draft: Draft, step: Step, role: str, by: Fraction) -> None:
    read = step.inputs[role]
    assert read.startswith(WEIGHT)
    shape = scene.weight_shape(read)
    new = draft.write(step.address, "raised", {"x": read}, step.axes[-1:], shape, by=by)
    draft.change(step.address, inputs={role: new})


def _kind(scene: Scene, every: Sequence[Group]) -> Iterator[Edit]:
    layernorms = [each for each in every if each.layernorm]
    if layernorms:
        draft = scene.draft()
        for each in layernorms:
            _as_rmsnorm(draft, each)
        sentence = _("it follows if the norm is an RMSNorm; the model says layernorm")
        change = _("subtract the mean before dividing (use LayerNorm)")
        yield Edit("norm-kind", sentence, change, draft.made())
        for at in ("normalized", "variance"):
            opened = [each for each in layernorms if at in each.open]
            if opened:
                draft = scene.draft()
                for each in opened:
                    draft.change(each.lines[at].address, inputs={"x": each.source})
                what = (
                    _("it follows if x itself is divided by std; the model divides x - mean")
                    if at == "normalized"
                    else _("it follows if the variance is the mean of x²; the model says the mean "
                           "of (x - mean)²")
                )  # fmt: skip
                yield Edit("mean-kept", what, _("subtract the mean first"), draft.made(), 1)
    rmsnorms = [each for each in every if not each.layernorm]
    if rmsnorms:
        draft = scene.draft()
        for each in rmsnorms:
            _as_layernorm(draft, each)
        sentence = _("it follows if the norm is a layernorm; the model says RMSNorm")
        change = _("do not subtract the mean (use RMSNorm)")
        yield Edit("norm-kind", sentence, change, draft.made())


def _as_rmsnorm(draft: Draft, each: Group) -> None:
    """x/√(mean x² + eps) in every open line of a layernorm."""
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
    """(x - mean)/std in every open line of an RMSNorm."""
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
    """The norm left out, or done twice."""
    ended = [each for each in every if each.out.address in scene.inside]
    if not ended:
        return
    final = all(each.at == "final.norm" for each in ended)
    prefix = "final-" if final else ""
    draft = scene.draft()
    for each in ended:
        draft.keep(each.out.address, each.source)
    yield Edit(
        prefix + "norm-missing",
        _("it follows if {norm} is left out; the model normalises here").format(norm=ended[0].at),
        _("normalise: apply {norm}").format(norm=ended[0].at),
        draft.made(),
    )
    draft = scene.draft()
    for each in ended:
        once = draft.aside(each.out.address)
        draft.keep(each.out.address, each.copied(draft, once, each.out.address))
    yield Edit(
        prefix + "norm-twice",
        _("it follows if {norm} is applied twice; the model applies it once").format(
            norm=ended[0].at
        ),
        _("apply {norm} once").format(norm=ended[0].at),
        draft.made(),
        0 if final else 2,
    )
