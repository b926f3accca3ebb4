"""Mistakes along the residual stream: what is added, from where, and where the norms stand."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.suspects.editing import Draft, Edit, Scene, together_and_apart
from byhand.checking.suspects.norms import Group, group
from byhand.language import _
from byhand.plan import WEIGHT, Step

MOST_INPUTS = 10  # other lines that a line may have read by mistake


def stream_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes with the stream of the region."""
    yield from _skipped_layers(scene)
    yield from _residuals(scene)
    yield from _parallel(scene)
    yield from _norm_places(scene)
    yield from _other_inputs(scene)


def _adds(scene: Scene) -> list[Step]:
    """The residual connections of the region."""
    return [step for step in scene.of("add") if step.address.endswith((".attn.add", ".mlp.add"))]


def _residuals(scene: Scene) -> Iterator[Edit]:
    change = _("add what the sublayer gives to the stream that entered it, once")
    for steps, apart in together_and_apart(_adds(scene)):
        for role, kind, sentence in (
            ("y", "residual-missing",
             _("it follows if the residual is missing: the sublayer's output alone; the model adds "
               "it to {stream}")),
            ("x", "update-missing",
             _("it follows if the sublayer's output is not added; the model adds {update}")),
        ):  # fmt: skip
            draft = scene.draft()
            for step in steps:
                draft.keep(step.address, step.inputs[role])
            said = sentence.format(stream=steps[0].inputs["x"], update=steps[0].inputs["y"])
            yield Edit(kind, said, change, draft.made(), apart + (role == "x"))
        for role, kind, sentence in (
            ("x", "residual-doubled",
             _("it follows if the residual is added twice; the model adds {stream} once")),
            ("y", "residual-doubled",
             _("it follows if {update} is added twice; the model adds it once")),
            ("y", "residual-sign", _("it follows if {update} is subtracted; the model adds it")),
        ):  # fmt: skip
            draft = scene.draft()
            for step in steps:
                if kind == "residual-sign":
                    away = draft.write(
                        step.address, "scaled", {"x": step.inputs[role]}, step.axes, step.shape,
                        factor=Fraction(-1),
                    )  # fmt: skip
                    draft.change(step.address, inputs={role: away})
                else:
                    once = draft.aside(step.address)
                    draft.change(step.address, inputs={"x": once, "y": step.inputs[role]})
            said = sentence.format(stream=steps[0].inputs["x"], update=steps[0].inputs["y"])
            rarer = (role == "y") + (kind == "residual-sign")
            yield Edit(kind, said, change, draft.made(), apart + rarer)
        yield from _residual_sources(scene, steps, apart, change)


def _residual_sources(
    scene: Scene, steps: tuple[Step, ...], apart: int, change: str
) -> Iterator[Edit]:
    """The residual from the normalised stream, from before attention, from the embedding."""
    for where in ("norm", "entering", "embedding"):
        draft = scene.draft()
        other = None
        for step in steps:
            layer = scene.layer(step.address)
            assert layer is not None
            if where == "norm":
                name = step.address.removesuffix("add") + "norm.out"
                block = scene.spec.blocks[layer]
                source = scene.own(name) if block.norm_place == "pre" and scene.has(name) else None
            elif where == "entering":
                source = scene.entering(layer)
            else:
                source = scene.entering(0)
            if source is not None and source != step.inputs["x"]:
                other = source
                draft.change(step.address, inputs={"x": source})
        if other is not None:
            yield Edit(
                "residual-source",
                _("it follows if the residual comes from {other}; the model says {own}").format(
                    other=other, own=steps[0].inputs["x"]
                ),
                change,
                draft.made(),
                apart + (where == "embedding"),
            )


# ------------------------------------------------------------------------ parallel or serial


def _parallel(scene: Scene) -> Iterator[Edit]:
    """The MLP read from another place of the stream than the model says."""
    draft, found, parallel = scene.draft(), False, False
    for step in scene.region:
        layer = scene.layer(step.address)
        if layer is None or not step.address.startswith(f"block.{layer}.mlp."):
            continue
        block = scene.spec.blocks[layer]
        if block.attention is None or step.address.endswith(".mlp.add"):
            continue
        after = scene.own(f"block.{layer}.attn.add")
        if block.norm_place == "post" and scene.has(f"block.{layer}.attn.norm.out"):
            after = scene.own(f"block.{layer}.attn.norm.out")
        before = scene.entering(layer)
        own, other = (before, after) if block.parallel else (after, before)
        if own in step.reads:
            draft.reroute(step.address, own, other)
            found, parallel = True, block.parallel
    if found:
        if parallel:
            sentence = _(
                "it follows if the MLP reads the stream after attention (serial); the model says "
                "parallel: both read what enters the block"
            )
            change = _("let attention and MLP read the stream that enters the block")
        else:
            sentence = _(
                "it follows if the MLP reads the stream before attention (parallel); the model "
                "says serial: the MLP reads what attention added to"
            )
            change = _("let the MLP read the stream after attention was added")
        yield Edit("serial" if parallel else "parallel", sentence, change, draft.made())


def _skipped_layers(scene: Scene) -> Iterator[Edit]:
    """What comes after a block reads the stream that entered it, or an earlier one."""
    count = len(scene.spec.blocks)
    for layer in range(count):
        own, other = scene.entering(layer + 1), scene.entering(layer)
        if own == other or own == scene.target.address:  # the block adds nothing, or is claimed
            continue
        if own in scene.inside:
            draft = scene.draft()
            draft.keep(own, other)
            yield _skipped(draft, str(layer), own, other, 1)
    streams = {scene.own(f"stream.{layer}"): layer for layer in range(count + 1)}
    for read in dict.fromkeys(read for step in scene.region for read in step.reads):
        above = streams.get(read, 0)
        if not above or read in scene.inside:
            continue
        for earlier in range(above - 1, max(above - 4, -1), -1):
            other = scene.entering(earlier)
            draft = scene.draft()
            for step in scene.region:
                if read in step.reads:
                    draft.reroute(step.address, read, other)
            blocks = ", ".join(map(str, range(earlier, above)))
            yield _skipped(draft, blocks, read, other, 1 if earlier == above - 1 else 2)


def _skipped(draft: Draft, blocks: str, own: str, other: str, unlikely: int) -> Edit:
    return Edit(
        "layer-skipped",
        _("it follows if block {blocks} is left out: {other} is read; the model reads {own}"
          ).format(blocks=blocks, other=other, own=own),
        _("run block {blocks}").format(blocks=blocks),
        draft.made(),
        unlikely,
    )  # fmt: skip


# ------------------------------------------------------------------------ before or after


def _norm_places(scene: Scene) -> Iterator[Edit]:
    """Sublayers that read the stream without its norm; norms after the add; and the reverse."""
    yield from _unnormalised(scene)
    yield from _after_the_add(scene)
    yield from _before_the_sublayer(scene)


def _norm_of(scene: Scene, step: Step, place: str) -> Group | None:
    """The norm of the sublayer that a line belongs to, where the model puts it there."""
    layer = scene.layer(step.address)
    if layer is None or scene.spec.blocks[layer].norm_place != place:
        return None
    return group(scene, ".".join(step.address.split(".")[:3]) + ".norm")


def _unnormalised(scene: Scene) -> Iterator[Edit]:
    draft, names = scene.draft(), []
    for step in scene.of("linear"):
        norm = _norm_of(scene, step, "pre")
        if step.address == "logits":
            norm = group(scene, "final.norm")
        if norm and norm.out.address in step.reads:
            draft.reroute(step.address, norm.out.address, norm.source)
            names.append(norm)
    if names:
        final = names[0].at == "final.norm"
        yield Edit(
            "final-norm-missing" if final else "norm-place",
            _("it follows if {norm} is skipped here and the stream read as it is; the model reads "
              "it normalised").format(norm=names[0].at),
            _("read {norm}, not the stream").format(norm=names[0].out.address),
            draft.made(),
        )  # fmt: skip
        draft = scene.draft()
        for step in scene.of("linear"):
            for norm in names:
                if norm.out.address in step.reads:
                    again = norm.copied(draft, norm.out.address, step.address)
                    draft.reroute(step.address, norm.out.address, again)
        yield Edit(
            "final-norm-twice" if final else "norm-twice",
            _("it follows if {norm} is applied twice; the model applies it once").format(
                norm=names[0].at
            ),
            _("apply {norm} once").format(norm=names[0].at),
            draft.made(),
            1,
        )


def _after_the_add(scene: Scene) -> Iterator[Edit]:
    """Post-norm for pre-norm: the sum is normalised, and the sublayer reads the stream."""
    yield from _norm_of_its_own_sum(scene)
    adds = [(step, norm) for step in _adds(scene) if (norm := _norm_of(scene, step, "pre"))]
    if not adds:
        return
    for bare in (True, False):
        draft = scene.draft()
        for step, norm in adds:
            before = draft.aside(step.address)
            draft.keep(step.address, norm.copied(draft, before, step.address))
        if bare:
            for step in scene.of("linear"):
                own = _norm_of(scene, step, "pre")
                if own and own.out.address in step.reads:
                    draft.reroute(step.address, own.out.address, own.source)
        yield Edit(
            "norm-place",
            _("it follows if the norm comes after the add (post-norm); the model normalises before "
              "the sublayer"),
            _("normalise what the sublayer reads, and leave the sum as it is"),
            draft.made(),
            int(not bare),
        )  # fmt: skip


def _norm_of_its_own_sum(scene: Scene) -> Iterator[Edit]:
    """The norm of a sublayer read from its own sum, which is claimed further down."""
    draft, found = scene.draft(), False
    for step in scene.region:
        norm = _norm_of(scene, step, "pre")
        if norm is None or norm.source not in step.reads or step not in norm.lines.values():
            continue
        total = norm.at.removesuffix("norm") + "add"
        if total in scene.context.claimed and total not in scene.inside:
            draft.sooner(total, before=scene.region[0].address)
            draft.reroute(step.address, norm.source, total)
            found = True
    if found:
        yield Edit(
            "norm-place",
            _("it follows if the norm comes after the add (post-norm); the model normalises before "
              "the sublayer"),
            _("normalise what the sublayer reads, and leave the sum as it is"),
            draft.made(),
        )  # fmt: skip


def _before_the_sublayer(scene: Scene) -> Iterator[Edit]:
    """Pre-norm for post-norm."""
    draft, found = scene.draft(), False
    for step in scene.region:
        norm = _norm_of(scene, step, "post")
        if norm is None:
            continue
        if step.address == norm.out.address:
            draft.keep(step.address, norm.source)
            found = True
        elif step.op == "linear" and step.address.rpartition(".")[2] != "out":
            stream = step.inputs["x"]
            draft.change(step.address, inputs={"x": norm.copied(draft, stream, step.address)})
            found = True
    if found:
        yield Edit(
            "norm-place",
            _("it follows if the norm comes before the sublayer (pre-norm); the model normalises "
              "after the add"),
            _("normalise the sum, and let the sublayer read the stream as it is"),
            draft.made(),
        )  # fmt: skip


# ------------------------------------------------------------------------ another line


def _other_inputs(scene: Scene) -> Iterator[Edit]:
    """A line of the region reads another line of the same shape than it should."""
    places = {step.address: place for place, step in enumerate(scene.plan)}
    first = min(places[step.address] for step in scene.region)
    edges = dict.fromkeys(
        read for step in scene.region for read in step.reads
        if not read.startswith(WEIGHT) and read not in scene.inside
    )  # fmt: skip
    for read in edges:
        if read not in places:
            continue
        own = scene.plan[read]
        earlier = (step for step in scene.plan.steps[:first] if step.op != "given")
        alike = [
            step for step in earlier
            if step.address != read and (step.axes, step.shape) == (own.axes, own.shape)
        ]  # fmt: skip
        alike.sort(key=lambda step: abs(places[step.address] - places[read]))
        for other in alike[:MOST_INPUTS]:
            draft = scene.draft()
            for step in scene.region:
                if read in step.reads:
                    draft.reroute(step.address, read, other.address)
            yield Edit(
                "input-wrong",
                _("it follows if {other} is read; the model reads {own}").format(
                    other=other.address, own=read
                ),
                _("read {own}").format(own=read),
                draft.made(),
                4,
            )
