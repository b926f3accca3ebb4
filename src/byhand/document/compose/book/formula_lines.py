"""The law of a step with this model's numbers in it: one position's rows and matrices.

A matrix that is too large for a line is shown by its symbol, and a long row by its first and last
numbers.  `formulas` has the law in symbols, and one entry written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.forms import symbol_of
from byhand.document.compose.tables import Index
from byhand.document.mathematics import cell_tree, shortened
from byhand.document.parts import Cell, Line, Matrix, Piece, Sign, Word
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
from byhand.plan import WEIGHT
from byhand.worked import Worked
from byhand.working import E

WIDEST_MATRIX = 8  # rows or columns of a matrix in a formula
FIRST, LAST = 2, 1  # numbers of a long row that are shown
SHORT_POWER = 5  # characters of an exponent that is not a plain number
EQUALS, TIMES, PLUS, MINUS = Sign("="), Sign("·"), Sign("+"), Sign("−")
BECOMES = Sign("→")
EACH = Sign("⊙")  # number by number
DOTS = Cell("exact", form=Name("…"))


def average(entry: Expression, count: str) -> Expression:
    """A mean as what it computes: (1/d)·Σ x_i."""
    return Product((Quotient(ONE, Name(count)), Call("Σ", entry)))


def in_numbers(showing: Showing, worked: Worked, at: Index) -> Line:
    """One position's line with its rows written out; empty if it would say no more than the law."""
    writers = {
        "embed": _embed,
        "add": _add,
        "linear": _linear,
        "split_heads": _becomes,
        "rotate": _becomes,
        "scores": _scores,
        "softmax": _softmax,
        "mix": _mix,
        "merge_heads": _concat,
        "center": _center,
        "normalize": _normalize,
        "affine": _affine,
        "multiply": _multiply,
        "activate": _activate,
    }
    writer = writers.get(worked.step.op)
    return () if writer is None or worked.missing is not None else writer(showing, worked, at)


def answer(showing: Showing, position: int) -> Line:
    """The largest logit and its token; empty if that is undecided."""
    trace = showing.trace
    found = trace.next[position].id if trace.next else None
    if found is None:
        return ()
    row = _row(showing, trace.steps["logits"], (position,))
    return (Name("argmax"), row, BECOMES, Word(showing.answer(found)))


# ------------------------------------------------------------------ rows


def _some(cells: Sequence[Cell], most: int) -> tuple[Cell, ...]:
    """The whole row, or its first and last entries."""
    few = tuple(cells)
    return few if len(few) <= most else (*few[:FIRST], DOTS, *few[-LAST:])


def _most(showing: Showing) -> int:
    return WIDEST_MATRIX if showing.everything else FIRST + LAST + 1


def _indices(worked: Worked, prefix: Index) -> list[Index]:
    return [(*prefix, i) for i in range(worked.step.shape[-1])]


def _at(showing: Showing, worked: Worked, indices: Sequence[Index]) -> tuple[Cell, ...]:
    most = _most(showing)
    if len(indices) > most:
        ends = [*indices[:FIRST], *indices[-LAST:]]
        cells = [showing.cell(worked, index) for index in ends]
        return (*cells[:FIRST], DOTS, *cells[FIRST:])
    return tuple(showing.cell(worked, index) for index in indices)


def _row(showing: Showing, worked: Worked, prefix: Index) -> Matrix:
    """The row of a step at some leading indices."""
    return Matrix((_at(showing, worked, _indices(worked, prefix)),), worked.address)


def _whole_row(showing: Showing, worked: Worked, position: int) -> tuple[Cell, ...]:
    """All entries of a step at one position, its heads side by side."""
    shape = worked.step.shape
    if len(shape) == 3:
        places: list[Index] = [(h, position, i) for h in range(shape[0]) for i in range(shape[2])]
    else:
        places = [(position, i) for i in range(shape[1])]
    return _at(showing, worked, places)


def _weight(showing: Showing, address: str) -> tuple[tuple[Cell, ...], ...]:
    return showing.weight_rows(address.removeprefix(WEIGHT))


def _shape(showing: Showing, address: str) -> Index:
    shape: Index = showing.trace.model.weights[address.removeprefix(WEIGHT)].shape
    return shape


def _position(worked: Worked, at: Index) -> int:
    axis = worked.step.position_axis
    return at[axis] if axis is not None else 0


def _seen(worked: Worked, head: int, query: int) -> list[int]:
    keys = range(worked.step.shape[2])
    return [key for key in keys if worked.register_at((head, query, key)) is not None]


def _input(showing: Showing, worked: Worked, role: str) -> Worked:
    return showing.trace.steps[worked.step.inputs[role]]


def _equals(*shown: Cell) -> Sign:
    """= or ≈: the latter if a number beside the matrices is not shown in full."""
    return Sign("≈") if any(map(shortened, shown)) else EQUALS


# ------------------------------------------------------------------ into the stream


def _embed(showing: Showing, worked: Worked, at: Index) -> Line:
    """The embedding row of an id or a position."""
    place = _position(worked, at)
    tokens = worked.step.address == "embed.token"
    picked = f"E_{showing.trace.tokens[place]}" if tokens else f"P_{place}"
    scale = worked.step.attributes.get("scale")
    scaled: tuple[Piece, ...] = () if scale is None else (TIMES, scale)
    return (Name(picked), *scaled, EQUALS, _row(showing, worked, (place,)))


def _add(showing: Showing, worked: Worked, at: Index) -> Line:
    place = (_position(worked, at),)
    x, y = (_row(showing, _input(showing, worked, role), place) for role in ("x", "y"))
    return (x, PLUS, y, EQUALS, _row(showing, worked, place))


# ------------------------------------------------------------------ matrices


def _linear(showing: Showing, worked: Worked, at: Index) -> Line:
    step, place = worked.step, _position(worked, at)
    address = step.inputs["weight"]
    across = step.attributes["layout"] == "in_out"
    tied = address == WEIGHT + "embed.token"  # x·Eᵀ, as in the law
    x = _whole_row(showing, _input(showing, worked, "x"), place)
    small = showing.everything and max(_shape(showing, address)) <= WIDEST_MATRIX
    symbol = "Eᵀ" if tied else symbol_of(step, "weight", address)
    matrix: Piece = Name(symbol)
    if small:
        weight = _weight(showing, address)
        matrix = Matrix(tuple(zip(*weight, strict=True)) if tied else weight, address)

    def vector(cells: tuple[Cell, ...], of: str) -> Matrix:
        return Matrix((cells,) if across or tied else tuple((cell,) for cell in cells), of)

    row = vector(x, step.inputs["x"])
    product = (row, TIMES, matrix) if across or tied else (matrix, TIMES, row)
    plus: tuple[Piece, ...] = ()
    if "bias" in step.inputs:
        bias = step.inputs["bias"]
        known = vector(_weight(showing, bias)[0], bias) if small else Name("b")
        plus = (PLUS, known)
    equals = EQUALS if small else _equals(*x)
    return (*product, *plus, equals, vector(_whole_row(showing, worked, place), step.address))


def _becomes(showing: Showing, worked: Worked, at: Index) -> Line:
    """A row before and after it is cut or rotated."""
    before = _input(showing, worked, "x")
    place = _position(worked, at)
    if len(before.step.shape) == 3:
        return (_row(showing, before, at[:-1]), BECOMES, _row(showing, worked, at[:-1]))
    after = Matrix((_whole_row(showing, worked, place),), worked.address)
    return (_row(showing, before, (place,)), BECOMES, after)


# ------------------------------------------------------------------ attention


def _scores(showing: Showing, worked: Worked, at: Index) -> Line:
    step = worked.step
    if {"slopes", "table", "bias"} & set(step.inputs) or "cap" in step.attributes:
        return ()
    q, k = (_input(showing, worked, role) for role in ("q", "k"))
    seen = _seen(worked, *at[:2])
    keys = _of_keys(showing, k, at[0] // (q.step.shape[0] // k.step.shape[0]), seen, "kᵀ")
    if isinstance(keys, Matrix):
        keys = Matrix(tuple(zip(*keys.rows, strict=True)), keys.address)
    scale = step.attributes.get("scale")
    scaled: tuple[Piece, ...] = () if scale is None else (scale, TIMES)
    result = _of_query(showing, worked, at, seen)
    return (*scaled, _row(showing, q, at[:2]), TIMES, keys, EQUALS, result)


def _mix(showing: Showing, worked: Worked, at: Index) -> Line:
    weights, v = (_input(showing, worked, role) for role in ("weights", "v"))
    seen = _seen(weights, *at[:2])
    values = _of_keys(showing, v, at[0] // (weights.step.shape[0] // v.step.shape[0]), seen, "v")
    shares = _of_query(showing, weights, at, seen)
    return (shares, TIMES, values, EQUALS, _row(showing, worked, at[:2]))


def _of_query(showing: Showing, worked: Worked, at: Index, seen: Sequence[int]) -> Matrix:
    """The scores or attention weights of one query, for the keys that it sees."""
    return Matrix((_at(showing, worked, [(*at[:2], key) for key in seen]),), worked.address)


def _of_keys(
    showing: Showing, worked: Worked, head: int, seen: Sequence[int], name: str
) -> Matrix | Name:
    """The keys or values that a query sees, one row each; by name if they are too many."""
    width = worked.step.shape[2]
    if not showing.everything or max(len(seen), width) > WIDEST_MATRIX:
        return Name(name)
    rows = (tuple(showing.cell(worked, (head, key, i)) for i in range(width)) for key in seen)
    return Matrix(tuple(rows), worked.address)


def _concat(showing: Showing, worked: Worked, at: Index) -> Line:
    """The heads side by side."""
    mixed, place = _input(showing, worked, "x"), _position(worked, at)
    heads = [_row(showing, mixed, (head, place)) for head in range(mixed.step.shape[0])]
    beside = [piece for row in heads for piece in (Sign(","), row)][1:]
    return (Name("concat"), *beside, EQUALS, _row(showing, worked, (place,)))


def _softmax(showing: Showing, worked: Worked, at: Index) -> Line:
    """e to the power of each score, divided by the sum."""
    of = _input(showing, worked, "x")
    if len(at) == 3:
        indices: list[Index] = [(*at[:2], key) for key in _seen(worked, at[0], at[1])]
    else:
        indices = _indices(worked, at[:-1])
    shown = _at(showing, of, indices)
    powers = tuple(cell if cell is DOTS else _power(cell) for cell in shown)
    shares = Matrix((_at(showing, worked, indices),), worked.address)
    equals = Sign("≈") if any(map(_by_decimals, shown)) else EQUALS
    forms = [cell.form for cell in powers if cell.form is not None]
    if (sinks := worked.step.inputs.get("sinks")) is not None:
        sink = _power(_weight(showing, sinks)[0][at[0]])
        forms += [] if sink.form is None else [sink.form]
    if len(forms) == 1:
        return (Quotient(forms[0], forms[0]), EQUALS, cell_tree(shares.rows[0][0]))
    total: Expression = Sum(tuple(forms))
    if DOTS in powers:
        total = Call("Σ", Power(E, Name(of.address.rpartition(".")[2])))
        if sinks is not None:
            total = Sum((total, forms[-1]))
    return (Quotient(ONE, total), TIMES, Matrix((powers,), of.address), equals, shares)


def _by_decimals(cell: Cell) -> bool:
    """Whether the exponent is not shown in full."""
    if cell is DOTS or cell.plain or _short(cell):
        return False
    return cell.cut or cell.register != "exact"


def _short(cell: Cell) -> bool:
    return cell.form is not None and len(write(cell.form)) <= SHORT_POWER


def _power(cell: Cell) -> Cell:
    """e to the power of a number, which is short or shown by its decimals."""
    form = cell.form
    if form is None or not (cell.plain or _short(cell)):
        form = _decimals(cell)
    return Cell(cell.register, form=Power(E, form))


def _decimals(cell: Cell) -> Expression:
    text = cell.decimal or ""
    tree: Expression = Name(text.lstrip("-"))
    return Negative(tree) if text.startswith("-") else tree


# ------------------------------------------------------------------ norms and bends


def _center(showing: Showing, worked: Worked, at: Index) -> Line:
    prefix = at[:-1]
    mean = showing.cell(_input(showing, worked, "mean"), prefix)
    tree, sign, equals = cell_tree(mean), MINUS, _equals(mean)
    if isinstance(tree, Sum):  # would need brackets
        tree, equals = _decimals(mean), Sign("≈")
    match tree:
        case Negative(of=size):
            tree, sign = size, PLUS
        case Number(value=value) if value < 0:
            tree, sign = Number(-value), PLUS
    x = _row(showing, _input(showing, worked, "x"), prefix)
    return (x, sign, tree, equals, _row(showing, worked, prefix))


def _normalize(showing: Showing, worked: Worked, at: Index) -> Line:
    prefix = at[:-1]
    by = showing.cell(_input(showing, worked, "by"), prefix)
    x = _row(showing, _input(showing, worked, "x"), prefix)
    inverse = Quotient(ONE, cell_tree(by))
    return (inverse, TIMES, x, _equals(by), _row(showing, worked, prefix))


def _affine(showing: Showing, worked: Worked, at: Index) -> Line:
    step, prefix = worked.step, at[:-1]
    pieces: list[Piece] = [_row(showing, _input(showing, worked, "x"), prefix)]
    for role, sign in (("gain", EACH), ("bias", PLUS)):
        if role in step.inputs:
            if len(_shape(showing, step.inputs[role])) > 1 or step.attributes.get("plus_one"):
                return ()
            cells = _some(_weight(showing, step.inputs[role])[0], _most(showing))
            pieces += [sign, Matrix((cells,), step.inputs[role])]
    return (*pieces, EQUALS, _row(showing, worked, prefix))


def _multiply(showing: Showing, worked: Worked, at: Index) -> Line:
    rows: Iterable[Matrix] = (
        _row(showing, showing.trace.steps[read], at[:-1])
        for read in worked.step.reads
        if not read.startswith(WEIGHT)
    )
    pieces = [piece for row in rows for piece in (EACH, row)][1:]
    return (*pieces, EQUALS, _row(showing, worked, at[:-1]))


def _activate(showing: Showing, worked: Worked, at: Index) -> Line:
    kind = Name(worked.step.attributes["kind"].removesuffix("_tanh"))
    x = _row(showing, _input(showing, worked, "x"), at[:-1])
    return (kind, x, EQUALS, _row(showing, worked, at[:-1]))
