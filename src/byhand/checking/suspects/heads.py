"""Mistakes with heads: splitting a row into heads, merging them, sharing keys between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import permutations
from typing import Any

from byhand.checking.suspects.mistakes import Mistake, made
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

SIDES = ("q", "k", "v")


def head_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the heads of the region."""
    yield from _orders(scene)
    yield from _packings(scene)
    yield from _splits(scene)
    yield from _shared_keys(scene)
    yield from _merges(scene)
    yield from _mixes(scene)


# ------------------------------------------------------------------------ q, k and v


def _attentions(scene: Scene) -> list[tuple[str, tuple[str, ...]]]:
    """The attentions with q, k or v in the region, and which of the three are there."""
    found: dict[str, list[str]] = {}
    for step in scene.region:
        at, _dot, name = step.address.rpartition(".")
        inside = name in SIDES and at.endswith(".attn")
        if inside and scene.attention(step.address).latent is None:
            found.setdefault(at, []).append(name)
    return [(at, tuple(names)) for at, names in found.items()]


def _orders(scene: Scene) -> Iterator[Edit]:
    """Edits with q, k and v exchanged: other columns of a packed row, or each other's matrices."""
    every = _attentions(scene)
    if not every:
        return
    open_sides = every[0][1]
    for order in permutations(SIDES):
        swapped = dict(zip(SIDES, order, strict=True))
        if all(swapped[side] == side for side in open_sides):
            continue
        draft = scene.draft()
        if not all(
            _read_as(scene, draft, f"{at}.{side}", f"{at}.{swapped[side]}")
            for at, sides in every for side in sides
        ):  # fmt: skip
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
    """Makes q, k or v from the inputs of another of them; False if the shapes differ."""
    if address == other:
        return True
    own, theirs = scene.plan[address], scene.plan[other]
    if own.op == "split_heads":
        if own.shape == theirs.shape:
            draft.change(address, start=theirs.attributes["start"])
            return True
        attn = scene.attention(address)
        starts = {"q": 0, "k": attn.q_width, "v": attn.q_width + attn.kv_width}
        # with fewer key heads the parts have different widths, end to end in the other order
        draft.change(address, start=starts[other.rpartition(".")[2]])
        return own.shape[0] <= theirs.shape[0]
    weight, to = own.inputs.get("weight"), theirs.inputs.get("weight")
    if weight is None or to is None:
        return False
    if scene.weight_shape(weight) != scene.weight_shape(to):
        return False
    draft.change(address, inputs={"weight": to, "bias": theirs.inputs.get("bias")})
    return True


def _packings(scene: Scene) -> Iterator[Edit]:
    """Edits that pack q, k and v by head instead of by kind, or the reverse."""
    steps = [
        step for step in scene.of("split_heads")
        if step.address.rpartition(".")[2] in SIDES
        and scene.attention(step.address).packed is not None
        and (attn := scene.attention(step.address)).heads == attn.kv_heads
    ]  # fmt: skip
    if not steps:
        return
    by_head = scene.attention(steps[0].address).packed == "per_head"
    by_kind, one_by_one = (
        _("q of all heads, then k, then v"), _("q, k, v of one head after the other")
    )  # fmt: skip
    own, other = (one_by_one, by_kind) if by_head else (by_kind, one_by_one)

    def repack(draft: Draft, step: Step) -> None:
        attn, place = scene.attention(step.address), SIDES.index(step.address.rpartition(".")[2])
        start, stride = (attn.q_width, attn.d_head) if by_head else (attn.d_head, 3 * attn.d_head)
        draft.change(step.address, start=place * start, stride=stride)

    yield from made(scene, steps, Mistake(
        "qkv-packing",
        _("it follows if the packed row holds {other}; in the model it holds {own}"),
        _("cut the packed row as {own}"), repack), other=other, own=own)  # fmt: skip


# ------------------------------------------------------------------------ a row cut into heads


def _splits(scene: Scene) -> Iterator[Edit]:
    """Edits that read (pos, heads·d_head) as (pos, d_head, heads), or as (heads, pos, d_head)."""
    steps = [step for step in scene.region if step.op in ("split_heads", "linear")
             and step.axes[-1:] == ("d_head",) and step.shape[0] > 1]  # fmt: skip
    if not steps:
        return
    heads, _count, width = steps[0].shape
    change = _("read a row as {heads} heads of {width} entries, then exchange heads and positions")
    sentence = _("it follows if entry i of head h is column i·{heads} + h; in the model it is "
                 "column h·{width} + i")  # fmt: skip
    words: dict[str, Any] = {"heads": heads, "width": width}
    packed = [step for step in steps if step.op == "split_heads"]
    if all(scene.attention(step.address).packed == "per_head" for step in packed):
        cut = Mistake("head-split", sentence, change, _cut_by_entry)
        yield from made(scene, packed, cut, **words)
    regroup = Mistake("head-split", sentence, change, _regroup_by_entry)
    yield from made(scene, steps, regroup, **words)
    if any(step.shape[1] > 1 for step in steps):
        sentence = _("it follows if the rows are reshaped to (heads, positions, {width}) without a "
                     "transpose; the model exchanges heads and positions")  # fmt: skip
        reshape = Mistake("head-split", sentence, change, _regroup)
        yield from made(scene, steps, reshape, **words)


def _cut_by_entry(draft: Draft, step: Step) -> None:
    """Takes q, k or v from a packed row that is read as (3·d_head, heads)."""
    heads, count, width = step.shape
    at = step.address
    draft.first(at, "x", "reread", shape=(count, 3 * width, heads))
    draft.first(at, "x", "turned", axes=(2, 0, 1))
    start = SIDES.index(at.rpartition(".")[2]) * width
    cut = {"x": draft[at].inputs["x"]}
    own = tuple(range(start, start + width))
    draft.change(at, op="taken", inputs=cut, only=True, axis=2, order=own)


def _laid_side_by_side(draft: Draft, step: Step) -> str:
    heads, count, width = step.shape
    rows = {"x": draft.aside(step.address)}
    return draft.write(step.address, "merge_heads", rows, ("pos", "d"), (count, heads * width))


def _regroup(draft: Draft, step: Step) -> None:
    """Merges the heads again and reads them as (heads, positions, width)."""
    row = {"x": _laid_side_by_side(draft, step)}
    draft.change(step.address, op="reread", inputs=row, only=True, shape=step.shape)


def _regroup_by_entry(draft: Draft, step: Step) -> None:
    """Merges the heads again and splits them entry by entry."""
    heads, count, width = step.shape
    row, at = _laid_side_by_side(draft, step), step.address
    cut = {"x": draft.made_of(row, "reread", at, shape=(count, width, heads))}
    draft.change(at, op="turned", inputs=cut, only=True, axes=(2, 0, 1))


# ------------------------------------------------------------------------ heads laid together


def _merges(scene: Scene) -> Iterator[Edit]:
    """Edits that merge the heads wrongly before the output matrix."""
    steps = [
        step for step in scene.named(".attn.out")
        if (mixed := scene.plan[step.inputs["x"]]).op == "mix" and mixed.shape[0] > 1
    ]  # fmt: skip
    if not steps:
        return
    heads, count, width = scene.plan[steps[0].inputs["x"]].shape
    change = _("exchange heads and positions, then lay the {heads} heads side by side")
    words: dict[str, Any] = {"heads": heads, "width": width}

    def merge(draft: Draft, step: Step, *, by_entry: bool) -> None:
        at = step.address
        heads, count, width = scene.plan[step.inputs["x"]].shape
        if by_entry:
            draft.first(at, "x", "turned", axes=(1, 2, 0))
        draft.first(at, "x", "reread", shape=(count, heads * width))
        if step.op == "merge_heads":
            draft.keep(at, draft[at].inputs["x"])

    if count > 1:
        yield from made(scene, steps, Mistake(
            "head-merge",
            _("it follows if (heads, positions, {width}) is reshaped to rows without a transpose; "
              "the model lays the heads of a position side by side"),
            change, partial(merge, by_entry=False)), **words)  # fmt: skip
    yield from made(scene, steps, Mistake(
        "head-merge",
        _("it follows if entry i of head h goes to column i·{heads} + h; in the model it goes to "
          "column h·{width} + i"), change, partial(merge, by_entry=True), 1), **words)  # fmt: skip


# ------------------------------------------------------------------------ shared keys and values


def _shared_keys(scene: Scene) -> Iterator[Edit]:
    """Edits in which grouped queries read another key head than their own."""
    readers = [
        (step, role) for role, op in (("k", "scores"), ("v", "mix")) for step in scene.of(op)
        if 1 < scene.attention(step.address).kv_heads < scene.attention(step.address).heads
    ]  # fmt: skip
    if not readers:
        return
    attn = scene.attention(readers[0][0].address)

    def tile(draft: Draft, reader: tuple[Step, str]) -> None:
        step, role = reader
        keys, count = scene.plan[step.inputs[role]], scene.attention(step.address).heads
        order = tuple(head % keys.shape[0] for head in range(count))
        draft.first(step.address, role, "taken", axis=0, order=order)

    tiled = Mistake(
        "kv-repeat",
        _(
            "it follows if the {shared} key-value heads are tiled (head h reads h mod "
            "{shared}); the model repeats each {each} times (h // {each})"
        ),
        _("repeat each key and value head {each} times in a row (repeat_interleave)"), tile,
    )  # fmt: skip
    words: dict[str, Any] = {"shared": attn.kv_heads, "each": attn.heads // attn.kv_heads}
    yield from made(scene, readers, tiled, **words)
    sides = [[one for one in readers if one[1] == role] for role in ("k", "v")]
    for chosen in sides if all(sides) else ():
        yield from made(scene, chosen, tiled, unlikely=1, **words)


def _mixes(scene: Scene) -> Iterator[Edit]:
    """Edits that sum over queries instead of keys."""
    steps = [step for step in scene.of("mix")
             if (shape := scene.plan[step.inputs["weights"]].shape)[1] == shape[2] > 1]  # fmt: skip

    def transpose(draft: Draft, step: Step) -> None:
        draft.first(step.address, "weights", "present")
        draft.first(step.address, "weights", "turned", axes=(0, 2, 1))

    yield from made(scene, steps, Mistake(
        "mix-transposed",
        _("it follows if v is mixed by the transposed weights; the model sums over keys"),
        _("sum over keys: weights (query, key) times v (key, width)"), transpose, 1))  # fmt: skip
