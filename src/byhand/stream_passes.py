"""Enclosed passes along the stream: each sublayer from middles, and its slopes at that point.

A pre-norm sublayer reads the stream x and adds f(x) to it.  The stream is known within a ball of
each row: x = middle + error.  Instead of carrying the ball through every step of the sublayer, the
sublayer is worked out from the middle as if it were the number itself.  That leaves f(middle) with
the rounding of these steps alone.  What the error does to f is bounded at once, by the slopes of f
at this point (`numbers.enclosed.limbs.moves`).  So

    x + f(x)  is within  ball of x  +  how far f moves  +  rounding   of   middle + f(middle).

Digits far below the largest ball of a row are not worked out: all tokens are known equally well in
the end.  Sublayers of another make are worked out step by step, as always.  Steps inside a
sublayer that somebody asks for are worked out again from the enclosed stream.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from byhand.numbers.base import Numbers
from byhand.plan import WEIGHT, Plan, Step
from byhand.worked import Worked

Work = Callable[..., dict[str, Worked]]

NORM = ("mean", "center", "mean_square", "root", "normalize", "affine")
ATTENTION = (*NORM, "linear", "split_heads", "rotate", "scores", "softmax", "mix")
MLP = (*NORM, "linear", "activate", "multiply")
REMEMBERED = 16  # plans whose sublayers are known


@dataclass(frozen=True)
class Sublayer:
    """The steps between a stream and the step that adds to it."""

    kind: str  # "attention" or "mlp"
    plan: Plan  # the steps inside, the stream, and the sum
    source: str  # the stream that is read
    onto: str  # the stream that is added to
    sum: Step
    roles: Mapping[str, Step]


@dataclass(frozen=True)
class Stretch:
    """Steps that are worked out together: a sublayer, or steps of any other kind."""

    plan: Plan
    sublayer: Sublayer | None = None


_known: OrderedDict[int, tuple[Plan, tuple[Stretch, ...]]] = OrderedDict()


def stretches(plan: Plan) -> tuple[Stretch, ...]:
    """The plan taken apart: the sublayers whose slopes are known, and what lies between them."""
    if id(plan) not in _known:
        _known[id(plan)] = plan, tuple(_stretches(plan))  # the plan is kept, and so its id
        if len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return _known[id(plan)][1]


def _stretches(plan: Plan) -> Iterator[Stretch]:
    readers: dict[str, list[Step]] = {}
    for step in plan:
        for read in step.reads:
            readers.setdefault(read, []).append(step)
    found = {}
    for step in plan:
        if step.op == "add" and step.stage == "forward":
            sublayer = _sublayer(plan, step, readers)
            if sublayer is not None:
                found[step.address] = sublayer
    inside = {
        step.address: sublayer
        for sublayer in found.values()
        for step in sublayer.plan
        if step.address not in (sublayer.source, sublayer.onto)
    }
    between: list[str] = []
    for step in plan:
        if step.address not in inside:
            between.append(step.address)
        elif step.address in found:
            if between:
                yield Stretch(_part(plan, between))
                between = []
            yield Stretch(found[step.address].plan, found[step.address])
    if between:
        yield Stretch(_part(plan, between))


def _part(plan: Plan, addresses: Sequence[str]) -> Plan:
    """The steps, and before them those that they read of earlier stretches."""
    own = set(addresses)
    read = {read for address in addresses for read in plan[address].reads} - own
    steps = tuple(step for step in plan if step.address in own or step.address in read)
    return Plan(plan.spec, plan.length, steps, {})


def _sublayer(plan: Plan, end: Step, readers: Mapping[str, list[Step]]) -> Sublayer | None:
    """The sublayer whose answer is added by this step; None where it is of another make."""
    onto, answer = end.inputs["x"], end.inputs["y"]
    steps = _inside(plan, answer, (*ATTENTION, *MLP))
    if not steps:
        return None
    ops = [step.op for step in steps.values()]
    starts = {
        read
        for step in steps.values()
        for read in step.reads
        if read not in steps and not read.startswith(WEIGHT)
    }
    if len(starts) != 1 or "normalize" not in ops:
        return None
    (source,) = starts
    own = {*steps, end.address}
    read = (step.address for name in steps for step in readers.get(name, ()))
    if onto in own or not own.issuperset(read):
        return None
    roles = _attention(steps, answer) if "scores" in ops else _mlp(steps, answer)
    if roles is None:
        return None
    part = plan.only([end.address], given=[source, onto])
    part = Plan(part.spec, part.length, part.steps, {})
    kind = "attention" if "scores" in ops else "mlp"
    return Sublayer(kind, part, source, onto, end, roles)


def _inside(plan: Plan, answer: str, allowed: Collection[str]) -> dict[str, Step]:
    """The steps that an answer comes from, back to the stream: as far as a norm reads it."""
    found: dict[str, Step] = {}
    left = [answer]
    while left:
        step = plan[left.pop()]
        if step.address in found:
            continue
        if step.op not in allowed:
            return {}
        found[step.address] = step
        stream = step.op in ("mean", "center") or (
            step.op in ("mean_square", "normalize") and not _centered(plan, step)
        )
        for role, read in step.inputs.items():
            if read.startswith(WEIGHT) or (stream and role == "x"):
                continue
            left.append(read)
    return found


def _centered(plan: Plan, step: Step) -> bool:
    return plan[step.inputs["x"]].op == "center"


def _attention(steps: Mapping[str, Step], answer: str) -> dict[str, Step] | None:
    """The steps of attention by what they are, where every one is of the usual kind."""
    ops: dict[str, list[Step]] = {}
    for step in steps.values():
        ops.setdefault(step.op, []).append(step)
    for op, count in {"scores": 1, "softmax": 1, "mix": 1, "root": 1, "normalize": 1}.items():
        if len(ops.get(op, ())) != count:
            return None
    scores, softmax, mix = ops["scores"][0], ops["softmax"][0], ops["mix"][0]
    out = steps[answer]
    plain = set(scores.inputs) == {"q", "k"} and "cap" not in scores.attributes
    if not plain or "sinks" in softmax.inputs or out.op != "linear":
        return None
    if scores.attributes["queries"] != scores.attributes["keys"] or not all(
        map(any, scores.attributes["mask"])
    ):
        return None
    if out.inputs["x"] != mix.address or set(mix.inputs) != {"weights", "v"}:
        return None
    roles = {"out": out, "scores": scores, "softmax": softmax, "mix": mix, "root": ops["root"][0]}
    sides = {"q": scores.inputs["q"], "k": scores.inputs["k"], "v": mix.inputs["v"]}
    for role, read in sides.items():
        step = steps[read]
        if step.op == "rotate" and role != "v":
            roles[f"turned_{role}"] = step
            step = steps[step.inputs["x"]]
        roles[role] = step
        if step.op == "split_heads":
            step = steps[step.inputs["x"]]
        norm = steps.get(step.inputs["x"])
        if step.op != "linear" or norm is None or norm.op not in ("affine", "normalize"):
            return None
        roles[f"{role}_matrix"], roles["norm"] = step, norm
    turned = [roles.get("turned_q"), roles.get("turned_k")]
    if (turned[0] is None) != (turned[1] is None):
        return None
    if len(ops["linear"]) != len({roles[f"{role}_matrix"].address for role in "qkv"}) + 1:
        return None
    return roles


def _mlp(steps: Mapping[str, Step], answer: str) -> dict[str, Step] | None:
    """The steps of an MLP by what they are; gated or not."""
    ops: dict[str, list[Step]] = {}
    for step in steps.values():
        ops.setdefault(step.op, []).append(step)
    out = steps[answer]
    if out.op != "linear" or len(ops.get("activate", ())) != 1 or len(ops.get("root", ())) != 1:
        return None
    act = ops["activate"][0]
    hidden = steps[act.inputs["x"]]
    roles = {"out": out, "act": act, "hidden": hidden, "root": ops["root"][0]}
    last = steps[out.inputs["x"]]
    if last.op == "multiply":
        if act.address not in last.reads:
            return None
        other = next(read for read in last.reads if read != act.address)
        roles["up"] = steps[other]
    elif last is not act:
        return None
    for role in ("hidden", "up"):
        if role in roles:
            norm = steps.get(roles[role].inputs["x"])
            if roles[role].op != "linear" or norm is None:
                return None
            if norm.op not in ("affine", "normalize"):
                return None
            roles["norm"] = norm
    if len(ops["linear"]) != 2 + ("up" in roles) or len(ops["normalize"]) != 1:
        return None
    return roles


# ------------------------------------------------------------------ working it out


def fits(numbers: Numbers) -> bool:
    """Whether slopes at the point are known in these numbers: enclosures in limbs."""
    return bool(getattr(numbers, "along_the_stream", False))


def _once(progress: Callable[[Step], None] | None) -> Callable[[Step], None] | None:
    """Progress that is told of each step once."""
    if progress is None:
        return None
    told: set[str] = set()

    def tell(step: Step) -> None:
        if step.address not in told:
            told.add(step.address)
            progress(step)

    return tell


@dataclass
class Run:
    """A pass: what is known so far, and how more of it is worked out."""

    work: Work  # `evaluate.work_out`, step by step
    weights: Any  # admitted
    numbers: Any
    progress: Callable[[Step], None] | None
    ids: Mapping[str, Any]  # the tokens, and what goes with them
    done: dict[str, Worked] = field(default_factory=dict)

    def along(
        self,
        plan: Plan,
        keep: Collection[str] | None,
        sink: Callable[[Worked], None] | None,
        *,
        lasting: bool,
    ) -> dict[str, Worked]:
        """The plan's steps; weights that are not `lasting` are dropped after their last reader."""
        self.progress = _once(self.progress)
        last = {read: step.address for step in plan for read in step.reads}
        order = {step.address: place for place, step in enumerate(plan)}
        every = {step.address for step in plan}
        wanted = every if keep is None else {plan[name].address for name in keep}
        done = self.done
        for stretch in stretches(plan):
            end = max(order[step.address] for step in stretch.plan)
            later = {read for read, reader in last.items() if order[reader] > end}
            asked = every if sink else later | wanted
            for address, worked in self.worked(stretch, asked).items():
                done[address] = worked = replace(worked, numbers=self.numbers)
                if sink:
                    sink(worked)
            for address in [address for address in done if address not in wanted | later]:
                del done[address]
            if not lasting:
                self._drop({read for step in stretch.plan for read in step.reads} - later)
        return {step.address: done[step.address] for step in plan if step.address in done}

    def _drop(self, reads: Collection[str]) -> None:
        for read in reads:
            if read.startswith(WEIGHT):
                self.weights.drop(read.removeprefix(WEIGHT))

    def worked(self, stretch: Stretch, asked: Collection[str]) -> dict[str, Worked]:
        """The new steps of a stretch that are asked for."""
        given = {step.address: self.done[step.address] for step in stretch.plan
                 if step.address in self.done}  # fmt: skip
        new = [step.address for step in stretch.plan if step.address not in given]
        total = None if stretch.sublayer is None else self._sum(stretch.sublayer, given)
        numbers = self.numbers
        if total is None:
            streams = [one.value for one in given.values() if len(one.step.shape) == 2]
            numbers = numbers.coarser(streams)
        else:
            given[total.step.address] = total
        wanted = [name for name in new if name in asked and name not in given]
        if wanted:
            found = self._out(stretch.plan, numbers, given, wanted)
            given |= {name: found[name] for name in wanted}
        return {name: given[name] for name in new if name in given and name in asked}

    def _sum(self, sublayer: Sublayer, given: Mapping[str, Worked]) -> Worked | None:
        """The stream after a sublayer, worked out from its middle; None where it cannot be."""
        point = self.numbers.along_stream(sublayer, given, self.weights)
        if point is None:
            return None
        inside = [step.address for step in sublayer.roles.values()]
        found = self._out(
            sublayer.plan, point.numbers, point.middles, [sublayer.sum.address, *inside]
        )
        total = found[sublayer.sum.address]
        if total.missing is not None:
            return None
        return replace(total, value=point.enclosed(found))

    def _out(
        self, plan: Plan, numbers: Any, given: Mapping[str, Any], keep: Collection[str]
    ) -> dict[str, Worked]:
        """Steps by the rule of each."""
        return self.work(plan, self.weights, numbers=numbers, given=given, keep=keep,
                         progress=self.progress, **self.ids)  # fmt: skip
