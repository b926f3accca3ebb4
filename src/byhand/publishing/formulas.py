"""The formula of a step: its law in symbols, with this model's numbers, one entry written out.

`law` says what a step is in the symbols of `forward`'s formulas, as a tree; `in_numbers` writes
the matrices of one position into it where they are small; the entry written out comes from
`showing`.
"""

from __future__ import annotations

from fractions import Fraction

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
)
from byhand.plan import WEIGHT, Step
from byhand.publishing.parts import (
    Formula,
    Line,
    Matrix,
    Sign,
)
from byhand.publishing.showing import Index, Showing
from byhand.render.given import symbol_of
from byhand.render.parts import Cell
from byhand.tracing import Worked
from byhand.working import E, activation

WIDEST_MATRIX = 8  # rows or columns of a matrix in a formula
EQUALS = Sign("=")


def formula(showing: Showing, worked: Worked, index: Index | None = None) -> Formula | None:
    """The formula of a step at the followed position; None for what is given."""
    step = worked.step
    if step.op == "given":
        return None
    at = followed_index(showing, worked) if index is None else index
    missing = worked.missing is not None
    numbers: Line = () if missing or not showing.everything else in_numbers(showing, worked, at)
    line = None if missing or at is None else showing.line(worked, at)
    return Formula(step.address, (Name(_short(step)), EQUALS, law(step)), numbers, line)


def followed_index(showing: Showing, worked: Worked) -> Index | None:
    """The entry that is written out: of the position followed, and of the word that wins there."""
    step, trace = worked.step, showing.trace
    if worked.missing is not None or worked.whole:
        return None
    last = showing.followed
    column = 0
    if step.axes[-1] == "vocab" and trace.next and trace.next[last].id is not None:
        column = trace.next[last].id or 0
    index = []
    for axis, size in zip(step.axes, step.shape, strict=True):
        place = {"pos": last, "query": last, "key": last}.get(axis, 0)
        index.append(column if axis == "vocab" else min(place, size - 1))
    if step.axes[-1] in ("d", "d_head", "d_ff") and worked.numbers.uniform is None:
        index[-1] = _telling_column(worked, tuple(index[:-1]))
    return tuple(index)


def _telling_column(worked: Worked, row: Index) -> int:
    """The first entry of a row that has left the exact numbers; else its first."""
    for column in range(worked.step.shape[-1]):
        if worked.register_at((*row, column)) != "exact":
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
    """What a step is, in symbols."""
    x = Name("x")
    match step.op:
        case "embed":
            row: Expression = Name("E_token" if step.address == "embed.token" else "P_pos")
            return _scaled(row, step.attributes.get("scale"))
        case "sinusoid":
            power = Quotient(Product((_whole(2), Name("i"))), Name("d"))
            angle = Quotient(Name("pos"), Power(Number(step.attributes["base"]), power))
            return Call("sin", angle)
        case "add":
            return _sum_law(step)
        case "multiply":
            return Product((Name("act"), Name("hidden")))
        case "mean":
            return Call("mean", x)
        case "center":
            return Sum((x, Negative(Name("mean"))))
        case "mean_square":
            inner = Name("centered") if step.address.endswith("variance") else x
            return Call("mean", Power(inner, _whole(2)))
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
            return Name(f"qkv_{step.address.rpartition('.')[2]}")
        case "merge_heads":
            return Call("concat", Name("mixed"))
        case "rotate":
            return _rotate_law(step)
        case "scores":
            return _scores_law(step)
        case "softmax":
            of = Name(step.inputs["x"].rpartition(".")[2])
            return Quotient(Power(E, of), Call("Σ", Power(E, of)))
        case "mix":
            return Call("Σ", Product((Name("weights"), Name("v"))))
        case "head_outputs":
            return Product((Name("mixed_head"), Name("W_out")))
        case "activate":
            return activation(step.attributes["kind"], Name(_read(step, "x")))
        case "argmax":
            return Call("argmax", Name("logits"))
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
    if step.address == "stream.0":
        return Sum((Name("embed"), Name("position")))
    trip = step.address.split(".")[2]
    return Sum((Name("stream"), Name(f"out_{trip}")))


def _affine_law(step: Step) -> Expression:
    result: Expression = Name("normalized")
    if "gain" in step.inputs:
        result = Product((result, Name("gain")))
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
    """x for what comes from the stream or a norm, else the name of the step read."""
    name = _read(step, "x")
    return name if name in ("mixed", "act", "gated") else "x"


def _rotate_law(step: Step) -> Expression:
    angle = Product((Name("pos"), Name("θ_i")))
    first = Product((Name("a"), Call("cos", angle)))
    return Sum((first, Negative(Product((Name("b"), Call("sin", angle))))))


def _scores_law(step: Step) -> Expression:
    score = _scaled(Product((Name("q"), Name("k"))), step.attributes.get("scale"))
    terms = [score]
    if "slopes" in step.inputs:
        apart = Sum((Name("query"), Negative(Name("key"))))
        terms.append(Negative(Product((Name("slope"), Call("abs", apart)))))
    if "table" in step.inputs:
        terms.append(Name("table"))
    return Sum(tuple(terms)) if len(terms) > 1 else score


# ------------------------------------------------------------------ with this model's numbers


def in_numbers(showing: Showing, worked: Worked, at: Index | None) -> Line:
    """One position's line with its matrices written out; empty where they are too large."""
    if at is None:
        return ()
    match worked.step.op:
        case "linear":
            return _linear_numbers(showing, worked, at)
        case "add":
            return _add_numbers(showing, worked, at)
        case "scores":
            return _scores_numbers(showing, worked, at)
        case "mix":
            return _mix_numbers(showing, worked, at)
        case _:
            return ()


def _matrix(rows: tuple[tuple[Cell, ...], ...], address: str) -> Matrix | None:
    small = rows and len(rows) <= WIDEST_MATRIX and len(rows[0]) <= WIDEST_MATRIX
    return Matrix(rows, address) if small else None


def _row(showing: Showing, address: str, position: int) -> tuple[Cell, ...]:
    """Everything a step holds at one position, its heads side by side."""
    worked = showing.trace.steps[address]
    shape = worked.step.shape
    if len(shape) == 3:
        places = [(h, position, i) for h in range(shape[0]) for i in range(shape[2])]
        return tuple(showing.cell(worked, place) for place in places)
    return tuple(showing.cell(worked, (position, i)) for i in range(shape[1]))


def _line(*pieces: Matrix | Sign | Expression | None) -> Line:
    """The pieces, or nothing where one of them is missing."""
    known = tuple(piece for piece in pieces if piece is not None)
    return known if len(known) == len(pieces) else ()


def _position(worked: Worked, at: Index) -> int:
    axis = worked.step.position_axis
    return at[axis] if axis is not None else 0


def _linear_numbers(showing: Showing, worked: Worked, at: Index) -> Line:
    step, place = worked.step, _position(worked, at)
    name = step.inputs["weight"].removeprefix(WEIGHT)
    if max(showing.trace.model.weights[name].shape) > WIDEST_MATRIX:
        return ()
    weight = showing.weight_rows(name)
    x, result = _row(showing, step.inputs["x"], place), _row(showing, step.address, place)
    bias: tuple[tuple[Cell, ...], ...] = ()
    if "bias" in step.inputs:
        bias = showing.weight_rows(step.inputs["bias"].removeprefix(WEIGHT))
    across = step.attributes["layout"] == "in_out"
    if step.inputs["weight"] == WEIGHT + "embed.token":  # x·Eᵀ, as the law has it
        weight, across = tuple(zip(*weight, strict=True)), True

    def vector(cells: tuple[Cell, ...], address: str) -> Matrix | None:
        return _matrix((cells,) if across else tuple((c,) for c in cells), address)

    row, matrix = vector(x, step.inputs["x"]), _matrix(weight, step.inputs["weight"])
    product = (row, Sign("·"), matrix) if across else (matrix, Sign("·"), row)
    plus = (Sign("+"), vector(bias[0], step.inputs["bias"])) if bias else ()
    return _line(*product, *plus, EQUALS, vector(result, step.address))


def _add_numbers(showing: Showing, worked: Worked, at: Index) -> Line:
    step, place = worked.step, _position(worked, at)
    x, y = step.inputs["x"], step.inputs["y"]
    return _line(
        _matrix((_row(showing, x, place),), x),
        Sign("+"),
        _matrix((_row(showing, y, place),), y),
        EQUALS,
        _matrix((_row(showing, step.address, place),), step.address),
    )


def _scores_numbers(showing: Showing, worked: Worked, at: Index) -> Line:
    step = worked.step
    if "slopes" in step.inputs or "table" in step.inputs:
        return ()
    head, query, _key = at
    q, k = (showing.trace.steps[step.inputs[role]] for role in ("q", "k"))
    kv_head = head // (q.step.shape[0] // k.step.shape[0])
    seen = _seen(worked, head, query)
    width = q.step.shape[2]
    keys = tuple(tuple(showing.cell(k, (kv_head, key, i)) for key in seen) for i in range(width))
    row = (tuple(showing.cell(q, (head, query, i)) for i in range(width)),)
    result = (tuple(showing.cell(worked, (head, query, key)) for key in seen),)
    scale = step.attributes.get("scale")
    scaled: tuple[Sign | Expression, ...] = ()
    if isinstance(scale, Quotient) and scale.top == ONE:
        scaled = (Sign("/"), scale.bottom)
    elif scale is not None:
        scaled = (Sign("·"), scale)
    return _line(
        _matrix(row, q.address),
        Sign("·"),
        _matrix(keys, k.address),
        *scaled,
        EQUALS,
        _matrix(result, step.address),
    )


def _mix_numbers(showing: Showing, worked: Worked, at: Index) -> Line:
    step = worked.step
    head, query, _inner = at
    weights, v = (showing.trace.steps[step.inputs[role]] for role in ("weights", "v"))
    kv_head = head // (weights.step.shape[0] // v.step.shape[0])
    seen = _seen(weights, head, query)
    width = range(v.step.shape[2])
    shares = (tuple(showing.cell(weights, (head, query, key)) for key in seen),)
    values = tuple(tuple(showing.cell(v, (kv_head, key, i)) for i in width) for key in seen)
    result = (tuple(showing.cell(worked, (head, query, i)) for i in width),)
    return _line(
        _matrix(shares, weights.address),
        Sign("·"),
        _matrix(values, v.address),
        EQUALS,
        _matrix(result, step.address),
    )


def _seen(worked: Worked, head: int, query: int) -> list[int]:
    keys = range(worked.step.shape[2])
    return [key for key in keys if worked.register_at((head, query, key)) is not None]
