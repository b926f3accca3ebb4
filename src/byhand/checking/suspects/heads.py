"""Mistakes with heads: how a row is cut into them and laid together, who shares keys with whom."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

SIDES = ("q", "k", "v")


def head_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes with the heads of the region."""
    yield from _orders(scene)
    yield from _packings(scene)
    yield from _splits(scene)
    yield from _shared_keys(scene)
    yield from _merges(scene)
    yield from _mixes(scene)


# ------------------------------------------------------------------------ q, k and v


def _attentions(scene: Scene) -> list[tuple[str, tuple[str, ...]]]:
    """The attentions with open q, k or v, and which of them are open."""
    found: dict[str, list[str]] = {}
    for step in scene.region:
        at, _dot, name = step.address.rpartition(".")
        if name in SIDES and at.endswith(".attn"):
            found.setdefault(at, []).append(name)
    return [(at, tuple(names)) for at, names in found.items()]


def _orders(scene: Scene) -> Iterator[Edit]:
    """q, k and v in another order: the other columns of a packed row, or each other's matrices."""
    every = _attentions(scene)
    if not every:
        return
    open_sides = every[0][1]
    for order in permutations(SIDES):
        swapped = dict(zip(SIDES, order, strict=True))
        if all(swapped[side] == side for side in open_sides):
            continue
        draft = scene.draft()
        fits = True
        for at, sides in every:
            for side in sides:
                fits &= _read_as(scene, draft, f"{at}.{side}", f"{at}.{swapped[side]}")
        if not fits:
            continue
        said = ", ".join(f"{side} ← {swapped[side]}" for side in open_sides)
        yield Edit(
            "qkv-order",
            _("it follows if q, k and v are taken in another order ({said}); the model says q, k, "
              "v").format(said=said),
            _("take q, k and v in this order"),
            draft.made(),
            int(sum(swapped[side] != side for side in SIDES) == 3),
        )  # fmt: skip


def _read_as(scene: Scene, draft: Draft, address: str, other: str) -> bool:
    """Makes one of q, k, v from what makes another; False where that has another shape."""
    if address == other:
        return True
    own, theirs = scene.plan[address], scene.plan[other]
    if own.op == "split_heads":
        if own.shape == theirs.shape:
            draft.change(address, start=theirs.attributes["start"])
            return True
        attn = scene.attention(address)
        starts = {"q": 0, "k": attn.q_width, "v": attn.q_width + attn.kv_width}
        # with fewer key heads the parts differ in width: laid end to end in the other order
        draft.change(address, start=starts[other.rpartition(".")[2]])
        return own.shape[0] <= theirs.shape[0]
    weight, to = own.inputs["weight"], theirs.inputs["weight"]
    if scene.weight_shape(weight) != scene.weight_shape(to):
        return False
    draft.change(address, inputs={"weight": to, "bias": theirs.inputs.get("bias")})
    return True


def _packings(scene: Scene) -> Iterator[Edit]:
    """Packed by head for packed by kind, and the reverse."""
    steps = [step for step in scene.of("split_heads") if step.address.rpartition(".")[2] in SIDES]
    steps = [step for step in steps if scene.attention(step.address).heads
             == scene.attention(step.address).kv_heads]  # fmt: skip
    if not steps:
        return
    own = scene.attention(steps[0].address).packed
    draft = scene.draft()
    for step in steps:
        attn = scene.attention(step.address)
        place = SIDES.index(step.address.rpartition(".")[2])
        if own == "per_head":
            draft.change(step.address, start=place * attn.q_width, stride=attn.d_head)
        else:
            draft.change(step.address, start=place * attn.d_head, stride=3 * attn.d_head)
    names = {
        "concatenated": _("q of all heads, then k, then v"),
        "per_head": _("q, k, v of one head after the other"),
    }
    other = "concatenated" if own == "per_head" else "per_head"
    yield Edit(
        "qkv-packing",
        _("it follows if the packed row holds {other}; in the model it holds {own}").format(
            other=names[other], own=names[own or "concatenated"]
        ),
        _("cut the packed row as {own}").format(own=names[own or "concatenated"]),
        draft.made(),
    )


# ------------------------------------------------------------------------ a row cut into heads


def _splits(scene: Scene) -> Iterator[Edit]:
    """(pos, heads·d_head) read as (pos, d_head, heads), or as (heads, pos, d_head)."""
    steps = [step for step in scene.region if step.op in ("split_heads", "linear")
             and step.axes[-1:] == ("d_head",) and step.shape[0] > 1]  # fmt: skip
    if not steps:
        return
    heads, _count, width = steps[0].shape
    change = _("read a row as {heads} heads of {width} entries, then exchange heads and positions")
    change = change.format(heads=heads, width=width)
    sentence = _(
        "it follows if entry i of head h is column i·{heads} + h; in the model it is column "
        "h·{width} + i"
    ).format(heads=heads, width=width)
    packed = [step for step in steps if step.op == "split_heads"]
    if packed and all(scene.attention(step.address).packed == "per_head" for step in packed):
        draft = scene.draft()
        for step in packed:
            _cut_by_entry(scene, draft, step)
        yield Edit("head-split", sentence, change, draft.made())
    draft = scene.draft()
    for step in steps:
        _regroup(draft, step, by_entry=True)
    yield Edit("head-split", sentence, change, draft.made())
    if any(step.shape[1] > 1 for step in steps):
        draft = scene.draft()
        for step in steps:
            _regroup(draft, step, by_entry=False)
        sentence = _(
            "it follows if the rows are reshaped to (heads, positions, {width}) without a "
            "transpose; the model exchanges heads and positions"
        ).format(width=width)
        yield Edit("head-split", sentence, change, draft.made())


def _cut_by_entry(scene: Scene, draft: Draft, step: Step) -> None:
    """q, k or v out of a packed row that is read as (3·d_head, heads)."""
    heads, count, width = step.shape
    at, read = step.address, step.inputs["x"]
    shape = (count, 3 * width, heads)
    cut = draft.write(at, "reread", {"x": read}, ("pos", "packed", "head"), shape, shape=shape)
    turned = draft.write(
        at, "turned", {"x": cut}, ("head", "pos", "packed"), (heads, count, 3 * width),
        axes=(2, 0, 1),
    )  # fmt: skip
    start = SIDES.index(at.rpartition(".")[2]) * width
    draft.change(
        at, op="part", inputs={"x": turned}, only=True, axis=2, start=start, stop=start + width
    )


def _regroup(draft: Draft, step: Step, *, by_entry: bool) -> None:
    """Lays the heads side by side again and cuts them the wrong way."""
    heads, count, width = step.shape
    rows = draft.aside(step.address)
    at, flat = step.address, (count, heads * width)
    row = draft.write(at, "merge_heads", {"x": rows}, ("pos", "d"), flat)
    if by_entry:
        cut = draft.write(
            at, "reread", {"x": row}, ("pos", "d_head", "head"), (count, width, heads),
            shape=(count, width, heads),
        )  # fmt: skip
        draft.change(at, op="turned", inputs={"x": cut}, only=True, axes=(2, 0, 1))
    else:
        draft.change(at, op="reread", inputs={"x": row}, only=True, shape=step.shape)


# ------------------------------------------------------------------------ heads laid together


def _merges(scene: Scene) -> Iterator[Edit]:
    """Heads laid side by side the wrong way before the output matrix."""
    steps = [
        step for step in scene.named(".attn.out")
        if (mixed := scene.plan[step.inputs["x"]]).op == "mix" and mixed.shape[0] > 1
    ]  # fmt: skip
    if not steps:
        return
    heads, count, width = scene.plan[steps[0].inputs["x"]].shape
    change = _("exchange heads and positions, then lay the {heads} heads side by side").format(
        heads=heads
    )
    if count > 1:
        draft = scene.draft()
        for step in steps:
            _merge(scene, draft, step, by_entry=False)
        yield Edit(
            "head-merge",
            _("it follows if (heads, positions, {width}) is reshaped to rows without a transpose; "
              "the model lays the heads of a position side by side").format(width=width),
            change,
            draft.made(),
        )  # fmt: skip
    draft = scene.draft()
    for step in steps:
        _merge(scene, draft, step, by_entry=True)
    yield Edit(
        "head-merge",
        _("it follows if entry i of head h goes to column i·{heads} + h; in the model it goes to "
          "column h·{width} + i").format(heads=heads, width=width),
        change,
        draft.made(),
        1,
    )  # fmt: skip


def _merge(scene: Scene, draft: Draft, step: Step, *, by_entry: bool) -> None:
    """Reads the heads as rows the wrong way."""
    mixed = scene.plan[step.inputs["x"]]
    heads, count, width = mixed.shape
    at, read, rows = step.address, mixed.address, (count, heads * width)
    if by_entry:
        read = draft.write(
            at, "turned", {"x": read}, ("pos", "d_head", "head"), (count, width, heads),
            axes=(1, 2, 0),
        )  # fmt: skip
    _read_row(draft, step, draft.write(at, "reread", {"x": read}, ("pos", "d"), rows, shape=rows))


def _read_row(draft: Draft, step: Step, row: str) -> None:
    if step.op == "merge_heads":
        draft.keep(step.address, row)
    else:
        draft.change(step.address, inputs={"x": row})


# ------------------------------------------------------------------------ shared keys and values


def _shared_keys(scene: Scene) -> Iterator[Edit]:
    """Grouped queries that read another key head than their own."""
    readers = [
        (step, role) for step, role in
        [*((step, "k") for step in scene.of("scores")), *((step, "v") for step in scene.of("mix"))]
        if 1 < scene.attention(step.address).kv_heads < scene.attention(step.address).heads
    ]  # fmt: skip
    if not readers:
        return
    attn = scene.attention(readers[0][0].address)
    heads, shared = attn.heads, attn.kv_heads
    each = heads // shared
    choices = [readers]
    sides = [[one for one in readers if one[1] == role] for role in ("k", "v")]
    if all(sides):
        choices += sides
    for place, chosen in enumerate(choices):
        draft = scene.draft()
        for step, role in chosen:
            keys = scene.plan[step.inputs[role]]
            count = scene.attention(step.address).heads
            order = tuple(head % keys.shape[0] for head in range(count))
            tiled = draft.write(
                step.address, "taken", {"x": keys.address}, ("head", *keys.axes[1:]),
                (count, *keys.shape[1:]), axis=0, order=order,
            )  # fmt: skip
            draft.change(step.address, inputs={role: tiled})
        yield Edit(
            "kv-repeat",
            _("it follows if the {shared} key and value heads are tiled (head h reads h mod "
              "{shared}); the model repeats each {each} times (head h reads h // {each})").format(
                shared=shared, each=each),
            _("repeat each key and value head {each} times in a row (repeat_interleave)").format(
                each=each
            ),
            draft.made(),
            int(place > 0),
        )  # fmt: skip


def _mixes(scene: Scene) -> Iterator[Edit]:
    """Σ over queries for Σ over keys."""
    steps = [step for step in scene.of("mix")
             if (shape := scene.plan[step.inputs["weights"]].shape)[1] == shape[2] > 1]  # fmt: skip
    if steps:
        draft = scene.draft()
        for step in steps:
            weights = scene.plan[step.inputs["weights"]]
            shares = draft.write(
                step.address, "present", {"x": weights.address}, weights.axes, weights.shape
            )
            turned = draft.write(
                step.address, "turned", {"x": shares}, weights.axes, weights.shape, axes=(0, 2, 1)
            )
            draft.change(step.address, inputs={"weights": turned})
        yield Edit(
            "mix-transposed",
            _("it follows if v is mixed by the transposed weights; the model sums over keys"),
            _("sum over keys: weights (query, key) times v (key, width)"),
            draft.made(),
            1,
        )
