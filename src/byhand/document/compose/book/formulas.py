"""The formula of a step: its law in symbols, with this model's numbers, one entry written out.

`law` gives a step in the symbols of `forward`'s formulas, as a tree.  `formula_lines` inserts the
rows and matrices of one position.  The entry written out comes from `Showing`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from byhand.document.compose.book.formula_lines import EQUALS, answer, average, in_numbers
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.forms import symbol_of
from byhand.document.compose.tables import WORDED, Index
from byhand.document.parts import Formula, Line
from byhand.document.words import row_width
from byhand.expression import (
    ONE,
    Call,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    write,
)
from byhand.plan import Step
from byhand.worked import Worked
from byhand.working import E, activation
from byhand.working.operations import capped

FOLLOWED = ("pos", "query", "key", "source", "source_query", "source_key")
FEW_POSITIONS = 2  # so few positions have one line each


def formula(showing: Showing, worked: Worked, index: Index | None = None) -> Formula | None:
    """The formula of a step at the followed position; None for given steps."""
    step = worked.step
    if step.op == "given":
        return None
    symbols: Line = (Name(_short(step)), EQUALS, law(step))
    if worked.missing is not None:
        return Formula(step.address, symbols)
    if step.op == "argmax":
        return _with_earlier(showing, worked, None, Formula(step.address, symbols))
    at = followed_index(showing, worked) if index is None else index
    if at is None:
        return Formula(step.address, symbols)
    found = Formula(step.address, symbols, worked=showing.card(worked, at))
    return _with_earlier(showing, worked, at, found)


def _with_earlier(showing: Showing, worked: Worked, at: Index | None, found: Formula) -> Formula:
    """The formula with numbers at the followed position, and at earlier ones that tell more."""
    axis = worked.step.position_axis

    def line(place: int) -> Line:
        if at is None:
            return answer(showing, place)
        index = at if axis is None else (*at[:axis], place, *at[axis + 1 :])
        return in_numbers(showing, worked, index)

    last = showing.followed if at is None or axis is None else at[axis]
    numbers = line(last)
    if not numbers or axis is None or not showing.everything:
        return replace(found, numbers=numbers)
    labels = showing.labels_of(worked.step)
    earlier = tuple((labels[k], line(k)) for k in _told_too(showing, worked, last))
    label = labels[last] if earlier else ""
    return replace(found, numbers=numbers, earlier=earlier, label=label)


def _told_too(showing: Showing, worked: Worked, last: int) -> range:
    """The earlier positions: all of a short text, else the one whose softmax has one score."""
    if len(showing.labels_of(worked.step)) <= FEW_POSITIONS:
        return range(last)
    single = worked.step.op == "softmax" and worked.step.axes[-1] == "key"
    alone = single and worked.step.shape[2] > 1 and worked.register_at((0, 0, 1)) is None
    return range(min(last, 1)) if alone else range(0)


def followed_index(showing: Showing, worked: Worked) -> Index | None:
    """The entry to write out: at the followed position, for the winning word there."""
    step, trace = worked.step, showing.trace
    if worked.missing is not None or worked.whole:
        return None
    last = len(showing.source_labels) - 1 if step.of_source else showing.followed
    column = 0
    if step.axes[-1] in WORDED and trace.next and trace.next[last].id is not None:
        column = trace.next[last].id or 0
    index = []
    for axis, size in zip(step.axes, step.shape, strict=True):
        place = last if axis in FOLLOWED else 0
        index.append(column if axis in WORDED else min(place, size - 1))
    if step.op == "activate":
        index[-1] = _bent_column(showing, worked, tuple(index[:-1]))
    elif step.axes[-1] in ("d", "d_head", "d_ff") and worked.numbers.uniform is None:
        index[-1] = _telling_column(worked, tuple(index[:-1]))
    return tuple(index)


def _telling_column(worked: Worked, row: Index) -> int:
    """The first entry of a row that is no longer exact; else its first."""
    for column in range(worked.step.shape[-1]):
        if worked.register_at((*row, column)) != "exact":
            return column
    return 0


def _bent_column(showing: Showing, worked: Worked, row: Index) -> int:
    """The first entry of a row that is negative before the activation; else its first."""
    before = showing.trace.steps[worked.step.inputs["x"]]
    for column in range(worked.step.shape[-1]):
        if (showing.cell(before, (*row, column)).decimal or "").startswith("-"):
            return column
    return 0


def _short(step: Step) -> str:
    """The name of a step in formulas."""
    name = step.address.rpartition(".")[2]
    return {"embed.token": "embed", "embed.position": "position", "stream.0": "x_0"}.get(
        step.address, name
    )


# ------------------------------------------------------------------ the law in symbols


def law(step: Step) -> Expression:
    """The law of a step, in symbols."""
    x = Name("x")
    match step.op:
        case "embed":
            table = symbol_of(step, "table", step.inputs["table"])
            row: Expression = Name({"E": "E_token", "S": "S_segment"}.get(table, "P_pos"))
            return _scaled(row, step.attributes.get("scale"))
        case "sinusoid":
            power = Quotient(Product((_whole(2), Name("i"))), Name("d"))
            angle = Quotient(Name("pos"), Power(Number(step.attributes["base"]), power))
            return Call("sin", angle)
        case "add":
            return _sum_law(step)
        case "multiply":
            return Product((Name("act"), Name(_read(step, "y").removesuffix("_limited"))))
        case "rescale":
            result = _scaled(Name(_read(step, "x")), step.attributes.get("by"))
            plus = step.attributes.get("plus")
            return result if plus is None else Sum((result, Number(plus)))
        case "soft_cap":
            return capped(Name(_read(step, "x")), step.attributes["cap"])
        case "clamp":
            return _clamp_law(step)
        case "weigh":
            return Product((Name("share"), Name("out")))
        case "constants":
            return Name("θ_i")
        case "bucket_scores":
            return Name("R_bucket")
        case "beside":
            return Call("concat", Name(f"{_read(step, 'x')}, {_read(step, 'y')}"))
        case "mean":
            return average(Name("x_i"), row_width(step.address))
        case "center":
            return Sum((x, Negative(Name("mean"))))
        case "mean_square":
            inner = Name("centered_i" if step.address.endswith("variance") else "x_i")
            return average(Power(inner, _whole(2)), row_width(step.address))
        case "root":
            of = Name("variance" if step.address.endswith("std") else "mean_square")
            eps: Fraction = step.attributes["eps"]
            return Call("sqrt", Sum((of, Number(eps))) if eps else of)
        case "normalize":
            by_std = step.inputs["by"].endswith("std")
            return Quotient(Name("centered"), Name("std")) if by_std else Quotient(x, Name("rms"))
        case "affine":
            return _affine_law(step)
        case "linear":
            return _linear_law(step)
        case "split_heads":
            whole = _read(step, "x")
            return Name(f"{whole}_{step.address.rpartition('.')[2]}")
        case "merge_heads":
            return Call("concat", Name("mixed"))
        case "rotate":
            return _rotate_law(step)
        case "scores":
            return _scores_law(step)
        case "table_scores":
            return _table_scores_law(step)
        case "softmax":
            of = Name(step.inputs["x"].rpartition(".")[2])
            total: Expression = Call("Σ", Power(E, of))
            if "sinks" in step.inputs:
                total = Sum((Power(E, Name("sink")), total))
            return Quotient(Power(E, of), total)
        case "expert_linear":
            return _linear_law(step)
        case "choose":
            return Call(f"top_{step.attributes['count']}", Name(_read(step, "x")))
        case "expert_shares":
            return _shares_law(step)
        case "combine":
            return Call("Σ", Product((Name("shares"), Name("answers"))))
        case "mix":
            return Call("Σ", Product((Name("weights"), Name("v"))))
        case "head_outputs":
            return Product((Name("mixed_head"), Name("W_out")))
        case "activate":
            return activation(step.attributes["kind"], Name(_read(step, "x")))
        case "argmax":
            return Call("argmax", Name("logits"))
        case "logprobs":
            return Sum(
                (Name("logits_target"), Negative(Call("ln", Call("Σ", Power(E, Name("logits"))))))
            )
        case "loss":
            return Negative(Call("ln", Name("probs_target")))
        case _:
            return Name(step.op)


def _whole(value: int) -> Number:
    return Number(Fraction(value))


def _read(step: Step, role: str) -> str:
    return step.inputs[role].rpartition(".")[2]


def _scaled(x: Expression, scale: Expression | None) -> Expression:
    match scale:
        case None:
            return x
        case Quotient(top=top, bottom=bottom) if top == ONE:
            return Quotient(x, bottom)
        case _:
            return Product((x, scale))


def _sum_law(step: Step) -> Expression:
    address = step.address.removeprefix("encoder.")
    if not address.startswith("block."):
        before, added = _read(step, "x"), _read(step, "y")
        return Sum((Name("embed" if before in ("token", "projected") else before), Name(added)))
    if address.endswith(".mlp.out"):
        return Sum((Name("combined"), Name("shared")))
    trip = address.split(".")[2]
    return Sum((Name("stream"), Name(f"out_{trip}")))


def _clamp_law(step: Step) -> Expression:
    """min and max of x and its limits."""
    result: Expression = Name(_read(step, "x"))
    for name, end in (("max", step.attributes.get("least")), ("min", step.attributes.get("most"))):
        if end is not None:
            result = Call(name, Name(f"{write(result)}, {write(Number(end))}"))
    return result


def _shares_law(step: Step) -> Expression:
    x, settings = Name(_read(step, "x")), step.attributes
    powers: Expression = x if settings.get("alone") else Power(E, x)
    counted: Expression = Product((Name("chosen"), powers))
    share = counted
    if settings["normalised"] or not settings.get("alone"):
        below: Expression = Call("Σ", counted if settings["normalised"] else powers)
        eps = settings.get("eps")
        share = Quotient(counted, below if eps is None else Sum((below, Number(eps))))
    scale = settings.get("scale")
    return share if scale is None else Product((Number(scale), share))


def _affine_law(step: Step) -> Expression:
    result: Expression = Name(_read(step, "x"))
    if "gain" in step.inputs:
        gain: Expression = Name("gain")
        if step.attributes.get("plus_one"):
            gain = Sum((ONE, gain))
        result = Product((result, gain))
    return Sum((result, Name("bias"))) if "bias" in step.inputs else result


def _linear_law(step: Step) -> Expression:
    symbol = symbol_of(step, "weight", step.inputs["weight"])
    name = _short_input(step)
    if symbol == "E":
        product: Expression = Product((Name(name), Name("Eᵀ")))
    elif step.attributes["layout"] == "in_out":
        product = Product((Name(name), Name(symbol)))
    else:
        product = Product((Name(symbol), Name(name)))
    return Sum((product, Name("b"))) if "bias" in step.inputs else product


def _short_input(step: Step) -> str:
    """x for an input from the stream or a norm, else the name of the step read."""
    name = _read(step, "x")
    return name if name in ("mixed", "act", "gated") else "x"


def _rotate_law(step: Step) -> Expression:
    angle = Product((Name("pos"), Name("θ_i")))
    first = Product((Name("a"), Call("cos", angle)))
    turned = Sum((first, Negative(Product((Name("b"), Call("sin", angle))))))
    magnitude = step.attributes.get("magnitude")
    return turned if magnitude is None else Product((magnitude, turned))


def _scores_law(step: Step) -> Expression:
    score = _scaled(Product((Name("q"), Name("k"))), step.attributes.get("scale"))
    if (cap := step.attributes.get("cap")) is not None:
        score = capped(score, cap)
    terms = [score]
    if "slopes" in step.inputs:
        terms.append(_less_distance())
    if "table" in step.inputs:
        terms.append(Name("table"))
    if "bias" in step.inputs:
        terms.append(Name("relative"))
    return Sum(tuple(terms)) if len(terms) > 1 else score


def _table_scores_law(step: Step) -> Expression:
    terms: list[Expression] = [Name("table")] if "table" in step.inputs else []
    if "slopes" in step.inputs:
        terms.append(_less_distance())
    if "bias" in step.inputs:
        terms.append(Name("relative"))
    if not terms:
        return _whole(0)
    return Sum(tuple(terms)) if len(terms) > 1 else terms[0]


def _less_distance() -> Expression:
    apart = Sum((Name("query"), Negative(Name("key"))))
    return Negative(Product((Name("slope"), Call("abs", apart))))
