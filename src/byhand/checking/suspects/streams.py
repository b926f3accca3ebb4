"""Mistakes along the residual stream: what is added, from where, and the places of norms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

from byhand.checking.suspects.mistakes import (
    Line,
    Mistake,
    first,
    keeping,
    made,
    rerouting,
    setting,
    together_and_apart,
)
from byhand.checking.suspects.norms import Group, group, twice
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import WEIGHT, Step

MOST_INPUTS = 10  # other lines that a line may read by mistake


Route = tuple[Step, str, str]  # a line, its input, and a wrong input


def _rerouted(draft: Draft, route: Route) -> None:
    """Makes the line of a route read the wrong input."""
    step, own, other = route
    draft.reroute(step.address, own, other)


def stream_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the residual stream of the region."""
    yield from _skipped_layers(scene)
    yield from _residuals(scene)
    yield from _parallel(scene)
    yield from _norm_places(scene)
    yield from _other_inputs(scene)


def _adds(scene: Scene) -> list[Step]:
    """The residual connections of the region."""
    ends = (".attn.add", ".cross.add", ".mlp.add")
    return [step for step in scene.of("add") if step.address.endswith(ends)]


def _residuals(scene: Scene) -> Iterator[Edit]:
    change = _("add what the sublayer gives to the residual stream that entered it, once")
    for steps, apart in together_and_apart(_adds(scene)):
        stream, update = steps[0].inputs["x"], steps[0].inputs["y"]
        yield from made(
            scene, steps,
            Mistake("residual-missing",
                    _("it follows if the residual is missing: the sublayer's output alone; the "
                      "model adds it to {stream}"), change, keeping("y")),
            Mistake("update-missing",
                    _("it follows if the sublayer's output is not added; the model adds {update}"),
                    change, keeping("x"), 1),
            Mistake("residual-doubled",
                    _("it follows if the residual is added twice; the model adds {stream} once"),
                    change, partial(_add_again, role="x")),
            Mistake("residual-doubled",
                    _("it follows if {update} is added twice; the model adds it once"),
                    change, partial(_add_again, role="y"), 1),
            Mistake("residual-sign", _("it follows if {update} is subtracted; the model adds it"),
                    change, first("y", "scaled", factor=Fraction(-1)), 2),
            unlikely=apart, stream=stream, update=update,
        )  # fmt: skip
        for place, unlikely in enumerate((0, 0, 1)):
            found = [(step, step.inputs["x"], _sources(scene, step)[place]) for step in steps]
            routes = [(step, own, other) for step, own, other in found if other and other != own]
            if routes:
                said = _("it follows if the residual comes from {other}; the model says {own}")
                wrong = Mistake("residual-source", said, change, _rerouted, apart + unlikely)
                yield from made(scene, routes, wrong, other=routes[-1][2], own=stream)


def _add_again(draft: Draft, step: Step, role: str) -> None:
    once = draft.aside(step.address)
    draft.change(step.address, inputs={"x": once, "y": step.inputs[role]})


def _sources(scene: Scene, step: Step) -> tuple[str | None, str, str]:
    """The normalised stream, the stream that enters the block, and the first stream."""
    name = step.address.removesuffix("add") + "norm.out"
    stack, _dot, place = step.address.rpartition("block.")
    layer = int(place.partition(".")[0])
    side = scene.spec.encoder if stack else scene.spec
    pre = side is not None and side.blocks[layer].norm_place == "pre" and scene.has(name)
    entering, first = (scene.own(f"{stack}stream.{at}") for at in (layer, 0))
    return scene.own(name) if pre else None, entering, first


# ------------------------------------------------------------------------ parallel or serial


def _parallel(scene: Scene) -> Iterator[Edit]:
    """Edits in which the MLP reads the stream at another place than in the model."""
    routes: list[Route] = []
    parallel = False
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
            routes.append((step, own, other))
            parallel = block.parallel
    if parallel:
        mistake = Mistake(
            "serial",
            _(
                "it follows if the MLP reads the residual stream after attention (serial); the "
                "model is parallel: both read what enters the block"
            ),
            _("let attention and MLP read the residual stream that enters the block"), _rerouted,
        )  # fmt: skip
    else:
        mistake = Mistake(
            "parallel",
            _(
                "it follows if the MLP reads the residual stream before attention (parallel); "
                "the model is serial: the MLP reads the sum"
            ),
            _("let the MLP read the residual stream after attention was added"), _rerouted,
        )  # fmt: skip
    yield from made(scene, routes, mistake)


def _skipped_layers(scene: Scene) -> Iterator[Edit]:
    """Edits that skip blocks: the next step reads the stream before the block, or earlier."""

    sentence = _("it follows if block {blocks} is left out: {other} is read; the model reads {own}")
    skipped = partial(Mistake, "layer-skipped", sentence, _("run block {blocks}"))
    count = len(scene.spec.blocks)
    for layer in range(count):
        own, other = scene.entering(layer + 1), scene.entering(layer)
        if own == other or own == scene.target.address:  # the block adds nothing, or is claimed
            continue
        if own in scene.inside:
            copied = skipped(setting(op="keep", inputs={"x": other}, only=True), 1)
            yield from made(scene, [scene.plan[own]], copied, blocks=layer, own=own, other=other)
    streams = {scene.own(f"stream.{layer}"): layer for layer in range(count + 1)}
    for read in dict.fromkeys(read for step in scene.region for read in step.reads):
        above = streams.get(read, 0)
        if not above or read in scene.inside:
            continue
        for earlier in range(above - 1, max(above - 4, -1), -1):
            other = scene.entering(earlier)
            blocks = ", ".join(map(str, range(earlier, above)))
            mistake = skipped(rerouting({read: other}), 1 if earlier == above - 1 else 2)
            yield from made(scene, scene.region, mistake, blocks=blocks, own=read, other=other)


# ------------------------------------------------------------------------ before or after


def _norm_places(scene: Scene) -> Iterator[Edit]:
    """Edits with norms in other places: missing before a sublayer, after the add, or before it."""
    yield from _unnormalised(scene)
    yield from _norm_of_its_own_sum(scene)
    yield from _after_the_add(scene)
    yield from _before_the_sublayer(scene)


def _norm_of(scene: Scene, step: Step, place: str) -> Group | None:
    """The norm of a line's sublayer, if the model has it at this place."""
    layer = scene.layer(step.address)
    if layer is None or scene.spec.blocks[layer].norm_place != place:
        return None
    return group(scene, ".".join(step.address.split(".")[:3]) + ".norm")


def _normalised_reads(scene: Scene, *, final: bool) -> list[tuple[Step, Group]]:
    """The products of the region that read their sublayer's norm; with `final`, the head too."""
    found: list[tuple[Step, Group]] = []
    for step in scene.of("linear"):
        norm = _norm_of(scene, step, "pre")
        if final and step.address == "logits":
            norm = group(scene, "final.norm")
        if norm and norm.out.address in step.reads:
            found.append((step, norm))
    return found


def _read_the_stream(draft: Draft, line: tuple[Step, Group]) -> None:
    step, norm = line
    draft.reroute(step.address, norm.out.address, norm.source)


def _read_it_twice_normalised(draft: Draft, line: tuple[Step, Group]) -> None:
    step, norm = line
    again = norm.copied(draft, norm.out.address, step.address)
    draft.reroute(step.address, norm.out.address, again)


def _unnormalised(scene: Scene) -> Iterator[Edit]:
    reads = _normalised_reads(scene, final=True)
    if not reads:
        return
    norm = reads[0][1]
    prefix = "final-" if norm.at == "final.norm" else ""
    yield from made(scene,
        reads,
        Mistake(prefix + "norm-missing" if prefix else "norm-place",
                _(
                    "it follows if {norm} is skipped here and the residual stream is read as "
                    "it is; the model reads it normalised"
                ),
                _("read {norm}, not the residual stream").format(norm=norm.out.address),
                _read_the_stream),
        twice(prefix, _read_it_twice_normalised, 1),
        norm=norm.at,
    )  # fmt: skip


def _post_norm(make: Callable[[Draft, Line], None], unlikely: int = 0) -> Mistake[Line]:
    """The mistake of post-norm instead of pre-norm."""
    return Mistake(
        "norm-place",
        _("it follows if the norm comes after the add (post-norm); the model normalises before the "
          "sublayer"),
        _("normalise what the sublayer reads, and leave the sum as it is"), make, unlikely,
    )  # fmt: skip


def _norm_of_its_own_sum(scene: Scene) -> Iterator[Edit]:
    """Edits in which a sublayer's norm reads the sublayer's own sum, which is claimed below."""
    routes: list[Route] = []
    for step in scene.region:
        norm = _norm_of(scene, step, "pre")
        if norm is None or norm.source not in step.reads or step not in norm.lines.values():
            continue
        total = norm.at.removesuffix("norm") + "add"
        if total in scene.context.claimed and total not in scene.inside:
            routes.append((step, norm.source, total))

    def read_the_sum(draft: Draft, route: Route) -> None:
        draft.sooner(route[2], before=scene.region[0].address)
        _rerouted(draft, route)

    yield from made(scene, routes, _post_norm(read_the_sum))


def _after_the_add(scene: Scene) -> Iterator[Edit]:
    """Edits that normalise the sum; the sublayer reads the stream, or its usual input."""
    adds = [(step, norm) for step in _adds(scene) if (norm := _norm_of(scene, step, "pre"))]
    reads = _normalised_reads(scene, final=False)

    def normalise(draft: Draft, line: tuple[Step, Group]) -> None:
        step, norm = line
        if step.op == "add":
            norm.normalise(draft, step.address)
        else:
            _read_the_stream(draft, line)

    if adds:
        yield from made(scene, [*adds, *reads], _post_norm(normalise))
        yield from made(scene, adds, _post_norm(normalise, 1))


def _before_the_sublayer(scene: Scene) -> Iterator[Edit]:
    """Edits with pre-norm instead of post-norm."""
    norms = [(step, norm) for step in scene.region if (norm := _norm_of(scene, step, "post"))]
    lines = [
        (step, norm) for step, norm in norms
        if step.address == norm.out.address
        or (step.op == "linear" and step.address.rpartition(".")[2] != "out")
    ]  # fmt: skip

    def normalise_first(draft: Draft, line: tuple[Step, Group]) -> None:
        step, norm = line
        if step.address == norm.out.address:
            draft.keep(step.address, norm.source)
        else:
            stream = norm.copied(draft, step.inputs["x"], step.address)
            draft.change(step.address, inputs={"x": stream})

    yield from made(scene, lines, Mistake(
        "norm-place",
        _("it follows if the norm comes before the sublayer (pre-norm); the model normalises after "
          "the add"),
        _("normalise the sum, and let the sublayer read the residual stream as it is"),
        normalise_first))  # fmt: skip


# ------------------------------------------------------------------------ another line


def _other_inputs(scene: Scene) -> Iterator[Edit]:
    """Edits in which a line of the region reads another line of the same shape."""
    places = {step.address: place for place, step in enumerate(scene.plan)}
    first_place = min(places[step.address] for step in scene.region)
    edges = dict.fromkeys(
        read for step in scene.region for read in step.reads
        if not read.startswith(WEIGHT) and read not in scene.inside
    )  # fmt: skip
    for read in edges:
        if read not in places or scene.plan[read].op == "given":  # ids are no line of numbers
            continue
        own = scene.plan[read]
        alike = [
            step for step in scene.plan.steps[:first_place]
            if step.op not in ("given", "argmax") and step.address != read
            and (step.axes, step.shape) == (own.axes, own.shape)
        ]  # fmt: skip
        alike.sort(key=lambda step: abs(places[step.address] - places[read]))
        for other in alike[:MOST_INPUTS]:
            mistake = Mistake(
                "input-wrong", _("it follows if {other} is read; the model reads {own}"),
                _("read {own}"), rerouting({read: other.address}), 4,
            )  # fmt: skip
            yield from made(scene, scene.region, mistake, other=other.address, own=read)
